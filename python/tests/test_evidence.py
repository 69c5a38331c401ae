# SPDX-License-Identifier: Apache-2.0
"""The programs of evidence/ that judge and measure: their own parts, without kernel and root."""

import asyncio
import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from argparse import Namespace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from penstock import ScenarioError
from penstock.errors import RunError
from penstock.execution import build

EVIDENCE = Path(__file__).parents[2] / "evidence"
PROGRAMS = (
    *("grant/lab", "grid/grid", "linux/calibrate", "linux/timings"),
    *("endurance/endurance", "endurance/traffic", "kubernetes/bandwidth"),
    *("grant/adverse", "grant/killed", "grant/limit", "mutants/mutants"),
)
with pytest.MonkeyPatch.context() as patch:
    for _name in PROGRAMS:
        patch.syspath_prepend(EVIDENCE / Path(_name).parent)
    (
        lab,
        grid,
        calibrate,
        timings,
        endurance,
        traffic,
        bandwidth,
        adverse,
        killed,
        limit,
        mutants,
    ) = (importlib.import_module(Path(name).name) for name in PROGRAMS)
    recorded, datapath = map(importlib.import_module, ("recorded", "datapath"))


@pytest.fixture(autouse=True)
def built(monkeypatch):
    """The build of each substrate, as if all were built."""
    builds = {"lab": "lab 6.18 a", "sim": "sim a"}
    monkeypatch.setattr(build, "digest", builds.__getitem__)
    return builds


def called(monkeypatch, program, *words):
    monkeypatch.setattr(sys, "argv", [program.__name__, *map(str, words)])
    return program.main()


def test_the_programs_have_names_of_their_own():
    """All of them are imported here, and by name alone."""
    folders = {EVIDENCE, Path(__file__).parent, *((EVIDENCE / name).parent for name in PROGRAMS)}
    names = [path.name for folder in folders for path in folder.glob("*.py")]
    assert len(names) == len(set(names))


# What counts of a journal.


def entry(**scenario):
    return recorded.Entry(["load", 1], scenario.pop("on", "lab"), scenario)


def found(folder, one, measured=()):
    with contextlib.closing(recorded.Recorded(folder, measured)) as runs:
        return runs.find(one)


def kept(folder, *entries):
    with contextlib.closing(recorded.Recorded(folder, ("lab", "sim"))) as runs:
        for one in entries:
            runs.add(one, {"mean": 1.0})


def test_runs_of_another_scenario_or_build_do_not_count(tmp_path, built, capsys):
    kept(tmp_path, entry(duration="4 s"))
    assert found(tmp_path, entry(duration="4 s"), ["lab"]) == {"mean": 1.0}
    assert found(tmp_path, entry(duration="4 s", title="Other words")) == {"mean": 1.0}
    assert found(tmp_path, entry(duration="5 s")) is None
    assert capsys.readouterr().err == ""

    built["lab"] = "lab 6.18 b"
    assert found(tmp_path, entry(duration="4 s"), ["lab"]) is None
    assert found(tmp_path, entry(duration="4 s")) == {"mean": 1.0}, "it is only read"
    assert capsys.readouterr().err.startswith("1 of the runs that were read are of another build")


def test_a_run_of_the_simulator_is_always_of_this_build(tmp_path, built):
    kept(tmp_path, entry(on="sim"))
    assert found(tmp_path, entry(on="sim")) == {"mean": 1.0}
    built["sim"] = "sim b"
    assert found(tmp_path, entry(on="sim")) is None


def test_published_runs_count_where_the_folder_has_no_others(tmp_path, capsys):
    published = tmp_path / "kernel.jsonl"
    published.write_text(json.dumps({"key": entry().key, "numbers": {"mean": 2.0}}) + "\n")

    def with_published(folder, measured):
        with contextlib.closing(recorded.Recorded(folder, measured, published)) as runs:
            return runs.find(entry())

    assert with_published(tmp_path / "none", ["sim"]) == {"mean": 2.0}
    assert "of one that is not recorded" in capsys.readouterr().err
    assert with_published(tmp_path / "none", ["lab"]) is None, "it is measured here"
    kept(tmp_path / "own", entry())
    assert with_published(tmp_path / "own", ["sim"]) == {"mean": 1.0}
    assert capsys.readouterr().err == ""


