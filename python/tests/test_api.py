# SPDX-License-Identifier: Apache-2.0
import json
import platform
import re
import tomllib

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import penstock
from penstock import ScenarioError, api, execution, metric_names, tables
from penstock.searches import tuning
from penstock.show import summary_table

from .conftest import SMALL, make_run


def without_performance(summary):
    results = [{k: v for k, v in one.items() if k != "performance"} for one in summary["results"]]
    return {**summary, "results": results}


def test_a_file_and_a_dict_give_the_same_run(small):
    of_file, of_dict = penstock.run(small), penstock.run(tomllib.loads(SMALL))
    assert without_performance(of_file.summary) == without_performance(of_dict.summary)
    for table in ("flows", "queues", "ports"):
        assert_frame_equal(getattr(of_file, table), getattr(of_dict, table))


def test_tables_have_the_documented_columns(small):
    run = penstock.run(small, seeds=2)
    assert {*tables.KEYS, *tables.FLOWS} <= set(run.flows.columns)
    assert list(run.queues.columns[:2]) == ["scheme", "seed"]
    assert set(tables.QUEUES) <= set(run.queues.columns)
    keys = run.flows.select("scheme", "seed").unique().sort("scheme", "seed").rows()
    assert keys == [("drop-tail", 1), ("drop-tail", 2), ("fairq", 1), ("fairq", 2)]


def test_windows_are_a_table_of_runs_that_sample_them(tmp_path):
    document = tomllib.loads(SMALL)
    without = penstock.run(document, schemes=["drop-tail"])
    assert without.windows.is_empty()
    assert {*tables.KEYS, *tables.WINDOWS} == set(without.windows.columns)
    traffic = next(iter(document["traffic"]))
    document.setdefault("measure", {})["windows"] = {"traffic": traffic, "every": "1 ms"}
    run = penstock.run(document, schemes=["drop-tail"])
    assert run.windows["traffic"].unique().to_list() == [traffic]
    assert (run.windows["swnd_bytes"] <= run.windows["cwnd_bytes"]).all()
    assert metric_names.find(f"{traffic}.loss_cycle", run.summary["results"][0])
    for made, has_file in ((without, False), (run, True)):
        folder = made.save(tmp_path / "run")
        assert (folder / "windows.parquet").exists() == has_file
        assert_frame_equal(penstock.Run.load(folder).windows, made.windows)


def test_the_summary_agrees_with_the_flows(small):
    run = penstock.run(small, schemes=["drop-tail"])
    mice = run.summary["results"][0]["groups"]["mice"]
    rows = run.flows.filter(pl.col("traffic") == "mice")
    assert mice["flows"] == rows.height
    assert mice["finished"] == rows["fct_s"].count()
    assert mice["timeouts"] == rows["timeouts"].sum()
    assert mice["fct_s"]["mean"] == pytest.approx(rows["fct_s"].mean())
    assert mice["fct_s"]["max"] == pytest.approx(rows["fct_s"].max())


def test_a_controller_reports_its_messages(small):
    run = penstock.run(
        small, schemes=["drop-tail", "sicc"], overrides={"scheme.sicc.controller.loss": "20 %"}
    )
    without, of_sicc = run.summary["results"]
    assert "controller" not in without
    counts = of_sicc["controller"]
    # Both ends of each connection send a SYN through a port with the scheme.
    assert counts["reports_received"] + counts["messages_lost"] > of_sicc["groups"]["mice"]["flows"]
    assert counts["messages_lost"] > 0
    # Of each report of a switch with one port with the scheme: SICC §5.4.
    assert counts["bytes_to_controller"] > 56 * counts["queue_reports"] > 0
    assert (
        metric_names.find("controller.messages_lost", of_sicc).of(of_sicc)
        == counts["messages_lost"]
    )


