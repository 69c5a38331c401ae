# SPDX-License-Identifier: Apache-2.0
"""The programs of evidence/ that judge and measure: their own parts, without kernel and root."""

import asyncio
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from penstock import ScenarioError
from penstock.execution import build

EVIDENCE = Path(__file__).parents[2] / "evidence"
PROGRAMS = (
    *("grant/lab", "grid/grid", "linux/calibrate"),
    *("endurance/endurance", "endurance/traffic", "kubernetes/bandwidth"),
)
with pytest.MonkeyPatch.context() as patch:
    patch.setitem(sys.modules, "host", None)  # that of python/tests, or none, afterwards
    del sys.modules["host"]
    for _name in PROGRAMS:
        patch.syspath_prepend(EVIDENCE / Path(_name).parent)
    lab, grid, calibrate, endurance, traffic, bandwidth = (
        importlib.import_module(Path(name).name) for name in PROGRAMS
    )
    recorded = importlib.import_module("recorded")


@pytest.fixture(autouse=True)
def built(monkeypatch):
    """The build of each substrate, as if all were built."""
    builds = {"lab": "lab 6.18 a", "sim": "sim a"}
    monkeypatch.setattr(build, "digest", builds.__getitem__)
    return builds


def called(monkeypatch, program, *words):
    monkeypatch.setattr(sys, "argv", [program.__name__, *map(str, words)])
    return program.main()


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
        summary={"results": [result], "scenario": scenario}, members=lambda _: table
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
    assert "Of 3 agree" in capsys.readouterr().out
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


def wrong(connections, **counts):
    table = pl.DataFrame({"connections": connections, "rss_kb": 1.0, "files": 9.0})
    known = dict.fromkeys(traffic.COUNTS, 0) | {"connections": connections[-1]} | counts
    return endurance._wrong(table, known, {}, [])


def test_a_long_run_needs_progress_to_its_end():
    assert wrong([0, 10, 20, 30, 40, 50, 60, 70]) == []
    frozen = ["no connection was done in the last quarter of the run"]
    assert wrong([0, 10, 20, 30, 40, 50, 50, 50]) == frozen
    assert wrong([0, 0]) == frozen
    assert wrong([0, 10], ended=1) == ["the clients ended before the run"]
    assert wrong([0, 10], failed=1) == ["1 connections failed, 0 lasting ones broke"]


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
