# SPDX-License-Identifier: Apache-2.0
import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import ScenarioError
from penstock.sweeps import means, points, sweep_charts, sweep_table, values
from penstock.sweeps.means import Cell, Shown


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("0.1,0.25, 0.5", "0.1 0.25 0.5"),
        ("1..4", "1 2 3 4"),
        ("0..1+0.25", "0 0.25 0.5 0.75 1"),
        ("0.1..0.5+0.1", "0.1 0.2 0.3 0.4 0.5"),
        ("32..512*2", "32 64 128 256 512"),
        ("1..100*3", "1 3 9 27 81"),
        ("2,8..32*2,2", "2 8 16 32"),
        ("-1..1", "-1 0 1"),
        ("true,false", "true false"),
        ("linux,newreno-ns2", "linux newreno-ns2"),
        ("../a.csv,/b/c.csv", "../a.csv /b/c.csv"),
    ],
)
def test_lists_and_ranges(text, texts):
    assert [value.text for value in values.parse(text)] == texts.split()


@pytest.mark.parametrize(
    ("text", "texts", "kind", "typed"),
    [
        ("10 kB,1 MB", ["10 kB", "1 MB"], "bytes", [10_000, 1_000_000]),
        ("1ms..4ms*2", ["1 ms", "2 ms", "4 ms"], "s", [0.001, 0.002, 0.004]),
        ("500us..1ms+250us", ["500 us", "750 us", "1000 us"], "s", [0.0005, 0.00075, 0.001]),
        ("1..3 Gb/s", ["1 Gb/s", "2 Gb/s", "3 Gb/s"], "bps", [1e9, 2e9, 3e9]),
        ("10 packets,20 packets", ["10 packets", "20 packets"], "packets", [10, 20]),
        ("10%,0.5", ["10%", "0.5"], "", [0.1, 0.5]),
        ("1e20 B", ["1e20 B"], "bytes", [1e20]),
        ("1e400", ["1e400"], "text", ["1e400"]),
    ],
)
def test_values_may_have_units(text, texts, kind, typed):
    found = values.parse(text)
    assert [value.text for value in found] == texts
    assert {value.kind for value in found} == {kind}
    assert [value.typed for value in found] == typed