def test_a_journal_from_before_builds_were_recorded_can_be_read(tmp_path, capsys):
    line = {"key": entry().key, "numbers": {"mean": 2.0}}
    (tmp_path / "journal.jsonl").write_text(json.dumps(line) + "\n")
    assert found(tmp_path, entry()) == {"mean": 2.0}
    assert "of one that is not recorded" in capsys.readouterr().err
    assert found(tmp_path, entry(), ["lab"]) is None


# Grant on real TCP.

CLOSED_LOOP = next(load for load in lab.LOADS if load.name == "32 persistent")


def closed_loop(monkeypatch, module, group, open_since=None, transfers_s=0.015):
    """A module's runs: 31 clients that ask again and again, and one more, open to the end."""
    rows = [
        {"start_s": 0.5 + n * transfers_s, "fct_s": transfers_s}
        for n in range(round(3.4 / transfers_s))
    ] * 31
    rows += [{"start_s": 3.99, "fct_s": None}] * 31
    rows += [] if open_since is None else [{"start_s": open_since, "fct_s": None}]
    zeros = {"timeouts": 0, "syn_timeouts": 0}
    result = {
        **{"groups": {group: zeros}, "kernel": {}},
        "ports": {"left->right": {"drops": 0, "utilization": 0.99}},
        "performance": {"cpu_idle": 0.5, "cpu_stolen": 0.0},
    }
    scenario = {"duration": "4 s", "measure": {"from": "1 s"}}
    table = pl.DataFrame(rows).with_columns(
        pl.lit(11_500).alias("bytes"), **{name: pl.lit(value) for name, value in zeros.items()}
    )
    made = SimpleNamespace(
        summary={"results": [result], "scenario": scenario}, members=lambda _: table, info={}
    )
    monkeypatch.setattr(module.penstock, "run", lambda *_, **__: made)


@pytest.mark.parametrize(
    ("open_since", "fails"), [(None, []), (0.5, ["stall"]), (2.0, ["stall"]), (3.9, [])]
)
def test_a_starved_client_in_a_closed_loop_is_a_stall(monkeypatch, open_since, fails):
    closed_loop(monkeypatch, lab, "answers", open_since)
    run = lab.play(CLOSED_LOOP, "grant", 1, [])
    assert lab.judge(CLOSED_LOOP, "grant", run, {}) == fails
    assert run["missing"] == 0


def test_grant_is_not_accepted_where_nothing_is_judged(tmp_path, monkeypatch, capsys):
    for only in ("", "typo"):
        words = ("--recorded", "--only", only, "--out", tmp_path)
        assert called(monkeypatch, lab, *words) == 2
        assert capsys.readouterr().err == (
            f"lab-grant: nothing is judged: {tmp_path} has no such run of Grant\n"
        )


def test_grant_is_not_accepted_where_time_is_out(tmp_path, monkeypatch, capsys):
    closed_loop(monkeypatch, lab, "answers")
    words = ["--only", "32 persistent", "--scheme", "grant", "--out", tmp_path, "--repeats"]
    monkeypatch.setattr(lab, "LOADS", [CLOSED_LOOP])
    assert called(monkeypatch, lab, *words, 1) == 0
    assert "holds in 1 of 1 runs" in capsys.readouterr().out
    assert called(monkeypatch, lab, *words, 2, "--for", "0 s") == 2
    shown = capsys.readouterr()
    assert "holds in 1 of 1 runs" in shown.out
    assert shown.err == "lab-grant: out of time before the last run; call it again to go on\n"


