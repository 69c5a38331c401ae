# SPDX-License-Identifier: Apache-2.0
"""Runs next to each other: the maths, what is refused, and the page."""

import json
import re
import shutil
from dataclasses import replace

import polars as pl
import pytest

from penstock import _native, metrics, stats
from penstock.cli.report import redraw
from penstock.comparisons import comparison, comparison_page
from penstock.errors import RunError, ScenarioError

from .conftest import SMALL, make_run
from .test_cli import penstock


def line(first, second, name="FCT mean"):
    metric = next(one for one in metrics.GROUPS.values() if one.heading == name)
    first, second = (comparison.Number(mean, None, 1) for mean in (first, second))
    return comparison._line("sim", "fairq", "mice", metric, first, second)


@pytest.mark.parametrize(
    ("first", "second", "ratio", "agrees"),
    [
        (100.0, 114.9, 1.149, True),
        (100.0, 115.1, 1.151, False),
        (100.0, 85.1, 0.851, True),
        (100.0, 84.9, 0.849, False),
        (0.0, 0.0, None, True),
        (0.0, 1.0, None, False),
        (None, None, None, None),
        (None, 1.0, None, False),
    ],
)
def test_a_time_agrees_within_15_percent_of_the_first(first, second, ratio, agrees):
    found = line(first, second)
    assert found.agrees is agrees
    assert found.ratio == (ratio if ratio is None else pytest.approx(ratio))


def test_counts_may_be_25_percent_apart():
    assert line(100, 124, "timeouts").agrees
    assert not line(100, 126, "timeouts").agrees


def late(*transfers, duration="1 s"):
    """How many of these transfers (start, end, stop, bytes) of the small scenario are late."""
    rows = [("mice", n, "sender3", "receiver3", *one, 0, 0) for n, one in enumerate(transfers)]
    text = SMALL.replace('duration = "100 ms"', f'duration = "{duration}"')
    groups, _ = _native.summarize(text, "small.toml", rows)
    return json.loads(groups)["mice"]["late"]


def test_late_flows_are_those_above_190_ms():
    assert late((0.0, 0.01, None, 10_000), (0.0, 0.19, None, 10_000)) == 0
    assert late((0.0, 0.191, None, 10_000), (0.0, 1.2, None, 10_000), duration="2 s") == 2
    assert late((0.9, None, None, 10_000)) == 0, "begun at 0.9 s of 1 s: it may yet be on time"
    assert late((0.7, None, None, 10_000)) == 1
    assert late((0.7, None, 0.75, 10_000)) == 0, "stopped after 50 ms"
    assert late((0.0, None, None, None)) == 0, "endless"


def test_late_flows_are_compared(tmp_path):
    first, second = make_run(), make_run()
    for run, count in ((first, 2.0), (second, 0.0)):
        run.summary["results"][0]["groups"]["mice"]["late"] = count
    folders = [one.save(tmp_path / name) for one, name in ((first, "first"), (second, "second"))]
    (line,) = (
        one
        for one in comparison.compare(*folders).lines
        if (one.scheme, one.group, one.measure) == ("drop-tail", "mice", "late")
    )
    assert (line.first, line.second, line.agrees) == (2.0, 0.0, False)


def test_a_run_agrees_with_itself_and_has_a_page(tmp_path):
    run = make_run(seeds=(1, 2)).save(tmp_path / "run")
    done = penstock("compare", run, run, "--out", tmp_path / "page")
    document = json.loads((tmp_path / "page/compare.json").read_text())
    assert document["agree"] == document["of"] > 20
    assert f"{document['agree']} of {document['of']} numbers agree: " in done.stdout
    page = (tmp_path / "page/compare.html").read_text()
    assert "FCT p99" in page
    assert page.count('class="plot"') == 1  # the elephants have no completion times
    redraw(tmp_path / "page", tmp_path / "printed/page.html", pdf=True)
    assert (tmp_path / "printed/figures/compare-mice.pdf").is_file()
    again = penstock("compare", run, run, "--out", tmp_path / "page", "--json")
    assert json.loads(again.stdout) == document


