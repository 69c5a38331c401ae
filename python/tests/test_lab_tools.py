# SPDX-License-Identifier: Apache-2.0
"""What the papers' own tools report, as the tables of a run."""

import csv
import io
import json
import math
import re
import tomllib
from dataclasses import replace

import pytest

from penstock import api
from penstock.errors import RunError, ScenarioError
from penstock.lab import agent, check, demo, generator, host, plan, substrate, system, tools
from penstock.lab.records import Flow, summed
from penstock.lab.sampler import Samples

from .conftest import make_run
from .test_lab_plan import DUMBBELL, layout

AB = """starttime\tseconds\tctime\tdtime\tttime\twait
Fri Nov 20 14:25:54 2026\t1795184754\t0\t8\t8\t7
Fri Nov 20 14:25:55 2026\t1795184755\t0\t231\t231\t5
"""


def test_a_request_of_ab_is_a_flow():
    first, second = tools.read_ab("web", 3, ("sender1", "receiver2"), 11500, AB)
    assert (first.start_s, first.fct_s, first.end_s) == (0.0, 0.008, 0.008)
    assert (second.start_s, second.fct_s) == (1.0, 0.231)
    assert (first.source, first.destination, first.bytes) == ("sender1", "receiver2", 11500)
    assert first.goodput_bps == pytest.approx(8 * 11500 / 0.008)


IPERF = {
    "end": {
        "sum_sent": {"bytes": 1_000_500, "retransmits": 7},
        "sum_received": {"bytes": 1_000_000, "seconds": 2.0, "bits_per_second": 4e6},
    }
}


def test_a_report_of_iperf3_is_a_flow():
    pair = ("sender1", "receiver1")
    (flow,) = tools.read_iperf("bulk", 0, pair, 0.5, json.dumps(IPERF), is_endless=False)
    assert (flow.fct_s, flow.end_s, flow.bytes) == (2.0, 2.5, 1_000_500)
    assert (flow.delivered_bytes, flow.goodput_bps, flow.retransmits) == (1_000_000, 4e6, 7)
    (flow,) = tools.read_iperf("bulk", 0, pair, 0.5, json.dumps(IPERF), is_endless=True)
    assert (flow.fct_s, flow.end_s, flow.bytes) == (None, None, None)
    text = json.dumps({"error": "unable to connect to server"})
    with pytest.raises(RunError, match="iperf3: unable to connect"):
        tools.read_iperf("bulk", 0, pair, 0.5, text, is_endless=True)


def test_flows_are_summed_as_the_simulator_sums_them():
    times = [0.01, 0.02, 0.03, 0.2]
    flows = [
        Flow("web", i, "a", "b", 0.0, t, 1000, 1000, t, 8000 / t, None) for i, t in enumerate(times)
    ]
    (port, _) = plan.of(layout()).protected
    seen = [(0.1, 1500, 1), (0.2, 4500, 3)]
    last = {"drops": 5, "bytes": 12_500_000, "packets": 9}
    summary, table, queues = summed(["web"], flows, [Samples(port, seen, last)], 1.0)
    group = summary["groups"]["web"]
    assert group["fct_s"]["mean"] == pytest.approx(0.065)
    assert group["fct_s"]["p50"] == pytest.approx(0.025)
    assert group["fct_s"]["sd"] == pytest.approx(math.sqrt(0.006125))
    assert (group["flows"], group["finished"], group["stalled"]) == (4, 4, 1)
    simulated = api.run({**tomllib.loads(DUMBBELL), "duration": "10 ms"}).summary["results"][0]
    assert set(group) == set(simulated["groups"]["long"])
    assert set(summary["ports"]["left->right"]) == set(simulated["ports"]["left->right"])
    assert summary["drops"] == 5
    rates = [8000 / t for t in times]
    assert group["jain"] == pytest.approx(sum(rates) ** 2 / 4 / sum(r * r for r in rates))
    found = summary["ports"]["left->right"]
    assert (found["drops"], found["utilization"]) == (5, 0.5)
    assert found["queue_bytes"] == {"mean": 3000, "p99": 4500, "max": 4500}
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    assert [float(row["fct_s"]) for row in rows] == times
    assert rows[0]["timeouts"] == ""  # not known, which is not none
    assert queues.decode().splitlines()[1] == "0,0.1,1500,1"