def test_several_seeds_give_means_and_intervals(small):
    run = penstock.run(small, schemes=["drop-tail"], seeds=3)
    result = run.summary["results"][0]
    goodput = result["groups"]["elephants"]["goodput_bps"]["mean"]
    by_seed = run.flows.filter(pl.col("traffic") == "elephants").group_by("seed")
    means = by_seed.agg(pl.col("goodput_bps").mean())["goodput_bps"]
    assert goodput == pytest.approx(means.mean())
    half = result["ci95"]["groups"]["elephants"]["goodput_bps"]["mean"]
    assert half == pytest.approx(4.3027 * means.std() / 3**0.5)
    assert run.summary["seeds"] == [1, 2, 3]


def test_one_seed_has_no_interval(small):
    run = penstock.run(small, schemes=["drop-tail"])
    assert run.summary["results"][0]["ci95"] is None


def test_overrides_reach_the_scenario(small):
    run = penstock.run(small, schemes=["fairq"], overrides={"traffic.mice.flows": 3})
    assert run.summary["scenario"]["traffic"]["mice"]["flows"] == 3
    assert run.flows.filter(pl.col("traffic") == "mice").height == 3
    assert run.info["overrides"]["traffic.mice.flows"] == "3"


def test_the_resolved_scenario_is_the_same_scenario(small):
    resolved = api.resolved(small)
    assert api.resolved(tomllib.loads(resolved)) == resolved


def test_schemes_are_named_and_explained():
    listed = {scheme["name"]: scheme for scheme in penstock.schemes()}
    assert {"drop-tail", "red-ecn", "dctcp", "fairq", "hscc", "sicc", "hcf"} <= set(listed)
    assert all(scheme["title"] and scheme["source"] for scheme in listed.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overrides": {3: 4}}, "3"),
        (
            {"overrides": {"tcp.min_rto": object()}},
            "tcp.min_rto: is of type object; allowed",
        ),
        ({"jobs": 0}, "jobs: is 0; allowed: 1 or more"),
        ({"out": "/proc/run"}, "/proc/run: cannot be written"),
    ],
)
def test_wrong_arguments_are_errors_of_penstock(small, options, message):
    with pytest.raises(ScenarioError, match=message):
        penstock.run(small, **options)


def test_one_scheme_needs_no_list(small):
    assert penstock.run(small, schemes="fairq", jobs=10**30).info["schemes"] == ["fairq"]


@pytest.mark.parametrize("seeds", [0, []])
def test_no_seeds_are_refused(small, seeds):
    with pytest.raises(ScenarioError, match="at least one"):
        penstock.run(small, seeds=seeds)


def test_a_run_is_not_begun_where_it_cannot_be_written(small, tmp_path):
    with pytest.raises(ScenarioError, match="exists and is not"):
        penstock.run(small, out=tmp_path)


def test_an_error_in_progress_stops_the_run(small):
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        penstock.run(small, overrides={"duration": "100 s"}, progress=fail)


def traced(tmp_path, file):
    text = SMALL[: SMALL.index("[traffic.elephants]")]
    path = tmp_path / "traced.toml"
    path.write_text(f'{text}[traffic.recorded]\nkind = "trace"\nfile = "{file}"\n')
    return path


def test_a_parquet_trace_is_as_good_as_csv(tmp_path):
    trace = pl.DataFrame(
        {
            "start_s": [0.0, 0.001, 0.002],
            "source": ["sender1", "sender2", "sender3"],
            "destination": ["receiver1", "receiver2", "receiver3"],
            "bytes": [10_000, 20_000, 30_000],
        }
    )
    trace.write_parquet(tmp_path / "flows.parquet")
    trace.write_csv(tmp_path / "flows.csv")
    of_parquet = penstock.run(traced(tmp_path, "flows.parquet"))
    of_csv = penstock.run(traced(tmp_path, "flows.csv"))
    assert_frame_equal(of_parquet.flows, of_csv.flows)
    named = of_parquet.summary["scenario"]["traffic"]["recorded"]["file"]
    assert named == str(tmp_path / "flows.parquet"), "not the copy"


