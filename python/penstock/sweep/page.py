# SPDX-License-Identifier: Apache-2.0
"""The page of a sweep: figures, and the tables that the terminal shows."""

import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from penstock.report import page
from penstock.report.figures import Drawing
from penstock.sweep import figures, show, store
from penstock.sweep.show import Shown


def again(folder: Path, path: Path) -> Path:
    """Draws the page of a sweep's folder anew.

    Raises:
        ScenarioError: the sweep has no table yet.
        RunError: the folder is damaged.
    """
    asked, table = store.load(folder)
    results = [show.shown(asked, table, said) for said in asked["show"] or [""]]
    return write(asked, results, path)


def write(asked: dict[str, Any], results: Sequence[Shown], path: Path) -> Path:
    """Writes the page, and `figures/` beside it; returns the page's path."""
    drawn = list(figures.draw(results))
    text = _render(asked, results, drawn)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.parent / ".figures"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    for figure in drawn:
        figure.save(new)
    shutil.rmtree(path.parent / "figures", ignore_errors=True)
    new.rename(path.parent / "figures")
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return path


def _render(asked: dict[str, Any], results: Sequence[Shown], drawn: list[Drawing]) -> str:
    first = results[0]
    swept = " and ".join(f"<code>{escape(key)}</code>" for key in first.swept.values())
    seeds = f", means of {first.seeds} seeds" if first.seeds > 1 else ""
    note = figures.TOO_MANY if len(first.swept) > 2 else ""
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{escape(asked["title"])}</h1>
<p class="lead">{len(first.points)} points of {swept}, each under {len(first.schemes)}
scheme{"s" if len(first.schemes) > 1 else ""}{seeds}.</p>
{f'<p class="about">{note}</p>' if note else ""}
</header>
<main>
<div {'class="columns"' if len(drawn) > 1 else 'style="max-width: 36rem"'}>
{page.sections(drawn)}
</div>
<section>
<h2>Numbers</h2>
<p class="hint">± is the half-width of the 95 % confidence interval in percent of the mean.</p>
<div class="tables">
{"".join(map(_table, results))}
</div>
</section>
</main>
<footer>
<p><code>{escape(asked["command"])}</code></p>
<p>Penstock {escape(asked["penstock"])} · every number of every run in
<code>{store.TABLE}</code> · figures as SVG and PDF in <code>figures/</code></p>
</footer>"""
    return page.document(asked["title"], body)


def _table(result: Shown) -> str:
    keys = "".join(f'<th scope="col">{escape(key)}</th>' for key in result.swept.values())
    head = "".join(f'<th scope="col">{escape(scheme)}</th>' for scheme in result.schemes)
    body = ""
    for point in result.points:
        body += "<tr>"
        body += "".join(f'<th scope="row">{escape(text)}</th>' for text in result.point_text(point))
        for scheme in result.schemes:
            cell = result.cells.get((point, scheme))
            body += f"<td>{escape(cell.text(result.name)) if cell else '–'}</td>"
        body += "</tr>\n"
    return f"""<div class="scroll"><table>
<caption><b>{escape(result.name)}</b></caption>
<thead><tr>{keys}{head}</tr></thead>
<tbody>
{body}</tbody>
</table></div>
"""