def test_what_is_unfinished_and_hard_is_a_stall(monkeypatch, capsys):
    case = adverse.Case("a case", "grant/persistent")
    for open_since, stalls in ((None, "0"), (0.5, "1"), (3.9, "0")):
        closed_loop(monkeypatch, adverse, "answers", open_since)
        run = adverse.penstock.run()
        run.summary["scenario"]["traffic"] = {"answers": {"kind": "incast"}}
        run.info["warnings"] = ["grant, repeat 1: late", "grant, repeat 1: failed"]
        assert adverse.play(case, "grant", 2) == 1
        row = capsys.readouterr().out.split(" | ")
        assert row[7:9] == [stalls, "31" if open_since is None else "32"]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP", "upgrade"])
def test_a_fault_that_meets_no_agent_is_an_error(monkeypatch, name):
    monkeypatch.setattr(killed, "AFTER_S", 0)
    monkeypatch.setattr(killed, "children", lambda name: [1] if name == build.TRAFFIC else [])
    begun = threading.Event()
    fault = killed.FAULTS[name]
    with (
        pytest.raises(RunError, match="no agent runs"),
        killed.happening(lambda agents: begun.set() or fault(agents)),
    ):
        assert begun.wait(10)


def test_a_fault_that_does_not_happen_in_time_is_an_error(monkeypatch):
    monkeypatch.setattr(killed, "children", lambda _: [])
    with pytest.raises(RunError, match="ended before its load"), killed.happening(print):
        pass
    monkeypatch.setattr(killed, "children", lambda _: [1])
    with pytest.raises(RunError, match="ended before the fault"), killed.happening(print):
        pass


def test_a_limit_carries_the_payload_of_its_connections(monkeypatch):
    lines = (
        "0 0 10.79.0.2:40000 10.79.0.1:5201 cubic bytes_sent:37 bytes_received:5 segs_in:3",
        "0 0 10.79.0.2:40002 10.79.0.1:5201 cubic bytes_received:14480 segs_in:10",
        "0 0 10.79.0.2:40004 10.79.0.1:7 cubic segs_in:1",
    )
    monkeypatch.setattr(limit, "call", lambda *_: "\n".join(lines))
    ports = (f"10.79.0.2:{port}" for port in (40000, 40002, 40004))
    assert limit.received_bytes() == dict(zip(ports, (5, 14480, 0), strict=True))


# Mutants.

FAILED = "error: test failed, to rerun pass `-p penstock-core --test core`\n"
CRASHED = f"{FAILED}\n  process didn't exit successfully: `core` (signal: 11, SIGSEGV: invalid)\n"


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        (f"test windows::shrink ... FAILED\n{FAILED}", ("killed", "windows::shrink")),
        (CRASHED, ("killed", "signal: 11, SIGSEGV")),
        ("error: could not compile `penstock-core`\n", ("not viable", "it does not compile")),
        (
            "error: failed to run custom build command for `penstock-core`\n",
            ("not viable", "it does not compile"),
        ),
    ],
)
def test_a_mutant_that_crashes_its_test_is_killed(monkeypatch, tmp_path, printed, verdict):
    monkeypatch.setattr(mutants, "run", lambda *_: (101, printed))
    assert mutants.verdict_of_core(tmp_path) == verdict


def test_a_test_that_cannot_run_is_no_verdict_on_a_mutant(monkeypatch, tmp_path):
    monkeypatch.setattr(mutants, "run", lambda *_: (101, "error: no space left on device\n"))
    with pytest.raises(RuntimeError, match="no space left"):
        mutants.verdict_of_core(tmp_path)


def included(file):
    """A file of the datapath with all that it includes."""
    text = file.read_text()
    below = (file.parent / name for name in re.findall(r'^#include "(.+)"', text, flags=re.M))
    return {file.resolve()}.union(*map(included, below))


def test_each_file_of_the_datapath_changes_the_object_that_its_tests_load():
    root = EVIDENCE.parent
    script = (root / datapath.BUILD_SCRIPT).read_bytes()
    adapted = datapath.adapted(datapath.BUILD_SCRIPT, script).decode()
    assert adapted.count("fn main() {") == adapted.count("fn build() {") == 1
    assert datapath.adapted("core/hcf.h", b"text") == b"text"
    objects = {name: included(root / f"bpf/{name}.bpf.c") for name in datapath.OBJECTS}
    assert all(f'"{name}"' in script.decode() for name in objects)
    changed = [file for file in mutants.sources(root) if file.startswith("bpf/")]
    assert len(changed) > 20
    assert not [file for file in changed if root / file not in objects[datapath.object_of(file)]]
    assert datapath.FOCUS.keys() <= set(changed)
    assert {*datapath.FOCUS.values()} <= {*datapath.TESTS}


