# SPDX-License-Identifier: Apache-2.0
"""What the papers' own tools report, as the tables of a run."""

import csv
import io
import itertools
import json
import math
import statistics
import tomllib
from contextlib import ExitStack
from dataclasses import replace

import pytest
import tomli_w

from penstock import api, metrics
from penstock.errors import RunError, ScenarioError
from penstock.execution import Row, Task, task
from penstock.execution.lab import (
    agent,
    check,
    generator,
    host,
    plan,
    programs,
    substrate,
    system,
    tools,
)
from penstock.execution.lab.tools import Transfer
from penstock.results import Results

from .test_lab_plan import DUMBBELL, layout

AB = """starttime\tseconds\tctime\tdtime\tttime\twait
Fri Nov 20 14:25:54 2026\t1795184754\t0\t8\t8\t7
Fri Nov 20 14:25:55 2026\t1795184755\t0\t231\t231\t5
"""


BEGUN = tools.Begun(10.0, 13.0)


def test_a_request_of_ab_is_a_flow(tmp_path):
    (tmp_path / "ab.tsv").write_text(AB)
    pair = ("sender1", "receiver2")
    first, second = tools.read_ab(tmp_path / "ab.tsv", "web", 3, pair, 11500, BEGUN)
    assert (first.start_s, first.end_s) == (3.0, 3.008)
    assert (second.start_s, second.end_s) == (4.0, 4.231)
    assert (first.source, first.destination, first.bytes) == ("sender1", "receiver2", 11500)
    assert first.delivered_bytes == 11500
    # Where it has completed none it writes no file.
    assert tools.read_ab(tmp_path / "none.tsv", "web", 3, pair, 11500, BEGUN) == []


def test_a_request_of_wrk_is_a_flow(tmp_path):
    (tmp_path / "wrk.tsv").write_text("13.500000\t13.512345\n13.512400\t13.520000\n")
    pair = ("sender1", "receiver2")
    of = ("web", 3, pair, 11500, BEGUN)
    first, second = tools.read_wrk(tmp_path / "wrk.tsv", *of, until_s=5.0)
    assert (first.start_s, first.end_s) == (3.5, pytest.approx(3.512345))
    assert (second.start_s, second.end_s) == (pytest.approx(3.5124), pytest.approx(3.52))
    assert (first.source, first.flow, first.bytes) == ("sender1", 3, 11500)
    (tmp_path / "none.tsv").write_text("")
    assert tools.read_wrk(tmp_path / "none.tsv", *of, until_s=5.0) == []
    assert tools.read_wrk(tmp_path / "wrk.tsv", *of, until_s=3.515) == [first]


def test_each_flow_has_a_wrk_of_its_own(tmp_path):
    given = asked_by_wrk(tmp_path)
    _, client = tools.programs_of(given)
    assert client.command[0] == "wrk"
    assert client.command[client.command.index("-d") + 1] == "5s"
    assert client.stop_s == 5.0
    script = client.command[client.command.index("-s") + 1]
    assert str(tmp_path / "web-0.tsv") in (tmp_path / script).read_text()
    given = replace(given, table=given.table | {"connection": "new"})
    with pytest.raises(ScenarioError, match=r"traffic\.web\.connection: wrk does not count"):
        tools.programs_of(given)


def test_wrk_begins_as_far_apart_as_the_scenario_has_it(tmp_path):
    given = asked_by_wrk(tmp_path, start_gap="2 ms")
    with pytest.raises(ScenarioError, match=r"traffic\.web\.start_gap: is for penstock-traffic"):
        tools.programs_of(replace(given, is_wrk=False))
    given = replace(given, pairs=given.pairs * 400)
    clients, starts = wrk_of(given)
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    assert len({one.held.gate for one in clients}) == 400
    assert starts[0] == pytest.approx(0.0, abs=0.02)
    assert statistics.mean(gaps) == pytest.approx(2e-3, rel=0.2)
    assert wrk_of(given)[1] == starts
    assert wrk_of(replace(given, seed=2))[1] != starts
    (tmp_path / "www/other").touch()
    assert wrk_of(replace(given, name="other"))[1] != starts