def test_a_parquet_trace_that_lacks_a_column_is_refused(tmp_path):
    pl.DataFrame({"start_s": [0.0]}).write_parquet(tmp_path / "flows.parquet")
    with pytest.raises(ScenarioError, match=r"flows.parquet: needs the columns start_s"):
        penstock.run(traced(tmp_path, "flows.parquet"))
    with pytest.raises(ScenarioError, match=r"there is no file .*none.parquet"):
        penstock.run(traced(tmp_path, "none.parquet"))


def test_the_public_names_are_found_and_listed():
    assert set(penstock.__all__) <= set(dir(penstock))
    assert not {"Any", "import_module", "TYPE_CHECKING"} & set(dir(penstock))
    for name in penstock.__all__:
        assert getattr(penstock, name).__doc__, name
    assert callable(penstock.sweep), "no package of this name"
    with pytest.raises(AttributeError, match="no attribute 'sweeep'"):
        _ = penstock.sweeep


def test_a_run_shows_itself_in_a_notebook():
    run = make_run(seeds=(1, 2))
    assert repr(run) == "<Run Made up <of> numbers: drop-tail, hcf; 124 flows>"
    text = run._repr_html_()
    assert "Made up &lt;of&gt; numbers" in text
    assert text.count("<table>") == 3
    assert "±" in text
    assert set(run.figures()) >= {"fct-mice", "fct-mice-tail", "drops"}
    assert run.plot("drops").axes[0].get_xlabel() == "packets dropped"
    assert run.plot().axes[0].get_xlabel() == "flow completion time"
    with pytest.raises(ScenarioError, match="did you mean 'drops'"):
        run.plot("drop")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: penstock.run("minimal", overrides={3: 4}), "overrides: 3=4: unknown key"),
        (lambda: penstock.run("minimal", overrides=[1]), "overrides: is of type list; allowed"),
        (lambda: penstock.run("minimal", jobs="x"), "jobs: is of type str; allowed: a whole"),
        (lambda: penstock.run("minimal", jobs=-1), "jobs: is -1; allowed: 1 or more"),
        (lambda: penstock.run("minimal", out=3), "out: is of type int; allowed: a path"),
        (lambda: penstock.run("minimal", out="/proc/x"), "give another out"),
        (lambda: penstock.run("minimal", schemes="f"), "schemes: no scheme 'f'; allowed: drop-"),
        (lambda: penstock.run("minimal", schemes=3), "schemes: is of type int; allowed: a list"),
        (lambda: penstock.run("minimal", schemes=[3]), "schemes: schemes[0]: is the number 3"),
        (lambda: penstock.run("minimal", seeds=1.5), "seeds: is of type float; allowed: a whole"),
        (lambda: penstock.run("minimal", seeds=-2), "seeds: is -2; allowed: 1 to 100000 seeds"),
        (
            lambda: penstock.run("minimal", tools="ab"),
            "tools: is for the laboratory; give on='lab'",
        ),
        (lambda: penstock.run({"a": object()}), "scenario: Object of type 'object' is not TOML"),
        (lambda: penstock.run({1: 2}), "scenario: Invalid mapping key '1'"),
        (lambda: penstock.validate("minimal", overrides={"tcp.x": 1}), "overrides: tcp.x=1: unk"),
        (lambda: penstock.sweep("minimal", over=["x"]), "over: x: give KEY=VALUES, as in 'sch"),
        (lambda: penstock.Run.load(3), "folder: is of type int; allowed: a path"),
        (penstock.sweep, "sweep: missing a required argument: 'scenario'; allowed: sc"),
        (lambda: penstock.sweep("minimal", over=[]), "over: is missing; give KEY=VALUES, as in '"),
        (lambda: penstock.sweep("minimal", "a=1", numbers=3), "numbers: is of type int; allowed"),
        (lambda: penstock.sweep("minimal", "fabric=1"), "over: fabric=1: is the number 1; allo"),
        (lambda: penstock.tune("minimal", "fairq"), "tune: missing a required argument: 'minimize"),
        (lambda: penstock.tune("minimal", "fairq", "long", trials=0), "trials: is 0; allowed: 1"),
        (lambda: penstock.tune("minimal", "fairq", "long", seeds=[1]), "seeds: is of type list"),
        (lambda: penstock.tune("minimal", "fairq", "long", seed="x"), "seed: is of type str; all"),
        (lambda: penstock.compare(3, 4), "first: is of type int; allowed: a path"),
        (penstock.reproduce, "ids: is missing; name experiments"),
        (lambda: penstock.reproduce("sicc-4", foo=1), "unexpected keyword argument 'foo'"),
        (lambda: penstock.lab.run("minimal", foo=1), "unexpected keyword argument 'foo'"),
        (lambda: penstock.prepare("minimal").run(jobs="x"), "jobs: is of type str; allowed: a"),
        (lambda: execution.execute(3), "tasks: is of type int; allowed: a list of tasks"),
        (lambda: penstock.prepare("minimal").collect({}), "rows: 2 of 2 tasks have none"),
        (lambda: metric_names.find("x", {}), "result: has no groups and ports"),
    ],
)
def test_errors_name_the_arguments_of_python(call, message):
    with pytest.raises(penstock.PenstockError) as refused:
        call()
    assert message in str(refused.value)
    assert "--" not in str(refused.value)


