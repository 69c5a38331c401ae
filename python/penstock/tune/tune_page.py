# SPDX-License-Identifier: Apache-2.0
"""The page of a search: its course, the effect of each parameter, and the result."""

import math
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.ticker import FuncFormatter

from penstock.show import html, style
from penstock.show.drawing import Drawing, drawing, legend, plot
from penstock.tune.tuning import load

Table = dict[str, Any]


def redraw(folder: Path, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page of a search again.

    Raises:
        RunError: the search has not ended, or the folder is damaged.
    """
    document = load(folder)
    with mpl.rc_context(style.MATPLOTLIB):
        drawn = [*_history(document), *_slices(document)]
    return html.save(_render(document, drawn), drawn, path, pdf=pdf)


def _good(trial: Table) -> bool:
    return bool(not trial["error"] and trial["objective"] is not None and max(trial["excess"]) <= 0)


def _unit(document: Table) -> tuple[str, float]:
    """Axis label and scale of the objective."""
    name = document["question"]["minimize"]
    known = {"s": (" (ms)", 1e3), "bps": (" (Mb/s)", 1e-6), "bytes": (" (kB)", 1e-3)}
    label, scale = known.get(document["unit"], ("", 1.0))
    return name + label, scale


def _points(document: Table) -> Iterator[tuple[str, int, list[Table]]]:
    """Label, place in the colours, and trials of each sort that has a number."""
    shown = [trial for trial in document["trials"] if trial["objective"] is not None]
    bad = [trial for trial in shown if not _good(trial)]
    if bad:
        yield "misses a constraint", 0, bad
    yield "keeps all", 2, [trial for trial in shown if _good(trial)]


def _history(document: Table) -> Iterator[Drawing]:
    label, scale = _unit(document)
    figure, axes = plot(2.6)
    for name, place, trials in _points(document):
        at = [t["number"] for t in trials], [t["objective"] * scale for t in trials]
        axes.plot(*at, "o", markersize=3.5, color=style.series(place)[0], label=name)
    best, course = math.inf, []
    for trial in document["trials"]:
        best = min(best, trial["objective"] * scale if _good(trial) else math.inf)
        course.append((trial["number"], best))
    known = [point for point in course if math.isfinite(point[1])]
    if known:
        where = [point[0] for point in known], [point[1] for point in known]
        axes.step(*where, where="post", color=style.series(1)[0], label="best so far")
    axes.set(xlabel="trial", ylabel=label)
    axes.set_ylim(bottom=0)
    legend(figure, axes)
    meaning = "Each dot is a trial; the line falls where the search found something better."
    yield drawing(figure, "How the search went", "history", "", meaning)


def _slices(document: Table) -> Iterator[Drawing]:
    label, scale = _unit(document)
    for parameter in document["question"]["parameters"]:
        name = parameter["key"].rpartition(".")[2]
        size = 1e-3 if parameter["unit"] == "ns" else 1.0
        unit = {"ns": " (µs)", "": ""}.get(parameter["unit"], f" ({parameter['unit']})")
        figure, axes = plot(2.2)
        axes.set(xlabel=name + unit, ylabel=label)
        for sort, place, trials in _points(document):
            at = (
                [t["values"][parameter["key"]] * size for t in trials],
                [t["objective"] * scale for t in trials],
            )
            axes.plot(*at, "o", markersize=3.5, color=style.series(place)[0], label=sort)
        if parameter["is_log"]:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
        axes.set_ylim(bottom=0)
        legend(figure, axes)
        meaning = "Dots that lie lower on parameter side show where the parameter should be."
        yield drawing(figure, "What each parameter did", f"slice-{name}", parameter["key"], meaning)


def _render(document: Table, drawn: list[Drawing]) -> str:
    question = document["question"]
    goal = " subject to ".join(
        part for part in (question["minimize"], ", ".join(question["subject_to"])) if part
    )
    sentences = "".join(f'<p class="finding">{escape(text)}</p>' for text in document["sentences"])
    rows = [(key, str(value)) for key, value in document["best"]["values"].items()]
    check = document["check"]
    tables = html.table("Found", ["parameter", "value"], rows)
    if check:
        seeds = f"means of the seeds {check['seeds'][0]} to {check['seeds'][-1]}, ± 95 % confidence"
        numbers = [
            (variant, *(number["text"] for number in row))
            for variant, row in check["variants"].items()
        ]
        tables += html.table("Check on fresh seeds", ["", *check["names"]], numbers, seeds)
    code = (document["scheme_toml"], document["agent_toml"]) if check else ()
    blocks = "".join(f"<pre>{escape(text)}</pre>" for text in code if text)
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{escape(document["title"])}</h1>
<p class="lead">{escape(question["scheme"])}, {len(document["trials"])} trials of
{question["seeds"]} seeds to minimize {escape(goal)}.</p>
{sentences}
</header>
<main>
<section>
<h2>Result</h2>
<div class="tables">
{tables}
</div>
{blocks}
</section>
<div class="columns">
{html.sections(drawn)}
</div>
</main>
<footer>
<p><code>{escape(document["command"])}</code></p>
<p>Penstock {escape(document["penstock"])} · every trial in <code>tune.json</code> ·
{html.FIGURES}</p>
</footer>"""
    return html.document(document["title"], body)