def test_verdicts_count_while_code_and_tests_are_the_same(monkeypatch, tmp_path):
    judged = []

    def judge(_, mutant, *__):
        judged.append(mutant.key)
        return {"key": mutant.key, "file": mutant.file, "verdict": "survived", "why": ""}

    monkeypatch.setattr(mutants, "prepare", lambda _: None)
    monkeypatch.setattr(mutants, "judge", judge)
    monkeypatch.setattr(mutants, "digest", lambda *_: "a")
    journal = tmp_path / "journal"
    chosen = mutants.mutants(mutants.ROOT, ["core/fairq.h"])[:2]
    options = Namespace(jobs=1, tests=[], again=False, journal=journal)
    done = {}
    for digest, again, count in (("a", False, 2), ("a", False, 0), ("b", False, 2), ("b", True, 2)):
        monkeypatch.setattr(mutants, "digest", lambda *_, now=digest: now)
        options.again = again
        judged.clear()
        mutants.judge_all(chosen, done, options)
        assert len(judged) == count
    entries = map(json.loads, journal.read_text().splitlines())
    assert [entry["digest"] for entry in entries] == [*"aabbbb"]


def test_the_digest_is_of_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    names = [["a"], ["b"], ["a", "b"], ["a", "gone"]]
    digests = {mutants.digest(tmp_path, each) for each in names}
    (tmp_path / "a").write_text("2")
    digests.add(mutants.digest(tmp_path, ["a"]))
    assert len(digests) == 5


# The grid.


def test_a_transfer_of_the_grid_that_is_late_at_the_end_is_late(monkeypatch):
    for open_since, late in ((None, 0), (0.5, 1), (3.9, 0)):
        closed_loop(monkeypatch, grid, "web", open_since)
        run = grid.play({}, "fairq", [], 1)
        assert run["late"] * run["answers"] == pytest.approx(late)


def test_the_grid_is_not_accepted_where_nothing_is_judged(tmp_path, monkeypatch, capsys):
    words = ("tuning", "--recorded", "--where", "clients=8", "--out", tmp_path)
    assert called(monkeypatch, grid, *words) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "grid: fairq, hscc: not judged, no cell within the goal has runs"


def grid_run(mean_s, **changes):
    times = dict.fromkeys(("mean", "p50", "p99", "max"), mean_s)
    times |= {f"q{n}": mean_s for n in grid.QUANTILES}
    counts = dict.fromkeys(("answers", "late", "delayed", "timeouts", "drops"), 0)
    return {**times, **counts, **changes}


def test_the_grid_is_not_accepted_where_the_journal_lacks_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grid, "play", lambda *_: grid_run(0.005, warnings=1))
    words = ("tuning", "--where", "clients=8", "--sample", 1, "--out", tmp_path)
    assert called(monkeypatch, grid, *words) == 0
    assert "grid: 4 of 4 runs had warnings\n" in capsys.readouterr().err
    assert called(monkeypatch, grid, *words, "--recorded") == 0
    assert called(monkeypatch, grid, *words, "--recorded", "--repeats", 2) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"grid: 4 runs are not in the journal {tmp_path}"


def test_the_grid_reads_a_journal_from_before_warnings_were_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grid, "play", lambda *_: grid_run(0.005))
    words = ("tuning", "--where", "clients=8", "--sample", 1, "--out", tmp_path)
    assert called(monkeypatch, grid, *words) == 0
    line = "grid: 0 of 0 runs had warnings; of 4 more it is not recorded\n"
    assert line in capsys.readouterr().err