def test_the_runs_are_called_by_their_substrates(tmp_path):
    run = make_run()
    first = run.save(tmp_path / "first")
    second = replace(run, info=run.info | {"substrate": "lab"}).save(tmp_path / "second")
    assert comparison.compare(first, second).names == ("sim", "lab")


def test_what_differs_in_the_settings_is_listed(tmp_path):
    first = make_run()
    tables = {"tcp": {"profile": "linux"}, "measure": {}}  # an empty one sets nothing
    scenario = first.summary["scenario"] | tables
    second = replace(make_run(mice=31), info=first.info | {"substrate": "lab"})
    third = replace(first, summary=first.summary | {"scenario": scenario})
    names = ("first", "second", "third")
    runs = [
        run.save(tmp_path / name) for run, name in zip((first, second, third), names, strict=True)
    ]
    made = comparison.compare(*runs)
    assert made.names == names
    assert {one.key: one.values for one in made.settings} == {
        "substrate": ("sim", "lab", "sim"),
        "traffic.mice.flows": ("30", "31", "30"),
        "tcp.profile": ("–", "–", "linux"),
    }
    assert {line.run for line in made.lines} == {"second", "third"}
    page = comparison_page.save(made, tmp_path / "page").read_text(encoding="utf-8")
    assert "traffic.mice.flows" in page


def test_a_difference_is_significant_if_the_seeds_differ_less():
    metric = metrics.GROUPS["fct_s.mean"]

    def judged(*numbers):
        return comparison._line("b", "s", "g", metric, *numbers).significant

    number = comparison.Number
    assert judged(number(1.0, 0.1, 5), number(1.05, 0.1, 5)) is False
    assert judged(number(1.0, 0.1, 5), number(1.2, 0.1, 5)) is True
    assert judged(number(1.0, 0.0, 5), number(1.0, 0.0, 5)) is False
    assert judged(number(1.0, None, 1), number(1.2, 0.1, 5)) is None
    assert judged(number(None, None, 5), number(1.2, 0.1, 5)) is None


def test_seeds_without_a_number_are_no_seeds_of_it(tmp_path):
    """Of five seeds two have finished flows: Welch's test is that of two and two values."""
    runs = [make_run(schemes=("fairq",), seeds=range(1, 6)) for _ in range(2)]
    for place, run in enumerate(runs):
        runs[place] = replace(
            run, flows=run.flows.with_columns(fct_s=pl.when(pl.col("seed") < 3).then("fct_s"))
        )
        result = run.summary["results"][0]
        result["groups"]["mice"]["fct_s"]["mean"] = 1.0 + 0.9 * place
        result["ci95"]["groups"]["mice"]["fct_s"]["mean"] = 0.1 * stats.student_t(1)
    lines = comparison.compare(*(r.save(tmp_path / str(n)) for n, r in enumerate(runs))).lines
    (line,) = (one for one in lines if (one.group, one.measure) == ("mice", "FCT mean"))
    assert line.significant, "t = 6.4 is above 4.3"


def test_welch_is_that_of_the_textbook():
    """Welch 1947 by Wikipedia's example 1: t = -2.46, 25 degrees of freedom, p = 0.021."""
    one = (20.8, (7.9 / 15) ** 0.5, 15)
    assert stats.welch(one, (23.0, (3.8 / 15) ** 0.5, 15))
    assert not stats.welch(one, (22.4, (3.8 / 15) ** 0.5, 15)), "t = 1.81 is below 2.06"


def test_schemes_are_compared_with_each_other_where_each_run_has_one(tmp_path):
    first, second = (make_run(schemes=(name,)).save(tmp_path / name) for name in ("sfq", "fairq"))
    assert {line.scheme for line in comparison.compare(first, second).lines} == {"sfq and fairq"}
    both = make_run().save(tmp_path / "both")
    with pytest.raises(ScenarioError, match="no scheme in common: sfq; drop-tail, hcf"):
        comparison.compare(first, both)