def test_no_wrk_begins_once_the_run_is_over(tmp_path):
    given = asked_by_wrk(tmp_path, start_gap="1 s")
    clients, starts = wrk_of(replace(given, pairs=given.pairs * 20))
    assert 0 < len(clients) < 20
    assert max(starts) < 5.0
    for client, start in zip(clients, starts, strict=True):
        seconds = int(client.command[client.command.index("-d") + 1].removesuffix("s"))
        assert 5.0 <= start + seconds < 6.0


@pytest.mark.parametrize("gap", [{"exponential": "2 ms"}, "gaps.cdf"])
def test_wrk_has_no_distribution_between_its_starts(gap, tmp_path):
    with pytest.raises(ScenarioError, match=r"traffic\.web\.start_gap: is a distribution"):
        tools.programs_of(asked_by_wrk(tmp_path, start_gap=gap))


def test_long_flows_have_no_gap_next_to_wrk(tmp_path):
    given = replace(traffic(tmp_path, start_gap="2 ms"), is_wrk=True)
    with pytest.raises(ScenarioError, match=r"traffic\.web\.start_gap: is for penstock-traffic"):
        tools.programs_of(given)


class Clock:
    """Time that passes while the tools are waited for, and nowhere else."""

    def __init__(self):
        self.now = 10.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_clients_begin_at_their_times(monkeypatch):
    class Process:
        def has_ended(self):
            return clock.now >= 11.0

        def check_success(self):
            pass

    clock = Clock()
    monkeypatch.setattr(tools, "time", clock)
    wanted = [0.31, 0.0, 0.005, 0.3]
    clients = [tools.Program("host", (), None, start_s) for start_s in wanted]
    begun = tools._run(clients, lambda _: Process(), 1.0, lambda _: None)
    assert [at.start_s for _, at in begun] == pytest.approx(sorted(wanted))


def asked_by_wrk(folder, **table):
    """A client that asks by wrk, on one connection."""
    (folder / "www").mkdir()
    asked = {"kind": "incast", "mode": "pull", "requests": 10, "size": "10 kB"}
    return replace(traffic(folder, connection="persistent", **asked, **table), is_wrk=True)


def wrk_of(given):
    """The clients of a traffic, and when they begin."""
    clients = [one for one in tools.programs_of(given) if one.start_s is not None]
    return clients, [one.start_s for one in clients]


def test_the_laboratory_alone_has_tools():
    assert [task.substrate_of("lab", tools=client) for client in ("ab", "wrk")] == [
        "lab-tools",
        "lab-wrk",
    ]
    with pytest.raises(ScenarioError, match="--tools: no client 'curl'; allowed: ab, wrk"):
        task.substrate_of("lab", tools="curl")
    with pytest.raises(ScenarioError, match="--tools: is for the laboratory"):
        task.substrate_of("sim", tools="ab")


IPERF = {
    "intervals": [
        {
            "sum": {
                "start": i / 2,
                "end": i / 2 + 0.5,
                "bytes": 250_125,
                "retransmits": [1, 2, 2, 2][i],
            }
        }
        for i in range(4)
    ],
    "end": {
        "sum_sent": {"bytes": 1_000_500, "retransmits": 7},
        "sum_received": {"bytes": 1_000_000, "seconds": 2.0, "bits_per_second": 4e6},
    },
}


def test_a_report_of_iperf3_is_a_flow(tmp_path):
    pair = ("sender1", "receiver1")
    report = tmp_path / "iperf.json"
    report.write_text(json.dumps(IPERF))
    (flow,) = tools.read_iperf(report, "bulk", 0, pair, tools.Begun(10.0, 10.5), lasts_s=None)
    assert (flow.start_s, flow.end_s, flow.bytes) == (0.5, 2.5, 1_000_500)
    assert (flow.delivered_bytes, flow.retransmits) == (1_000_000, 7)
    (flow,) = tools.read_iperf(report, "bulk", 0, pair, tools.Begun(10.0, 10.5), lasts_s=2.0)
    assert (flow.end_s, flow.stopped_s, flow.bytes) == (None, 2.5, None)
    assert (flow.delivered_bytes, flow.retransmits) == (1_000_000, 7)
    (flow,) = tools.read_iperf(report, "bulk", 0, pair, tools.Begun(10.0, 10.5), lasts_s=1.5)
    assert flow.stopped_s == 2.0, "iperf3 lasts longer than the scenario"
    assert (flow.delivered_bytes, flow.retransmits) == (750_000, 5)
    report.write_text(json.dumps({"error": "unable to connect to server"}))
    with pytest.raises(RunError, match="iperf3: unable to connect"):
        tools.read_iperf(report, "bulk", 0, pair, tools.Begun(10.0, 10.5), lasts_s=2.0)