def test_commas_within_lists_and_tables_part_nothing():
    found = values.parse('[1, 2],{ a = 1, b = "x,y" },"p,q"')
    assert [value.text for value in found] == ["[1, 2]", '{ a = 1, b = "x,y" }', '"p,q"']


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,,2", "a value is missing"),
        ("5..1", "ends before it begins"),
        ("1..8*1", "never ends"),
        ("0..8*2", "never ends"),
        ("1..8+0", "never ends"),
        ("1..8-1", "is no range"),
        ("1..x", "is no range"),
        ("1..", "is no range"),
        ("1ms..4kB", "does not go with"),
        ("1ms..4ms*2ms", "does not go with"),
        ("1foo..2foo", "unknown unit 'foo'"),
        ("1..1000000", "more than 10000 values"),
        ("1..1e99*1.0000001", "more than 10000 values"),
        ("1..1e9999999", "is no range"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_one_line(text, reason):
    with pytest.raises(ScenarioError, match=reason) as error:
        values.parse(text)
    assert "\n" not in str(error.value)


@given(st.text(alphabet="0123456789.,*+-ek mskBb/%[]{}\"'xµ", max_size=20))
def test_any_text_is_read_or_refused(text):
    try:
        found = values.parse(text)
    except ScenarioError as error:
        assert "\n" not in str(error)  # noqa: PT017 (most texts are refused)
    else:
        assert found
        assert len({(value.kind, value.typed) for value in found}) == len(found)


def test_points_are_all_combinations(small):
    made = points.plan(small, ["traffic.mice.flows=2..6*3", "tcp.min_rto=1ms,10ms"], seeds=2)
    assert [tuple(v.text for v in point) for point in made.points] == [
        ("2", "1ms"),
        ("2", "10ms"),
        ("6", "1ms"),
        ("6", "10ms"),
    ]
    tasks = [task for of_point in made.points.values() for task in of_point]
    assert len({task.key for task in tasks}) == 4 * 2 * 2
    assert [key.column for key in made.keys] == ["traffic.mice.flows", "tcp.min_rto_s"]


def test_a_parameter_of_all_schemes_touches_those_that_have_it(small):
    made = points.plan(small, ["scheme.alpha=0.1,0.5"], schemes=["drop-tail", "fairq"])
    first, second = made.points.values()
    same = {a.scheme: a.key == b.key for a, b in zip(first, second, strict=True)}
    assert same == {"drop-tail": True, "fairq": False}
    exact = points.plan(small, ["scheme.fairq.window.alpha=0.1"], schemes=["fairq"])
    assert next(iter(exact.points.values()))[0].key == first[1].key


def test_a_parameter_that_is_open_in_the_resolved_scenario_is_known(small):
    made = points.plan(small, ["scheme.interval=50us,100us"], schemes=["fairq"])
    assert len({tasks[0].key for tasks in made.points.values()}) == 2


@pytest.mark.parametrize(
    ("over", "reason"),
    [
        (["x"], "--over x: give KEY=VALUES"),
        (["=1"], "--over =1: give KEY=VALUES"),
        (["tcp.min_rto="], "give KEY=VALUES"),
        (["duration=1s,,2s"], "--over duration: a value is missing"),
        (["duration=1s", "duration=2s"], "--over duration: given twice"),
        (["seeds=1,2"], "give --seeds"),
        (
            ["scheme.alpha=0.1,0.2", "scheme.fairq.window.alpha=0.3"],
            "--over scheme.fairq.window.alpha: sets scheme.fairq.window.alpha, as --over scheme.al",
        ),
        (["schemes=fairq"], "give --scheme"),
        (["scheme.alhpa=1"], r"--over scheme.alhpa: .*did you mean 'alpha'\?"),
        (["scheme.alpha=0.1,7"], "--over scheme.fairq.window.alpha=7: is 7; allowed"),
        (["traffic.mouse.flows=1"], '--over traffic.mouse.flows=1: unknown traffic "mouse"'),
        (["tcp.min_rto=10"], "--over tcp.min_rto=10: needs a unit"),
        (["duration=1us"], "with --over duration=1us|--over duration=1us"),
    ],
)
def test_what_cannot_be_swept_names_its_option(small, over, reason):
    with pytest.raises(ScenarioError, match=reason) as error:
        points.plan(small, over, overrides=[("traffic.elephants.start", "5 ms")])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "is_unfinished"),
    [
        ("get.fct.p50", [False, True]),
        ("get.slowdown.p99", [True, True]),
        ("get.fct.p999", [True, True]),
        ("get.jobs.time.p50", [False, False]),
        ("get.jobs.time.p99", [False, True]),
        ("get.timeouts", [False, False]),
        ("bottleneck.queue.p99", [False, False]),
    ],
)
def test_what_is_unfinished_follows_the_rule_of_the_number(name, is_unfinished):
    numbers = ("fct_s.p50", "fct_s.p999", "slowdown.p99", "jobs.time_s.p50", "jobs.time_s.p99")
    columns = {f"get.{number}": [0.5, 0.5] for number in (*numbers, "timeouts")}
    columns |= {"get.flows": [100, 100], "get.finished": [98, 40], "get.unfinished": [2, 60]}
    columns |= {"get.jobs.finished": [100, 90], "get.jobs.unfinished": [1, 10]}
    columns |= {"bottleneck.queue_bytes.p99": [9.0, 9.0]}
    table = pl.DataFrame({"n": [8, 16], "scheme": "fairq", "seed": 1, **columns})
    request = {"columns": {"n": ["n", "number"]}, "scheme": {"fairq": {}}}
    shown = means.shown(request, table, name)
    assert [cell.unfinished for cell in shown.cells.values()] == is_unfinished


def test_the_ring_of_what_is_unfinished_is_above_every_seed():
    cells = {
        ((8,), "fairq"): Cell(0.01, None, unfinished=False, seeds=(0.009, 0.011)),
        ((16,), "fairq"): Cell(0.5, None, unfinished=True, seeds=(0.4, 0.6)),
    }
    swept = {"traffic.mice.flows": "traffic.mice.flows"}
    shown = Shown("mice.fct_s.p99", swept, [(8,), (16,)], ["fairq"], cells, 2)
    (chart,) = sweep_charts.figures([shown])
    rings = [series for panel in chart.panels for series in panel.series if series.open_end]
    assert [(list(ring.x), list(ring.y)) for ring in rings] == [([16.0], [0.6])]


def test_the_dots_of_schemes_stand_next_to_each_other():
    names = ["fairq", "hscc", "dctcp"]
    cells = {
        ((n,), name): Cell(0.01, None, unfinished=n == 16, seeds=(0.01, 0.01))
        for n in (8, 16)
        for name in names
    }
    swept = {"traffic.mice.flows": "traffic.mice.flows"}
    (chart,) = sweep_charts.figures(
        [Shown("mice.fct_s.p99", swept, [(8,), (16,)], names, cells, 2)]
    )
    marks = [
        series for series in chart.panels[0].series if series.kind == "dots" or series.open_end
    ]
    moved = {name: {series.dodge for series in marks if series.name == name} for name in names}
    assert moved["fairq"] == {-0.016}
    assert moved["hscc"] == {0.0}
    assert moved["dctcp"] == {0.016}


