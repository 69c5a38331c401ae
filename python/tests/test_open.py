# SPDX-License-Identifier: Apache-2.0
"""What a paper leaves open: samples, shares, what decides, and the journal."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import penstock_papers
from penstock import RunError, ScenarioError, cli
from penstock.execution import threads
from penstock_papers import experiment_files, open_space
from penstock_papers.setups import claims_map, explore, kept, outcome, tables
from penstock_papers.setups.robustness import Kind, Share

from .conftest import SMALL

# `many` holds by construction where at least 4 mice are sampled; nothing else matters to it.
OPEN = """
[open."traffic.mice.flows"]
range = [1, 6]
reason = "no number of mice"
[open."traffic.elephants.start"]
range = ["1 ms", "9 ms"]
scale = "log"
reason = "no start"
[open."fabric.bottleneck.buffer"]
values = ["100 packets", "150 kB"]
reason = "printed in both units"
"""
CLAIMS = """
[[claim]]
id = "many"
text = "there are at least 4 mice"
published = "many"
measure = { scheme = "drop-tail", group = "mice", field = "flows" }
relation = "at-least"
against = 4
[[claim]]
id = "five"
text = "the number of mice is about 5"
published = 5
measure = { scheme = "drop-tail", group = "mice", field = "flows" }
relation = "within"
against = 5
percent = 10
[[claim]]
id = "always"
text = "the elephants send"
published = "some"
measure = { scheme = "drop-tail", group = "elephants", field = "goodput_bps.mean" }
relation = "higher"
against = 0
[[claim]]
id = "never"
text = "the elephants fill ten links"
published = "all"
measure = { scheme = "drop-tail", group = "elephants", field = "goodput_bps.mean" }
relation = "higher"
against = 1e10
"""
SCENARIO = SMALL.replace('["drop-tail", "fairq"]', '["drop-tail"]').replace("100 ms", "20 ms")
ENOUGH = 40


@pytest.fixture
def papers(tmp_path, monkeypatch):
    """A folder of experiments: `exp-1`, and `exp-2` with the same runs and other claims."""
    folder = tmp_path / "papers"
    for name, text in (
        ("exp-1", OPEN + CLAIMS),
        ("exp-2", 'scenario = "exp-1"\ntitle = "Other claims"\n' + CLAIMS),
        ("exp-3", 'scenario = "exp-1"\ntitle = "Nothing open"\n[open]\n' + CLAIMS),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "claims.toml").write_text(text)
    (folder / "exp-1/scenario.toml").write_text(SCENARIO)
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: folder)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def penstock(papers, monkeypatch):
    """Runs a command and returns its exit code."""
    assert papers.is_dir()

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
        try:
            cli.main()
        except SystemExit as ended:
            return ended.code
        return 0

    return run


def flows_of(seed, number=ENOUGH):
    """How many mice each sampled set-up has."""
    made = experiment_files.load("exp-1")
    return [one.settings["traffic.mice.flows"] for one in open_space.sample(made, number, seed)]


def claims_of(one):
    return {claim.claim.id.partition(".")[2]: claim for claim in one.claims}


@pytest.mark.usefixtures("papers")
def test_samples_depend_on_the_seed_alone_and_cover_each_range():
    made = experiment_files.load("exp-1")
    sample = list(open_space.sample(made, 12, seed=7))
    assert sample == list(open_space.sample(made, 12, seed=7))
    assert sample == list(open_space.sample(experiment_files.load("exp-2"), 12, seed=7))
    assert sample != list(open_space.sample(made, 12, seed=8))
    for places in zip(*(one.places for one in sample), strict=True):
        assert sorted(int(12 * place) for place in places) == list(range(12))
    assert {one.settings["traffic.mice.flows"] for one in sample} == {1, 2, 3, 4, 5, 6}
    units = Counter(one.settings["fabric.bottleneck.buffer"] for one in sample)
    assert units == {"100 packets": 6, "150 kB": 6}
    middle = open_space.parameters(made)[1].at(0.5)
    assert middle.settings == {"traffic.elephants.start": "3.00 ms"}, "the scale is logarithmic"


@pytest.mark.usefixtures("papers")
def test_shares_and_the_deciding_value_are_those_of_the_construction(ran, capsys):
    (one, other), folder = explore.explore(["exp-1", "exp-2"], samples=ENOUGH, seed=3)
    assert len(ran) == ENOUGH, "what both need is run once"
    assert len({task.seed for task in ran}) == ENOUGH, "each set-up has a seed of its own"
    flows, found = flows_of(3), claims_of(one)
    held = {"many": sum(n >= 4 for n in flows), "five": flows.count(5), "always": ENOUGH}
    for name, number in {**held, "never": 0}.items():
        assert found[name].share == Share(number, ENOUGH)
    kinds = [Kind.FRAGILE, Kind.FRAGILE, Kind.ROBUST, Kind.REFUTED]
    assert [claim.share.kind for claim in found.values()] == kinds
    assert found["many"].decides == "traffic.mice.flows"
    below, above = found["many"].split
    assert below == ("below 4", Share(0, below[1].judged))
    assert above[1] == Share(held["many"], held["many"])
    assert not found["always"].decides, "what always holds is not decided"
    assert one.deciding == ["traffic.mice.flows"]
    assert one.numbers["nearest"]["settings"]["traffic.mice.flows"] == "5"
    assert one.numbers["nearest"]["apart"] == 1.0
    assert one.numbers["claims"] == other.numbers["claims"]

    document = json.loads((folder / "open.json").read_text())
    assert document["counts"] == {"robust": 2, "fragile": 4, "refuted": 2, "too few": 0} | {
        "not run": 0
    }
    page = (folder / "open.html").read_text()
    assert "no number of mice" in page
    assert page.count(">F</text>") == 5, "four claims and the legend"
    tables.show(one)
    shown = " ".join(capsys.readouterr().out.split())
    assert "traffic.mice.flows" in shown
    assert found["many"].decided == "traffic.mice.flows (below 4: 0 %, from 4: 100 %)"


@pytest.mark.usefixtures("papers")
def test_few_set_ups_are_called_so():
    (one,), _ = explore.explore(["exp-1"], samples=6)
    assert {claim.share.kind for claim in one.claims} == {Kind.TOO_FEW}
    assert not any(claim.decides for claim in one.claims)
    assert "what decides is not named: that needs 30 set-ups" in list(tables.notes(one))
    assert Share(20, 20).kind == Kind.ROBUST
    assert Share(19, 19).kind == Kind.TOO_FEW
    assert Share(0, 0).kind == Kind.NOT_RUN
    assert str(Share(20, 20)) == "100 % of 20 (84 % to 100 %)"


def test_a_kill_loses_no_set_up_that_was_judged(papers, tmp_path, ran):
    program = (
        "import sys; from pathlib import Path; import penstock_papers; from penstock_papers.setups "
        "import explore; penstock_papers.experiments_dir = lambda: Path(sys.argv[1]); "
        "explore.explore(['exp-1'], samples=40, jobs=1)"
    )
    scenario = papers / "exp-1/scenario.toml"
    scenario.write_text(SCENARIO.replace("20 ms", "1 s"))  # there is time for the kill
    journal = tmp_path / "runs/open/journal.jsonl"
    command = [sys.executable, "-c", program, str(papers)]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    known = journal.read_bytes().count(b"\n")
    assert 3 <= known < ENOUGH
    with journal.open("a") as file:
        file.write('{"key": "torn')
    (one,), folder = explore.explore(["exp-1"], samples=ENOUGH)
    assert str(folder) == "runs/open"
    assert one.set_ups == ENOUGH
    assert len(ran) == ENOUGH - known
    ran.clear()
    (again,), _ = explore.explore(["exp-1"], samples=ENOUGH)
    assert (ran, again.numbers) == ([], one.numbers)


def test_ctrl_c_keeps_what_is_judged(penstock, monkeypatch, ran, capsys):
    judge = explore._judged

    def interrupted(work):
        if len(ran) > 3:
            raise KeyboardInterrupt
        return judge(work)

    command = ["reproduce", "exp-1", "--open", "--samples", "9", "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(explore, "_judged", interrupted)
        assert penstock(*command) == 130
    found = re.search(r"interrupted; (\d) of 9 set-ups kept in runs/open", capsys.readouterr().err)
    ran.clear()
    assert penstock(*command) == 0
    assert len(ran) == 9 - int(found[1])


@pytest.mark.usefixtures("papers")
def test_a_set_up_that_fails_is_reported_and_not_counted(monkeypatch):
    simulate = threads.simulate

    def failing(task, *args):
        if task.seed == 2:
            message = "out of memory"
            raise RunError(message)
        return simulate(task, *args)

    monkeypatch.setattr(threads, "simulate", failing)
    (one,), _ = explore.explore(["exp-1"], samples=6)
    assert one.set_ups == 5
    assert claims_of(one)["always"].share == Share(5, 5)
    assert one.numbers["failed"] == ["set-up 1: drop-tail, seed 2: out of memory"]


def test_results_are_kept_and_drawn_again(penstock, papers, capsys):
    command = ["reproduce", "exp-1", "--open", "--samples", "24", "--seed", "5"]
    assert penstock(*command, "--record", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["experiments"][0]["seed"] == 5
    assert (papers / "exp-1/open.json").stat().st_size < 2_000
    recorded = kept.read(["exp-1", "exp-2", "exp-3"])
    assert outcome.as_json(recorded[:1]) == printed
    text = tables.markdown(recorded, "map.svg")
    assert "Not run: exp-2." in text
    assert "Nothing is open in exp-3." in text
    assert "![Map of the claims: 1 robust, 2 fragile, 1 refuted, 8 not run](map.svg)" in text
    drawn = claims_map.svg(recorded)
    letters = Counter(re.findall(r'fill="#\w+">(.)</text>', drawn))
    assert letters == {"R": 2, "F": 3, "X": 2, "?": 1, "·": 9}, "one of each in the legend"
    assert penstock("reproduce", "exp-1", "--open", "--recorded") == 0
    assert "1 robust, 2 fragile, 1 refuted." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('range = [1, 6]\nreason = "x"\nscale = "square"', "unknown scale 'square'"),
        ('reason = "x"', "give either `range` or `values`"),
        ('range = [1, 6]\nvalues = [1, 2]\nreason = "x"', "give either `range` or `values`"),
        ("range = [1, 6]", "reason is missing"),
        ('range = [1, 6]\nreason = " "', "reason: is empty"),
        ('range = [6, 1]\nreason = "x"', "range: 6 is not below 1"),
        ('range = [1]\nreason = "x"', "range: has 1 values"),
        ('range = [1, "2 ms"]\nreason = "x"', "range: give two numbers of one unit"),
        ('range = [true, false]\nreason = "x"', "range: give two numbers of one unit"),
        ('range = [0, 6]\nscale = "log"\nreason = "x"', "scale: log needs a range above 0"),
        ('values = [3]\nreason = "x"', "values: give at least two that differ"),
    ],
)
def test_a_mistake_in_a_table_is_one_line(papers, text, message):
    (papers / "exp-1/claims.toml").write_text(f'[open."traffic.mice.flows"]\n{text}\n{CLAIMS}')
    with pytest.raises(RunError) as raised:
        explore.explore(["exp-1"])
    line = str(raised.value)
    assert f'exp-1/claims.toml: open."traffic.mice.flows": {message}' in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[runs.a]\nset = { "traffic.mice.flows" = 3 }', 'the run "a" sets traffic.mice.flows'),
        ('[open.x]\nvalues = [1, 2]\nalso = ["traffic.mice.flows"]\nreason = "x"', "two tables"),
        ("open.y = 3", 'open."y": give a table'),
        ('open.like = "exp-9"', "open: like: no experiment 'exp-9'"),
    ],
)
def test_tables_that_contradict_each_other_are_one_line(papers, text, message):
    prefix = "" if "runs" in text or "[open" in text else text + "\n"
    suffix = "" if prefix else text + "\n"
    claims = CLAIMS.replace("[[claim]]", '[[claim]]\nrun = "*"') if "runs" in text else CLAIMS
    (papers / "exp-1/claims.toml").write_text(prefix + OPEN + suffix + claims)
    with pytest.raises(RunError, match=re.escape(message)):
        explore.explore(["exp-1"])


def test_what_cannot_run_is_refused_before_anything_runs(papers, ran):
    wrong = OPEN.replace("traffic.mice.flows", "traffic.mouse.flows")
    (papers / "exp-1/claims.toml").write_text(wrong + CLAIMS)
    with pytest.raises(ScenarioError, match=r"exp-1: set-up 0 of \[open\]: .*mouse"):
        explore.explore(["exp-1"])
    with pytest.raises(ScenarioError, match="exp-3: leaves nothing open"):
        explore.explore(["exp-3"])
    assert not ran


def test_what_the_runs_set_is_not_open_where_tables_are_inherited(papers):
    text = 'title = "Others"\nscenario = "exp-1"\n[open]\nlike = "exp-1"\n'
    runs = '[runs.a]\nset = { "traffic.mice.flows" = 3 }\n'
    claims = CLAIMS.replace("[[claim]]", '[[claim]]\nrun = "*"')
    (papers / "exp-2/claims.toml").write_text(text + runs + claims)
    made = experiment_files.load("exp-2")
    assert list(made.open) == ["traffic.elephants.start", "fabric.bottleneck.buffer"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--samples", "9"], "--samples: is for --open"),
        (["--open", "--recorded", "--seed", "2"], "--seed: nothing is run with --recorded"),
        (["--open", "--on", "lab"], "--on lab: does not go with --open"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(penstock, capsys, options, message):
    assert penstock("reproduce", "exp-1", *options) == 2
    assert message in capsys.readouterr().err