def test_a_sweep_takes_overrides_as_a_dict(small, tmp_path):
    made = penstock.sweep(
        small, "traffic.mice.flows=2,3", overrides={"duration": "20 ms"}, out=tmp_path / "sweep"
    )
    assert made.table.height == 4


def test_a_run_names_its_commit_and_machine(small, tmp_path):
    run = penstock.run(small, out=tmp_path / "run")
    head = json.loads((tmp_path / "run/run.json").read_text())
    assert {"penstock", "commit", "date", "command", "machine"} <= set(head)
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", head["commit"] or "0" * 12)
    assert platform.release() in head["machine"]["system"]
    page = run.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for part in (head["commit"] or "", head["machine"]["system"], head["machine"]["processor"]):
        assert part in page
    assert '<path d="M' in page, "the fabric"


def test_a_run_refuses_by_a_penstock_error(small, tmp_path):
    made = penstock.run(small)
    for call in (
        lambda: made.plot(3),
        lambda: made.plot("nope"),
        lambda: made.save("/proc/x"),
        lambda: made.report("/proc/x.html"),
        lambda: made.report(tmp_path),
    ):
        with pytest.raises(penstock.PenstockError):
            call()


JOBS = """
title = "Reads"
duration = "1 s"
until = "done"
schemes = ["drop-tail", "fairq"]
[fabric]
kind = "dumbbell"
senders = 4
receivers = 2
access = { rate = "1 Gb/s", delay = "10 us" }
bottleneck = { rate = "1 Gb/s", delay = "10 us" }
[traffic.read]
kind = "job"
clients = "receivers"
jobs = 5
stages = [{ from = "senders", to = "client", mode = "pull", size = "20 kB" }]
"""


def test_jobs_have_their_own_table_summary_and_chart(tmp_path):
    made = penstock.run(tomllib.loads(JOBS))
    assert made.jobs.height == 2 * 10
    assert {*tables.KEYS, *tables.JOBS} == set(made.jobs.columns)
    last = made.flows.group_by("scheme", "flow").agg(pl.col("end_s").max())
    joined = made.jobs.join(last, left_on=["scheme", "job"], right_on=["scheme", "flow"])
    assert (joined["end_s"] == joined["end_s_right"]).all()
    jobs = made.summary["results"][0]["groups"]["read"]["jobs"]
    assert (jobs["finished"], jobs["unfinished"]) == (10, 0)
    assert metric_names.find("read.jobs.time.p99", made.summary["results"][0]).unit == "s"
    titles = [block.title for block in summary_table.blocks(made.summary)]
    assert titles[:2] == ["read/jobs", "read"]
    assert {"jct-read", "jct-read-tail"} <= set(made.figures())
    made.save(tmp_path / "run")
    assert_frame_equal(penstock.Run.load(tmp_path / "run").jobs, made.jobs)


