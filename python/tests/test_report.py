# SPDX-License-Identifier: Apache-2.0
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import polars as pl
import pytest
from matplotlib.ticker import EngFormatter

from penstock import api, tables
from penstock.cli.report import redraw
from penstock.runs import Run
from penstock.show import charts, curves, drawing, html, run_charts, sentences, style, timelines

from .conftest import make_run


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = make_run(seeds=(1, 2)).save(tmp_path_factory.mktemp("report") / "run", report=True)
    return folder / "report.html"


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    )


def test_the_page_loads_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(
        r"<(link|img|iframe)|@import|url\((?!#)|<script[^>]*\bsrc=|\bfetch\(", text
    )
    links = set(re.findall(r'https?://[^\s"<]+', text))
    assert links <= {"https://github.com/leeoniya/uPlot"}, "of uPlot's licence"


def test_the_page_has_every_part(page):
    text = page.read_text(encoding="utf-8")
    sections = re.findall(r"<h2>(.*?)</h2>", text)
    first, *others = ["Flow completion times", "Goodput of each flow", "Queue over time", "Drops"]
    assert sections == [first, "Summary", *others]
    assert "± " in text, "several seeds show their confidence intervals"
    assert "Made up &lt;of&gt; numbers" in text
    assert "<of>" not in text
    assert "30 mice (incast of 10 kB) on a network; NewReno; 1 s simulated, 2 seeds." in text


def test_a_scheme_has_one_colour_everywhere(page):
    text = page.read_text(encoding="utf-8")
    series = [
        one
        for chart in data_of(page)["charts"]
        for panel in chart["panels"]
        for one in panel["series"]
    ]
    looks = {(one["scheme"], one["ink"], tuple(one["dash"])) for one in series}
    assert {scheme for scheme, *_ in looks} == {"drop-tail", "hcf"}
    assert len(looks) == 2
    assert all(f'stroke="var(--{ink})"' in text for _, ink, _ in looks), "in picker and tables"
    assert all(text.count(f"--{ink.name}: ") == 2 for ink in style.INKS), "light and dark"


def test_schemes_that_are_built_in_look_different_and_whatever_else_is_shown():
    names = [scheme["name"] for scheme in api.schemes()]
    looks = style.looks(names)
    assert len(set(looks.values())) == len(names) > 15
    assert style.looks(["a", "hcf", "b"])["hcf"] == looks["hcf"]
    many = style.looks([*names, *(f"mine-{n}" for n in range(12))])
    assert len(set(many.values())) == len(many)