def test_a_mean_of_the_grid_may_be_a_tenth_of_a_millisecond_above_its_limit():
    tail, ideal = (grid_run(mean_s) for mean_s in (0.010, 0.008))
    held, failed = (grid_run(mean_s, p99=0.01) for mean_s in (0.00929, 0.00931))
    assert (grid.judge(held, tail, ideal), grid.judge(failed, tail, ideal)) == ([], ["mean"])
    assert held["mean"] > grid.strict_mean(tail, ideal)


def test_the_grid_refuses_settings_of_no_scheme_that_it_plays(tmp_path, monkeypatch, capsys):
    assert grid.settings_of(["scheme.fairq.window.floor=1"], ["fairq"]) == [
        ("scheme.fairq.window.floor", "1")
    ]
    for wrong in ("tcp.min_rto=10ms", "scheme.grant.rtt=1ms", "scheme.fairq.window.floor"):
        assert called(monkeypatch, grid, "tuning", "--set", wrong, "--out", tmp_path) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"grid: --set {wrong}: give scheme.NAME.KEY=VALUE")
    with pytest.raises(ScenarioError):
        grid.settings_of(["scheme.hscc.window.floor=1"], ["fairq"])


# The calibration.


@pytest.mark.parametrize(
    ("kernel", "with_others", "explained"),
    [(30.0, (20.0, 50.0), True), (60.0, (20.0, 50.0), True), (80.0, (20.0, 50.0), False)],
)
def test_a_difference_is_explained_by_times_that_reach_the_kernels_number(
    monkeypatch, kernel, with_others, explained
):
    cell = {"name": "a cell", "client": "ab"}
    row = {
        **{"scenario": "a cell", "scheme": "hscc", "apart": ["drops"]},
        **{"kernel": {"drops": kernel}, "simulator": {"drops": 15.0}},
    }
    pauses = [change["times"]["think"] for change in timings.changes("ab") if "times" in change]
    half, double = ({"lognormal": time, "sigma": 0.45} for time in ("19000 ns", "76000 ns"))
    assert pauses == [half, double, "38 us", {"exponential": "70 us"}]
    others = iter([*with_others, *[with_others[0]] * 4])
    monkeypatch.setattr(timings, "played", lambda *_: {"drops": next(others)})
    (found,) = timings.with_others(row, {"a cell": cell})
    assert (found["least"], found["most"]) == (min(with_others), max(with_others))
    assert found["explained"] is explained


def test_the_calibration_is_not_accepted_where_nothing_is_compared(tmp_path, monkeypatch, capsys):
    played = []
    numbers = dict.fromkeys(calibrate.TOLERANCES, 1.0)
    monkeypatch.setattr(calibrate, "play", lambda *run: played.append(run) or numbers)
    words = ("clients-32", "--repeats", 1, "--out", tmp_path, "--on")
    assert called(monkeypatch, calibrate, *words, "sim") == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"calibrate: nothing is compared: {tmp_path} lacks the other side"
    )
    assert called(monkeypatch, calibrate, *words, "lab") == 0
    assert ": agree: 3, " in capsys.readouterr().out
    assert len(played) == 6


def test_the_calibration_keeps_the_kernels_runs_where_it_only_reads_them(
    tmp_path, monkeypatch, built
):
    played = []
    numbers = dict.fromkeys(calibrate.TOLERANCES, 1.0)

    def play(_, scheme, on, seed):
        played.append((scheme, on, seed))
        return numbers

    monkeypatch.setattr(calibrate, "play", play)
    words = ("clients-32", "--repeats", 1, "--out", tmp_path)
    assert called(monkeypatch, calibrate, *words) == 0
    played.clear()
    built |= {"lab": "lab 6.18 b", "sim": "sim b"}
    assert called(monkeypatch, calibrate, *words, "--on", "sim") == 0
    assert [on for _, on, _ in played] == ["sim"] * 3
    assert called(monkeypatch, calibrate, *words) == 0
    assert [on for _, on, _ in played] == ["sim"] * 3 + ["lab"] * 3


