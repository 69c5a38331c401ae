# SPDX-License-Identifier: Apache-2.0
import _thread
import threading
import time

import pytest

from penstock import _native, api, execution
from penstock.errors import RunError, ScenarioError
from penstock.execution import threads
from penstock.scenario import trace_to_csv

from .conftest import SMALL


def tasks_of(small, **settings):
    return api.prepare(small, **settings).tasks


def summaries(rows):
    """What is not performance."""
    return {
        (task.scheme, task.seed): (row[2].partition('"performance"')[0], row[3], row[4])
        for task, row in rows.items()
    }


def test_rows_do_not_depend_on_the_threads(small):
    tasks = tasks_of(small, seeds=3)
    one = dict(execution.execute(tasks, jobs=1))
    many = dict(execution.execute(tasks, jobs=4))
    assert list(one) == list(tasks), "one thread takes them in order"
    assert summaries(one) == summaries(many)


def test_a_run_of_prepared_parts_is_that_of_run(small):
    prepared = api.prepare(small, schemes=["fairq"], seeds=[7, 9])
    assert [(task.scheme, task.seed) for task in prepared.tasks] == [("fairq", 7), ("fairq", 9)]
    run = prepared.collect(dict(execution.execute(prepared.tasks)))
    direct = api.run(small, schemes=["fairq"], seeds=[7, 9])
    assert run.flows.equals(direct.flows)
    assert run.info["substrate"] == "sim"


def test_the_key_holds_what_decides_the_result_and_nothing_else(small, tmp_path):
    (task,) = tasks_of(small, schemes=["fairq"])
    retold = tmp_path / "retold.toml"
    retold.write_text(SMALL.replace("Six mice", "6 mice"))
    same = [
        tasks_of(retold, schemes=["fairq"]),
        tasks_of(small, schemes=["drop-tail", "fairq"], seeds=3)[3:4],
        tasks_of(small, schemes=["fairq"], overrides={"scheme.drop-tail.tcp.min_rto": "1 ms"}),
    ]
    assert [other.key for (other,) in same] == [task.key] * 3
    different = [
        tasks_of(small, schemes=["fairq"], seeds=[2]),
        tasks_of(small, schemes=["drop-tail"]),
        tasks_of(small, schemes=["fairq"], overrides={"scheme.fairq.window.alpha": 0.2}),
        tasks_of(small, schemes=["fairq"], overrides={"traffic.mice.flows": 5}),
    ]
    assert len({task.key, *(other.key for (other,) in different)}) == 5


MEASURED = """
title = "Sizes of a file"
duration = "10 ms"
schemes = ["drop-tail"]
[fabric]
kind = "dumbbell"
senders = 2
receivers = 2
access = { rate = "1 Gb/s", delay = "10 us" }
bottleneck = { rate = "1 Gb/s", delay = "10 us" }
[traffic.measured]
kind = "poisson"
load = "20 %"
size = "sizes.cdf"
mode = "pull"
server_think = "thinking.cdf"
from = "senders"
to = "receivers"
"""


def test_the_key_follows_the_files_that_the_scenario_names(tmp_path):
    text = SMALL[: SMALL.index("[traffic.elephants]")]
    keys = []
    for folder, size in (("a", 1000), ("b", 1000), ("c", 2000)):
        (tmp_path / folder).mkdir()
        trace = f"start_s,source,destination,bytes\n0.0,sender1,receiver1,{size}\n"
        (tmp_path / folder / "flows.csv").write_text(trace)
        file = tmp_path / folder / "traced.toml"
        file.write_text(f'{text}[traffic.recorded]\nkind = "trace"\nfile = "flows.csv"\n')
        keys.append(tasks_of(file)[0].key)
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("file", ["sizes.cdf", "thinking.cdf"])
def test_the_key_follows_a_distribution(tmp_path, file):
    scenario = tmp_path / "measured.toml"
    scenario.write_text(MEASURED)
    for name in ("sizes.cdf", "thinking.cdf"):
        (tmp_path / name).write_text("0 0\n1000 1\n")
    keys = []
    for largest in (1000, 1000, 2000):
        (tmp_path / file).write_text(f"0 0\n{largest} 1\n")
        keys.append(tasks_of(scenario)[0].key)
    assert keys[0] == keys[1] != keys[2]