def test_colours_differ_from_the_page(page):
    """WCAG 2.2, 1.4.11."""

    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        red, green, blue = (
            (p + 0.055) ** 2.4 / 1.055**2.4 if p > 0.04 else p / 12.92 for p in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    css = page.read_text(encoding="utf-8")
    for mode, paper in zip(("light", "dark"), re.findall(r"--paper: (#\w+)", css), strict=True):
        for ink in style.SERIES:
            levels = sorted((luminance(getattr(ink, mode)), luminance(paper)))
            assert (levels[1] + 0.05) / (levels[0] + 0.05) > 3, ink


def test_the_tail_shows_what_is_unfinished(page):
    (tail,) = (chart for chart in data_of(page)["charts"] if chart["name"] == "fct-mice-tail")
    assert tail["x"]["log"]
    assert tail["y"]["log"]
    assert [label for _, label in tail["guides"]] == ["p50", "p99"]
    for line in tail["panels"][0]["series"]:
        assert line["open"] == "2 of 60 unfinished"
        assert line["y"][-1] == pytest.approx(2 / 60, rel=1e-3)
        assert line["x"][-1] > 1.3 * line["x"][-2]


def test_figures_are_drawn_for_papers_on_demand(page, tmp_path):
    assert not (page.parent / "figures").exists()
    names = {"drops", "fct-mice", "fct-mice-tail", "goodput-elephants", "goodput-mice", "queue-a-b"}
    printed = redraw(page.parent, tmp_path / "printed.html", pdf=True)
    assert printed.read_bytes() == page.read_bytes()
    figures = tmp_path / "figures"
    assert {path.stem for path in figures.glob("*.svg")} == names
    assert {path.stem for path in figures.glob("*.pdf")} == names
    assert all(path.read_bytes().startswith(b"%PDF") for path in figures.glob("*.pdf"))
    for path in figures.glob("*.svg"):
        ElementTree.parse(path)
        assert path.read_text().count(f"fill: {style.GROUND}") >= 1, "it reads on any ground"


def test_the_same_run_gives_the_same_page(page, tmp_path):
    again = Run.load(page.parent).report(tmp_path / "again.html")
    assert again.read_bytes() == page.read_bytes()


def test_a_large_run_makes_a_small_page(tmp_path):
    run = make_run(schemes=("drop-tail", "red", "hcf"), mice=50_000, samples=50_000)
    assert run.report(tmp_path / "large.html").stat().st_size < 5_000_000


def test_a_run_without_completions_drops_or_samples_has_a_page(made_up, tmp_path):
    run = Run(
        made_up.summary,
        made_up.flows.with_columns(pl.lit(None, pl.Float64).alias("fct_s")),
        made_up.queues.clear(),
        made_up.ports.with_columns(pl.lit(0).alias("drops_full"), pl.lit(0).alias("drops_early")),
        made_up.scenario,
        made_up.info,
    )
    text = run.report(tmp_path / "empty.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Goodput of each flow", "Summary"]


def test_a_distribution_counts_unfinished_flows_and_keeps_its_tail():
    times = [n / 1000 for n in range(1, 10_001)]
    curve = curves.cdf(pl.DataFrame({"fct_s": [*times, *[None] * 10_000]}))
    assert len(curve.x) <= curves.POINTS + 1
    assert curve.y[-1] == 0.5
    assert list(curve.x[-3:]) == times[-3:]


def test_an_envelope_keeps_the_extremes():
    samples = pl.DataFrame({"time_s": [n / 1e3 for n in range(5000)], "bytes": [1000] * 5000})
    samples = samples.with_columns(
        pl.when(pl.col("time_s") == 2.5).then(99_000).otherwise("bytes").alias("bytes")
    )
    queue = curves.envelope(samples)
    assert len(queue.time) <= curves.POINTS
    assert queue.greatest.max() == 99_000
    assert queue.mean.max() < 10_000


def test_the_findings_do_not_praise_a_scheme_that_loses_its_slow_flows():
    def row(finished, p99):
        return {"flows": 100, "finished": finished, "fct_s": {"p99": p99}}

    def sentences_of(**rows):
        return sentences.findings([{"scheme": s, "groups": {"mice": r}} for s, r in rows.items()])

    (first,) = sentences_of(lossy=row(50, 0.1), slow=row(100, 1.0))
    assert first.startswith("mice: <b>100 of 100</b> flows finished within the run under slow")
    assert "<b>50 of 100</b> under lossy" in first
    lossless = {name: row(100, 0.1) for name in ("a", "b<", "c")}
    assert "run under a, b&lt; and c, and" in sentences_of(**lossless, lossy=row(50, 0.1))[0]
    assert (
        "within the run under 4 schemes, and"
        in sentences_of(**lossless, d=row(100, 0.1), e=row(9, 0.1))[0]
    )
    (only,) = sentences_of(fast=row(100, 0.1), slow=row(100, 1.0))
    assert "<b>100 ms</b> under fast, and <b>1.00 s</b> under slow" in only


def test_a_column_of_unfinished_percentiles_is_one_of_numbers():
    assert "<td>unfinished</td>" in html.table("", ("flows", "p99"), [("8", "unfinished")])
    assert '<td class="left">words</td>' in html.table("", ("flows", "about"), [("8", "words")])


def test_a_switch_of_the_fabric_is_no_size():
    fabric = {"kind": "leaf-spine", "leaves": 4, "hosts_per_leaf": 6, "symmetric_paths": False}
    document = {"fabric": fabric, "duration": "1 s", "traffic": {}}
    shown = sentences.scenario({"scenario": document, "seeds": [1], "results": [{"tcp": "cubic"}]})
    assert "on a leaf-spine (leaves 4, hosts per leaf 6); CUBIC" in shown


@pytest.mark.parametrize(
    ("least", "greatest", "labels"),
    [
        (6.2e-3, 6.7e-3, ["6.3 ms", "6.45 ms", "6.6 ms"]),
        (2e-3, 9e-3, ["2 ms", "4 ms", "6 ms", "8 ms"]),
        (2e-4, 3.0, ["1 ms", "10 ms", "100 ms", "1 s"]),
        (1e-9, 10.0, ["10 ns", "1 µs", "100 µs", "10 ms", "1 s"]),
    ],
)
def test_a_logarithmic_axis_is_labelled_whatever_its_range(least, greatest, labels):
    figure, axes = drawing.plot()
    axes.set(xscale="log", xlim=(least, greatest))
    drawing.label_log(axes.xaxis, EngFormatter("s", sep=" "))
    figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == labels
    assert not any(label.get_text() for label in axes.get_xticklabels(minor=True))


def test_a_number_that_does_not_count_is_neither_sorted_nor_copied(page):
    """29 of 30 finished, so there is no p99."""
    text = page.read_text(encoding="utf-8")
    cells = re.findall(r"<td([^>]*)>unfinished", text)
    assert len(cells) >= 2
    assert not any("data-value" in cell for cell in cells)


def test_figures_of_alike_names_have_files_of_their_own():
    axis = charts.Axis("x")

    def named(*names):
        figures = [charts.Chart("s", name, "t", "m.", axis, axis, ()) for name in names]
        return [charts.file_name(figure.name) for figure in charts.distinct(figures)]

    assert named("fct-web/small", "fct-web-small") == ["fct-web.small", "fct-web-small"]
    same = named("fct-web-tail", "fct-web-tail", "fct-web-tail-2", "FCT-web-tail")
    assert len({name.lower() for name in same}) == 4
    long = named(*(f"fct-{'x' * 300}{n}" for n in range(3)))
    assert len(set(long)) == 3
    assert max(map(len, long)) <= 100


def test_a_curve_is_of_all_flows_that_were_to_be(made_up):
    """Of a closed loop 30 began, and 60 were to."""
    for result in made_up.summary["results"]:
        result["groups"]["mice"]["unfinished"] = 31
    assert made_up.planned("mice").filter(scheme="hcf").height == 60
    (chart,) = (one for one in run_charts.figures(made_up) if one.name == "fct-mice")
    for series in chart.panels[0].series:
        assert series.open_end == "31 of 60 unfinished"
        assert series.y[-1] == pytest.approx(29 / 60)


@pytest.mark.filterwarnings("error")
def test_a_single_flow_has_an_axis_and_no_warning(made_up, tmp_path):
    flows = made_up.flows.filter(pl.col("flow") == 1).with_columns(fct_s=pl.lit(0.01))
    for result in made_up.summary["results"]:
        result["groups"] = {"mice": result["groups"]["mice"] | {"flows": 1, "finished": 1}}
    run = replace(made_up, flows=flows)
    run.report(tmp_path / "one.html", pdf=True)
    (tail,) = (one for one in run_charts.figures(run) if one.name == "fct-mice-tail")
    assert (tail.y.least, tail.y.greatest) == (0.1, 1.0)


@pytest.mark.filterwarnings("error")
def test_recorded_datagrams_have_no_timelines(made_up):
    packets = pl.DataFrame([{"scheme": "hcf"}], schema=tables.NO_PACKETS.schema)
    assert timelines.timelines(replace(made_up, flows=made_up.flows.clear(), packets=packets)) == []
