# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from penstock import RunError, ScenarioError, claims, reproduce, source
from penstock.claims import Claim

from .conftest import SMALL, make_run

MEAN = "groups.mice.fct_s.mean"


def claim(**changes):
    fields = {"id": "c", "text": "t", "published": "p", "value": MEAN, "scheme": "a"}
    return Claim(**{**fields, "holds": "< 1", **changes})


def results(**means):
    return {
        scheme: {"groups": {"mice": {"fct_s": None if mean is None else {"mean": mean}}}}
        for scheme, mean in means.items()
    }


def test_a_value_a_ratio_and_a_difference():
    measured = results(a=2.0, b=8.0)
    assert claim().measure(measured) == 2
    assert claim(over="b").measure(measured) == 0.25
    assert claim(minus="b").measure(measured) == -6


def test_what_did_not_happen_is_not_measured_and_does_not_hold():
    for measured in (results(a=None, b=1.0), results(a=1.0, b=None), results(a=1.0, b=0.0)):
        value = claim(over="b").measure(measured)
        assert value is None
        assert not claim().is_borne_out(value)


@pytest.mark.parametrize(
    ("holds", "yes", "no"),
    [
        ("< 1", 0.9, 1.0),
        ("<= 1", 1.0, 1.1),
        ("> 1", 1.1, 1.0),
        (">= 1", 1.0, 0.9),
        ("== 0", 0.0, 1.0),
        ("0.28 .. 0.36", 0.36, 0.37),
    ],
)
def test_comparisons(holds, yes, no):
    assert claim(holds=holds).is_borne_out(yes)
    assert not claim(holds=holds).is_borne_out(no)


def test_a_claim_about_nothing_cannot_be_computed():
    with pytest.raises(RunError, match=r"claim c: no 'mise' for 'groups.mise.x' of a; has mice"):
        claim(value="groups.mise.x").measure(results(a=1.0))
    with pytest.raises(RunError, match="no 'z'"):
        claim(over="z").measure(results(a=1.0))


def test_ports_are_named_in_quotes():
    run = make_run()
    drops = claim(value='ports."a->b".drops', scheme="hcf", holds="> 0")
    (finding,) = reproduce.judge(run, claims.Claims("", None, (drops,)))
    assert finding.holds
    assert finding.measured == run.summary["results"][1]["ports"]["a->b"]["drops"]


@pytest.mark.parametrize(
    ("line", "said"),
    [('hold = "< 1"', "unknown key 'hold'"), ('holds = "about 1"', "about"), ("", "missing")],
)
def test_a_wrong_claim_is_told_with_its_file(tmp_path, line, said):
    path = tmp_path / "claims.toml"
    path.write_text(
        f'[[claim]]\nid = "c"\ntext = ""\npublished = 1\nvalue = "x"\nscheme = "a"\n{line}'
    )
    with pytest.raises(RunError, match=rf"claims.toml: claim c: .*{said}"):
        claims.load(path)


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    folder = tmp_path / "shipped/papers/exp-1"
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(SMALL)
    (folder / "claims.toml").write_text("""
source = "Paper §1"
seeds = 2
[[claim]]
id = "ends"
text = "some mouse finishes"
published = "all"
value = "groups.mice.finished"
scheme = "fairq"
holds = "> 0"
[[claim]]
id = "never"
text = "goodput is negative"
published = -1
value = "groups.elephants.goodput_bps.mean"
scheme = "fairq"
holds = "< 0"
unit = "b/s"
""")
    monkeypatch.setattr(source, "templates_dir", lambda: tmp_path / "shipped")
    return tmp_path


def test_an_experiment_is_run_judged_and_kept(experiment, capsys):
    done = reproduce.reproduce("exp-1", parent=experiment / "out")
    assert done.held == 1
    assert (done.folder / "report.html").is_file()
    info = json.loads((done.folder / "run.json").read_text())
    assert info["seeds"] == [1, 2]
    assert [finding["holds"] for finding in info["findings"]] == [True, False]

    printed = reproduce.as_json([done])
    assert printed["held"] == 1
    keys = {"experiment", "id", "text", "published", "measured", "holds"}
    assert all(set(claim) == keys for claim in printed["claims"])

    reproduce.show(done)
    shown = capsys.readouterr().out
    assert "does not hold" in shown
    assert "Mb/s" in shown
    assert "Paper §1" in shown


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
