# SPDX-License-Identifier: Apache-2.0
"""The report's page: HTML and CSS in one file, no script, nothing from a network."""

from html import escape
from itertools import groupby
from pathlib import Path

from penstock import columns, units
from penstock.report import style, words
from penstock.report.figures import Drawing
from penstock.results import Run


def render(run: Run, drawings: list[Drawing]) -> str:
    """The page as text."""
    summary = run.summary
    title = escape(summary["scenario"]["title"])
    about = summary["scenario"].get("about", "")
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{title}</h1>
<p class="lead">{escape(words.scenario(summary, run.info.get("substrate", "sim")))}</p>
{f'<p class="about">{escape(about)}</p>' if about else ""}
{_findings(run)}
</header>
<main>
<section>
<h2>Summary</h2>
<p class="hint">The best of each column is bold; of completion times, the best of the schemes under
which most flows finished. “{columns.UNFINISHED}”: more than 1 % of the flows had not ended.
{_ci_hint(run)}</p>
<div class="tables">
{"".join(_table(block) for block in columns.blocks(summary))}
</div>
</section>
<div class="columns">
{sections(drawings)}
</div>
</main>
{_footer(run)}"""
    return document(run.summary["scenario"]["title"], body)


def document(title: str, body: str) -> str:
    """A whole page: head and style around what the body holds."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · Penstock</title>
<style>
{_css()}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def sections(drawings: list[Drawing]) -> str:
    """The figures under their headings."""
    return "".join(_section(name, list(part)) for name, part in groupby(drawings, _heading))


def _heading(drawing: Drawing) -> str:
    return drawing.section


def _css() -> str:
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    css = css.partition("*/\n")[2]  # the licence line
    return css.replace("/*light*/", style.css_colours("light")).replace(
        "/*dark*/", style.css_colours("dark")
    )


def _findings(run: Run) -> str:
    said = words.findings(run.summary["results"])
    return "".join(f'<p class="finding">{sentence}</p>' for sentence in said)


def _ci_hint(run: Run) -> str:
    seeds = len(run.summary["seeds"])
    return (
        f"Numbers are means of {seeds} seeds, ± the half-width of the 95 % confidence interval."
        if seeds > 1
        else ""
    )


def _table(block: columns.Block) -> str:
    best = [column.best(block.rows) for column in block.columns]
    head = "".join(
        f'<th scope="col" title="{escape(c.meaning)}">{escape(c.heading)}</th>'
        for c in block.columns
    )
    body = ""
    for number, scheme in enumerate(block.schemes):
        cells = ""
        for place, column in enumerate(block.columns):
            text = escape(column.text(block.rows[number]))
            text = f"<b>{text}</b>" if number in best[place] else text
            cells += f"<td>{text}{_half_width(column, block, number)}</td>"
        swatch = f'<i style="background: var(--s{number % len(style.SERIES)})"></i>'
        body += f'<tr><th scope="row">{swatch}{escape(scheme)}</th>{cells}</tr>\n'
    return f"""<div class="scroll"><table>
<caption><b>{escape(block.title)}</b> {escape(block.about)}</caption>
<thead><tr><th scope="col">scheme</th>{head}</tr></thead>
<tbody>
{body}</tbody>
</table></div>
"""


def _half_width(column: columns.Column, block: columns.Block, number: int) -> str:
    half = block.ci95[number]
    value = column.value(half) if half else None
    hidden = value is None or column.text(block.rows[number]) == columns.UNFINISHED
    return "" if hidden else f"<small>± {escape(column.form(value))}</small>"


def _section(name: str, drawings: list[Drawing]) -> str:
    figures = "".join(_figure(drawing) for drawing in drawings)
    meaning = f'<p class="hint">{escape(drawings[0].meaning)}</p>'
    return f"""<section>
<h2>{escape(name)}</h2>
{meaning}
{figures}</section>
"""


def _figure(drawing: Drawing) -> str:
    label = escape(f"{drawing.section}: {drawing.title}".removesuffix(": "))
    caption = f"<figcaption>{escape(drawing.title)}</figcaption>" if drawing.title else ""
    return f"<figure>{caption}{style.for_page(drawing.svg, label)}</figure>\n"


def _footer(run: Run) -> str:
    return f"""<footer>
<p><code>{escape(run.info["command"])}</code></p>
<p>Penstock {escape(run.info["penstock"])} ·
{_effort(run)} ·
figures as SVG and PDF in <code>figures/</code> · the scenario as run in
<code>scenario.toml</code></p>
</footer>"""


def _effort(run: Run) -> str:
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
