# SPDX-License-Identifier: Apache-2.0
"""What a scenario becomes in the laboratory, without touching the machine."""

import json
import platform
import re
import tomllib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import _native, api
from penstock.errors import ScenarioError
from penstock.execution.lab import agent, host, plan, schemes

DUMBBELL = """
title = "A small dumbbell"
duration = "1 s"
schemes = ["drop-tail"]

[fabric]
kind = "dumbbell"
senders = 3
receivers = 2
access = { rate = "1 Gb/s", delay = "5 us" }
bottleneck = { rate = "200 Mb/s", delay = "15 us", buffer = "128 kB" }

[traffic.long]
kind = "bulk"
from = "senders"
to = "receivers"
"""


NEAR = {"traffic.long.from": "senders[0..1]", "traffic.long.to": "senders[1..2]"}


def layout(text=DUMBBELL, **settings):
    resolved = api.resolved(tomllib.loads(text), overrides=settings)
    return json.loads(_native.layout(resolved, "here.toml", str))


def tree(**settings):
    fabric = {
        "kind": "leaf-spine",
        "leaves": 2,
        "spines": 1,
        "hosts_per_leaf": 2,
        "host_link": {"rate": "100 Mb/s", "delay": "1 us"},
        "spine_link": {"rate": "400 Mb/s", "delay": "1 us", "buffer": "40 packets"},
    }
    document = tomllib.loads(DUMBBELL) | {"fabric": fabric | settings}
    document["traffic"] = {"long": {"kind": "bulk", "from": "leaf1", "to": "leaf2"}}
    return json.loads(_native.layout(api.resolved(document), "here.toml", str))


def test_every_node_is_a_namespace_and_every_cable_joins_two():
    planned = plan.of(layout())
    assert list(planned.namespaces) == [
        *("left", "right", "sender1", "sender2", "sender3", "receiver1", "receiver2")
    ]
    lines = planned.creation("7")
    assert lines[0] == "netns add penstock-7-left"
    assert (
        "link add name left netns penstock-7-sender1 address 02:70:73:00:00:03 "
        "type veth peer name sender1 netns penstock-7-left" in lines
    )
    assert len(lines) == 7 + 6


def test_the_bottleneck_is_shaped_in_ip_bytes_and_the_access_is_not():
    planned = plan.of(layout())
    script = planned.script("left")
    assert (
        "qdisc replace dev right root handle 1: stab overhead -14 linklayer ethernet "
        "tbf rate 200000000bit burst 4000 limit 128000" in script
    )
    assert "dev sender1 root" not in script
    assert "tc -batch" not in planned.script("sender1")
    assert [port.name for port in planned.protected] == ["left->right", "right->left"]


def test_a_measured_port_that_is_not_shaped_has_a_queue_that_counts():
    measured = {"measure.ports": ["left->right", "left->sender1", "sender2->left"]}
    planned = plan.of(layout(**measured))
    fifo = "root handle 1: stab overhead -14 linklayer ethernet pfifo limit"
    assert f"qdisc replace dev sender1 {fifo} 83\n" in planned.script("left")
    assert f"qdisc replace dev left {fifo} 1000\n" in planned.script("sender2")
    assert "tc -batch" not in planned.script("sender1")
    in_bytes = layout(**measured, **{"fabric.access.buffer": "64 kB"})
    assert "ethernet bfifo limit 64000\n" in plan.of(in_bytes).script("left")


def test_a_buffer_in_packets_is_a_fifo_of_packets():
    planned = plan.of(layout(**{"fabric.bottleneck.buffer": "83 packets"}))
    assert "qdisc add dev right parent 1: handle 10: pfifo limit 83" in planned.script("left")
    assert "limit 124500" in planned.script("left")


def test_traffic_under_one_switch_is_held_where_each_host_has_a_namespace():
    assert len(plan.of(layout(**NEAR)).home) == 5


def test_hosts_know_each_other_without_asking():
    script = plan.of(layout(), "congctl cubic rto_min 200ms").script("sender1")
    assert "neighbour add 10.77.6.1 lladdr 02:70:73:00:00:06 nud permanent dev left" in script
    assert (
        "route add 10.77.6.0/24 via 10.77.6.1 dev left onlink congctl cubic rto_min 200ms" in script
    )
    assert "10.77.3.1 lladdr" not in script  # itself


def test_the_load_generator_learns_where_its_hosts_and_ports_are():
    hosts = json.loads(plan.of(layout()).hosts_json("7"))
    assert hosts["hosts"]["receiver1"] == {
        "netns": "/run/netns/penstock-7-receiver1",
        "address": "10.77.6.1",
    }
    assert hosts["ports"] == {
        "left->right": {"netns": "/run/netns/penstock-7-left", "interface": "right"}
    }


