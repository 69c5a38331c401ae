# SPDX-License-Identifier: Apache-2.0
"""Why slow flows are slow: the numbers, the chart and its sentence."""

from pathlib import Path

import polars as pl
import pytest

import penstock
from penstock import metric_names
from penstock.metrics import CAUSES
from penstock.show import chart_files, reasons

SLOW = {"flows": 3, "lasted_s": 0.4} | dict.fromkeys((cause.name for cause in CAUSES), 0.0)


def slow(**shares):
    return SLOW | shares


def test_the_sentence_names_the_causes_that_matter():
    rows = {
        "drop-tail": slow(rto=0.7, syn_timeout=0.25, queueing=0.05),
        "fairq": slow(queueing=0.95, ideal=0.05),
        "hscc": slow(queueing=0.91, ideal=0.09),
    }
    assert reasons.sentence("mice", rows) == (
        "mice: the slowest tenth of the flows spent their time under drop-tail on RTO "
        "(70\u00a0%) and SYN timeout (25\u00a0%); under fairq and hscc on queueing "
        "(91 to 95\u00a0%)."
    )


def test_a_run_that_is_shorter_than_a_timeout_is_noted():
    counts = {"flows": 10, "finished": 8, "unfinished": 2}
    for causes, is_noted in ((slow(queueing=1.0), True), (slow(rto=1.0), False)):
        results = [{"scheme": "fairq", "groups": {"web": counts | {"slow": causes}}}]
        (sentence,) = reasons.sentences(results)
        assert sentence.endswith("let the run last longer.") is is_noted


def test_what_a_kernel_does_not_count_is_named():
    unknown = slow(rto=0.5, queueing=0.5, delayed_ack=None, zero_window=None)
    (chart,) = reasons.charts([{"scheme": "fairq", "groups": {"web": {"slow": unknown}}}])
    assert "delayed ACK and zero window: not known here, and part of queueing" in chart.meaning
    assert chart.parts == ("RTO", "SYN timeout", "queueing", "ideal", "server's think time")
    assert chart.rows == {"fairq": (0.5, 0.0, 0.5, 0.0, 0.0)}
    assert chart.sums == {"fairq": "400 ms"}


def test_each_cause_has_a_pattern_of_its_own():
    styles = (Path(reasons.__file__).parent / "page.css").read_text()
    assert f".part{len(CAUSES) - 1} " in styles
    assert len(set(chart_files._HATCHES)) >= len(CAUSES)


def test_a_group_that_is_not_counted_has_no_chart():
    assert not [*reasons.charts([{"scheme": "fairq", "groups": {"web": {"slow": None}}}])]


@pytest.fixture(scope="module")
def run():
    return penstock.run("demo", seeds=[1, 2], schemes=["drop-tail", "fairq"])


def test_shares_add_up_and_agree_with_the_table_of_flows(run):
    for result in run.summary["results"]:
        for group, numbers in result["groups"].items():
            if found := numbers["slow"]:
                assert sum(found[cause.name] for cause in CAUSES) == pytest.approx(1)
                waits = [cause.column for cause in CAUSES if cause.column]
                ended = run.members(group).filter(pl.col("fct_s").is_not_null())
                over = ended.filter(pl.sum_horizontal(waits) > pl.col("fct_s") * (1 + 1e-9))
                assert over.is_empty(), "a flow waited for longer than it took"


def test_a_thinking_server_is_the_cause():
    traffic = {"flows": 4, "requests": 2, "start": "0 s", "server_think": "50 ms"}
    overrides = {f"traffic.web.{key}": value for key, value in traffic.items()}
    overrides |= {"traffic.elephants.flows": 1, "duration": "300 ms"}
    run = penstock.run("web", schemes=["drop-tail"], overrides=overrides)
    assert run.members("web")["server_wait_s"].to_list() == pytest.approx([0.05] * 8)
    found = run.summary["results"][0]["groups"]["web"]["slow"]
    assert found["server_think"] == pytest.approx(0.05 / found["lasted_s"])
    assert found["server_think"] > 0.9
    (sentence,) = (text for text in reasons.sentences(run.summary["results"]) if "web" in text)
    assert "under drop-tail on the server's think time" in sentence


def test_slowdown_is_at_least_1_and_requests_are_counted(run):
    for result in run.summary["results"]:
        for group, numbers in result["groups"].items():
            if numbers["slowdown"]:
                ended = run.members(group).filter(
                    pl.col("fct_s").is_not_null(), pl.col("scheme") == result["scheme"]
                )
                slowdowns = ended["fct_s"] / ended["ideal_s"]
                assert slowdowns.min() >= 1 - 1e-9
                assert numbers["slowdown"]["p999"] <= numbers["slowdown"]["max"]
                assert numbers["flows_per_second"] > 0


def test_a_name_may_have_its_percentile_as_people_write_it():
    result = {"groups": {"mice": {"fct_s": {"p999": 2.0}}}, "ports": {}}
    found = metric_names.find("mice.fct.p99.9", result)
    assert found.path == ("groups", "mice", "fct_s", "p999")
