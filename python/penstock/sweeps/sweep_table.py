# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep in the terminal."""

from collections.abc import Sequence

from rich.markup import escape

from penstock import metric_names, units
from penstock.show import plain, terminal
from penstock.sweeps.means import Shown


def show(result: Shown) -> None:
    """Prints a row for each point, a column for each scheme."""
    console = terminal.console()
    confidence = "± 95 % confidence in percent of the mean"  # not in points, where that is a share
    spread = f"means of {result.seeds_text}, {confidence}" if result.seeds > 1 else ""
    table = terminal.table()
    for key in result.swept.values():
        table.add_column(escape(key), style="cyan", justify="right", overflow="fold")
    for scheme in result.schemes:
        table.add_column(escape(scheme), justify="right", overflow="fold")
    for point in result.points:
        cells = (result.cells.get((point, scheme)) for scheme in result.schemes)
        texts = [cell.text(result.name) if cell else units.NONE for cell in cells]
        table.add_row(*map(escape, result.point_text(point)), *map(escape, texts))
    console.print(f"[bold]{escape(result.name)}[/]  [dim]{spread}[/]")
    console.print(table)
    console.print()


def text(results: Sequence[Shown], form: str) -> str:
    """The same as CSV, with a line for each number, point and scheme, or as tables in Markdown."""
    if form != "csv":
        return "\n\n".join(map(_markdown, results))
    rows = [
        (*point, scheme, result.name, cell.value, cell.spread, cell.unfinished, len(cell.seeds))
        for result in results
        for (point, scheme), cell in result.cells.items()
    ]
    keys = results[0].swept.values()
    headings = (*keys, "scheme", "number", "mean", "ci95", "unfinished", "seeds")
    return plain.csv_text(headings, rows)


def _markdown(result: Shown) -> str:
    cells = [
        [
            *result.point_text(point),
            *(
                cell.text(result.name)
                if (cell := result.cells.get((point, scheme)))
                else units.NONE
                for scheme in result.schemes
            ),
        ]
        for point in result.points
    ]
    table = plain.markdown([*result.swept.values(), *result.schemes], cells)
    return f"**{metric_names.described(result.name)}**\n\n{table}"