@pytest.mark.parametrize(
    ("overrides", "resolved"),
    [
        ({"fabric.access": {"rate": "2 Gb/s", "delay": "1 us"}}, {"rate": "2 Gb/s"}),
        ({"fabric.access": {"rate": "2 Gb/s", "delay": "1 us"}, "tcp": {}}, {"delay": "1 us"}),
    ],
)
def test_an_override_may_be_a_table(small, overrides, resolved):
    access = penstock.validate(small, overrides=overrides)["fabric"]["access"]
    assert resolved.items() <= access.items()


def test_a_table_in_an_override_may_have_lists_and_tables():
    stages = [{"from": "senders", "to": "client", "mode": "pull", "size": "20 kB"}]
    overrides = {"traffic.read": tomllib.loads(JOBS)["traffic"]["read"] | {"stages": stages}}
    made = penstock.validate(tomllib.loads(JOBS), overrides=overrides)
    assert made == penstock.validate(tomllib.loads(JOBS))
    with pytest.raises(ScenarioError, match="traffic: is of type dict; allowed"):
        penstock.validate("minimal", overrides={"traffic": {"a": object()}})


def test_a_text_that_is_no_utf8_is_refused():
    with pytest.raises(ScenarioError, match="is no UTF-8"):
        penstock.validate(tomllib.loads(JOBS) | {"title": "\ud800"})


def test_paths_may_be_texts(small, tmp_path, monkeypatch):
    folder = str(penstock.run(small, schemes=["fairq"]).save(tmp_path / "run"))
    assert penstock.compare(folder, folder).lines
    monkeypatch.setattr(tuning, "CHECK_SEEDS", 1)
    out = str(tmp_path / "tune")
    tuned = penstock.tune(small, "fairq", "mice.fct.p50", trials=1, seeds=1, out=out)
    assert tuned.folder == tmp_path / "tune"


def test_a_run_keeps_what_its_files_held(small, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("start_s,source,destination,bytes\n0,sender1,receiver1,1000\n")
    document = tomllib.loads(small.read_text())
    document["traffic"] = {"t": {"kind": "trace", "file": str(trace)}}
    run = penstock.run(document)
    assert list(run.info["files"]) == [str(trace)]
    folder = run.save(tmp_path / "run")
    assert penstock.run(folder / "scenario.toml").notes == []
    trace.write_text(trace.read_text().replace("1000", "2000"))
    (note,) = penstock.run(folder / "scenario.toml").notes
    assert note == f"Changed since the run that is repeated: {trace}."
    assert "files" not in penstock.run(small).info


def test_what_the_means_of_seeds_do_not_show_is_in_the_summary():
    """Of 40 flows of 20 kB through 5 kB of buffer some wait for a timeout beyond the end."""
    document = tomllib.loads(JOBS) | {"duration": "250 ms", "until": "duration"}
    document["fabric"]["bottleneck"]["buffer"] = "5 kB"
    document["traffic"] = {
        "mice": {"kind": "incast", "size": "20 kB", "from": "senders", "to": "receiver1"}
        | {"flows": 40}
    }
    run = penstock.run(document, schemes=["drop-tail"], seeds=3)
    mice = run.summary["results"][0]["groups"]["mice"]
    assert mice["finished"] < mice["flows"]
    assert "fct_s.p99" in mice["of_seeds"]["cut_off"]
    assert "of_seeds" not in ".".join(metric_names.flat(run.summary["results"][0]))


def test_a_trace_with_brackets_in_its_name_is_no_pattern(tmp_path):
    columns = {"source": ["sender1"], "destination": ["receiver1"], "bytes": [10_000]}
    pl.DataFrame({"start_s": [0.0], **columns}).write_parquet(tmp_path / "flows[1].parquet")
    assert penstock.run(traced(tmp_path, "flows[1].parquet"), schemes="fairq").flows.height == 1