def test_means_agree_within_the_tolerance_or_a_few_events():
    def runs(**numbers):
        return [dict.fromkeys(calibrate.TOLERANCES, 1.0) | numbers] * 2

    for name, kernel, near, far in [
        ("mean", 0.1, 0.114, 0.116),
        ("p99", 0.1, 0.076, 0.074),
        ("elephants", 1e6, 1.15e6, 1.16e6),
        ("drops", 1000, 1250, 1251),
        ("timeouts", 2, 7, 8),
    ]:
        assert calibrate.apart(runs(**{name: kernel}), runs(**{name: near})) == []
        assert calibrate.apart(runs(**{name: kernel}), runs(**{name: far})) == [name]
    assert calibrate.apart(runs(mean=None), runs()) == ["mean"]
    assert calibrate.apart(runs(mean=None), runs(mean=None)) == []


def test_what_the_runs_span_is_no_difference():
    first, second = [3.0, 4.0, 1.0, 2.1], [490.0, 340.0, 433.0, 402.0]
    assert not calibrate.may_be_chance(first, second)
    spread, close = [10.0, 30.0, 50.0], [60.0, 61.0, 62.0]
    assert calibrate.may_be_chance(spread, close)  # t = 2.68, at 5 % 4.30
    assert not calibrate.may_be_chance([29.0, 30.0, 31.0], close)
    assert not calibrate.may_be_chance([10.0], [60.0])  # one run spans nothing
    assert calibrate.may_be_chance([5.0, 5.0], [5.0, 5.0])
    assert not calibrate.may_be_chance([5.0, 5.0], [6.0, 6.0])


def test_a_scenario_of_long_flows_alone_is_simulated_as_it_is():
    long = calibrate.named("elephants")
    assert calibrate.simulated(long)["traffic"] == long["document"]["traffic"]
    clients = calibrate.named("persistent")
    assert calibrate.simulated(clients)["traffic"] != clients["document"]["traffic"]


def test_a_named_scenario_has_the_congestion_control_that_is_asked_for():
    bbr, cubic = calibrate.named("persistent", "bbr"), calibrate.named("persistent")
    assert calibrate.simulated(bbr)["tcp"] == cubic["document"]["tcp"] | {"congestion": "bbr"}
    assert bbr["name"] != cubic["name"]


def test_the_links_of_a_cell_with_wrk_have_the_delays_of_its_machine():
    sample = calibrate.sample(is_aside=False)
    for one in sample:
        fabric, played = one["document"]["fabric"], calibrate.simulated(one)["fabric"]
        delays = {link: played[link]["delay"] for link in calibrate.WRK_DELAYS}
        assert (delays == calibrate.WRK_DELAYS) == (one["client"] == "wrk")
        assert (fabric == played) == (one["client"] != "wrk")


def test_what_is_tuned_on_is_not_what_is_reported_on():
    cells = importlib.import_module("cells")
    tuning, verdict = cells.axes("tuning"), cells.axes("verdict")
    for axis in ("clients", "size", "rate", "buffer"):
        assert not set(tuning[axis]) & set(verdict[axis])
    tuned, verdicts = (
        {one["name"] for one in calibrate.sample(is_aside=is_aside)} for is_aside in (False, True)
    )
    assert (len(tuned), len(verdicts), tuned & verdicts) == (48, 24, set())


