# SPDX-License-Identifier: Apache-2.0
import json
import re

import polars as pl
import pytest

import penstock_papers
from penstock import RunError, ScenarioError
from penstock.runs import Run
from penstock_papers import claims, experiment_files, experiment_names, reproduce, values
from penstock_papers.claims import Claim
from penstock_papers.measures import Measure
from penstock_papers.values import Value

from .conftest import SMALL, make_run

SICC = {"scheme": "sicc", "group": "mice", "field": "fct_s.mean"}
DCTCP = {**SICC, "scheme": "dctcp"}
CLAIM = """
[[claim]]
id = "c"
text = "a claim"
published = 1
relation = "lower"
against = 1
"""


def run_of(half=None, **means):
    """A run with these mean completion times of mice, all with the same half-width."""
    results = [
        {
            "scheme": scheme,
            "groups": {"mice": {"fct_s": None if mean is None else {"mean": mean}, "flows": 4}},
            "ci95": half and {"groups": {"mice": {"fct_s": {"mean": half}, "flows": 0.0}}},
        }
        for scheme, mean in means.items()
    ]
    tables = dict.fromkeys(("flows", "queues", "ports"), make_run().flows.clear())
    return Run(summary={"results": results}, scenario="", info={}, **tables)


def claim(relation="lower", against=None, measure=None, **more):
    against = Measure(**DCTCP) if against is None else against
    return Claim("c", "text", "lower", measure or Measure(**SICC), relation, against, **more)


def judged(of, runs):
    runs = runs if isinstance(runs, dict) else {"": runs}
    return claims.judge(of, tuple(runs), runs, {"sicc", "dctcp"})


@pytest.mark.parametrize(
    ("relation", "more", "yes", "no"),
    [
        ("lower", {}, 9.9, 10.0),
        ("lower", {"factor": 2}, 4.9, 5.0),
        ("higher", {}, 10.1, 10.0),
        ("higher", {"factor": 2}, 20.1, 20.0),
        ("at-most", {"percent": 5}, 10.5, 10.6),
        ("at-least", {"percent": 5}, 9.5, 9.4),
        ("about", {"factor": 2}, 5.0, 4.9),
        ("about", {"factor": 2}, 20.0, 20.1),
        ("within", {"percent": 15}, 8.5, 8.4),
        ("within", {"percent": 15}, 11.5, 11.6),
        ("equal", {}, 10.0, 10.1),
    ],
)
def test_relations(relation, more, yes, no):
    for of in (claim(relation, 10.0, **more), claim(relation, **more)):
        assert judged(of, run_of(sicc=yes, dctcp=10.0)).holds is True
        assert judged(of, run_of(sicc=no, dctcp=10.0)).holds is False


def test_what_did_not_happen_bears_nothing_out():
    assert judged(claim(), run_of(sicc=None, dctcp=1.0)).holds is False
    assert judged(claim(), run_of(sicc=0.5, dctcp=None)).holds is False


@pytest.mark.parametrize(
    ("relation", "more", "measured", "holds", "is_open"),
    [
        ("lower", {}, 7.0, True, False),
        ("lower", {}, 9.0, True, True),
        ("lower", {}, 11.0, False, True),
        ("lower", {}, 13.0, False, False),
        ("within", {"percent": 5}, 11.5, False, True),
        ("within", {"percent": 5}, 12.6, False, False),
        ("equal", {}, 10.0, True, True),
    ],
)
def test_a_verdict_that_the_seeds_leave_open_is_marked(relation, more, measured, holds, is_open):
    of = claim(relation, 10.0 if relation != "lower" else None, **more)
    found = judged(of, run_of(sicc=measured, dctcp=10.0, half=1.2))
    assert (found.holds, found.within_noise) == (holds, is_open)
    assert found.verdict.endswith(", within the noise") is is_open
    assert found.ci95 == 1.2
    sharp = judged(of, run_of(sicc=measured, dctcp=10.0))
    assert (sharp.holds, sharp.within_noise) == (holds, False)