def test_what_is_alike_runs_once(small, monkeypatch):
    ran = []
    simulate = threads.simulate
    monkeypatch.setattr(
        threads, "simulate", lambda task, *args: [ran.append(task), simulate(task, *args)][1]
    )
    first = tasks_of(small, schemes=["fairq"])
    second = tasks_of(small, overrides={"about": "the same"})
    rows = list(execution.execute([*first, *second]))
    assert [task.scheme for task in ran] == ["fairq", "drop-tail"]
    assert {task for task, _ in rows} == {*first, *second}


def failing(task, progress, _threads):
    if task.scheme == "fairq":
        message = f"fairq, seed {task.seed}: made to fail"
        raise RunError(message)
    return _native.run(
        task.scenario, task.origin, [(task.scheme, task.seed)], 1, trace_to_csv, progress
    )[0]


def test_a_failure_is_raised_or_reported_while_the_others_go_on(small, monkeypatch):
    monkeypatch.setattr(threads, "simulate", failing)
    tasks = tasks_of(small, seeds=2)
    with pytest.raises(RunError, match="fairq, seed 1: made to fail"):
        list(execution.execute(tasks, jobs=1))
    failures = []
    rows = execution.execute(
        tasks, failed=lambda task, error: failures.append((task.seed, str(error)))
    )
    assert sorted(task.seed for task, _ in rows) == [1, 2]
    assert sorted(failures) == [(seed, f"fairq, seed {seed}: made to fail") for seed in (1, 2)]


def test_progress_counts_the_runs(small):
    reported = []
    tasks = tasks_of(small, seeds=2, overrides={"duration": "5 s"})
    list(execution.execute(tasks, jobs=1, progress=lambda *what: reported.append(what)))
    fractions = [fraction for fraction, _ in reported]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] <= 1
    assert {label for _, label in reported} <= {f"{done} of 4 runs" for done in range(5)}


def test_no_thread_computes_on_when_the_caller_stops_asking(small):
    endless = {"duration": "10000 s"}
    tasks = [*tasks_of(small, schemes=["fairq"]), *tasks_of(small, overrides=endless, seeds=20)]
    before = threading.active_count()
    rows = execution.execute(tasks, jobs=2)
    next(rows)
    rows.close()
    assert threading.active_count() == before


def test_ctrl_c_ends_all_threads(small):
    tasks = tasks_of(small, overrides={"duration": "10000 s"}, seeds=4)
    before = threading.active_count()

    def press(*_):
        _thread.interrupt_main()
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        list(execution.execute(tasks, jobs=4, progress=press))
    assert threading.active_count() == before


def test_a_slow_caller_holds_the_simulations_back(small, monkeypatch):
    started, simulate = [], threads.simulate

    def counting(task, *args):
        started.append(task)
        return simulate(task, *args)

    monkeypatch.setattr(threads, "simulate", counting)
    tasks = tasks_of(small, schemes=["drop-tail"], seeds=30)
    for taken, (task, _) in enumerate(execution.execute(tasks, jobs=1), 1):
        for _ in range(3):  # the caller takes longer than a simulation
            simulate(task)
        assert len(started) <= taken + 6
    assert len(started) == len(tasks)


def test_threads_are_those_of_this_machine_alone(small):
    tasks = tasks_of(small, schemes=["fairq"])
    with pytest.raises(ScenarioError, match="--jobs: is for the simulator on this machine"):
        list(execution.execute(tasks, jobs=2, cluster="tcp://127.0.0.1:1"))
    of_lab = tasks_of(small, schemes=["fairq"], on="lab")
    with pytest.raises(ScenarioError, match="--jobs: is for the simulator on this machine"):
        list(execution.execute(of_lab, jobs=2))