def test_flows_take_their_hosts_in_turn():
    ends = {"from": ["a", "b"], "to": ["c", "d", "e"]}
    assert tools._pairs({"kind": "bulk"}, ends) == [("a", "c"), ("b", "d"), ("a", "e")]
    assert tools._pairs({"kind": "bulk", "flows": 1}, ends) == [("a", "c")]


@pytest.mark.parametrize("table", [{"kind": "poisson"}, {"kind": "incast", "mode": "push"}])
def test_traffic_that_the_tools_cannot_play_is_refused(table, tmp_path):
    given = tools._Traffic("web", table, [], plan.of(layout()), tmp_path, 1.0)
    with pytest.raises(ScenarioError, match=r"traffic\.web: .* run it without --tools"):
        tools._prepare(given, 0)


def traffic(folder, **table):
    table = {"kind": "bulk", "start": "0 s", **table}
    pair = ("sender1", "receiver1")
    return tools._Traffic("web", table, [pair], plan.of(layout()), folder, 5.0)


@pytest.mark.parametrize(
    ("size", "told"), [("1 MB", "1000000"), ("10 kB", "10000"), ("11500 B", "11500")]
)
def test_the_tools_are_told_sizes_in_bytes(size, told, tmp_path):
    given = traffic(tmp_path, size=size)
    tools._prepare(given, 0)
    command = given.clients[0].command
    assert command[command.index("-n") + 1] == told
    asked = {"mode": "pull", "requests": 10, "connection": "new"}
    (tmp_path / "www").mkdir()
    tools._prepare(traffic(tmp_path, kind="incast", size=size, **asked), 0)
    assert (tmp_path / "www/web").stat().st_size == int(told)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochs", 9),
        ("start_spread", "10 ms"),
        ("start_gap", "1 ms"),
        ("think", "1 ms"),
        ("tcp", {"congestion": "newreno"}),
        ("size", "websearch"),
        ("size", {"exponential": "10 kB"}),
    ],
)
def test_what_the_tools_would_leave_out_is_refused(key, value, tmp_path):
    given = traffic(tmp_path, **{key: value})
    with pytest.raises(ScenarioError, match=rf"traffic\.web\.{key}: .* run it without --tools"):
        tools._prepare(given, 0)


def test_the_laboratory_needs_what_the_agent_needs_but_for_its_bpffs():
    keys = ("name", "has", "required", "found")
    rows = (
        ("btf", False, True, "no /sys/kernel/btf/vmlinux"),
        ("bpffs", False, True, "no bpffs is mounted at /sys/fs/bpf"),
        ("bpf_qdisc", False, False, "no HCF: it needs Linux 6.16"),
    )
    btf, hcf = check.read_agent([dict(zip(keys, row, strict=True)) for row in rows])
    assert (btf.name, btf.holds, btf.is_needed) == ("eBPF btf", False, True)
    assert (hcf.name, hcf.is_needed) == ("eBPF bpf_qdisc", False)


def test_the_agents_counters_are_read_for_one_interface():
    told = {"rewrites": 7, "clamps": 2, "floors": 1, "marks": 0}
    counters = {"rewritten": 7, "clamps": 2, "floored": 1, "marked": 0, "acks": 99}
    text = json.dumps(
        [{"interface": name, "counters": of} for name, of in (("eth7", {}), ("right", counters))]
    )
    assert agent.read_status(text, "right") == told
    with pytest.raises(RunError, match="does not list left"):
        agent.read_status(text, "left")


def test_what_penstock_traffic_writes_is_read(tmp_path):
    (tmp_path / "summary.json").write_text('{"groups": {}, "ports": {}, "drops": 0}')
    (tmp_path / "flows.csv").write_bytes(b"traffic\n")
    (tmp_path / "queues.csv").write_bytes(b"port\n")
    summary, flows, queues = generator.read(tmp_path)
    assert (summary["drops"], flows, queues) == (0, b"traffic\n", b"port\n")


@pytest.mark.parametrize(("most", "scale"), [(6 << 20, 7), (32 << 20, 10), (65535, 0)])
def test_the_window_scale_is_the_one_that_linux_offers(most, scale):
    assert demo.window_scale(most) == scale


def test_the_limit_counts_windows_as_the_scale_writes_them():
    found = demo.Limit(window_bytes=2048, first_bytes=3072, room_bytes=128_000 + 1250)
    assert (found.flows, found.first_flows) == (63, 42)