def test_numbers_are_shown_as_people_read_them():
    assert claim().show(Value(0.00123), Value(0.2)) == "1.23 ms vs 200 ms"
    assert claim().show(Value(0.00123, 1e-5), Value(0.2)) == "1.23 ms ± 10.0 µs vs 200 ms"
    assert claim(against=3.0).show(None, Value(3.0)) == "–"
    starved = Measure("hcf", "starved", group="long")
    assert starved.show(0.015) == "0.015", "as the papers print shares"
    assert Measure("hcf", "packets_variance", group="long").show(6740.0) == "6740"


def test_a_claim_about_nothing_cannot_be_computed():
    with pytest.raises(RunError, match=r"claim c: sicc/mice/fct_s.mean: no 'sicc'; the run has a"):
        judged(claim(), run_of(a=1.0))
    with pytest.raises(RunError, match=r"no 'p98'; the run has mean"):
        Measure("a", "fct_s.p98", group="mice").of(run_of(a=1.0))


def test_ports_are_looked_up_by_name():
    run = make_run()
    measure = Measure("hcf", "drops", port="a->b")
    assert measure.of(run).mean == run.summary["results"][1]["ports"]["a->b"]["drops"]


def test_of_several_runs_the_worst_decides_and_is_shown():
    runs = {"a": run_of(sicc=1.0, dctcp=10.0), "b": run_of(sicc=9.0, dctcp=10.0)}
    found = judged(claim(), runs)
    assert (found.holds, found.run, found.measured) == (True, "b", 9.0)
    runs["c"] = run_of(sicc=11.0, dctcp=10.0)
    found = judged(claim(), runs)
    assert (found.holds, found.run, found.measured) == (False, "c", 11.0)


@pytest.mark.parametrize(("across", "is_"), [("max", 9), ("min", 3), ("mean", 5), ("spread", 3)])
def test_one_number_of_several_runs(across, is_):
    runs = {str(mean): run_of(sicc=mean, dctcp=1, half=0.3) for mean in (3, 3, 9)}
    runs["again"] = run_of(sicc=3, dctcp=1, half=0.3)
    found = judged(claim("equal", is_, Measure(**SICC, across=across)), runs)
    assert found.measured == pytest.approx(is_)
    assert 0 < found.ci95 <= 0.3 if across != "spread" else 0.3 < found.ci95 < 0.4


def test_a_side_may_be_of_another_run_and_of_another_field():
    runs = {"a": run_of(sicc=4.0, dctcp=1.0), "b": run_of(sicc=6.0, dctcp=1.0)}
    of = claim(against=Measure(**SICC, run="b"))
    found = claims.judge(of, ("a",), runs, {"sicc"})
    assert (found.measured, found.against, found.holds) == (4.0, 6.0, True)
    per = Measure(**SICC, per="flows")
    assert per.of(runs["a"]) == Value(1.0)
    assert per.show(1.0) == "1", "a ratio has no unit"
    assert per.of(run_of(sicc=4.0, half=0.4)).half == pytest.approx(0.1)


def test_a_number_less_that_of_another_scheme():
    less = Measure(**SICC, minus="dctcp")
    assert less.of(run_of(sicc=4.0, dctcp=9.0)) == Value(-5.0)
    assert less.of(run_of(sicc=4.0, dctcp=9.0, half=3.0)).half == pytest.approx(18**0.5)
    assert less.of(run_of(sicc=4.0, dctcp=None)) is None
    lower = claim("within", -5.0, less, percent=15)
    assert judged(lower, run_of(sicc=4.0, dctcp=9.5)).holds is True
    assert judged(lower, run_of(sicc=4.0, dctcp=4.0)).holds is False
    without = {"": run_of(sicc=4.0)}
    assert claims.judge(lower, ("",), without, {"sicc"}).holds is None


def test_each_clients_requests_and_their_quantile():
    run = make_run(mice=1, seeds=(1, 2))
    times = {0: [1.0, 3.0], 1: [1.0, 1.0], 2: [0.0, None]}
    rows = [
        {"scheme": "hcf", "seed": seed, "traffic": "mice", "flow": client, "fct_s": time}
        for seed in (1, 2)
        for client, both in times.items()
        for time in both
    ]
    flows = pl.DataFrame(rows, schema=run.flows.schema)
    made = Run(run.summary, flows, run.queues, run.ports, "", {})
    common = {"scheme": "hcf", "group": "mice", "field": "fct_s"}
    assert Measure(**common, each="mean", quantile=1).of(made) == Value(2.0, 0.0)
    assert Measure(**common, each="sd", quantile=0).of(made).mean == 0
    assert Measure(**common, each="sd", quantile=0.5).of(made).mean == pytest.approx(2**0.5)
    assert Measure(**common, each="sd", quantile=1).of(made) is None, "one has a single time"
    assert Measure(**common, quantile=0.5).of(made).mean == 1.0
    with pytest.raises(RunError, match="no column 'fct'"):
        Measure(**{**common, "field": "fct"}, quantile=0.5).of(made)