def test_runs_that_differ_by_their_folders_have_short_names(tmp_path):
    first, second = make_run().save(tmp_path / "a/before"), make_run().save(tmp_path / "a/after")
    assert comparison.compare(first, second).names == ("before", "after")
    again = make_run().save(tmp_path / "b/before")
    assert comparison.compare(first, again).names == (str(first), str(again))


def test_a_comparison_is_drawn_again_without_its_runs(tmp_path):
    run = make_run().save(tmp_path / "run")
    drawn = comparison_page.save(comparison.compare(run, run), tmp_path / "page")
    text = drawn.read_bytes()
    drawn.unlink()
    shutil.rmtree(run)
    assert redraw(tmp_path / "page") == drawn
    assert drawn.read_bytes() == text
    (tmp_path / "page/flows.parquet").unlink()
    with pytest.raises(RunError, match="the comparison is damaged"):
        redraw(tmp_path / "page")


def test_what_is_apart_comes_first_and_the_farthest_of_it(tmp_path):
    first = make_run()
    second = make_run()
    mice = second.summary["results"][1]["groups"]["mice"]
    mice["fct_s"]["p50"] *= 0.1
    mice["fct_s"]["max"] *= 2
    mice["timeouts"] = 0
    folders = [one.save(tmp_path / name) for one, name in ((first, "first"), (second, "second"))]
    compared = comparison.compare(*folders)
    page = comparison_page.save(compared, tmp_path / "page").read_text(encoding="utf-8")
    apart = page[page.index("What differs") : page.index("Flow completion times")]
    named = re.findall(r'<th class="left" scope="row">hcf, mice: (.*?)</th>', apart)
    assert named == ["timeouts", "FCT p50", "FCT max"]
    assert "<b>0.10</b>" in apart


def test_a_folder_that_is_no_comparison_is_not_written_over(tmp_path):
    run = make_run().save(tmp_path / "run")
    done = penstock("compare", run, run, "--out", run, code=2)
    assert "is not a comparison's folder" in done.stderr


def finishing(finished, p99=0.001, **more):
    """A run of which so many of 30 mice finished."""
    run = make_run(schemes=("fairq",), **more)
    mice = run.summary["results"][0]["groups"]["mice"]
    mice |= {"finished": finished, "unfinished": 30 - finished}
    mice["fct_s"]["p99"] = p99
    return run


def test_lost_flows_are_listed_and_are_no_improvement(tmp_path):
    """Half of the flows got lost, and the percentile of the others is smaller."""
    whole, lossy = finishing(30, 0.4, seeds=(1, 2)), finishing(15, 0.001, seeds=(1, 2))
    folders = [one.save(tmp_path / name) for one, name in ((whole, "whole"), (lossy, "lossy"))]
    compared = comparison.compare(*folders)
    lines = {line.measure: line for line in compared.lines if line.group == "mice"}
    assert lines["finished"].shown()[:3] == ("30", "15", "0.50")
    assert lines["unfinished"].agrees is False
    tail = lines["FCT p99"]
    assert tail.shown() == ("400 ms", "unfinished", "–", "apart")
    assert (tail.agrees, tail.significant, tail.second) == (False, None, None)
    sentence = "mice: not as many flows finished in one run as in another under fairq; completion"
    assert sentence in " ".join(compared.sentences())
    assert "finished" not in {line.measure for line in compared.lines if line.group == "elephants"}