def test_iperf3_lasts_as_long_as_the_other_traffic(tmp_path):
    """It takes whole seconds: of 6.5 it would make 6, and the rest would be alone at the end."""
    for duration_s, given in ((6.5, "7"), (5.0, "5"), (0.3, "1")):
        flow = replace(traffic(tmp_path, kind="bulk"), duration_s=duration_s)
        server, client = tools.programs_of(flow)
        assert server.start_s is None
        assert client.command[client.command.index("-t") + 1] == given


def test_transfers_are_summed_as_the_simulator_sums_them():
    times = [0.01, 0.02, 0.03, 0.2]
    ends = ("sender1", "receiver1", 0.0)
    transfers = [Transfer("long", i, *ends, t, None, 1000, 1000) for i, t in enumerate(times)]
    port = {"drops": 5, "utilization": 0.5}
    sampled = generator.Played({"groups": {}, "ports": {"left->right": port}}, b"", b"port\n0\n")
    summary, table, queues, *_ = tools.summed(
        api.resolved(tomllib.loads(DUMBBELL)), transfers, sampled
    )
    group = summary["groups"]["long"]
    assert group["fct_s"]["mean"] == pytest.approx(0.065)
    assert group["fct_s"]["p50"] == pytest.approx(0.025)
    assert group["fct_s"]["sd"] == pytest.approx(math.sqrt(0.0245 / 3)), "of a sample"
    assert (group["flows"], group["finished"], group["late"]) == (4, 4, 1)
    assert group["stalled"] is None, "not known, which is not none"
    simulated = api.run({**tomllib.loads(DUMBBELL), "duration": "10 ms"}).summary["results"][0]
    assert set(group) == set(simulated["groups"]["long"])
    rates = [8000 / t for t in times]
    assert group["jain"] == pytest.approx(sum(rates) ** 2 / 4 / sum(r * r for r in rates))
    assert group["goodput_bps"]["min"] == pytest.approx(8000 / 0.2)
    assert summary["ports"] == {"left->right": port}, "as penstock-traffic sampled them"
    assert queues == b"port\n0\n"
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    assert [float(row["fct_s"]) for row in rows] == pytest.approx(times)
    assert rows[0]["timeouts"] == ""  # not known, which is not none


@pytest.mark.parametrize("sent", [{"end": {"sum_sent": {"retransmits": 2}}}, None])
def test_a_transfer_that_did_not_end_in_time_is_cut(sent, tmp_path):
    client, server = tmp_path / "bulk.json", tmp_path / "bulk.log"
    cut = Transfer("bulk", 0, "a", "b", 0.5, None, 4.0, 9_000, 0)
    error = {"error": "interrupt - the client has terminated"}
    client.write_text(json.dumps(sent | error) if sent else "")
    server.write_text(json.dumps({"end": {"sum_received": {"bytes": 7_000}}}))
    (flow,) = tools.read_sized(list, client, server, cut, BEGUN)
    assert (flow.end_s, flow.stopped_s, flow.bytes, flow.delivered_bytes) == (None, 4, 9_000, 7_000)
    assert flow.retransmits == (2 if sent else 0)
    client.write_text(json.dumps(IPERF))
    assert tools.read_sized(lambda _: ["whole"], client, server, cut, BEGUN) == ["whole"]


def test_a_bulk_with_a_size_is_stopped_with_the_scenario(tmp_path):
    def stops(**table):
        return [program.stop_s for program in tools.programs_of(traffic(tmp_path, **table))]

    assert stops(size="1 MB") == [None, 5.0]
    assert stops(size="1 MB", stop="2 s") == [None, 2.0]
    assert stops() == [None, None]


def test_a_client_that_is_interrupted_has_not_failed(tmp_path):
    def start(program):
        inside = programs.running(program.command, "sleep", program.log)
        return stack.enter_context(inside)

    def client(stop_s):
        return tools.Program("a", ("sleep", "0.4"), tmp_path / f"{stop_s}", 0.0, stop_s)

    with ExitStack() as stack:
        begun = tools._run([client(0.1), client(None)], start, 0.5, lambda _: None)
    assert [client.stop_s for client, _ in begun] == [0.1, None]
    assert all(0.0 <= at.start_s < 0.4 for _, at in begun)