def test_a_seed_whose_quantile_is_beyond_every_value_takes_the_mean_there():
    assert values.of_seeds([0.1, 0.3]).mean == pytest.approx(0.2)
    assert values.of_seeds([None, 0.1, 0.1, 0.1]) is None
    assert values.of_seeds([]) is None


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    """Writes a `claims.toml` and returns the error."""
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    folder = tmp_path / "papers/exp-1"
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(SMALL)

    def error_of(text):
        (folder / "claims.toml").write_text(text)
        with pytest.raises(RunError) as caught:
            experiment_files.load("exp-1")
        assert str(caught.value).count("\n") == 0
        return str(caught.value)

    return error_of


MICE = 'scheme = "fairq", group = "mice"'
GOOD = f'measure = {{ {MICE}, field = "fct_s.mean" }}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('claims = "1"', "unknown key 'claims'; did you mean 'claim'?"),
        ('scenario = "exp-2"', "scenario: no experiment 'exp-2' with a scenario.toml"),
        ("[runs.a]\nsets = {}", 'runs."a": give set ='),
        ('[runs.a]\n[over]\n"seeds" = [1]', "give [runs] or [over], not both"),
        ('[over]\n"duration" = "1..x"', "over: \"duration\": '1..x' is no range"),
        ('[over]\n"duration" = []', 'over: "duration": give a list of values, or a range'),
        ("[quick]\nseeds = 1.5", "quick: seeds: is 1.5; give a whole number"),
        ('[quick]\nruns = ["b"]', "unknown run 'b'"),
        ('[quick.over]\n"duration" = ["10 ms"]', "quick: over needs the same paths as [over]"),
        (CLAIM, "claim exp-1.c: measure is missing"),
        (CLAIM + GOOD + "\nrelaton = 1", "claim exp-1.c: unknown key 'relaton'; did you mean 'rel"),
        (CLAIM.replace("lower", "below") + GOOD, "claim exp-1.c: unknown relation 'below'; "),
        (
            CLAIM.replace('id = "c"', "") + GOOD.replace("measure", "measur"),
            "claim exp-1.-: unknown key 'm",
        ),
        (2 * (CLAIM + GOOD), "claim exp-1.c: there are 2 of this name"),
        (CLAIM + GOOD + "\npercent = 5", "claim exp-1.c: percent: 'lower' takes none"),
        (CLAIM + GOOD + '\nfactor = "5"', "claim exp-1.c: factor: is '5'; give a number"),
        (CLAIM + GOOD + '\nrun = "1:1"', "claim exp-1.c: unknown run '1:1'"),
        ("[runs.a]\n[runs.b]" + CLAIM + GOOD, "run is missing, as there are several: a, b"),
        (CLAIM + GOOD.replace("fairq", "fairp"), "measure: unknown scheme 'fairp'; did you mean"),
        (
            CLAIM + GOOD + "\nfor.n = [1]",
            "claim c: for: 'n' is neither a key of a claim nor in its",
        ),
        (
            CLAIM.replace("a claim", "{n} {m}") + GOOD + "\nfor.n = [1]",
            "unknown word 'm'; known: n,",
        ),
        (CLAIM + 'measure = { scheme = "fairq", field = "drops" }', "give either group or port"),
        (CLAIM + f'measure = {{ {MICE}, field = "fct_s", each = "sd" }}', "each needs a quantile"),
        (
            CLAIM + f'measure = {{ {MICE}, field = "fct_s", quantile = 5 }}',
            "quantile: 5 is not between 0 and 1",
        ),
        (
            CLAIM.replace("against = 1", 'against = { across = "" }')
            + GOOD.replace(" }", ', across = "max" }'),
            "across: the other side needs it too",
        ),
        (
            CLAIM + 'measure = { analysis = "no.such" }',
            "no function 'no.such' in penstock_papers.analysis",
        ),
        (
            '[[figure]]\ntitle = "t"\nwhere = "w"\nmeaning = "m"\nkind = "pie"',
            "figure t: unknown kind 'pie'",
        ),
        (
            '[[figure]]\ntitle = "t"\nwhere = "w"\nmeaning = "m"\nkind = "line"\nx = "duration"\n'
            + 'measure = { group = "mice", field = "finished" }',
            "figure t: x: give a path of [over]: there is none",
        ),
    ],
)
def test_every_mistake_is_an_error_before_anything_runs(wrong, text, message):
    error = wrong(text)
    assert re.search(r"papers/exp-1/claims.toml: ", error)
    assert message in error


