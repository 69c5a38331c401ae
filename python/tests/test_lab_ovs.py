# SPDX-License-Identifier: Apache-2.0
"""The laboratory on Open vSwitch: what is planned, and as root what is built and measured."""

import json
import tomllib

import polars as pl
import pytest

from penstock import _native, api
from penstock.errors import RunError, ScenarioError
from penstock.execution.lab import fabric, ovs, plan, schemes, sicc, system
from penstock.scenario import load

from .test_lab_fabric import received
from .test_lab_plan import DUMBBELL, layout, tree


def planned(described):
    return plan.of(described, with_ovs=True)


def test_switches_share_a_namespace_and_their_ports_have_numbers():
    made = planned(layout())
    assert made.name("left", "7") == made.name("right", "7") == "penstock-7-switches"
    assert made.name("sender1", "7") == "penstock-7-sender1"
    lines = made.creation("7")
    assert lines.count("netns add penstock-7-switches") == 1
    assert any("name s1-" in line and "peer name s2-" in line for line in lines)
    left = made.namespaces["left"]
    assert list(left.interfaces.values()) == ["s1-1", "s1-2", "s1-3", "s1-4"]


def test_a_port_with_a_queue_is_joined_to_the_bridge():
    made = planned(layout())
    (port, _) = made.protected
    left = made.namespaces["left"]
    assert port.interface == left.interfaces["right"] == "s1-1"
    assert made.switch_ports(left) == ["o1-1", "s1-2", "s1-3", "s1-4"]
    script = made.script("left")
    assert "link add name o1-1 type veth peer name j1-1" in script
    assert "qdisc replace dev s1-1 root handle 1:" in script
    for near, far, how in (("s1-1", "j1-1", "redirect"), ("j1-1", "s1-1", "mirror")):
        line = f"filter add dev {near} ingress protocol all u32 match u32 0 0 "
        assert f"{line}action mirred egress {how} dev {far}" in script
    assert "bridge0" not in script
    assert "tx off" in made.script("sender1"), "checksums are complete"


def test_there_may_be_several_paths():
    made = planned(tree(leaves=4, spines=2, hosts_per_leaf=4))
    assert len(made.bridges) == 6
    assert len(made.namespaces["leaf1"].interfaces) == 6


def scheme(name, **settings):
    document = tomllib.loads(
        api.resolved(tomllib.loads(DUMBBELL), overrides={"schemes": [name], **settings})
    )
    return schemes.of(name, document["scheme"][name], 50e-6, with_ovs=True)


def test_the_controller_gets_every_parameter():
    held = scheme("sicc", **{"scheme.sicc.controller.alpha2": 0.5})
    assert held.controller["alpha2"] == 0.5
    assert held.controller["interval"] == "500000 ns"
    assert "variant" not in held.controller
    assert scheme("drop-tail").controller is None


@pytest.mark.parametrize("name", ["hcf", "grant"])
def test_schemes_that_a_port_of_open_vswitch_cannot_have_are_refused(name):
    with pytest.raises(ScenarioError, match="is not in the laboratory on Open vSwitch"):
        scheme(name)


def test_a_port_may_have_a_window_scheme():
    held = scheme("fairq", **{"scheme.fairq.window.alpha": 0.125})
    assert (held.agent, held.window["alpha"], held.is_counted) == (("fairq",), 0.125, False)
    assert scheme("fairq", **{"scheme.fairq.controller.kind": "flow-counts"}).is_counted


def test_without_open_vswitch_the_error_names_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr(ovs, "_SCHEMA", tmp_path / "none")
    with pytest.raises(RunError, match="install the package openvswitch-switch"):
        ovs.check()


def described(name):
    text = api.resolved(name)
    return json.loads(_native.layout(text, str(load(name).origin), str))


@pytest.mark.parametrize(
    ("name", "switches", "links", "hosts"), [("lab/sicc", 2, 1, 16), ("lab/sicc-fabric", 6, 8, 16)]
)
def test_the_controller_learns_a_fabric_and_leaves_nothing(name, switches, links, hosts):
    made = planned(described(name))
    names = list(made.home)
    with system.locked():
        with (
            fabric.built(made) as tag,
            sicc.controlled(schemes.Scheme("drop-tail"), made, tag) as running,
        ):
            status = running.status()
            assert len(status["switches"]) == switches
            assert len(status["links"]) == links
            assert len(status["hosts"]) == hosts
            assert running.counters() == {}
            assert received(made, tag, names[0], names[-1])
            assert received(made, tag, names[-1], names[0])
        assert system.leftovers() == []
    assert not system.STATE.exists()


WINDOWS = {"traffic": "elephants", "flows": 8, "every": "1 ms"}

# A clamp that begins with any new flow and does not end: one is expected to send 14.6 kB, which is
# more than half of the buffer.
CLAMPS = {
    "duration": "1500 ms",
    "traffic.mice.start": "500 ms",
    "fabric.bottleneck.buffer": "29 kB",
    "scheme.sicc.controller.alpha2": 0.5,
    "scheme.sicc.controller.duration": "60 min",
    "scheme.sicc.controller.off_needs_both": True,
    **{f"measure.windows.{key}": value for key, value in WINDOWS.items()},
}


@pytest.mark.parametrize("messages", ["datagrams", "frames"])
def test_the_clamp_arrives_at_the_senders(messages):
    overrides = {**CLAMPS, "scheme.sicc.controller.messages": messages}
    run = api.run("lab/sicc", overrides=overrides, on="ovs")
    without, clamped = run.summary["results"]
    assert "controller" not in without
    counted = clamped["controller"]
    assert counted["incasts"] > 0
    assert counted["messages_sent"] > 0
    assert counted["acks_rewritten"] > 0
    assert (counted["frames_sent"] > 0) == (messages == "frames")
    offered = run.windows.filter(pl.col("rwnd_bytes") > 0)  # 0: there is no connection yet
    usual = dict(offered.group_by("scheme").agg(pl.col("rwnd_bytes").median()).iter_rows())
    assert usual["sicc"] < 4 * 1448 < usual["drop-tail"], "a segment, rounded up to the scale"
    assert run.info["substrate"] == "ovs"
    assert run.info["datapath"] == ovs.datapath_type()


def test_a_queue_holds_its_buffer_and_counts_what_does_not_fit():
    # The socket by which the datapath in user space sends would hold 92 packets.
    settings = {"duration": "3 s", "fabric.bottleneck.buffer": "256 kB", "schemes": ["drop-tail"]}
    run = api.run("lab/sicc", overrides=settings, on="ovs")
    (result,) = run.summary["results"]
    (port,) = result["ports"].values()
    assert port["queue_bytes"]["max"] > 240_000
    assert port["drops"] > 0
    assert "Open vSwitch was too late" not in str(run.info["warnings"])


def test_a_controller_counts_the_flows_of_ports():
    settings = {"duration": "2 s", "traffic.mice.start": "500 ms", "traffic.mice.requests": 2}
    settings["schemes"] = ["fairq", "fairq-sdn"]
    settings |= {f"measure.windows.{key}": value for key, value in WINDOWS.items()}
    run = api.run("lab/counts", overrides=settings, on="ovs")
    for result in run.summary["results"]:
        (port,) = result["ports"].values()
        assert port["acks_rewritten"] > 0, result["scheme"]
        assert "controller" not in result
    # What is rewritten arrives at the senders, whose own windows would be ten times that.
    offered = run.windows.filter(pl.col("rwnd_bytes") > 0)["rwnd_bytes"]
    assert offered.median() < 65_536