def test_flows_take_their_hosts_in_turn():
    ends = {"from": ["a", "b"], "to": ["c", "d", "e"]}
    assert tools.pairs_of({"kind": "bulk"}, ends) == [("a", "c"), ("b", "d"), ("a", "e")]
    assert tools.pairs_of({"kind": "bulk", "flows": 1}, ends) == [("a", "c")]


@pytest.mark.parametrize("table", [{"kind": "poisson"}, {"kind": "incast", "mode": "push"}])
def test_traffic_that_the_tools_cannot_play_is_refused(table, tmp_path):
    given = tools.Traffic("web", table, [], plan.of(layout()), tmp_path, 1.0, 5201)
    with pytest.raises(ScenarioError, match=r"traffic\.web: .* run it without --tools"):
        tools.programs_of(given)


def traffic(folder, **table):
    table = {"kind": "bulk", "start": "0 s", **table}
    pair = ("sender1", "receiver1")
    return tools.Traffic("web", table, [pair], plan.of(layout()), folder, 5.0, 5201)


@pytest.mark.parametrize(
    ("size", "in_bytes"), [("1 MB", "1000000"), ("10 kB", "10000"), ("11500 B", "11500")]
)
def test_the_tools_get_sizes_in_bytes(size, in_bytes, tmp_path):
    _, client = tools.programs_of(traffic(tmp_path, size=size))
    command = client.command
    assert command[command.index("-n") + 1] == in_bytes
    asked = {"mode": "pull", "requests": 10, "connection": "new"}
    (tmp_path / "www").mkdir()
    tools.programs_of(traffic(tmp_path, kind="incast", size=size, **asked))
    assert (tmp_path / "www/web").stat().st_size == int(in_bytes)


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
        tools.programs_of(given)


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
    reported = {name: place for place, name in enumerate(metrics.PORT_COUNTERS)}
    counters = {**reported, "syns": 99}
    text = json.dumps(
        [{"interface": name, "counters": of} for name, of in (("eth7", {}), ("right", counters))]
    )
    assert agent.read_status(text, "right") == reported
    granted = dict.fromkeys(metrics.CREDIT_COUNTERS, 3)
    credit = {"waiting": 1, "counters": {**granted, "carriers": 9}}
    text = json.dumps([{"interface": "right", "counters": counters, "credit": credit}])
    assert agent.read_status(text, "right") == reported | granted
    with pytest.raises(RunError, match="does not list left"):
        agent.read_status(text, "left")


def test_what_penstock_traffic_writes_is_read(tmp_path):
    (tmp_path / "summary.json").write_text('{"groups": {}, "ports": {}, "drops": 0}')
    (tmp_path / "flows.csv").write_bytes(b"traffic\n")
    (tmp_path / "queues.csv").write_bytes(b"port\n")
    (tmp_path / "windows.csv").write_bytes(b"flow\n")
    (tmp_path / "jobs.csv").write_bytes(b"job\n")
    summary, *written = generator.read(tmp_path)
    assert summary["drops"] == 0
    assert written == [b"traffic\n", b"port\n", b"flow\n", b"job\n"]


def test_idle_time_is_a_share():
    since_boot = system.cpu_shares(system.CpuTimes(0, 0, 0))
    assert 0.0 <= since_boot.idle <= 1.0
    assert 0.0 <= since_boot.stolen <= 1.0 - since_boot.idle
    assert system.cpu_shares(system.cpu_times()).idle >= 0.0


def described(
    warnings=(), tcp=None, own=None, measure=None, *, idle=1.0, stolen=0.0, on="lab", **parts
):
    """What a run reports of itself where penstock-traffic has issued `warnings`."""
    performance = {"wall_s": 5.0, "cpu_idle": idle, "cpu_stolen": stolen}
    summary = {"tcp": "cubic,newreno", "performance": performance, "warnings": list(warnings)}
    document = {"measure": measure or {}, "traffic": {"web": {"tcp": own} if own else {}}}
    document |= {"tcp": tcp} if tcp else {}
    document["scheme"] = {"fairq": parts}
    task = Task(tomli_w.dumps(document), "here.toml", "fairq", 2, on)
    given = host.of({"profile": "linux", **(tcp or {})})
    return substrate.described(task, summary, {"ports": []}, plan.Plan({}, [], [], 0.0), given)