def test_an_experiment_without_claims_about_a_scenario_is_theory(tmp_path, monkeypatch):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    (tmp_path / "papers/exp-1").mkdir(parents=True)
    (tmp_path / "papers/exp-1/claims.toml").write_text('title = "Theory"\nabout = "of\\n it"')
    made = experiment_files.load("exp-1")
    assert (made.title, made.about, made.scenario) == ("Theory", "of it", None)
    (tmp_path / "papers/exp-1/claims.toml").write_text(CLAIM + GOOD)
    with pytest.raises(RunError, match="title is missing"):
        experiment_files.load("exp-1")


def test_what_varies_makes_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    (tmp_path / "papers/exp-1").mkdir(parents=True)
    (tmp_path / "papers/exp-1/scenario.toml").write_text(SMALL)
    claims_file = tmp_path / "papers/exp-1/claims.toml"
    claims_file.write_text("""
[over]
"traffic.mice.flows" = "2..8*2"
"fabric.bottleneck.buffer" = ["20 packets", "100 packets"]
[quick]
set = { duration = "20 ms" }
over = { "traffic.mice.flows" = [2], "fabric.bottleneck.buffer" = ["20 packets"] }
""")
    made = experiment_files.load("exp-1")
    assert len(made.runs) == 6
    last = {"traffic.mice.flows": 8, "fabric.bottleneck.buffer": "100 packets"}
    assert made.runs["8 100 packets"] == made.places["8 100 packets"] == last
    quick = made.quickly()
    assert quick.runs == {
        "2 20 packets": {
            "traffic.mice.flows": 2,
            "fabric.bottleneck.buffer": "20 packets",
            "duration": "20 ms",
        }
    }
    assert quick.shortened == "duration = 20 ms, 1 of 6 runs"

    other = tmp_path / "papers/exp-2"
    other.mkdir()
    (other / "claims.toml").write_text('scenario = "exp-1"\ntitle = "Other"')
    assert experiment_files.load("exp-2").runs == made.runs
    assert experiment_files.load("exp-2").quick == made.quick
    assert experiment_files.load("exp-2").scenario == made.scenario


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (f'{{ {MICE}, field = "fct_s.p98" }}', "no 'p98'; did you mean 'p9"),
        (
            f'{{ {MICE}, field = "fct_s.mean" }}'.replace("mice", "mices"),
            "no 'mices'; did you mean 'mi",
        ),
        (
            '{ scheme = "fairq", port = "left", field = "drops" }',
            "no 'left'; the run has left->right",
        ),
        (f'{{ {MICE}, field = "fct", quantile = 0.5 }}', "no column 'fct'; did you mean 'fct_s'?"),
        (
            f'{{ {MICE}, field = "fct_s", quantile = 0.5 }}'.replace("mice", "mic"),
            "no group 'mic'; did",
        ),
    ],
)
def test_what_no_run_has_fails_the_experiment(tmp_path, monkeypatch, measure, message):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    (tmp_path / "papers/exp-1").mkdir(parents=True)
    (tmp_path / "papers/exp-1/scenario.toml").write_text(SMALL)
    (tmp_path / "papers/exp-1/claims.toml").write_text(CLAIM + f"measure = {measure}")
    (done,), _ = reproduce.reproduce(["exp-1"], out=tmp_path / "out")
    assert done.failed
    assert message in done.notes[0]