@given(st.integers(1, 400), st.integers(1, 400))
def test_any_number_of_hosts_has_addresses_of_its_own(senders, receivers):
    described = layout(**{"fabric.senders": senders, "fabric.receivers": receivers})
    planned = plan.of(described)
    hosts = json.loads(planned.hosts_json("7"))["hosts"]
    assert list(hosts) == described["hosts"]
    assert len({one["address"] for one in hosts.values()}) == senders + receivers
    assert len(planned.namespaces) <= 2 + plan.HOST_NAMESPACES + 1
    for name, space in planned.namespaces.items():
        assert space.is_switch or len(space.interfaces) == 1, name
        side = {host.rstrip("0123456789") for host in space.hosts}
        assert len(side) <= 1  # under one switch
        assert all(len(f"{interface}") <= 15 for interface in space.interfaces)


def test_a_leaf_and_spine_is_shaped_at_every_port():
    planned = plan.of(tree())
    assert "pfifo limit 40" in planned.script("leaf1")
    assert planned.script("leaf1").count("tbf rate 100000000bit") == 2
    assert planned.script("host1").count("tbf rate 100000000bit") == 1
    assert {port.name for port in planned.protected} >= {"leaf1->spine1", "leaf1->host1"}


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        (
            lambda: layout(**{"fabric.bottleneck.rate": "10 Gb/s"}),
            "left->right is faster",
        ),
        (lambda: tree(spines=2), "several paths"),
        (
            lambda: layout(**{"fabric.port_at": '{ "left->*" = { loss = 0.1 } }'}),
            "left->right fails",
        ),
        (
            lambda: layout(**{"fabric.shared_at": '{ right = { size = "1 MB" } }'}),
            "shares a buffer",
        ),
        (lambda: tree(hosts_per_leaf=40), "needs its own cable"),
        (lambda: layout(**{"fabric.senders": 20_000}), "too many"),
        (
            lambda: tree(leaves=130, hosts_per_leaf=1, scheme_at=["spine1"]),
            "130 hosts and 131 switches are too many",
        ),
        (
            lambda: layout(**{"fabric.senders": 100, **NEAR}),
            r"traffic\.long: may join hosts under one switch",
        ),
    ],
)
def test_what_cannot_be_held_is_refused_in_one_line(described, reason):
    with pytest.raises(ScenarioError, match=reason) as refused:
        plan.of(described())
    assert "\n" not in str(refused.value)


def scheme(name, **settings):
    overrides = {"schemes": [name], **settings}
    document = tomllib.loads(api.resolved(tomllib.loads(DUMBBELL), overrides=overrides))
    return schemes.of(name, document["scheme"][name], 50e-6), document["scheme"][name]


def test_the_agent_gets_every_parameter_of_the_scheme():
    held, _ = scheme("fairq-paper", **{"scheme.fairq-paper.window.alpha": 0.5})
    (port, _) = plan.of(layout()).protected
    command = held.attach(port, "/pins")
    assert command[:4] == ["attach", "right", "--scheme", "fairq-paper"]
    for words in (
        ("--set", "window.alpha=0.5"),
        ("--set", "window.interval=50000 ns"),
        ("--set", "window.rounds_down=true"),
        ("--buffer", "128000 B"),
        ("--pins", "/pins"),
    ):
        assert any(tuple(pair) == words for pair in pairwise(command)), words
    assert "--stay" in command
    assert not any(word.startswith("window.variant") for word in command)


def test_the_agent_gets_the_rate_where_the_scheme_uses_it():
    (port, _) = plan.of(layout()).protected
    for name, uses_it in (("hcf", True), ("hcf-fairq", True), ("grant", True), ("hscc", False)):
        command = scheme(name)[0].attach(port, "/pins")
        assert (("--rate", "200000000 b/s") in pairwise(command)) == uses_it, name


def test_grant_has_no_marks_next_to_it():
    marking = {"scheme.grant.queue": {"kind": "threshold", "mark_at": 0.25}}
    with pytest.raises(ScenarioError, match="threshold with window grant is not in the laboratory"):
        scheme("grant", **marking)


def test_grant_behind_ports_is_at_hosts_or_where_a_dumbbells_link_ends():
    behind, at_port = scheme("grant-receiver")[0], scheme("grant")[0]
    planned = plan.of(tree())
    ends = [(port.node, port.interface) for port in agent.places(behind, planned)]
    assert ends == [("host1", "leaf1"), ("host2", "leaf1"), ("host3", "leaf2"), ("host4", "leaf2")]
    assert agent.places(at_port, planned) == planned.protected
    ends = [(port.node, port.interface) for port in agent.places(behind, plan.of(layout()))]
    assert ends == [("right", "left"), ("left", "right")]