def row(scheme, stalls):
    return demo.Row(scheme, 1, 100, (stalls,), stalls / 100, 0, 0, 0, None, None, None)


def test_a_scheme_reaches_as_far_as_no_request_has_stalled():
    found = {16: (0, 3), 64: (0, 0), 252: (9, 9), 630: (0, 9)}
    sweep = [
        demo.Point(clients, row(scheme, stalls))
        for clients, pair in found.items()
        for scheme, stalls in zip(("fairq", "drop-tail"), pair, strict=True)
    ]
    done = demo.Demo({}, sweep, demo.Limit(2048, 3072, 129_250), "6.18", ())
    assert demo.reach(done) == {"fairq": 64, "drop-tail": 0}
    schemes, lines = demo.sweep_table(done)
    assert schemes == ["fairq", "drop-tail"]
    assert lines[2] == ["252", "9.00 %", "9.00 %"]


def test_runs_on_a_busy_machine_are_named():
    rows = [
        ("fairq", seed, json.dumps({"performance": {"cpu_idle": idle}}), b"", b"")
        for seed, idle in ((1, 0.35), (2, 0.04))
    ]
    assert substrate.busy(rows) == ["fairq, repeat 2: 4% idle"]


def test_idle_time_is_a_share():
    assert 0.0 <= system.idle_since((0, 0)) <= 1.0
    assert system.idle_since(system.cpu_times()) >= 0.0


def told(warnings, tcp, own=None, *, with_tools=False):
    """What `run.json` says where penstock-traffic has said `warnings`."""
    text = json.dumps({"performance": {"cpu_idle": 1.0}, "warnings": warnings})
    document = {"traffic": {"web": {"tcp": own or {}}}}
    tcps = {"fairq": host.of({"profile": "linux", **tcp})}
    rows = [("fairq", 1, text, b"", b"")]
    return substrate.of(rows, {"ports": []}, [], tcps, document, with_tools=with_tools)


def test_what_sockets_and_routes_can_be_told_is_not_missing():
    by_route = ["tcp.initial_window: this kernel has no socket option for it; ignored"]
    asked = {"mss": 1000, "initial_window": 2}
    assert told(by_route, asked)["not_emulated"] == []  # the mss is a socket option
    assert told(by_route, asked, own=asked)["not_emulated"] == ["tcp.initial_window"]
    assert told([], asked, with_tools=True)["not_emulated"] == ["tcp.mss"]
    prr = ["tcp.prr: this kernel has no socket option for it; ignored"]
    assert told(prr, {"prr": False})["not_emulated"] == ["tcp.prr"]


def test_what_went_wrong_is_told_with_its_run():
    broken = "3 connections failed; the first: Connection timed out"
    assert told([broken], {})["warnings"] == [f"fairq, repeat 1: {broken}"]


def test_a_demonstration_cut_short_leaves_nothing(monkeypatch, tmp_path):
    begun = []

    def run(name, *_):
        begun.append(name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return make_run()

    monkeypatch.setattr(demo, "_run", run)
    monkeypatch.setattr(demo, "rows", lambda _: [])
    with pytest.raises(KeyboardInterrupt):
        demo.demonstrate(1, tmp_path / "demo")
    assert begun == list(demo.MIXES)
    assert not (tmp_path / "demo").exists()


def test_whoever_reads_the_numbers_is_told_what_to_know():
    assert substrate.notes({"substrate": "sim"}) == []
    told = {"busy": ["fairq, repeat 2: 4% idle"], "warnings": ["fairq, repeat 1: 3 failed"]}
    first, second = substrate.notes(told)
    assert first == "fairq, repeat 1: 3 failed."
    assert second.endswith("what was measured: fairq, repeat 2: 4% idle.")


def test_a_narrow_terminal_gets_fewer_columns_and_no_cut_numbers(monkeypatch, capsys):
    found = [replace(row("drop-tail", 12_345), stalls=(1234, 1200, 1250), drops=23_456.0)]
    done = demo.Demo({"A mix": found}, [demo.Point(16, found[0])], demo.Limit(1, 2, 3), "6", ())
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")
    demo.show(done)
    told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "1\u202f234 / 1\u202f200 / 1\u202f250" in told
    assert "23\u202f456" in told
    assert "no room for:" in told
    assert "…" not in told
