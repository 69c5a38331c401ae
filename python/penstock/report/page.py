# SPDX-License-Identifier: Apache-2.0
"""The report's page: HTML and CSS in one file, no script, nothing from a network."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from penstock import columns, units
from penstock.report import style, words
from penstock.report.figures import Drawing
from penstock.results import Run

_NUMBER, _NAME = 24, 60  # characters; what is longer is no number, and no name


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
{"".join(_of_schemes(block) for block in columns.blocks(summary))}
</section>
<div class="columns">
{sections(drawings)}
</div>
</main>
{_footer(run)}"""
    return document(run.summary["scenario"]["title"], body)


def save(text: str, drawings: Iterable[Drawing], path: Path) -> Path:
    """Writes the page and, beside it, `figures/*.svg` and `*.pdf`; returns the page's path.

    What stood in their place is replaced when the new is complete; other files stay.
    """
    folder = path.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as temporary:
        for drawing in drawings:
            drawing.save(Path(temporary))
        for made in Path(temporary).iterdir():
            made.replace(folder / made.name)
        (Path(temporary) / "page").write_text(text, encoding="utf-8")
        (Path(temporary) / "page").replace(path)
    return path


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


class Html(str):
    """Text of a table that is HTML already."""

    __slots__ = ()


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], about: str = ""
) -> str:
    """A table that scrolls in its own box where it is too wide; each row's first cell names it.

    Args:
        title: above it, may be empty; `about` follows, less loud.
        headings: of its columns, that of the names included.
        rows: texts, or `Html`.
        about: what the title is, or how much is counted.
    """
    lines = [list(row) for row in rows]
    kinds = [
        _kind([line[place] for line in lines], _NAME if place == 0 else _NUMBER)
        for place in range(len(headings))
    ]
    head = "".join(
        f"<th{kind}{_scope(text)}>{_cell(text)}</th>"
        for text, kind in zip(headings, kinds, strict=True)
    )
    body = "".join(
        f'<tr><th{kinds[0]} scope="row">{_cell(name)}</th>'
        + "".join(
            f"<td{kind}>{_cell(text)}</td>" for text, kind in zip(cells, kinds[1:], strict=True)
        )
        + "</tr>\n"
        for name, *cells in lines
    )
    caption = f"<b>{escape(title)}</b> {escape(about)}".removeprefix("<b></b> ")
    return f"""<div class="scroll"><table>
{f"<caption>{caption}</caption>" if caption else ""}
<thead><tr>{head}</tr></thead>
<tbody>
{body}</tbody>
</table></div>
"""


def _cell(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)


def _kind(texts: list[str], most: int) -> str:
    """Words wrap and begin at the left, unlike numbers; long ones do not stay when one scrolls."""
    lengths = (len(re.sub("<.*?>", "", t) if isinstance(t, Html) else t) for t in texts)
    return ' class="text"' if max(lengths, default=0) > most else ""


def _scope(text: str) -> str:
    return ' scope="col"' if text else ""


def _of_schemes(block: columns.Block) -> str:
    best = [column.best(block.rows) for column in block.columns]
    headings = [
        Html(f'<span title="{escape(column.meaning)}">{escape(column.heading)}</span>')
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
    return table(block.title, ["scheme", *headings], rows, block.about)


def _half_width(column: columns.Column, block: columns.Block, number: int) -> str:
    half = block.ci95[number]
    value = column.value(half) if half else None
    hidden = value is None or column.text(block.rows[number]) == columns.UNFINISHED
    return "" if hidden else f"<small>± {escape(column.form(value))}</small>"


def _section(name: str, drawings: list[Drawing]) -> str:
    figures = "".join(_figure(drawing) for drawing in drawings)
    return f"""<section>
<h2>{escape(name)}</h2>
{figures}</section>
"""


def _figure(drawing: Drawing) -> str:
    label = escape(f"{drawing.section}: {drawing.title}".removesuffix(": "))
    title = f"<b>{escape(drawing.title)}</b>" if drawing.title else ""
    return f"""<figure>
<figcaption>{title}<p>{escape(drawing.meaning)}</p></figcaption>
<div class="scroll">{style.for_page(drawing.svg, label)}</div>
</figure>
"""


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
