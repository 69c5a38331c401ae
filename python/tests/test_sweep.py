# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import json
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from penstock import api, cli, folders, tables
from penstock.errors import RunError
from penstock.execution import build, threads
from penstock.sweeps import sweeping
from penstock.sweeps.journal import Journal
from penstock.sweeps.store import Store

from .conftest import SMALL

OVER = ("--over", "traffic.mice.flows=2..6*3")
INCOMPLETE = (
    "{} runs: the others were interrupted or failed; give the same command again to compute them."
)


@pytest.fixture
def sweep(small, tmp_path, monkeypatch, capsys):
    """`sweep(OPTION...)` is the command in an own folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*options, command="sweep", file=small):
        monkeypatch.setattr("sys.argv", ["penstock", command, str(file), *options])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


def measured(folder):
    """The table without what a run cost."""
    table = pl.read_parquet(folder / "sweep.parquet")
    return table.select(name for name in table.columns if not name.startswith("performance."))


def test_a_row_for_each_point_scheme_and_seed(sweep, tmp_path):
    code, out, err = sweep(*OVER, "--over", "tcp.min_rto=1ms,10 ms", "--seeds", "2")
    assert (code, err) == (0, "")
    table = pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet")
    assert table.height == 2 * 2 * 2 * 2
    swept = table.columns[:4]
    assert swept == ["traffic.mice.flows", "tcp.min_rto_s", "scheme", "seed"]
    assert table.select(swept).dtypes == [pl.Int64, pl.Float64, pl.String, pl.Int64]
    assert table["tcp.min_rto_s"].unique().sort().to_list() == [0.001, 0.01]
    row = table.row(
        by_predicate=(pl.col("traffic.mice.flows") == 6)
        & (pl.col("seed") == 2)
        & (pl.col("tcp.min_rto_s") == 0.01)
        & (pl.col("scheme") == "fairq"),
        named=True,
    )
    overrides = {"traffic.mice.flows": 6, "tcp.min_rto": "10 ms"}
    run = api.run(tmp_path / "small.toml", schemes=["fairq"], seeds=[2], overrides=overrides)
    group = run.summary["results"][0]["groups"]["mice"]
    assert row["mice.fct_s.p99"] == group["fct_s"]["p99"]
    assert row["mice.goodput_bps.mean"] == group["goodput_bps"]["mean"]
    assert row["elephants.fct_s.p99"] is None
    port = run.summary["results"][0]["ports"]
    assert row["bottleneck.drops"] == next(iter(port.values()))["drops"]
    assert "mice.fct_s.p99" in out
    assert "±" in out


def test_a_percentile_is_null_where_too_few_flows_finished(sweep, tmp_path):
    late = ("--set", "traffic.mice.start_gap=2 ms", "--set", "duration=7 ms")
    _, out, _ = sweep(*OVER, *late, "--scheme", "drop-tail")
    table = pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet")
    few = table.filter(pl.col("mice.unfinished") > 0)
    assert not few.is_empty()
    assert few["mice.fct_s.p99"].null_count() == few.height
    assert few["mice.fct_s.mean"].null_count() < few.height
    assert "unfinished" in out


def test_the_folder_can_be_reported_again(sweep, tmp_path):
    sweep(*OVER, "--over", "scheme.alpha=0.1,0.2", "--show", "elephants.goodput")
    folder = tmp_path / "runs/small-sweep"
    page = (folder / "report.html").read_text()
    assert "goodput of elephants over flows of mice and alpha" in page
    (folder / "report.html").unlink()
    code, out, _ = sweep(command="report", file=folder)
    assert code == 0
    assert str(folder / "report.html") in out
    assert (folder / "report.html").read_text() == page
    assert sweep("--pdf", command="report", file=folder)[0] == 0
    assert (folder / "figures/sweep-elephants.goodput_bps.mean.svg").exists()


def test_the_same_command_runs_nothing_twice_and_more_only_the_rest(sweep, tmp_path, ran):
    sweep(*OVER)
    assert len(ran) == 4
    before = pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet")
    _, out, _ = sweep(*OVER)
    assert len(ran) == 4
    assert "runs/small-sweep (4 of 4 runs were there already)" in out
    assert_frame_equal(pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet"), before)
    sweep("--over", "traffic.mice.flows=2,4,6", "--seeds", "2", "--scheme", "hcf")
    assert len(ran) == 4 + 6, "hcf at each point"
    sweep("--over", "traffic.mice.flows=4", "--scheme", "drop-tail")
    assert len(ran) == 4 + 6 + 1
    table = pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet")
    assert table.height == 11
    assert table["traffic.mice.flows"].is_sorted()


@pytest.mark.parametrize("out", ["/proc/new", "/dev/null/new", "taken", "taken/new"])
@pytest.mark.parametrize("command", ["sweep", "tune"])
def test_an_impossible_folder_is_refused_before_computing(out, command, sweep, tmp_path, ran):
    (tmp_path / "taken").touch()
    asked = OVER if command == "sweep" else ("--scheme", "fairq", "--minimize", "mice.fct.mean")
    code, printed, err = sweep(*asked, "--out", out, command=command)
    assert (code, printed, ran) == (2, "", [])
    assert err.endswith("; give another --out\n")


def test_another_sweep_gets_another_folder(sweep, tmp_path):
    assert sweep(*OVER)[0] == 0
    assert "runs/small-sweep-2" in sweep("--over", "scheme.alpha=0.1,0.2")[1]
    assert "runs/small-sweep-3" in sweep(*OVER, "--set", "duration=50 ms")[1]
    assert "runs/small-sweep-4" in sweep(*OVER, "--set", "scheme.fairq.window.alpha=0.5")[1]
    code, _, err = sweep(*OVER, "--set", "duration=40 ms", "--out", "runs/small-sweep")
    assert (code, err.count("\n")) == (2, 1)
    assert "holds a sweep of another" in err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("a year's work")
    code, _, err = sweep(*OVER, "--out", "mine")
    assert code == 2
    assert "mine: exists and is not a sweep's folder" in err


TRACED = (
    SMALL[: SMALL.index("[traffic.elephants]")]
    + """