def test_what_is_unfinished_in_both_runs_is_shown_and_not_judged(tmp_path):
    folders = [finishing(20).save(tmp_path / name) for name in ("one", "other")]
    compared = comparison.compare(*folders)
    (tail,) = (x for x in compared.lines if (x.group, x.measure) == ("mice", "FCT p99"))
    assert tail.shown() == ("unfinished", "unfinished", "–", "")
    assert tail.agrees is None
    assert tail.is_shown
    page = comparison_page.save(compared, tmp_path / "page")
    assert "unfinished" in page.read_text(encoding="utf-8")
    assert comparison.Comparison.load(page.parent).lines == compared.lines
    (chart,) = comparison_page._charts(compared)
    ends = [series.open_end for series in chart.panels[0].series]
    assert ends == ["1 of 30 unfinished"] * 2, "by the table of flows"


def test_what_only_one_run_has_is_named(tmp_path):
    first = make_run(schemes=("fairq", "hcf"))
    second = make_run(schemes=("fairq", "red"))
    for result in second.summary["results"]:
        result["groups"]["web"] = result["groups"].pop("elephants")
    second = replace(second, flows=second.flows.with_columns(traffic=pl.lit("mice")))
    folders = [one.save(tmp_path / name) for one, name in ((first, "one"), (second, "other"))]
    assert comparison.compare(*folders).left_out == (
        "Not compared, of the schemes: hcf (only in one); red (only in other).",
        "Not compared, of the traffic: elephants (only in one); web (only in other).",
    )


def test_a_scheme_that_not_all_runs_have_does_not_hide_the_settings_that_differ(tmp_path):
    first, second = make_run(schemes=("fairq", "hcf")), make_run(schemes=("fairq",))
    tables = {
        "fairq": {"window": {"floor": 2, "never_shrink": False}},
        "hcf": {"queue": {"bins": 20}},
    }
    others = {"fairq": {"window": {"floor": 1, "never_shrink": True}}}
    folders = []
    for name, run, scheme in (("one", first, tables), ("other", second, others)):
        scenario = run.summary["scenario"] | {"scheme": scheme}
        changed = replace(run, summary=run.summary | {"scenario": scenario})
        folders.append(changed.save(tmp_path / name))
    assert {one.key: one.values for one in comparison.compare(*folders).settings} == {
        "schemes": ("fairq, hcf", "fairq"),
        "scheme.fairq.window.floor": ("2", "1"),
        "scheme.fairq.window.never_shrink": ("false", "true"),
    }


def test_files_with_other_contents_are_listed(tmp_path):
    runs = [make_run(), make_run()]
    for place, run in enumerate(runs):
        path = f"/tmp/{place}/trace.csv"
        traffic = {"mice": {"kind": "trace", "file": path}}
        run.summary["scenario"]["traffic"] = traffic
        run.info["files"] = {path: f"sha256 {place}{'0' * 63} .csv"}
    folders = [run.save(tmp_path / name) for run, name in zip(runs, "ab", strict=True)]
    settings = {one.key: one.values for one in comparison.compare(*folders).settings}
    assert settings["contents of traffic.mice.file"] == ("0" * 16, f"1{'0' * 15}")


def test_folders_are_named_as_they_are_whatever_is_in_their_names(tmp_path):
    first = make_run(schemes=("fairq", "hcf")).save(tmp_path / "[red]one")
    second = make_run(schemes=("fairq",)).save(tmp_path / "[x]")
    done = penstock("compare", first, second, "--out", tmp_path / "page[1]")
    assert "Not compared, of the schemes: hcf (only in [red]one)." in done.stdout
    assert redraw(tmp_path / "page[1]").is_file()


def test_the_damaged_one_of_two_runs_is_named(tmp_path):
    whole, damaged = (make_run().save(tmp_path / name) for name in ("whole", "hurt"))
    summary = json.loads((damaged / "summary.json").read_text())
    (damaged / "summary.json").write_text(json.dumps(summary | {"results": [{}]}))
    error = penstock("compare", whole, damaged, code=1, cwd=tmp_path).stderr
    assert error.startswith(f"penstock: {damaged}: the run is incomplete, damaged")