def test_every_shipped_experiment_is_sound():
    names = [name for name, title in experiment_names.listed() if title]
    assert names == [name for name, _ in experiment_names.listed()]
    for name in names:
        assert experiment_files.load(name).claims, name


TEMPLATE = """
names = { fairq = "FairQ" }
[runs.a]
[runs."b c"]
[default]
relation = "lower"
for.run = "*"

[[claim]]
id = "{stat}"
text = "{scheme}: {what} is below {against}'s ({run})"
published = "lower"
scheme = ["fairq", "drop-tail"]
measure = { group = "mice", field = "fct_s.{stat}" }
against = ["drop-tail", "fairq"]
for.stat = [
  { stat = "mean", what = "the mean" },
  { stat = "p99", what = "the tail", published = -0.5, factor = 2 },
]

[[claim]]
id = "alone"
text = "{scheme}: as {against}"
published = 1
scheme = "fairq"
measure = { group = "mice", field = "fct_s", quantile = 0.5 }
relation = "equal"
against = { scheme = "drop-tail", quantile = 1 }

[[claim]]
id = "pairs"
text = "{scheme} below {against}, {published}"
measure = { group = "mice", field = "finished" }
for.run = "a"
for.against = [{ against = "fairq", scheme = ["drop-tail", "fairq"], published = "-5 %" }]

[[figure]]
title = "{what}"
where = "Fig. 1{name}"
meaning = "m"
kind = "bars"
measure = { group = "mice", field = "fct_s.{stat}" }
for.name = [
  { name = "a", stat = "mean", what = "Mean" },
  { name = "b", stat = "p99", what = "Tail" },
]
"""


def test_a_template_stands_for_a_claim_of_each_case_scheme_baseline_and_run(tmp_path, monkeypatch):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    (tmp_path / "papers/exp-1").mkdir(parents=True)
    (tmp_path / "papers/exp-1/scenario.toml").write_text(SMALL)
    (tmp_path / "papers/exp-1/claims.toml").write_text(TEMPLATE)
    made = experiment_files.load("exp-1")
    assert len(made.claims) == 2 * 2 * 2 * 2 + 2 + 2
    first, last = made.claims[0], made.claims[15]
    assert first.id == "exp-1.mean-drop-tail-fairq-a"
    assert first.text == "FairQ: the mean is below drop-tail's (a)"
    assert first.measure == Measure("fairq", "fct_s.mean", group="mice")
    assert first.against == Measure("drop-tail", "fct_s.mean", group="mice")
    assert (first.run, first.published, first.factor) == ("a", "lower", 1)
    assert last.id == "exp-1.p99-fairq-drop-tail-b-c"
    assert last.text == "drop-tail: the tail is below FairQ's (b c)"
    assert (last.run, last.published, last.factor) == ("b c", -0.5, 2)
    pairs = [(one.id, one.text) for one in made.claims[-2:]]
    assert pairs == [
        ("exp-1.pairs-drop-tail", "drop-tail below FairQ, -5 %"),
        ("exp-1.pairs-fairq", "FairQ below FairQ, -5 %"),
    ]
    alone = made.claims[-3]
    assert (alone.id, alone.text) == ("exp-1.alone-b-c", "FairQ: as drop-tail")
    assert alone.against == Measure("drop-tail", "fct_s", group="mice", quantile=1)
    shown = [(one.name, one.title, one.where, one.measure.field) for one in made.figures]
    assert shown == [
        ("a", "Mean", "Fig. 1a", "fct_s.mean"),
        ("b", "Tail", "Fig. 1b", "fct_s.p99"),
    ]


def test_experiments_are_listed_by_paper_and_number(tmp_path, monkeypatch):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    names = (
        "fairq-5a",
        "fairq-5b",
        "fairq-law",
        "hscc-9",
        "hscc-10",
        "sicc-5",
        "sicc-5.4",
        "hcf-2a",
    )
    for name in reversed(names):
        (tmp_path / "papers" / name).mkdir(parents=True)
        (tmp_path / "papers" / name / "claims.toml").write_text(f'title = "{name}"')
    assert [name for name, _ in experiment_names.listed()] == list(names)
    with pytest.raises(ScenarioError, match="did you mean 'hscc-10'"):
        experiment_names.find("hscc10")
    assert json.dumps(experiment_names.listed())
