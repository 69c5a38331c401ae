# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import penstock_papers
from penstock import RunError, ScenarioError, cli, execution
from penstock.execution import threads
from penstock.runs import Run
from penstock_papers import (
    drawing,
    experiment_files,
    experiment_names,
    recorded,
    reproduce,
    reproduction,
    reproduction_document,
    terminal_table,
)
from penstock_papers.analysis import hardware
from penstock_papers.measures import Measure

from .conftest import SMALL

CLAIMS = """
[runs.few]
set = { "traffic.mice.flows" = 2 }
[runs."all of them"]
[quick]
runs = ["few"]

[[claim]]
id = "ends"
text = "some mouse finishes"
where = "§1"
published = "some"
run = "few"
measure = { scheme = "fairq", group = "mice", field = "finished" }
relation = "higher"
against = 0
[[claim]]
id = "stops"
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
id = "all"
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
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "shipped/papers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "REPORTS", 0)
    return tmp_path / "shipped/papers"


@pytest.mark.usefixtures("shipped")
def test_an_experiment_is_run_judged_and_kept(capsys, monkeypatch):
    monkeypatch.setattr(reproduce, "REPORTS", 2)
    (done,), folder = reproduce.reproduce(["exp-1"], seeds=2)
    assert str(folder) == "runs/reproduction"
    assert (done.held, done.judged, done.seeds) == (1, 2, 2)
    assert done.runs == ("exp-1/few", "exp-1/all-of-them")
    few = json.loads((folder / done.runs[0] / "run.json").read_text())
    assert few["seeds"] == [1, 2]
    assert few["overrides"]["traffic.mice.flows"] == "2"
    assert [finding["holds"] for finding in few["findings"]] == [True, False]
    assert all((folder / path / "report.html").is_file() for path in done.runs)

    document = reproduction_document.read(folder)
    assert document["held"] == 1
    wanted = {"id", "text", "published", "measured", "holds", "within_noise", "experiment"}
    assert all(wanted <= set(claim) for claim in document["claims"])
    assert {**document, **reproduction.as_json([done])} == document

    terminal_table.table(done)
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
    done, folder = reproduce.reproduce(["all"], ended=ended.append)
    assert [one.experiment.id for one in done] == ["exp-1", "exp-2"]
    assert sorted(one.experiment.id for one in ended) == ["exp-1", "exp-2"]
    assert len(ran) == len({task.key for task in ran}) == 4, "two runs of two schemes"
    assert done[1].findings[0].holds
    assert (folder / "exp-2/few/flows.parquet").is_file()
    assert terminal_table.summary(done) == "2 of 3 claims hold."


@pytest.mark.usefixtures("shipped")
def test_quick_states_what_it_left_out(capsys):
    (done,), folder = reproduce.reproduce(["exp-1"], quick=True)
    assert done.runs == ("exp-1/few",)
    assert [finding.holds for finding in done.findings] == [True, None]
    assert reproduction_document.read(folder)["quick"] is True
    assert reproduction_document.read(folder)["experiments"][0]["shortened"] == "only the runs few"
    terminal_table.table(done)
    shown = " ".join(capsys.readouterr().out.split())
    assert "quick: only the runs few" in shown
    assert "not judged" in shown
    assert terminal_table.summary([done]) == "1 of 1 claims hold (1 not judged)."


def test_a_simulation_that_fails_leaves_the_others(shipped, monkeypatch):
    (shipped / "exp-2/claims.toml").write_text(OTHER.replace('"*"', '"x"') + "[runs.x]\n")
    simulate = threads.simulate

    def failing(task, *args):
        if "flows = 2\n" in task.scenario.partition("[traffic.mice]")[2]:
            message = "out of memory"
            raise RunError(message)
        return simulate(task, *args)

    monkeypatch.setattr(threads, "simulate", failing)
    done, folder = reproduce.reproduce(["exp-1", "exp-2"])
    assert [one.failed for one in done] == [True, False]
    assert any("out of memory" in note for note in done[0].notes)
    assert done[1].held == 1
    assert reproduction_document.read(folder)["judged"] == 1


@pytest.mark.usefixtures("shipped")
def test_only_a_reproduction_is_written_over(tmp_path):
    with pytest.raises(ScenarioError, match="no such experiment; did you mean 'exp-1'"):
        reproduce.reproduce(["exp-2", "exp1"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    reproduce.reproduce(["exp-1"], out=tmp_path / "out")
    reproduce.reproduce(["exp-2"], out=tmp_path / "out")
    assert (tmp_path / "out/exp-1").exists(), "other files in the folder stay"
    listed = reproduction_document.read(tmp_path / "out")["experiments"]
    assert [one["id"] for one in listed] == ["exp-2"]
    with pytest.raises(ScenarioError, match="is not a reproduction's folder"):
        reproduce.reproduce(["exp-1"], out=tmp_path / "shipped")
    with pytest.raises(ScenarioError, match="not a reproduction"):
        reproduction_document.read(tmp_path / "shipped")
    assert experiment_names.find("exp-1").name == "exp-1"


def tiny(made):
    """A variant of milliseconds: one seed of two runs, all traffic from the start.

    What theory makes of the runs needs all of them.
    """
    if made.scenario is None:
        return made
    settings = {"duration": "30 ms", "measure.from": "0 s"}
    for name, traffic in made.document["traffic"].items():
        settings |= {f"traffic.{name}.start": "0 s"}
        settings |= {f"traffic.{name}.{key}": 1 for key in ("epochs", "requests") if key in traffic}
    theory = any(claim.measure.analysis for claim in made.claims)
    names = list(made.runs)[: None if theory else 2]
    runs = {name: {**made.runs[name], **settings} for name in names}
    return replace(made, runs=runs, seeds=1)


def test_every_shipped_experiment_runs_and_is_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "REPORTS", 0)
    read = experiment_files.load
    monkeypatch.setattr(experiment_files, "load", lambda name: tiny(read(name)))
    # The synthesis takes 10 minutes and tools of its own.
    monkeypatch.setattr(hardware, "switch", lambda *_: dict.fromkeys(hardware.BOARD, 1))
    done, folder = reproduce.reproduce(["all"], out=tmp_path / "out")
    assert [one.experiment.id for one in done] == [name for name, _ in experiment_names.listed()]
    for one in done:
        assert not one.failed, one.notes
        assert one.judged, one.experiment.id
        for name in one.runs[:1]:
            made = Run.load(folder / name)
            for claim in one.experiment.claims:  # also those about the runs left out
                for side in (claim.measure, claim.against):
                    if isinstance(side, Measure) and not side.analysis:
                        side.of(made)
    assert reproduction_document.read(folder)["judged"] == sum(one.judged for one in done)


def test_quick_leaves_out_what_is_synthesized(monkeypatch, capsys):
    names, left_out = experiment_names.shortened(["all"])
    assert left_out == ["fairq-tab2"]
    assert "fairq-5a" in names
    assert "fairq-tab2" not in names
    with pytest.raises(ScenarioError, match=r"fairq-tab2: is synthesized.* --quick"):
        reproduce.reproduce(["fairq-tab2"], quick=True)
    with contextlib.suppress(SystemExit):
        command(monkeypatch, "--list")
    assert re.search(r"fairq-tab2 .* minutes of synthesis", capsys.readouterr().out)


def test_a_switch_is_synthesized_alone_and_after_a_notice(monkeypatch, capsys):
    asked = []

    def run(command, **_):
        asked.append(command)
        return subprocess.CompletedProcess(command, int("--question" in command), "", "")

    monkeypatch.setattr(hardware.subprocess, "run", run)
    hardware.folder.cache_clear()
    hardware.folder(sizes="xc2vp-3-64-4")
    hardware.folder.cache_clear()
    assert asked[-1] == ["make", "--silent", "rtl-resources", "SIZES=xc2vp-3-64-4"]
    assert "Synthesizing xc2vp-3-64-4" in capsys.readouterr().err


def command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["penstock", "reproduce", *arguments])
    cli.main()


@pytest.mark.usefixtures("shipped")
def test_the_command_prints_json_and_writes_the_page(tmp_path, monkeypatch, capsys):
    command(monkeypatch, "all", "--quick", "--json", "--page", "docs/page.md")
    printed = json.loads(capsys.readouterr().out)
    assert printed["held"] == 2
    assert printed["judged"] == 2
    assert [claim["holds"] for claim in printed["claims"]] == [True, None, True]
    page = (tmp_path / "docs/page.md").read_text()
    assert "`penstock reproduce all --quick --json --page docs/page.md`" in page
    assert "It is so." in page
    assert (tmp_path / "runs/reproduction/reproduction.html").is_file()


@pytest.mark.usefixtures("shipped")
def test_the_command_lists_and_sums_up(monkeypatch, capsys, tmp_path):
    command(monkeypatch, "--list")
    assert (
        capsys.readouterr().out == "exp-1  Six mice against two elephants\nexp-2  The same runs\n"
    )
    recorded = Path(tmp_path / "shipped/papers/exp-1/recorded.json")
    recorded.write_text('{"result": {"seeds":2,"computed_s":1234.5}}')
    command(monkeypatch, "--list")
    assert capsys.readouterr().out.startswith(
        "exp-1  Six mice against two elephants   1,234 s of CPU time\nexp-2"
    )
    recorded.unlink()
    command(monkeypatch, "--list", "--json")
    assert json.loads(capsys.readouterr().out)["experiments"][1]["id"] == "exp-2"
    command(monkeypatch, "exp-2", "--seeds", "2")
    assert capsys.readouterr().out.endswith(
        "Report: runs/reproduction/reproduction.html\n1 of 1 claims hold.\n"
    )
    with pytest.raises(SystemExit) as left:
        command(monkeypatch, "exp-2", "exp-3")
    assert left.value.code == 2
    assert "exp-3: no such experiment; did you mean 'exp-" in capsys.readouterr().err


@pytest.mark.usefixtures("shipped")
def test_the_command_fails_where_an_experiment_does(monkeypatch, capsys):
    def failing(*_):
        message = "out of memory"
        raise RunError(message)

    monkeypatch.setattr(threads, "simulate", failing)
    with pytest.raises(SystemExit) as left:
        command(monkeypatch, "exp-1")
    assert left.value.code == 1
    printed = capsys.readouterr()
    assert "out of memory" in printed.out
    assert printed.err == (
        "penstock: exp-1: could not be run; what could is in runs/reproduction\n"
    )


def test_in_the_laboratory_runs_and_schemes_are_its_own(shipped, monkeypatch, capsys):
    (shipped / "exp-1/claims.toml").write_text(
        CLAIMS + '[lab]\nschemes = ["drop-tail"]\nset = { duration = "50 ms" }\n[lab.runs.few]\n'
    )
    execute, in_laboratory = execution.execute, []

    def on_the_simulator(tasks, **more):
        tasks = list(tasks)
        in_laboratory.extend(tasks)
        simulated = {replace(task, on="sim"): task for task in tasks}
        for task, row in execute(simulated, **more):
            yield simulated[task], row

    monkeypatch.setattr(execution, "execute", on_the_simulator)
    reported = []
    (done,), folder = reproduce.reproduce(
        ["exp-1"], on="lab", progress=lambda *progress: reported.append(progress)
    )
    assert [(task.on, task.scheme) for task in in_laboratory] == [("lab", "drop-tail")]
    assert 'duration = "50 ms"' in in_laboratory[0].scenario
    assert [finding.holds for finding in done.findings] == [None, None], "fairq was left out"
    assert reported[-1] == (1.0, "1 of 1 run")
    assert reproduction_document.read(folder)["substrate"] == "lab"

    command(monkeypatch, "exp-1", "--on", "lab", "--record", "--out", "made")
    assert not (shipped / "exp-1/recorded.json").exists()
    command(monkeypatch, "all", "--on", "lab", "--recorded", "--out", "again")
    made, again = (reproduction_document.read(Path(name)) for name in ("made", "again"))
    assert again["claims"] == made["claims"]
    assert again["substrate"] == "lab"
    assert [one["id"] for one in again["experiments"]] == ["exp-1"]
    with pytest.raises(SystemExit):
        command(monkeypatch, "all", "--recorded")
    assert "nothing is recorded: run `penstock reproduce ID --record`" in capsys.readouterr().err

    (shipped / "exp-2/claims.toml").write_text('title = "Theory"')
    with pytest.raises(ScenarioError, match="exp-2: is theory; leave out --on lab"):
        reproduce.reproduce(["exp-2"], on="lab")
    with pytest.raises(ScenarioError, match="--quick: is for the simulator; leave out --on lab"):
        reproduce.reproduce(["exp-1"], on="lab", quick=True)


def test_a_reproduction_is_judged_again_without_running(shipped, monkeypatch, capsys):
    command(monkeypatch, "all", "--seeds", "1")
    folder = shipped.parents[1] / "runs/reproduction"
    before = reproduction_document.read(folder)
    path = shipped / "exp-1/claims.toml"
    path.write_text(path.read_text().replace("against = 0\n[[", "against = 9\n[["))
    monkeypatch.setattr(execution, "execute", None)
    command(monkeypatch, "--again", "runs/reproduction")
    after = reproduction_document.read(folder)
    assert (before["held"], after["held"]) == (2, 1)
    assert after["command"] == before["command"]
    assert after["experiments"][1] == before["experiments"][1]
    few = json.loads((folder / "exp-1/few/run.json").read_text())
    assert few["findings"][0]["holds"] is False

    for wrong in (["exp-1"], ["--quick"]):
        with pytest.raises(SystemExit) as left:
            command(monkeypatch, "--again", "runs/reproduction", *wrong)
        assert left.value.code == 2
        assert "nothing is run with --again" in capsys.readouterr().err
    path.write_text(path.read_text().replace("[runs.few]", "[runs.fewer]\n[runs.few]"))
    with pytest.raises(SystemExit):
        command(monkeypatch, "--again", "runs/reproduction")
    assert "no run 'fewer' of exp-1" in capsys.readouterr().err
    assert reproduction_document.read(folder) == after


FIGURE = """
[[figure]]
title = "Times"
where = "§1, Fig. 1"
meaning = "Left is fast."
kind = "cdf"
x_label = "time"
measure = { group = "mice", field = "fct_s" }
"""


def test_recorded_results_give_the_same_tables_and_figures(shipped, monkeypatch, capsys):
    (shipped / "exp-1/claims.toml").write_text(CLAIMS + FIGURE)
    command(monkeypatch, "exp-1", "--record", "--out", "made")
    shown = capsys.readouterr().out
    kept = json.loads((shipped / "exp-1/recorded.json").read_text())
    assert kept["origin"]["command"] == "penstock reproduce exp-1 --record --out made"
    assert {claim["holds"] for claim in kept["claims"].values()} == {True, False}

    monkeypatch.setattr(execution, "execute", None)
    command(monkeypatch, "exp-1", "--recorded", "--out", "second")
    assert capsys.readouterr().out.replace("second/", "made/") == shown
    made, again = (reproduction_document.read(Path(name)) for name in ("made", "second"))
    assert again["claims"] == made["claims"]
    assert again["command"] == made["command"]
    figures = [Path(name, "figures/exp-1.svg").read_text() for name in ("made", "second")]
    assert figures[0] == figures[1]

    more = CLAIMS + CLAIMS.split("[[claim]]")[1].join(("[[claim]]", "")).replace("ends", "later")
    (shipped / "exp-1/claims.toml").write_text(more)
    command(monkeypatch, "exp-1", "--recorded", "--json", "--out", "second")
    assert [one["holds"] for one in json.loads(capsys.readouterr().out)["claims"]][-1] is None


@pytest.mark.usefixtures("shipped")
def test_only_whole_experiments_are_recorded(monkeypatch, capsys):
    for wrong in (["--quick"], ["--seeds", "1"], ["--recorded"]):
        with pytest.raises(SystemExit) as left:
            command(monkeypatch, "exp-1", "--record", *wrong)
        assert left.value.code == 2
        assert wrong[0] in capsys.readouterr().err
    for shortened in (["--quick"], ["--seeds", "1"]):
        command(monkeypatch, "exp-1", *shortened, "--out", "made")
        with pytest.raises(SystemExit):
            command(monkeypatch, "--again", "made", "--record")
        message = f"{shortened[0]}: --record keeps whole experiments only"
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command(monkeypatch, "exp-1", "--recorded")
    assert "run `penstock reproduce exp-1 --record`" in capsys.readouterr().err


def test_the_recorded_results_are_of_the_claims_and_figures_of_now():
    """When this fails: `penstock reproduce ID --record` for the experiment."""
    for name, _ in experiment_names.listed():
        for on, file in recorded.NAMES.items():
            made = experiment_files.load(name).played(on)
            if on != execution.SIMULATOR and not (experiment_names.find(name) / file).exists():
                continue
            kept = recorded.read(name, on)
            assert set(kept["claims"]) == {one.id.removeprefix(f"{name}.") for one in made.claims}
            assert set(kept["figures"]) <= {drawing.name_of(one, made) for one in made.figures}


def test_a_wrong_id_next_to_all_is_refused():
    with pytest.raises(ScenarioError, match="nosuch: no such experiment"):
        experiment_names.chosen(["all", "nosuch"])
