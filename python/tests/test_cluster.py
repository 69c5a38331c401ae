# SPDX-License-Identifier: Apache-2.0
"""Against a real Dask cluster: a scheduler and two workers, each a process of its own."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from polars.testing import assert_frame_equal

from penstock import _native, api, cli, execution
from penstock.errors import RunError, ScenarioError
from penstock.execution import dask_cluster

from .conftest import SMALL
from .test_sweep import measured

DASK = Path(sys.executable).with_name("dask")
LOCAL = ("--host", "127.0.0.1", "--no-dashboard")


class Cluster(NamedTuple):
    address: str
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    from distributed import Client

    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    program = [DASK, "scheduler", *LOCAL, "--port", "0", "--scheduler-file", file]
    worker = [DASK, "worker", *LOCAL, "--scheduler-file", file, "--nthreads", "1", "--no-nanny"]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))

        def start(command):
            process = stack.enter_context(
                subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
            )
            stack.callback(process.kill)
            return process

        scheduler, workers = start(program), [start(worker), start(worker)]
        while not file.exists() or not file.read_text().endswith("}"):
            assert scheduler.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        with Client(address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
        yield Cluster(address, scheduler, workers)


def test_a_killed_worker_costs_a_sweep_nothing_but_time(cluster, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    execute = execution.execute
    kept = []

    def killing(*args, **options):
        for task, row in execute(*args, **options):
            kept.append(task)
            if len(kept) == 4:
                cluster.workers[0].kill()
            yield task, row

    command = ["penstock", "sweep", str(small), "--over", "traffic.mice.flows=1..6"]
    command += ["--seeds", "2", "--set", "duration=2 s"]
    monkeypatch.setattr("sys.argv", [*command, "--out", "far", "--cluster", cluster.address])
    with monkeypatch.context() as patch:
        patch.setattr(execution, "execute", killing)
        cli.main()
    assert len(kept) == 24
    assert cluster.workers[0].wait() == -9
    monkeypatch.setattr("sys.argv", [*command, "--out", "near"])
    cli.main()
    assert_frame_equal(measured(tmp_path / "far"), measured(tmp_path / "near"))


def test_rows_are_those_of_this_machine(cluster, small):
    reported = []
    tasks = api.prepare(small, seeds=2).tasks
    far = execution.execute(
        tasks, cluster=cluster.address, progress=lambda *what: reported.append(what)
    )
    rows = dict(far)
    for task, row in execution.execute(tasks):
        assert rows[task][3:] == row[3:], "the tables, byte for byte"
        first, second = (json.loads(text) | {"performance": 0} for text in (rows[task][2], row[2]))
        assert first == second
    assert reported[-1] == (1.0, "4 of 4 runs")


def test_a_worker_of_another_version_is_refused(cluster, small, monkeypatch):
    here = _native.__version__
    monkeypatch.setattr(_native, "__version__", "99.0")
    rows = execution.execute(
        api.prepare(small).tasks, cluster=cluster.address, failed=lambda *_: None
    )
    with pytest.raises(RunError, match=rf"a worker has Penstock {here} and not 99.0; install"):
        list(rows)


def test_a_file_that_a_worker_lacks_is_named(cluster, tmp_path):
    text = SMALL[: SMALL.index("[traffic.elephants]")]
    (tmp_path / "flows.csv").write_text(
        "start_s,source,destination,bytes\n0.0,sender1,receiver1,1000\n"
    )
    scenario = tmp_path / "traced.toml"
    scenario.write_text(f'{text}[traffic.recorded]\nkind = "trace"\nfile = "flows.csv"\n')
    (first, *_) = tasks = api.prepare(scenario).tasks
    assert first.key
    (tmp_path / "flows.csv").unlink()
    with pytest.raises(ScenarioError, match=r"flows\.csv.*must be in a folder that all share"):
        list(execution.execute(tasks, cluster=cluster.address))


def test_without_dask_the_error_names_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ScenarioError, match=r"pip install 'penstock\[cluster\]'"):
        list(execution.execute(api.prepare(small).tasks, cluster="tcp://127.0.0.1:1"))


class Lost(NamedTuple):
    """A future whose row was announced, and is then out of reach."""

    error: Exception
    status: str = "finished"

    def result(self):
        raise self.error


@pytest.mark.parametrize("error", [CommClosedError("reset"), FutureCancelledError("key", "lost")])
def test_a_connection_lost_before_a_row_arrives_is_one_line(error):
    with pytest.raises(RunError, match="the connection was lost"):
        dask_cluster._result(Lost(error), "tcp://127.0.0.1:1")


def test_a_scheduler_that_dies_ends_the_sweep_in_one_line(cluster, small):
    """The last test: it leaves no cluster."""
    tasks = api.prepare(small, seeds=20, overrides={"duration": "5 s"}).tasks
    rows = execution.execute(tasks, cluster=cluster.address)
    next(rows)
    cluster.scheduler.kill()
    with pytest.raises(RunError, match="the connection was lost"):
        list(rows)
