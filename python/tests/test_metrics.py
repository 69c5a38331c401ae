# SPDX-License-Identifier: Apache-2.0
import pytest

import penstock
from penstock import ScenarioError, metric_names, metrics, missing

from .conftest import make_run


@pytest.fixture
def result():
    return make_run(("drop-tail",)).summary["results"][0]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("mice.fct.p99", "groups/mice/fct_s/p99"),
        ("mice.fct_s.p99", "groups/mice/fct_s/p99"),
        ("mice.fct", "groups/mice/fct_s/mean"),
        ("elephants.goodput", "groups/elephants/goodput_bps/mean"),
        ("elephants.fct.p99", "groups/elephants/fct_s/p99"),
        ("mice.finished", "groups/mice/finished"),
        ("bottleneck.drops", "ports/a->b/drops"),
        ("a->b.drops", "ports/a->b/drops"),
        ("bottleneck.drops.full", "ports/a->b/drops_by_reason/full"),
        ("bottleneck.queue.p99", "ports/a->b/queue_bytes/p99"),
        ("performance.wall", "performance/wall_s"),
    ],
)
def test_names_lead_to_numbers(result, name, path):
    assert metric_names.find(name, result).path == tuple(path.split("/"))


def test_a_field_gives_its_number_and_its_unit(result):
    field = metric_names.find("mice.fct.p99", result)
    assert field.of(result) == result["groups"]["mice"]["fct_s"]["p99"]
    assert (field.unit, field.text(0.0123)) == ("s", "12.3 ms")
    assert metric_names.find("elephants.fct.p99", result).of(result) is None, "none finished"
    drops = metric_names.find("bottleneck.drops", result)
    assert (drops.unit, drops.text(12.0), drops.text(None)) == ("", "12", "–")


def test_one_of_several_ports_needs_its_own_name(result):
    result = {**result, "ports": {"a->b": {"drops": 1}, "b->c": {"drops": 2}}}
    assert metric_names.find("b->c.drops", result).of(result) == 2
    with pytest.raises(ScenarioError, match=r"bottleneck\.drops: no such number"):
        metric_names.find("bottleneck.drops", result)


def test_groups_by_size_are_groups(result):
    result = {**result, "groups": {"web": {"flows": 2}, "web/small": {"flows": 1}}}
    assert metric_names.find("web/small.flows", result).of(result) == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mice.fct.p9", r"did you mean 'mice\.fct\.p9\d?'"),
        ("mouse.fct.p99", r"did you mean 'mice\.fct\.p99'"),
        ("", "allowed: "),
        ("mice", "mice"),
        ("nope", "allowed: elephants, mice, bottleneck, performance"),
        ("mice.congestion", r"allowed after 'mice\.': flows, finished, fct, "),
        ("mice.fct.p99.x", r"did you mean 'mice\.fct\.p99'"),
    ],
)
def test_an_unknown_name_gets_the_nearest(result, name, hint):
    with pytest.raises(ScenarioError, match=hint):
        metric_names.find(name, result)


def test_all_numbers_have_full_names(result):
    flat = metric_names.flat(result)
    assert flat["mice.fct_s.p99"] == result["groups"]["mice"]["fct_s"]["p99"]
    assert flat["elephants.fct_s.p99"] is None
    assert flat["bottleneck.drops_by_reason.early"] == 2
    assert {
        metric_names.find(name, result).of(result) == value for name, value in flat.items()
    } == {True}


@pytest.mark.parametrize("name", ["websearch", "multi-get", "partition-aggregate"])
def test_every_number_of_a_run_is_known_before_it(name):
    run = penstock.run(name, schemes=["drop-tail"], overrides={"duration": "100 ms"}, seeds=1)
    scenario = penstock.validate(name)
    known = set(metric_names.names(scenario))
    for full in metric_names.flat(run.summary["results"][0]):
        metric_names.check(full, scenario)
        is_listed = full in known or full.startswith(("performance.", "controller."))
        assert is_listed or "->" in full or ".drops_by_reason." in full, full
    with pytest.raises(ScenarioError, match="no such number"):
        metric_names.check("bottleneck.fct.p99", scenario)


UNDESCRIBED = {
    "jobs.time_s.p999",
    "slow.flows",
    *(f"slowdown.{each}" for each in ("sd", "p90", "p95")),
    *(f"longest_silence_s.{each}" for each in ("sd", "p50", "p90", "p95", "p99", "p999", "max")),
}
"""Numbers of a group that only `summary.json` has: no table or comparison shows them."""


def test_the_numbers_of_a_run_are_those_described():
    """A run whose numbers have every part: of jobs, of classes, and of ports that pause."""
    overrides = {
        "duration": "100 ms",
        "measure.sizes": {"small": "10 kB"},
        "measure.ports": ["leaf*->spine*"],
        "fabric.pfc_at": {"*": {"pause": "40 kB"}},
    }
    run = penstock.run("multi-get", schemes=["drop-tail"], overrides=overrides, seeds=1)

    def numbers(kind):
        tables = run.summary["results"][0][kind].values()
        return {".".join(path) for table in tables for path in metric_names.leaves(table)}

    assert numbers("groups") == set(metrics.GROUPS) | UNDESCRIBED
    ports = {path for path in numbers("ports") if not path.startswith("drops_by_reason.")}
    assert ports == set(metrics.PORTS)