[traffic.recorded]
kind = "trace"
file = "a.csv"
"""
)


@pytest.fixture
def traced(tmp_path):
    """A scenario with the trace `a.csv`, and `write(NAME, BYTES)` for traces of one transfer."""

    def write(name, size):
        head = "start_s,source,destination,bytes"
        (tmp_path / name).write_text(f"{head}\n0,sender1,receiver1,{size}\n")

    write("a.csv", 1000)
    path = tmp_path / "traced.toml"
    path.write_text(TRACED)
    return path, write


def test_what_a_file_holds_is_part_of_a_sweep(sweep, traced):
    file, write = traced
    over = ("--over", "tcp.min_rto=1ms,10ms")
    assert sweep(*over, file=file)[0] == 0
    assert "4 of 4 runs were there already" in sweep(*over, file=file)[1]
    write("a.csv", 2000)
    code, _, err = sweep(*over, "--out", "runs/traced-sweep", file=file)
    assert (code, err.count("\n")) == (2, 1)
    assert "holds a sweep of another scenario, files, " in err
    assert "runs/traced-sweep-2" in sweep(*over, file=file)[1]


def test_what_a_swept_file_holds_is_part_of_a_sweep_too(sweep, traced):
    file, write = traced
    write("b.csv", 3000)
    swept = "--over", "traffic.recorded.file={}"
    assert sweep(swept[0], swept[1].format("a.csv,b.csv"), file=file)[0] == 0
    write("c.csv", 4000)
    out = sweep(swept[0], swept[1].format("a.csv,b.csv,c.csv"), file=file)[1]
    assert "runs/traced-sweep (4 of 6 runs were there already)" in out
    write("b.csv", 5000)
    assert "runs/traced-sweep-2" in sweep(swept[0], swept[1].format("b.csv,c.csv"), file=file)[1]


def test_another_simulator_does_not_go_on_with_a_sweep(sweep, monkeypatch, ran):
    assert sweep(*OVER)[0] == 0
    done = len(ran)
    monkeypatch.setattr(build, "digest", lambda _: "sha256 of another one")
    assert "runs/small-sweep-2" in sweep(*OVER)[1]
    assert len(ran) == 2 * done


def test_a_point_that_fails_does_not_stop_the_others(sweep, tmp_path, monkeypatch, ran):
    counting = threads.simulate

    def failing(task, *args):
        if task.scheme == "fairq" and "flows = 6" in task.scenario:
            message = f"fairq, seed {task.seed}: made to fail"
            raise RunError(message)
        return counting(task, *args)

    with monkeypatch.context() as patch:
        patch.setattr(threads, "simulate", failing)
        code, out, err = sweep(*OVER, "--json")
        assert INCOMPLETE.format("3 of 4") in sweep(*OVER)[1]
    assert code == 1
    assert "1 run failed" in err
    assert "traffic.mice.flows=6: fairq, seed 1: made to fail" in err
    printed = json.loads(out)
    assert (printed["runs"], printed["done"], len(printed["failures"])) == (4, 3, 1)
    assert INCOMPLETE.format("3 of 4") in (tmp_path / "runs/small-sweep/report.html").read_text()
    assert pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet").height == 3
    code, out, _ = sweep(*OVER)
    assert (code, "interrupted or failed" in out) == (0, False)
    assert len(ran) == 4, "the missing one alone ran again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_keep_what_is_done(number, sweep, tmp_path, monkeypatch, ran):
    counting = sweeping.execution.execute

    def interrupted(*args, **options):
        for done, found in enumerate(counting(*args, **options)):
            if done == 3:
                signal.raise_signal(number)
            yield found

    with monkeypatch.context() as patch:
        patch.setattr(sweeping.execution, "execute", interrupted)
        code, _, err = sweep("--over", "traffic.mice.flows=1..6", "--jobs", "1")
    assert code == 128 + number
    assert "interrupted; 3 of 12 runs kept in runs/small-sweep" in err
    folder = tmp_path / "runs/small-sweep"
    done = measured(folder)["key"]
    assert done.len() == 3
    assert sweep(command="report", file=folder)[0] == 0
    assert INCOMPLETE.format("3 of 12") in (folder / "report.html").read_text()
    ran.clear()
    assert sweep("--over", "traffic.mice.flows=1..6")[0] == 0
    assert "interrupted or failed" not in (folder / "report.html").read_text()
    assert len(ran) == 9
    assert not {task.key for task in ran} & set(done)


def test_a_kill_loses_nothing_that_was_done(sweep, small, tmp_path, ran):
    options = ["--over", "traffic.mice.flows=1..6", "--seeds", "3", "--set", "duration=2 s"]
    program = "import penstock.cli; penstock.cli.main()"
    command = [sys.executable, "-c", program, "sweep", str(small), *options, "--jobs", "1"]
    journal = tmp_path / "runs/small-sweep/journal.jsonl"
    with subprocess.Popen(command, cwd=tmp_path) as process:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    kept = {
        json.loads(line)["key"]
        for line in journal.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    }
    assert 3 <= len(kept) < 36
    with journal.open("a") as file:
        file.write('{"key": "torn')
    assert sweep(*options)[0] == 0
    assert len(ran) == 36 - len(kept)
    assert not {task.key for task in ran} & kept
    assert not journal.exists()
    assert sweep(*options, "--out", "whole")[0] == 0
    assert_frame_equal(measured(tmp_path / "runs/small-sweep"), measured(tmp_path / "whole"))


def test_a_kill_loses_nothing_either_if_the_next_command_has_other_values(
    sweep, tmp_path, monkeypatch, ran
):
    with monkeypatch.context() as patch:
        patch.setattr(Store, "merge", lambda *_: pl.DataFrame({"killed": [True]}))
        sweep(*OVER)
    journal = tmp_path / "runs/small-sweep/journal.jsonl"
    assert journal.read_bytes().count(b"\n") == 4
    assert sweep("--over", "traffic.mice.flows=4,6")[0] == 0
    assert len(ran) == 4 + 2, "6 was there"
    assert journal.read_bytes().count(b"\n") == 2
    assert "4 of 4 runs were there already" in sweep(*OVER)[1]
    assert not journal.exists()
    assert measured(tmp_path / "runs/small-sweep").height == 6


def test_one_sweep_at_a_time_works_on_a_folder(sweep, tmp_path):
    sweep(*OVER)
    with (tmp_path / "runs/small-sweep/.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = sweep(*OVER)
    assert code == 1
    assert "another sweep is at work there" in err
    assert sweep(*OVER)[0] == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 2, "--over: is missing; give KEY=VALUES"),
        ((*OVER, "--show", "mouse.fct"), 2, "--show mouse.fct: no such number"),
        ((*OVER, "--scheme", "fairy"), 2, "--scheme fairy: no such scheme"),
        ((*OVER, "--cluster", "tcp://127.0.0.1:1"), 1, "cannot be reached"),
        ((*OVER, "--cluster", "head"), 1, "cannot be reached"),
    ],
)
def test_errors_are_one_line(sweep, options, code, message):
    found, out, err = sweep(*options)
    assert (found, out) == (code, "")
    assert err.count("\n") == 1
    assert message in err
    assert sweep(*OVER)[0] == 0, "what is left of it does not hinder"


def test_a_damaged_folder_is_an_error(sweep, tmp_path):
    sweep(*OVER)
    folder = tmp_path / "runs/small-sweep"
    (folder / "sweep.parquet").write_bytes(b"no table")
    for command, file in (("sweep", tmp_path / "small.toml"), ("report", folder)):
        options = OVER if command == "sweep" else ()
        code, _, err = sweep(*options, command=command, file=file)
        assert (code, err.count("\n")) == (1, 1)
        assert "sweep.parquet: cannot be read" in err
    (folder / "sweep.parquet").unlink()
    assert "did not end" in sweep(command="report", file=folder)[2]
    (folder / "sweep.json").write_text("{")
    assert "sweep.json: cannot be read" in sweep(command="report", file=folder)[2]


def test_three_swept_keys_give_a_table_and_the_reason_for_no_figure(sweep, tmp_path):
    over = ("--over", "scheme.alpha=0.1,0.2", "--over", "tcp.min_rto=1ms,2ms")
    code, out, _ = sweep(*OVER, *over, "--scheme", "fairq")
    assert code == 0
    assert "scheme.alpha" in out
    folder = tmp_path / "runs/small-sweep"
    assert "Three or more values are swept" in (folder / "report.html").read_text()


def test_values_that_are_no_numbers_are_swept_too(sweep, tmp_path):
    over = ("--over", "tcp.profile=linux,newreno-ns2", "--over", "traffic.mice.size=10kB,1MB")
    assert sweep(*over, "--scheme", "drop-tail")[0] == 0
    table = pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet")
    assert table["tcp.profile"].to_list() == ["linux", "linux", "newreno-ns2", "newreno-ns2"]
    assert table["traffic.mice.size_bytes"].to_list() == [10_000, 1_000_000] * 2


def test_a_sweep_goes_on_where_a_full_disk_let_it_write_nothing(sweep, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "sweep.json")

    with monkeypatch.context() as full:
        full.setattr(folders, "write_json", fail)
        code, _, err = sweep(*OVER, "--out", "swept")
        assert (code, err.count("No space left on device")) == (1, 1)
    assert sweep(*OVER, "--out", "swept")[0] == 0


def test_a_sweep_of_datagrams_shows_the_drops_of_the_port(sweep, tmp_path):
    path = tmp_path / "datagrams.toml"
    begin = SMALL[: SMALL.index("[traffic.elephants]")]
    path.write_text(
        f'{begin}[traffic.u]\nkind = "udp"\nflows = 2\nrate = "1 Gb/s"\n'
        'from = "senders"\nto = "receivers"\n'
    )
    code, out, err = sweep("--over", "traffic.u.flows=1,2", "--seeds", "1", file=path)
    assert (code, err) == (0, "")
    assert "bottleneck.drops" in out


def test_a_folder_with_brackets_in_its_name_is_gone_on_with(sweep, ran):
    for runs in (4, 4):
        assert sweep(*OVER, "--out", "swept[1]")[0] == 0
        assert len(ran) == runs


def test_units_of_rates_are_those_of_scenarios(sweep, tmp_path):
    over = ("--over", "fabric.bottleneck.rate=100Mbps..200Mbps*2", "--scheme", "drop-tail")
    code, out, _ = sweep(*over, "--format", "csv")
    assert (code, out.partition(",")[0]) == (0, "fabric.bottleneck.rate_bps")
    table = pl.read_parquet(tmp_path / "runs/small-sweep/sweep.parquet")
    assert table["fabric.bottleneck.rate_bps"].to_list() == [10**8, 2 * 10**8]


def test_a_full_disk_keeps_what_is_done_and_is_named(sweep, monkeypatch, ran):
    def full(_, path, **__):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write", full)
        code, _, err = sweep(*OVER, "--out", "swept")
    assert code == 1
    assert err == (
        "penstock: swept/sweep.parquet: cannot be written (No space left on device); 4 of 4 runs "
        "kept in swept; the same command goes on from there\n"
    )
    ran.clear()
    assert sweep(*OVER, "--out", "swept")[0] == 0
    assert not ran


def test_a_full_disk_loses_the_run_that_does_not_fit_alone(sweep, monkeypatch, ran):
    add = Journal.add

    def full(journal, key, numbers):
        if len(journal.entries) == 2:
            raise OSError(errno.ENOSPC, "No space left on device", "journal.jsonl")
        add(journal, key, numbers)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", full)
        code, _, err = sweep(*OVER, "--out", "swept", "--jobs", "1")
    assert code == 1
    assert "2 of 4 runs kept in swept" in err
    ran.clear()
    assert sweep(*OVER, "--out", "swept")[0] == 0
    assert len(ran) == 2
