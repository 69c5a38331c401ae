# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from penstock import RunError, ScenarioError, execution, source
from penstock.reproduce import files, load, outcome, run, show

from .conftest import SMALL

CLAIMS = """
[runs.few]
set = { "traffic.mice.flows" = 2 }
[runs."all of them"]
[quick]
runs = ["few"]

[[claim]]
id = "exp-1.ends"
text = "some mouse finishes"
where = "§1"
published = "some"
run = "few"
measure = { scheme = "fairq", group = "mice", field = "finished" }
relation = "higher"
against = 0
[[claim]]
id = "exp-1.stops"
text = "goodput is [nothing]"
published = 0
run = "all of them"
measure = { scheme = "fairq", group = "elephants", field = "goodput_bps.mean" }
relation = "equal"
against = 0
"""
OTHER = """
scenario = "exp-1"
title = "The same runs"
why = "It is so."

[[claim]]
id = "exp-2.all"
text = "all mice finish"
published = "all"
run = "*"
measure = { scheme = "drop-tail", group = "mice", field = "finished", per = "flows" }
relation = "equal"
against = 1
"""


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    for name, text in (("exp-1", CLAIMS), ("exp-2", OTHER)):
        folder = tmp_path / "shipped/papers" / name
        folder.mkdir(parents=True)
        (folder / "claims.toml").write_text(text)
    (tmp_path / "shipped/papers/exp-1/scenario.toml").write_text(SMALL)
    monkeypatch.setattr(source, "templates_dir", lambda: tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "REPORTS", 0)
    return tmp_path / "shipped/papers"


@pytest.mark.usefixtures("shipped")
def test_an_experiment_is_run_judged_and_kept(capsys, monkeypatch):
    monkeypatch.setattr(run, "REPORTS", 2)
    (done,), folder = run.reproduce(["exp-1"], seeds=2)
    assert str(folder) == "runs/reproduction"
    assert (done.held, done.judged, done.seeds) == (1, 2, 2)
    assert done.runs == ("exp-1/few", "exp-1/all-of-them")
    few = json.loads((folder / done.runs[0] / "run.json").read_text())
    assert few["seeds"] == [1, 2]
    assert few["overrides"]["traffic.mice.flows"] == "2"
    assert [finding["holds"] for finding in few["findings"]] == [True, False]
    assert all((folder / path / "report.html").is_file() for path in done.runs)

    document = files.read(folder)
    assert document["held"] == 1
    wanted = {"id", "text", "published", "measured", "holds", "within_noise", "experiment"}
    assert all(wanted <= set(claim) for claim in document["claims"])
    assert {**document, **outcome.as_json([done])} == document

    show.table(done)
    shown = " ".join(capsys.readouterr().out.split())
    assert "does not hold" in shown
    assert "Mb/s" in shown
    assert "goodput is [nothing]" in shown


@pytest.mark.usefixtures("shipped")
def test_what_two_experiments_share_is_run_once(monkeypatch):
    ran = []

    def listening(tasks, **more):
        ran.extend(tasks)
        return execution_execute(tasks, **more)

    execution_execute = execution.execute
    monkeypatch.setattr(execution, "execute", listening)
    ended = []
    done, folder = run.reproduce(["all"], ended=ended.append)
    assert [one.experiment.id for one in done] == ["exp-1", "exp-2"]
    assert sorted(one.experiment.id for one in ended) == ["exp-1", "exp-2"]
    assert len(ran) == len({task.key for task in ran}) == 4, "two runs of two schemes"
    assert done[1].findings[0].holds
    assert (folder / "exp-2/few/flows.parquet").is_file()
    assert show.summary(done) == "2 of 3 claims hold."


@pytest.mark.usefixtures("shipped")
def test_quick_says_what_it_left_out(capsys):
    (done,), folder = run.reproduce(["exp-1"], quick=True)
    assert done.runs == ("exp-1/few",)
    assert [finding.holds for finding in done.findings] == [True, None]
    assert files.read(folder)["quick"] is True
    assert files.read(folder)["experiments"][0]["shortened"] == "only the runs few"
    show.table(done)
    shown = " ".join(capsys.readouterr().out.split())
    assert "quick: only the runs few" in shown
    assert "not judged" in shown
    assert show.summary([done]) == "1 of 1 claims hold (1 not judged)."


def test_a_simulation_that_fails_leaves_the_others(shipped, monkeypatch):
    (shipped / "exp-2/claims.toml").write_text(OTHER.replace('"*"', '"x"') + "[runs.x]\n")
    simulate = execution.simulate

    def failing(task, progress=None):
        if "flows = 2\n" in task.scenario.split("mice")[-1]:
            message = "out of memory"
            raise RunError(message)
        return simulate(task, progress)

    monkeypatch.setattr(execution, "simulate", failing)
    done, folder = run.reproduce(["exp-1", "exp-2"])
    assert [one.failed for one in done] == [True, False]
    assert any("out of memory" in note for note in done[0].notes)
    assert done[1].held == 1
    assert files.read(folder)["judged"] == 1


@pytest.mark.usefixtures("shipped")
def test_only_a_reproduction_is_written_over(tmp_path):
    with pytest.raises(ScenarioError, match="no such experiment; did you mean 'exp-1'"):
        run.reproduce(["exp-2", "exp1"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run.reproduce(["exp-1"], out=tmp_path / "out")
    run.reproduce(["exp-2"], out=tmp_path / "out")
    assert not (tmp_path / "out/exp-1").exists()
    with pytest.raises(ScenarioError, match="is not a reproduction's folder"):
        run.reproduce(["exp-1"], out=tmp_path / "shipped")
    with pytest.raises(ScenarioError, match="not a reproduction"):
        files.read(tmp_path / "shipped")
    assert load.find("exp-1").name == "exp-1"
