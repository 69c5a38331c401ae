# SPDX-License-Identifier: Apache-2.0
import re
from xml.etree import ElementTree

import polars as pl
import pytest
from matplotlib.ticker import EngFormatter

from penstock.cli.report import redraw
from penstock.runs import Run
from penstock.show import curves, drawing, sentences, style

from .conftest import make_run


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = make_run(seeds=(1, 2)).save(tmp_path_factory.mktemp("report") / "run", report=True)
    return folder / "report.html"


def test_the_page_loads_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img|iframe)|@import|url\((?!#)|\bsrc=", text)
    links = set(re.findall(r'https?://[^\s"<]+', text))
    assert all(link.startswith("http://www.w3.org/") for link in links), "names of XML, not links"


def test_the_page_has_every_part(page):
    text = page.read_text(encoding="utf-8")
    sections = re.findall(r"<h2>(.*?)</h2>", text)
    wanted = ["Flow completion times", "Goodput of each flow", "Queue over time", "Drops"]
    assert sections == ["Summary", *wanted]
    assert "± " in text, "several seeds show their confidence intervals"
    assert "Made up &lt;of&gt; numbers" in text
    assert "<of>" not in text
    assert "30 mice (incast of 10 kB) on a network; NewReno; 1 s simulated, 2 seeds." in text


def test_figures_take_their_colours_from_the_page(page):
    text = page.read_text(encoding="utf-8")
    figures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(figures) == 5
    for figure in figures:
        assert not re.findall(r"#[0-9a-f]{6}\b", figure), "a colour that dark mode cannot change"
        assert "var(--s0)" in figure or "var(--s1)" in figure
    assert "prefers-color-scheme: dark" in text
    assert all(text.count(f"--{ink.name}: ") == 2 for ink in style.INKS)


def test_names_within_the_page_are_unique_or_alike(page):
    ids = re.findall(r' id="([^"]*)"[^>]*', page.read_text(encoding="utf-8"))
    used = set(re.findall(r"url\(#(.*?)\)|href=\"#(.*?)\"", page.read_text(encoding="utf-8")))
    assert {name for pair in used for name in pair if name} <= set(ids)


def test_figures_are_kept_for_papers(page, tmp_path):
    names = {"drops", "fct-mice", "goodput-elephants", "goodput-mice", "queue-a-b"}
    drawn = list((page.parent / "figures").iterdir())
    assert {path.name for path in drawn} == {f"{name}.svg" for name in names}
    for path in drawn:
        ElementTree.parse(path)
    printed = redraw(page.parent, tmp_path / "printed.html", pdf=True)
    assert printed.read_bytes() == page.read_bytes()
    figures = tmp_path / "figures"
    assert {path.stem for path in figures.glob("*.svg")} == names
    assert {path.stem for path in figures.glob("*.pdf")} == names
    assert all(path.read_bytes().startswith(b"%PDF") for path in figures.glob("*.pdf"))


def test_the_same_run_gives_the_same_page(page, tmp_path):
    again = Run.load(page.parent).report(tmp_path / "again.html")
    assert again.read_bytes() == page.read_bytes()
    for path in (tmp_path / "figures").iterdir():
        assert path.read_bytes() == (page.parent / "figures" / path.name).read_bytes()


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
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Summary", "Goodput of each flow"]


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
    assert queue.greatest.max() == 99.0
    assert queue.mean.max() < 10


def test_the_findings_do_not_praise_a_scheme_that_loses_its_slow_flows():
    def row(finished, p99):
        return {"flows": 100, "finished": finished, "fct_s": {"p99": p99}}

    def sentences_of(**rows):
        return sentences.findings([{"scheme": s, "groups": {"mice": r}} for s, r in rows.items()])

    (first,) = sentences_of(lossy=row(50, 0.1), slow=row(100, 1.0))
    assert "<b>100 of 100</b> under slow" in first
    assert "<b>50 of 100</b> under lossy" in first
    lossless = {name: row(100, 0.1) for name in ("a", "b<", "c")}
    assert "</b> under a, b&lt; and c finished" in sentences_of(**lossless, lossy=row(50, 0.1))[0]
    assert (
        "</b> under 4 schemes finished"
        in sentences_of(**lossless, d=row(100, 0.1), e=row(9, 0.1))[0]
    )
    (only,) = sentences_of(fast=row(100, 0.1), slow=row(100, 1.0))
    assert "<b>100 ms</b> under fast, and <b>1.00 s</b> under slow" in only


def test_figures_read_on_any_ground(page):
    for path in (page.parent / "figures").glob("*.svg"):
        assert path.read_text().count(f"fill: {style.GROUND}") == 1
    assert style.GROUND not in "".join(
        re.findall(r"<svg.*?</svg>", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    )


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