def test_a_seed_that_does_not_bear_a_percentile_makes_it_unfinished():
    counts = {"get.flows": 100, "get.finished": [100, 100, 98], "get.unfinished": [0, 0, 2]}
    columns = {"get.fct_s.p99": [0.5, 0.5, 0.1], "get.fct_s.mean": [0.5, 0.3, None], **counts}
    table = pl.DataFrame({"n": 8, "scheme": "fairq", "seed": [1, 2, 3], **columns})
    request = {"columns": {"n": ["n", "number"]}, "scheme": {"fairq": {}}}
    (tail,) = means.shown(request, table, "get.fct.p99").cells.values()
    assert tail.text("get.fct_s.p99") == "unfinished"
    (mean,) = means.shown(request, table, "get.fct").cells.values()
    assert mean.text("get.fct_s.mean").endswith("(2 seeds)")


def test_a_sweep_that_is_not_complete_has_points_of_fewer_seeds():
    columns = {"get.flows": 100, "get.finished": 100, "get.fct_s.mean": 0.5}
    table = pl.DataFrame({"n": [8, 8, 16], "scheme": "fairq", "seed": [1, 2, 1], **columns})
    request = {"columns": {"n": ["n", "number"]}, "scheme": {"fairq": {}}}
    assert means.shown(request, table, "get.fct").seeds_text == "1 to 2 seeds"
    assert means.shown(request, table.head(2), "get.fct").seeds_text == "2 seeds"


def shown_of_two_points(name):
    columns = {"get.flows": 100, "get.finished": [100, 98, 100, 100]}
    columns |= {"get.fct_s.p99": [0.5, None, 0.25, 0.25], "get.timeouts": [1, 2, 3, 4]}
    table = pl.DataFrame({"n": [8, 8, 16, 16], "scheme": "fairq", "seed": [1, 2, 1, 2], **columns})
    request = {"columns": {"n": ["n", "number"]}, "scheme": {"fairq": {}}}
    return means.shown(request, table, name)


def test_what_is_unfinished_has_no_mean_in_any_form():
    tail = shown_of_two_points("get.fct.p99")
    first, second = means.as_json([tail])[0]["points"]
    assert (first["mean"], first["ci95"], first["unfinished"]) == (None, None, True)
    assert (second["mean"], second["ci95"], second["unfinished"]) == (0.25, 0.0, False)
    rows = list(csv.DictReader(io.StringIO(sweep_table.text([tail], "csv"))))
    assert [(row["mean"], row["unfinished"]) for row in rows] == [("", "True"), ("0.25", "False")]


def test_schemes_that_do_not_fit_the_terminal_follow_in_a_further_table(capsys):
    schemes = [f"scheme-{number}" for number in range(12)]
    cells = {((8,), scheme): Cell(0.0123, 0.0001, unfinished=False) for scheme in schemes}
    name, swept = "get.fct_s.mean", {"n": "traffic.get.flows"}
    sweep_table.show(Shown(name, swept, [(8,)], schemes, cells, seeds=5))
    lines = capsys.readouterr().out.splitlines()
    headings = [line.split() for line in lines if line.startswith("traffic.get.flows")]
    assert len(headings) > 1
    assert [scheme for heading in headings for scheme in heading[1:]] == schemes
    numbers = [line for line in lines if line.split()[:1] == ["8"]]
    assert "".join(numbers).count("12.3 ms ±1 %") == len(schemes)
    assert max(map(len, lines)) <= 100


def test_several_numbers_are_one_table_of_csv():
    shown = [shown_of_two_points(name) for name in ("get.fct.p99", "get.timeouts")]
    text = sweep_table.text(shown, "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["number"] for row in rows] == ["get.fct_s.p99"] * 2 + ["get.timeouts"] * 2
    assert [float(row["mean"]) for row in rows[2:]] == [1.5, 3.5]
    assert sweep_table.text(shown, "md").count("| n | fairq |") == 2


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("bottleneck.drops", "bottleneck.drops: there is no single measured port; measured ports:"),
        ("leaf1->host99.drops", r"did you mean 'leaf1->host\d'"),
        ("a->b.drops", "no such measured port; measured ports: leaf1->host1, .* and 12 more"),
    ],
)
def test_a_port_that_is_not_measured_is_refused_before_anything_runs(number, message):
    over = ["traffic.search.load=0.1,0.2"]
    measure = {"measure.ports": ["leaf1->host*"], "duration": "2 ms", "measure.from": "0 s"}
    plan = points.plan("websearch", over, schemes=["fairq"], overrides=measure, seeds=1)
    points.check(["leaf1->host3.drops", "search.fct"], plan)
    with pytest.raises(ScenarioError, match=f"--show .*{message}"):
        points.check([number], plan)


def test_a_port_that_one_point_measures_alone_is_enough():
    over = ['measure.ports=["leaf1->host*"],["leaf1->host1"]']
    plan = points.plan("websearch", over, schemes=["fairq"], seeds=1)
    points.check(["bottleneck.drops", "leaf1->host9.drops"], plan)
