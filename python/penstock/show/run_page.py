# SPDX-License-Identifier: Apache-2.0
"""The page of a run: its findings, summary tables and figures."""

from html import escape
from pathlib import Path

from penstock import metrics, units
from penstock.results import Results
from penstock.show import html, run_figures, sentences, style, summary_table
from penstock.show.drawing import Drawing
from penstock.show.html import Html


def write(run: Results, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page and, next to it, `figures/`, as PDF too if `pdf`; returns the page's path."""
    drawn = list(run_figures.draw(run))
    return html.save(render(run, drawn), drawn, path, pdf=pdf)


def render(run: Results, drawings: list[Drawing]) -> str:
    """The page as text."""
    summary = run.summary
    title = escape(summary["scenario"]["title"])
    about = summary["scenario"].get("about", "")
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{title}</h1>
<p class="lead">{escape(sentences.scenario(summary, run.info.get("substrate", "sim")))}</p>
{f'<p class="about">{escape(about)}</p>' if about else ""}
{_findings(run)}
</header>
<main>
<section>
<h2>Summary</h2>
<p class="hint">The best of each column is bold; of completion times, the best of the schemes under
which most flows finished. “{metrics.UNFINISHED}”: more than 1 % of the flows had not ended.
{_ci_hint(run)}</p>
{"".join(_of_schemes(block) for block in summary_table.blocks(summary))}
</section>
<div class="columns">
{html.sections(drawings)}
</div>
</main>
{_footer(run)}"""
    return html.document(run.summary["scenario"]["title"], body)


def _findings(run: Results) -> str:
    findings = sentences.findings(run.summary["results"])
    return "".join(f'<p class="finding">{sentence}</p>' for sentence in findings)


def _ci_hint(run: Results) -> str:
    seeds = len(run.summary["seeds"])
    return (
        f"Numbers are means of {seeds} seeds, ± the half-width of the 95 % confidence interval."
        if seeds > 1
        else ""
    )


def _of_schemes(block: summary_table.Block) -> str:
    best = [column.best(block.rows) for column in block.columns]
    headings = [
        Html(f'<span title="{escape(column.metric.meaning)}">{escape(column.heading)}</span>')
        for column in block.columns
    ]
    rows = []
    for number, scheme in enumerate(block.schemes):
        swatch = f'<i style="background: var(--s{number % len(style.SERIES)})"></i>'
        cells = [Html(swatch + escape(scheme))]
        for place, column in enumerate(block.columns):
            text = escape(column.text(block.rows[number]))
            text = f"<b>{text}</b>" if number in best[place] else text
            cells.append(Html(text + _half_width(column, block, number)))
        rows.append(cells)
    return html.table(block.title, ["scheme", *headings], rows, block.about)


def _half_width(column: summary_table.Column, block: summary_table.Block, number: int) -> str:
    half = block.ci95[number]
    value = column.value(half) if half else None
    hidden = value is None or column.text(block.rows[number]) == metrics.UNFINISHED
    return "" if hidden else f"<small>± {escape(column.form(value))}</small>"


def _footer(run: Results) -> str:
    return f"""<footer>
<p><code>{escape(run.info["command"])}</code></p>
<p>Penstock {escape(run.info["penstock"])} ·
{_effort(run)} ·
{html.FIGURES} · the scenario as run in
<code>scenario.toml</code></p>
</footer>"""


def _effort(run: Results) -> str:
    """What the run cost, or on what it ran if not in the simulator."""
    costs = [result["performance"] for result in run.summary["results"]]
    wall = units.seconds(sum(cost["wall_s"] for cost in costs))
    if run.info.get("substrate", "sim") == "sim":
        hops = units.count(sum(cost["packet_hops"] for cost in costs))
        return f"{hops} packet-hops in {wall} of computing, per seed"
    missing = ", ".join(run.info["not_emulated"]) or "nothing"
    return escape(
        f"real TCP of Linux {run.info['kernel']} in network namespaces, {wall} per repeat; "
        f"not emulated: {missing}"
        + (f"; the CPUs were busy in: {'; '.join(busy)}" if (busy := run.info["busy"]) else "")
        + "".join(f"; {warning}" for warning in run.info.get("warnings", ()))
    )
