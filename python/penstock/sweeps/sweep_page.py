# SPDX-License-Identifier: Apache-2.0
"""The page of a sweep: figures, and the tables that the terminal shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import metric_names, provenance, units
from penstock.show import charts, html, style
from penstock.show.html import Cell, Html
from penstock.sweeps import completeness, means, store, sweep_charts
from penstock.sweeps.means import Shown


def redraw(folder: Path, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page of a sweep's folder again.

    Raises:
        ScenarioError: the sweep has no table yet.
        RunError: the folder is damaged.
    """
    request, table = store.load(folder)
    results = [means.shown(request, table, number) for number in request["show"] or [""]]
    return write(request, results, path, completeness.note(request, table), pdf=pdf)


def write(
    request: dict[str, Any],
    results: Sequence[Shown],
    path: Path,
    incomplete: str = "",
    *,
    pdf: bool = False,
) -> Path:
    """Writes the page, and if `pdf` `figures/` next to it; returns the page's path.

    `incomplete` is the note on runs that are missing.
    """
    figures = charts.distinct(sweep_charts.figures(results))
    first = results[0]
    text = html.render(
        "sweep.html",
        request["title"],
        figures,
        style.looks(first.schemes),
        request=request,
        swept=list(first.swept.values()),
        points=len(first.points),
        of_schemes=len(first.schemes),
        seeds=first.seeds_text if first.seeds > 1 else "",
        notes=[incomplete, sweep_charts.TOO_MANY if len(first.swept) > 2 else ""],
        tables=[_table(result) for result in results],
        kept=store.TABLE,
        origin=provenance.text(request),
    )
    return html.save(text, figures, path, pdf=pdf)


def _table(result: Shown) -> Html:
    rows = [
        [
            *(
                Cell(text, value if isinstance(value, int | float) else None)
                for text, value in zip(result.point_text(point), point, strict=True)
            ),
            *(
                Cell(cell.text(result.name), cell.value)
                if (cell := result.cells.get((point, scheme)))
                else Cell(units.NONE)
                for scheme in result.schemes
            ),
        ]
        for point in result.points
    ]
    headings = [*map(means.key_text, result.swept.values()), *result.schemes]
    return html.table(metric_names.described(result.name), headings, rows)
