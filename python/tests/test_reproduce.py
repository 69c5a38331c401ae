# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from penstock import RunError, ScenarioError, claims, reproduce, source
from penstock.claims import Claim, Measure

from .conftest import SMALL, make_run

SICC = {"scheme": "sicc", "group": "mice", "field": "fct_s.mean"}
DCTCP = {**SICC, "scheme": "dctcp"}


def summary(**means):
    """Summaries of the single run of an experiment, with these mean completion times."""
    return {
        "": {
            "results": [
                {
                    "scheme": scheme,
                    "groups": {"mice": {"fct_s": None if mean is None else {"mean": mean}}},
                }
                for scheme, mean in means.items()
            ]
        }
    }


def claim(relation="lower", against=None, **more):
    against = Measure(**DCTCP) if against is None else against
    return Claim("c", "text", "lower", Measure(**SICC), relation, against, **more)


def holds(of, **means):
    return of.is_borne_out(*of.measured_in(summary(**means)))


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
        assert holds(of, sicc=yes, dctcp=10.0)
        assert not holds(of, sicc=no, dctcp=10.0)


def test_what_did_not_happen_bears_nothing_out():
    assert not holds(claim("lower"), sicc=None, dctcp=1.0)
    assert not holds(claim("lower"), sicc=0.5, dctcp=None)


def test_numbers_are_shown_as_people_read_them():
    assert claim().show(0.00123, 0.2) == "1.23 ms vs 200 ms"
    assert claim(against=3.0).show(None, 3.0) == "–"
    starved = Measure("hcf", "starved", group="long")
    assert starved.show(0.015) == "0.015", "as the papers print shares"
    assert Measure("hcf", "packets_variance", group="long").show(6740.0) == "6740"


def test_a_claim_about_nothing_cannot_be_computed():
    with pytest.raises(RunError, match=r"claim c: sicc/mice/fct_s.mean: no 'sicc'; the run has a"):
        claim().measured_in(summary(a=1.0))
    with pytest.raises(RunError, match=r"no 'p98'; the run has mean"):
        Measure("a", "fct_s.p98", group="mice").of(summary(a=1.0)[""])


def test_ports_are_looked_up_by_name():
    run = make_run()
    measure = Measure("hcf", "drops", port="a->b")
    assert measure.of(run.summary) == run.summary["results"][1]["ports"]["a->b"]["drops"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('relaton = "lower"', "unknown key 'relaton'"),
        ('relation = "below"', "unknown relation 'below'; known: lower, higher"),
        ("", "relation is missing"),
        ('relation = "lower"\nrun = "1:1"', "unknown run '1:1'"),
    ],
)
def test_a_wrong_claim_is_told_with_its_file(tmp_path, line, said):
    path = tmp_path / "claims.toml"
    path.write_text(f"""
[[claim]]
id = "c"
text = ""
published = 1
measure = {{ scheme = "a", group = "b", field = "flows" }}
against = 1
{line}
""")
    with pytest.raises(RunError, match=rf"claims.toml: claim c: {said}"):
        claims.load(path)


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    folder = tmp_path / "shipped/papers/exp-1"
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(SMALL)
    (folder / "claims.toml").write_text("""
[runs.few]
set = { "traffic.mice.flows" = 2 }
[runs."all of them"]

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
""")
    monkeypatch.setattr(source, "templates_dir", lambda: tmp_path / "shipped")
    return tmp_path


def test_an_experiment_is_run_judged_and_kept(experiment, capsys):
    done = reproduce.reproduce("exp-1", seeds=2, parent=experiment / "out")
    assert done.held == 1
    assert [path.name for path in done.folders] == ["exp-1-few", "exp-1-all-of-them"]
    few = json.loads((done.folders[0] / "run.json").read_text())
    assert few["seeds"] == [1, 2]
    assert few["overrides"]["traffic.mice.flows"] == "2"
    assert [finding["holds"] for finding in few["findings"]] == [True, False]
    assert all((path / "report.html").is_file() for path in done.folders)

    printed = reproduce.as_json([done])
    assert printed["held"] == 1
    wanted = {"id", "text", "published", "measured", "holds"}
    assert all(wanted <= set(claim) for claim in printed["claims"])

    reproduce.show(done)
    shown = capsys.readouterr().out
    assert "does not hold" in shown
    assert "Mb/s" in shown
    assert "goodput is [nothing]" in shown


def test_every_shipped_experiment_can_be_judged():
    for name, _ in reproduce.listed():
        published = claims.load(reproduce.find(name) / "claims.toml")
        assert published.claims, name
        ids = [claim.id for claim in published.claims]
        assert len(set(ids)) == len(ids), name


@pytest.mark.usefixtures("experiment")
def test_a_misspelt_experiment_gets_the_nearest():
    with pytest.raises(ScenarioError, match="did you mean 'exp-1'"):
        reproduce.find("exp1")