def test_requests_that_were_not_begun_are_unfinished_too():
    cut = {"flows": 50, "finished": 50, "unfinished": 50}
    assert missing.unfinished("fct_s.mean", cut) == 0.5
    assert missing.unfinished("fct_s.p90", cut) == pytest.approx(0.4)
    assert missing.unfinished("fct_s.mean", {"flows": 2, "finished": 1}) == 0.5


def test_a_loop_until_the_end_of_the_run_bears_the_last_request_of_each_client():
    """Of 32 clients with a million requests each, as in `scenarios/lab/incast.toml`."""
    group = {"flows": 12_388, "finished": 12_356, "unfinished": 32_000_000 - 12_356}
    assert missing.planned(group) == 12_388
    assert not missing.is_cut_off("fct_s.p99", group)
    assert missing.is_cut_off("fct_s.p999", group)
    stalled = {"flows": 32, "finished": 0, "unfinished": 32_000_000}
    assert missing.is_cut_off("fct_s.p50", stalled)
    none = {"flows": 0, "finished": 0, "unfinished": 320}
    assert missing.planned(none) == 320


@pytest.mark.parametrize(
    ("path", "planned", "borne"),
    [("fct_s.p999", 1000, 1), ("slowdown.p99", 100, 1), ("fct_s.p95", 20, 1), ("fct_s.max", 9, 0)],
)
def test_a_percentile_bears_as_many_unfinished_flows_as_lie_above_it(path, planned, borne):
    def unfinished(count):
        return missing.unfinished(path, {"flows": planned, "finished": planned - count})

    assert unfinished(borne) == 0
    assert unfinished(borne + 1) == pytest.approx(1 / planned)


def test_jobs_that_were_not_begun_are_unfinished_too():
    group = {"flows": 9, "finished": 9, "unfinished": 0}
    group["jobs"] = {"begun": 3, "finished": 3, "unfinished": 1}
    assert missing.unfinished("jobs.time_s.mean", group) == 0.25
    assert missing.unfinished("jobs.per_second", group) == 0
    assert missing.unfinished("fct_s.mean", group) == 0


@pytest.mark.parametrize("names", [("web", "web_bytes"), ("web_bytes", "web")])
def test_a_traffic_whose_name_ends_like_a_unit_is_itself(result, names):
    groups = {name: {"flows": place, "finished": 1} for place, name in enumerate(names)}
    result = {**result, "groups": groups}
    for name in names:
        field = metric_names.find(f"{name}.flows", result)
        assert field.path == ("groups", name, "flows")
        assert field.unit == ""
        assert metric_names.short(f"{name}.fct_s.mean") == f"{name}.fct"
    assert metric_names.text("web_bytes.finished", 3.0) == "3"
    assert metric_names.axis_unit("web_bytes.finished") is None
    with pytest.raises(ScenarioError, match=f"allowed: {', '.join(names)}, bottleneck"):
        metric_names.find("nope", result)


def test_a_percentile_is_unfinished_if_it_is_in_one_seed():
    """Means of the counts would bear it: 2 of 300 flows."""
    whole = {"flows": 100, "finished": 100, "unfinished": 0, "fct_s": {"mean": 1.0, "p99": 1.0}}
    lossy = {**whole, "finished": 98, "unfinished": 2}
    none = {**whole, "finished": 0, "unfinished": 100, "fct_s": None}
    known = missing.of_seeds([whole, whole, lossy])
    assert known == {"cut_off": ["fct_s.p99"]}
    mean = {"flows": 100, "finished": 99.33, "unfinished": 0.67, "fct_s": {"p99": 1.0}}
    assert not missing.is_cut_off("fct_s.p99", mean)
    assert missing.is_cut_off("fct_s.p99", mean | {"of_seeds": known})
    few = missing.of_seeds([whole, none])["fewer"]
    assert few["fct_s.mean"] == 1
    assert "finished" not in few
    assert missing.of_seeds([whole, whole]) == {}


@pytest.mark.parametrize(
    ("name", "words", "value", "text"),
    [
        ("get.jobs.unfinished", "jobs unfinished of get", 3.0, "3"),
        ("get.jobs.missed_deadlines", "late jobs of get", 2.5, "2.5"),
        ("web/small.share.flows", "flows of all of web/small", 0.25, "25.0 %"),
        ("web.finished", "finished of web", 12345.0, "12\u00a0345"),
        ("bottleneck.utilization", "utilization of bottleneck", 0.9871, "98.7 %"),
        ("bottleneck.drops", "drops of bottleneck", 123456.0, "123\u00a0456"),
        ("bottleneck.drops_by_reason.full", "bottleneck.drops_by_reason.full", 12.0, "12"),
        ("web.slowdown.p99", "slowdown p99 of web", 970.4, "970"),
        ("web.fct_s.p99", "FCT p99 of web", None, "–"),
    ],
)
def test_a_number_has_the_words_and_the_form_of_its_longest_path(name, words, value, text):
    assert metric_names.described(name) == words
    assert metric_names.shown(name, value) == text


def test_a_reason_of_drops_is_known_before_a_run_and_another_name_is_not():
    scenario = penstock.validate("minimal")
    metric_names.check("bottleneck.drops.full", scenario)
    with pytest.raises(ScenarioError, match=r"did you mean 'bottleneck\.drops'"):
        metric_names.check("bottleneck.dropss", scenario)