def test_marks_next_to_windows_are_the_agents_too():
    (port, _) = plan.of(layout()).protected
    for settings, mark in (
        ({}, "0.25"),
        ({"scheme.fairswitch.queue.mark_at": "30 kB"}, "30 kB"),
    ):
        held, table = scheme("fairswitch", **settings)
        command = held.attach(port, "/pins")
        assert command[:4] == ["attach", "right", "--scheme", "fairq"]
        assert ("--set", f"mark={mark}") in pairwise(command)
        assert held.discipline(port, table["queue"]) == []
    kernels = schemes.Scheme("k", queue="threshold")
    (line,) = kernels.discipline(port, {"mark_at": 0.25})
    assert kernels.marks({"mark_at": 0.25})
    assert [schemes.Scheme("r", queue="red").marks({"ecn": ecn}) for ecn in (False, True)] == [
        False,
        True,
    ]
    assert not schemes.Scheme("drop-tail").marks({"kind": "drop-tail"})
    assert " min 32000 " in line


def test_drop_tail_needs_nothing_and_hcf_is_the_agents():
    assert scheme("drop-tail")[0] == schemes.Scheme("drop-tail")
    assert scheme("hcf")[0].agent[:2] == ("--scheme", "hcf")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("red", "red limit 128000 min 32000 max 96000 avpkt 1500 burst 36"),
        ("dctcp", "red limit 128000 min 22500 max 22501 avpkt 1500 burst 16"),
        ("codel", "codel limit 85 target 100us interval 1000us"),
        ("sfq", "sfq limit 85"),
    ],
)
def test_the_kernels_own_disciplines_go_under_tbf(name, expected):
    held, table = scheme(name)
    (port, _) = plan.of(layout()).protected
    (line,) = held.discipline(port, table["queue"])
    assert line.startswith(f"qdisc replace dev right parent 1: handle 10: {expected}")


def test_sfq_changes_its_hash_as_often_as_the_kernel_can():
    (port, _) = plan.of(layout()).protected
    held, table = scheme("sfq", **{"scheme.sfq.queue.perturb": "2 s"})
    (line,) = held.discipline(port, table["queue"])
    assert line.endswith(" perturb 2")
    with pytest.raises(ScenarioError, match="whole seconds"):
        held.discipline(port, {**table["queue"], "perturb": "500 ms"})


@pytest.mark.parametrize(("name", "reason"), [("sicc", "controller"), ("drr", "queue drr")])
def test_a_scheme_that_is_not_in_the_lab_is_refused(name, reason):
    with pytest.raises(ScenarioError, match=reason):
        scheme(name)


def test_every_tcp_parameter_that_the_kernel_has_is_set():
    keys = {"profile": "linux", "min_rto": "10 ms", "initial_window": 2, "ecn": True}
    tcp = host.of(keys, with_tools=True)
    assert tcp.route == "congctl cubic rto_min 10ms initcwnd 2"
    assert tcp.sysctls == {"net.ipv4.tcp_ecn": 1}
    assert tcp.not_set == ()
    short = host.of({"profile": "linux", "min_rto": "200 us"}, with_tools=True)
    assert "rto_min 1ms" in short.route
    assert host.of({}).congestion == "cubic"
    other = host.of({"profile": "newreno-ns2", "mss": 1000, "max_window": 8})
    assert other.congestion == "newreno"
    assert other.not_set == ("mss", "max_window", "profile")


@pytest.mark.parametrize(
    ("has_option", "route"), [(True, "initcwnd 2"), (False, "rto_min 10ms initcwnd 2")]
)
def test_routes_leave_alone_what_sockets_set(has_option, route, monkeypatch):
    monkeypatch.setattr(host, "_has_rto_option", lambda: has_option)
    keys = {"congestion": "newreno", "min_rto": "10 ms", "initial_window": 2}
    assert host.of(keys).route == route
    assert host.of(keys).not_set == ()


def test_the_rto_option_is_looked_for_in_this_kernel():
    release = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    assert host._has_rto_option() == (release >= (6, 16))


@pytest.mark.parametrize(
    ("scale", "sysctls"),
    [
        (0, {"net.ipv4.tcp_window_scaling": 0}),
        (10, {"net.ipv4.tcp_rmem": '"4096 131072 33554432"'}),
    ],
)
def test_a_window_scale_is_set_by_the_largest_receive_buffer(scale, sysctls, tmp_path, monkeypatch):
    most = tmp_path / "rmem_max"
    monkeypatch.setattr(host, "_RMEM_MAX", most)
    most.write_text("4194304\n")
    assert host.of({"profile": "linux", "window_scale": scale}).sysctls == sysctls
    most.write_text(str(1 << 26))  # of the whole machine: all offer a scale of at least 11
    tcp = host.of({"profile": "linux", "window_scale": 10})
    assert tcp.sysctls == {}
    assert tcp.not_set == ("window_scale",)
