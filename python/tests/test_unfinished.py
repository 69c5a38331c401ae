# SPDX-License-Identifier: Apache-2.0
"""What a run has finished is kept, whatever happens to the command, and the same one resumes."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import penstock
from penstock import RunError, ScenarioError, api, cli, folders
from penstock.errors import InterruptedRunError
from penstock.execution import threads
from penstock.runs import Run

PENSTOCK = Path(sys.executable).with_name("penstock")


@pytest.fixture
def command(small, tmp_path, monkeypatch, capsys):
    """Runs `penstock run small.toml OPTION...` here, as a user would in `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["penstock", "run", str(small), *options])
        code = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def ending(monkeypatch, number, error):
    """After `number` runs, `threads.simulate` raises an error."""
    simulate, done = threads.simulate, []

    def simulated(task, *args):
        if len(done) == number:
            raise error
        done.append(task)
        return simulate(task, *args)

    monkeypatch.setattr(threads, "simulate", simulated)


def test_ctrl_c_keeps_what_has_ended_and_the_same_command_resumes(command, ran, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        ending(patch, 3, KeyboardInterrupt())
        code, out, err = command("--seeds", "2", "--jobs", "1")
    assert (code, out) == (130, "")
    assert err == (
        "penstock: interrupted; 3 runs kept in runs/small; the same command goes on from there\n"
    )
    assert "the run did not end" in run_again("report", "runs/small")
    with pytest.raises(ScenarioError, match="did not end; give its command again"):
        Run.load("runs/small")
    assert command("--seeds", "1")[0] == 0, "another run has another folder"
    assert (tmp_path / "runs/small-2/report.html").exists()
    ran.clear()
    code, out, _ = command("--seeds", "2")
    assert code == 0
    assert "Run:    runs/small\n" in out
    assert [(task.scheme, task.seed) for task in ran] == [("fairq", 2)]
    assert not (tmp_path / "runs/small/unfinished").exists()
    assert command("--seeds", "2", "--out", "whole")[0] == 0
    resumed, whole = Run.load("runs/small"), Run.load("whole")
    for table in ("flows", "queues", "ports"):
        assert_frame_equal(getattr(resumed, table), getattr(whole, table))


def run_again(*arguments):
    done = subprocess.run([PENSTOCK, *arguments], capture_output=True, text=True, check=False)
    return done.stderr


def test_a_run_that_fails_does_not_lose_the_others(command, monkeypatch, ran):
    with monkeypatch.context() as patch:
        ending(patch, 1, RunError("fairq, seed 1: made to fail"))
        code, _, err = command("--jobs", "1")
    assert code == 1
    assert "made to fail; 1 run kept in runs/small; the same command goes on" in err
    ran.clear()
    assert command()[0] == 0
    assert [task.scheme for task in ran] == ["fairq"]


def test_an_earlier_run_stays_until_the_next_has_ended(command, tmp_path):
    folder = tmp_path / "mine"
    assert command("--out", "mine")[0] == 0
    (folder / "notes.txt").write_text("a year's work")
    before = Run.load(folder)
    with pytest.MonkeyPatch.context() as patch:
        ending(patch, 1, KeyboardInterrupt())
        assert command("--out", "mine", "--set", "traffic.mice.flows=3", "--jobs", "1")[0] == 130
    assert_frame_equal(Run.load(folder).flows, before.flows)
    assert command("--out", "mine", "--set", "traffic.mice.flows=3")[0] == 0
    assert Run.load(folder).flows.height < before.flows.height
    assert (folder / "notes.txt").read_text() == "a year's work"


def test_a_damaged_row_is_run_again(command, ran, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        ending(patch, 1, KeyboardInterrupt())
        command("--jobs", "1")
    (row,) = (tmp_path / "runs/small/unfinished").glob("*.row")
    row.write_bytes(b"torn")
    ran.clear()
    assert command()[0] == 0
    assert len(ran) == 2


def test_two_at_once_have_folders_of_their_own(command, small, tmp_path):
    place = tmp_path / "runs/small/unfinished"
    place.mkdir(parents=True)
    (place / "scenario.toml").write_text(api.prepare(small).text)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Run:    runs/small-2\n" in command()[1]
        code, _, err = command("--out", "runs/small")
    assert code == 1
    assert "another run is at work there" in err
    assert "Run:    runs/small\n" in command()[1], "it was left by a command that was killed"


def test_a_command_that_is_refused_leaves_the_scenario_of_the_other(command, ran, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        ending(patch, 1, KeyboardInterrupt())
        command("--jobs", "1")
    with (tmp_path / "runs/small/unfinished/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = command("--out", "runs/small", "--set", "traffic.mice.flows=3")
    assert code == 1
    assert "another run is at work there" in err
    ran.clear()
    assert "Run:    runs/small\n" in command()[1]
    assert len(ran) == 1


def test_a_full_disk_at_the_start_keeps_what_an_earlier_command_finished(command, ran):
    with pytest.MonkeyPatch.context() as patch:
        ending(patch, 1, KeyboardInterrupt())
        command("--jobs", "1")

    def full_disk(path, *_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "write", full_disk)
        assert command()[0] == 2
    ran.clear()
    assert "Run:    runs/small\n" in command()[1]
    assert len(ran) == 1


@pytest.mark.parametrize(("room", "place"), [(2, ".row"), (6, "small"), (8, "report.html")])
def test_a_full_disk_keeps_what_has_ended(room, place, command, monkeypatch, ran):
    """Whatever does not fit: a row, a table, or the page."""
    write, files = folders.write, []

    def full_disk(path, content, **options):
        files.append(path.name)
        if len(files) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content, **options)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "write", full_disk)
        code, _, err = command("--jobs", "1")
    assert code == 1
    failed, _, remedy = err.partition(" cannot be written (No space left on device); ")
    assert place in failed
    assert "runs/small" in remedy
    if place == "report.html":
        assert Run.load("runs/small").flows.height
    else:
        ran.clear()
        assert command()[0] == 0
        assert len(ran) == (1 if place == ".row" else 0)


def test_a_tiny_disk_is_no_traceback(small, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", disk], check=True)
    try:
        err = run_again("run", str(small), "--out", str(disk / "run"))
        assert "run: cannot be written (No space left on device); " in err
        assert "kept in" in err
        subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        assert run_again("run", str(small), "--out", str(disk / "run")) == ""
        assert Run.load(disk / "run").flows.height
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_reader_that_leaves_loses_nothing(small, tmp_path):
    shell = f"'{PENSTOCK}' run '{small}' | head -1"
    subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "runs/small/report.html").exists()


@pytest.mark.parametrize("out", ["/proc/run", "/dev/null/run", "taken/run", "/dev/full"])
def test_impossible_targets_are_refused_before_computing(out, command, ran, tmp_path):
    (tmp_path / "taken").touch()
    code, printed, err = command("--out", out)
    assert (code, printed, ran) == (2, "", [])
    assert err.endswith("; give another --out\n")


def test_the_api_keeps_and_resumes_as_the_command_does(small, tmp_path, ran):
    with pytest.MonkeyPatch.context() as patch:
        ending(patch, 1, KeyboardInterrupt())
        with pytest.raises(InterruptedRunError, match="1 run kept in"):
            penstock.run(small, jobs=1, out=tmp_path / "run")
    ran.clear()
    summary = penstock.run(small, out=tmp_path / "run").summary
    assert len(ran) == 1
    assert json.loads((tmp_path / "run/summary.json").read_text()) == summary
