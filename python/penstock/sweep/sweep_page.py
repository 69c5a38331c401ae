# SPDX-License-Identifier: Apache-2.0
"""The page of a sweep: figures, and the tables that the terminal shows."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from penstock import units
from penstock.show import html
from penstock.show.drawing import Drawing
from penstock.sweep import means, store, sweep_figures
from penstock.sweep.means import Shown


def redraw(folder: Path, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page of a sweep's folder again.

    Raises:
        ScenarioError: the sweep has no table yet.
        RunError: the folder is damaged.
    """
    request, table = store.load(folder)
    results = [means.shown(request, table, number) for number in request["show"] or [""]]
    return write(request, results, path, pdf=pdf)


def write(
    request: dict[str, Any], results: Sequence[Shown], path: Path, *, pdf: bool = False
) -> Path:
    """Writes the page, and `figures/` next to it; returns the page's path."""
    drawn = list(sweep_figures.draw(results))
    text = _render(request, results, drawn)
    return html.save(text, drawn, path, pdf=pdf)


def _render(request: dict[str, Any], results: Sequence[Shown], drawn: list[Drawing]) -> str:
    first = results[0]
    swept = " and ".join(f"<code>{escape(key)}</code>" for key in first.swept.values())
    seeds = f", means of {first.seeds} seeds" if first.seeds > 1 else ""
    note = sweep_figures.TOO_MANY if len(first.swept) > 2 else ""
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{escape(request["title"])}</h1>
<p class="lead">{len(first.points)} points of {swept}, each under {len(first.schemes)}
scheme{"s" if len(first.schemes) > 1 else ""}{seeds}.</p>
{f'<p class="about">{note}</p>' if note else ""}
</header>
<main>
<div {'class="columns"' if len(drawn) > 1 else 'style="max-width: 36rem"'}>
{html.sections(drawn)}
</div>
<section>
<h2>Numbers</h2>
<p class="hint">± is the half-width of the 95 % confidence interval in percent of the mean.</p>
{"".join(map(_table, results))}
</section>
</main>
<footer>
<p><code>{escape(request["command"])}</code></p>
<p>Penstock {escape(request["penstock"])} · every number of every run in
<code>{store.TABLE}</code> · {html.FIGURES}</p>
</footer>"""
    return html.document(request["title"], body)


def _table(result: Shown) -> str:
    rows = [
        [*result.point_text(point)]
        + [
            cell.text(result.name) if (cell := result.cells.get((point, scheme))) else units.NONE
            for scheme in result.schemes
        ]
        for point in result.points
    ]
    return html.table(result.name, [*result.swept.values(), *result.schemes], rows)