# The long run.


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextlib.contextmanager
def clients(port):
    command = [sys.executable, EVIDENCE / "endurance/traffic.py", "fetch", str(port), "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_clients_that_reach_no_server_count_it(free_port):
    with clients(free_port) as process:
        counts = json.loads(list(islice(process.stdout, 2))[-1])
    assert counts["kept_lost"] >= traffic.PROCESSES
    assert counts["failed"] > 0
    assert counts["connections"] == counts["kept_rounds"] == 0


def test_clients_end_with_the_first_of_their_processes(free_port):
    with clients(free_port) as process:
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == traffic.PROCESSES
        os.kill(int(children[0]), signal.SIGKILL)
        assert process.wait(timeout=20) == 0


AT_WORK = {"rss_kb": 9000.0, "files": 9.0, "flows_tracked": 5.0, "process": 1}


def wrong(connections, left=None, deaths=(), columns=None, **counts):
    table = pl.DataFrame({"connections": connections, **AT_WORK} | (columns or {}))
    known = dict.fromkeys(traffic.COUNTS, 0) | {"connections": connections[-1]} | counts
    ended = AT_WORK | {"flows_tracked": 0.0} | (left or {})
    return endurance._wrong(table, known, ended, [], list(deaths))


def test_a_long_run_fails_where_the_agent_is_not_seen_to_work():
    made = list(range(0, 120, 10))
    assert wrong(made, deaths=["by itself with code -11"] * 2) == [
        "unexpected ends of the agent: 2, the first by itself with code -11"
    ]
    for name in ("rss_kb", "files", "flows_tracked"):
        assert wrong(made, left={name: None}) == [f"{name} is not known at the end"]
        half = {name: [9.0] * 5 + [None] * 7}
        assert f"7 of 12 samples lack {name}" in wrong(made, columns=half)
    assert wrong(made, columns={"flows_tracked": [5.0] * 6 + [None] * 6}) == []
    assert wrong(made, left={"flows_tracked": 3.0}) == [
        "3 entries of flows stay after all have ended"
    ]


def test_a_long_run_shows_what_grows_in_a_process_that_lasts():
    made = list(range(0, 200, 10))
    begun = [4000.0 + 1000 * n for n in range(5)]
    flat, leak = ([9000.0 + kb * n for n in range(15)] for kb in (0, 1000))
    process = [1] * 5 + [2] * 15
    assert wrong(made, columns={"rss_kb": begun + flat, "process": process}) == []
    assert wrong(made, columns={"rss_kb": begun + leak, "process": process}) == [
        "rss_kb of one process grew from 16000 to 21000"
    ]
    short = [n // 5 for n in range(20)]
    assert wrong(made, columns={"process": short}) == [
        "no process of the agent was seen in 6 samples, so growth is not known"
    ]


def test_an_agent_that_ends_by_itself_is_noted_and_started_again(tmp_path, monkeypatch):
    host = endurance.Host(tmp_path, 1)
    ends = iter(("exit 3", "sleep 60", "exit 4"))

    def start():
        host.daemon = subprocess.Popen(next(ends), shell=True)
        host.starts += 1

    monkeypatch.setattr(host, "start", start)
    host.start()
    host.daemon.wait()
    host.look()
    assert host.deaths == ["by itself with code 3"]
    host.look()
    assert (host.starts, len(host.deaths)) == (2, 1)
    host.end()
    assert len(host.deaths) == 1
    host.start()
    host.daemon.wait()
    host.end()
    assert host.deaths[1:] == ["by itself with code 4"]


def test_a_scrape_without_the_numbers_lacks_them():
    summed = endurance.Host.sample.__globals__["_summed"]
    text = '# HELP\npenstock_flows{port="a"} 2\npenstock_flows{port="b"} 3\npenstock_acks 9\n'
    assert summed(text) == {"flows": 5.0}
    assert summed("") == {}


def test_a_long_run_needs_progress_to_its_end():
    assert wrong([0, 10, 20, 30, 40, 50, 60, 70]) == []
    frozen = ["no connection was done in the last quarter of the run"]
    assert wrong([0, 10, 20, 30, 40, 50, 50, 50]) == frozen
    assert wrong([0] * 8) == frozen
    made = list(range(8))
    assert wrong(made, ended=1) == ["the clients ended before the run"]
    assert wrong(made, failed=1) == ["1 connections failed, 0 lasting ones broke"]


# Pods.


def test_an_answer_that_is_cut_off_is_no_completed_request(monkeypatch, free_port, capsys):
    async def half(reader, writer):
        size = int.from_bytes(await reader.readexactly(8), "big")
        writer.write(bytes(size // 2))
        writer.close()

    async def measured():
        async with await asyncio.start_server(half, "127.0.0.1", free_port):
            await bandwidth.load("127.0.0.1", 2, 1000, 0, 0.1)

    monkeypatch.setattr(bandwidth, "PORT", free_port)
    asyncio.run(measured())
    counted = Namespace(**json.loads(capsys.readouterr().out))
    assert (counted.times, counted.bytes) == ([], 0)
    assert counted.broken > 0
