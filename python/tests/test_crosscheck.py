# SPDX-License-Identifier: Apache-2.0
"""The cross-check's own parts, without ns-2: what it reads, and how it judges."""

import importlib
import math
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "evidence" / "ns2"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(FOLDER)
    crosscheck = importlib.import_module("crosscheck")


def comparison(ns2, ours, tolerance=0.1, slack=0.0):
    metric = crosscheck.Metric("drops", "drops", lambda _: None, True, tolerance, slack)
    of = crosscheck.Estimate
    return crosscheck.Comparison("s", metric, of(ns2), None if ours is None else of(ours))


@pytest.mark.parametrize(
    ("ns2", "ours", "slack", "agrees"),
    [
        *((100.0, 109.0, 0.0, True), (100.0, 91.0, 0.0, True), (100.0, 111.0, 0.0, False)),
        *((0.0, 1.0, 0.0, False), (0.0, 1.0, 2.0, True), (100.0, 111.0, 2.0, True)),
        (100.0, None, 0.0, None),
    ],
)
def test_means_agree_within_the_tolerance_plus_the_slack(ns2, ours, slack, agrees):
    assert comparison(ns2, ours, slack=slack).agrees is agrees


def test_a_difference_within_its_own_interval_is_open():
    metric = comparison(1.0, 1.0).metric
    far, near = (crosscheck.Estimate(mean, 20.0) for mean in (130.0, 125.0))
    of = crosscheck.Estimate(100.0, 20.0)
    assert crosscheck.Comparison("s", metric, of, far).agrees is False
    assert crosscheck.Comparison("s", metric, of, near).agrees is None


def test_too_few_seeds_do_not_pass(capsys):
    of = crosscheck.Estimate
    metric = comparison(1.0, 1.0).metric
    fair, undecided = (
        crosscheck.Comparison("s", metric, of(100.0, 20.0), ours)
        for ours in (of(100.0), of(125.0, 20.0))
    )
    assert crosscheck.verdict([fair]) == 0
    assert capsys.readouterr().err == ""
    assert crosscheck.verdict([fair, undecided]) == 2
    line = "crosscheck: s: drops: open, the seeds are too few to decide; run more with --seeds\n"
    assert capsys.readouterr().err == line
    assert crosscheck.verdict([undecided, comparison(100.0, 150.0)]) == 1
    assert crosscheck.verdict([comparison(100.0, None)]) == 0


def test_a_known_undecided_metric_is_shown_and_passes(capsys):
    of = crosscheck.Estimate
    for scenario, text in crosscheck.UNDECIDED:
        metrics = crosscheck.SCENARIOS[scenario].metrics
        (metric,) = [each for each in metrics if each.required and each.text == text]
        one = crosscheck.Comparison(scenario, metric, of(100.0, 65.0), of(60.0, 30.0))
        assert crosscheck.verdict([one]) == 0
        assert "open" in capsys.readouterr().err


def test_nothing_is_divided_by_zero():
    assert comparison(0.0, 1.0).ratio is None
    assert comparison(4.0, 1.0).ratio == 0.25


@pytest.mark.parametrize("name", crosscheck.SCENARIOS)
def test_each_scenario_has_its_files_and_recorded_results_of_each_metric(name):
    scenario = crosscheck.SCENARIOS[name]
    assert (FOLDER / scenario.script).is_file()
    assert f'"{scenario.scheme}"' in (FOLDER / scenario.file).read_text()
    runs = crosscheck.read_recorded(name, 10)
    assert len(runs) >= 5
    assert [run["seed"] for run in runs] == list(range(1, len(runs) + 1))
    for compared in crosscheck.compare(name, runs, None):
        assert math.isfinite(compared.ns2.mean), compared.metric.text


def test_numbers_of_penstock_are_found_with_their_intervals():
    mice = {"timeouts": 3, "syn_timeouts": 1, "fct_s": {"mean": 0.5}}
    port = {"drops": 4, "queue_bytes": {"mean": 9.0}}
    numbers = {"ports": {"left->right": port}, "groups": {"mice": mice}}
    result = {**numbers, "ci95": numbers}
    of = crosscheck.Estimate
    assert crosscheck.port("queue_bytes.mean")(result) == of(9.0, 9.0)
    assert crosscheck.group("mice", "fct_s.mean")({**numbers, "ci95": None}) == of(0.5)
    assert crosscheck.timeouts("mice")(result) == of(4.0, math.hypot(3, 1))


def test_the_table_marks_required_metrics_and_what_is_outside():
    lines = crosscheck.table([comparison(100.0, 150.0), comparison(100.0, None)]).splitlines()
    assert lines[2] == "| s | drops* | 100 ± 0 | 150 ± 0 | 1.500 | 10% | no |"
    assert lines[3].endswith("| - | - | 10% | - |")