def test_runs_on_a_busy_machine_are_named():
    assert described(idle=0.35)["busy"] == []
    assert described(idle=0.0996)["busy"] == [
        "fairq, repeat 2: CPUs were idle for 9.96 % of the time (needed: 10 % or more)"
    ]
    assert described(stolen=0.01)["busy"] == []
    assert described(stolen=0.05)["busy"] == [
        "fairq, repeat 2: the hypervisor gave 5.00 % of the CPU time to other guests "
        "(allowed: 2 % or less)"
    ]


def test_keys_that_sockets_or_routes_set_are_not_missing():
    by_route = ["tcp.initial_window: this kernel has no socket option for it; ignored"]
    keys = {"mss": 1000, "initial_window": 2}
    assert described(by_route, keys)["not_emulated"] == []  # the mss is a socket option
    assert described(by_route, keys, own=keys)["not_emulated"] == ["tcp.initial_window"]
    assert described([], keys, on="lab-tools")["not_emulated"] == ["tcp.mss"]
    prr = ["tcp.prr: this kernel has no socket option for it; ignored"]
    assert described(prr, {"prr": False})["not_emulated"] == ["tcp.prr"]


def test_values_that_the_laboratory_lacks_are_not_emulated():
    jumbo = ["tcp.mss above 1460 bytes"]
    assert described(tcp={"mss": 8960})["not_emulated"] == jumbo
    assert described(own={"mss": 8960})["not_emulated"] == jumbo
    assert described(tcp={"mss": 1460}, measure={"queue_every": "1 ms"})["not_emulated"] == []
    often = ["measure.queue_every below 1 ms"]
    assert described(measure={"queue_every": "500 us"})["not_emulated"] == often
    early = ["scheme.fairq.window.sigma, as penstockd drops no data"]
    assert described(window={"sigma": 0.97})["not_emulated"] == early
    assert described(window={"sigma": 1.0})["not_emulated"] == []


def test_what_the_kernels_red_does_without_is_not_emulated():
    weight = "scheme.fairq.queue.weight, as tc derives it from the burst"
    gentle = "scheme.fairq.queue.gentle, as the kernel drops or marks all above max"
    for name, missing in (("red", [weight, gentle]), ("codel", []), ("dctcp", [])):
        resolved = tomllib.loads(api.prepare("minimal", schemes=[name]).text)["scheme"][name]
        assert described(queue=resolved["queue"])["not_emulated"] == missing
    assert described(queue={"kind": "red", "gentle": False})["not_emulated"] == [weight]


def test_every_congestion_control_that_was_played_is_listed():
    assert described()["tcp"] == ["cubic", "newreno"]


def test_a_warning_names_its_run():
    broken = "3 connections failed; the first: Connection timed out"
    assert described([broken])["warnings"] == [f"fairq, repeat 2: {broken}"]


def test_reports_of_several_runs_are_merged():
    def row(seed, busy):
        report = {"substrate": "lab", "tcp": ["cubic"], "busy": busy}
        summary = {"groups": {}, "ports": {"a->b": {"drops": seed}}, "substrate": report}
        return Row("fairq", seed, json.dumps(summary), b"", b"")

    text = 'title = "x"\nschemes = ["fairq"]\nseeds = 2\n'
    merged = Results.collect(text, [row(1, []), row(2, ["fairq, repeat 2"])], {"name": "x"})
    assert merged.info == {
        "name": "x",
        "substrate": "lab",
        "tcp": ["cubic"],
        "busy": ["fairq, repeat 2"],
    }
    assert "substrate" not in merged.summary["results"][0]


def test_readers_are_warned_of_what_disturbed_a_run(made_up):
    assert replace(made_up, info={"substrate": "sim"}).notes == []
    info = {"busy": ["fairq, repeat 2: reason"], "warnings": ["fairq, repeat 1: 3 failed"]}
    first, second = replace(made_up, info=info).notes
    assert first == "fairq, repeat 1: 3 failed."
    assert second.endswith("may have changed the results: fairq, repeat 2: reason.")
