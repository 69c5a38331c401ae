# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep in the terminal."""

from rich.markup import escape

from penstock import metric_names, units
from penstock.show import plain, terminal
from penstock.sweeps.means import Shown


def show(result: Shown) -> None:
    """Prints a row for each point, a column for each scheme."""
    console = terminal.console()
    spread = f"means of {result.seeds_text} ± 95 % confidence" if result.seeds > 1 else ""
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


def text(result: Shown, form: str) -> str:
    """The same as CSV, with a line for each point and scheme, or as a table in Markdown."""
    keys = list(result.swept.values())
    if form == "csv":
        rows = [
            (*point, scheme, result.name, cell.mean, cell.half, cell.unfinished, len(cell.seeds))
            for (point, scheme), cell in result.cells.items()
        ]
        headings = (*keys, "scheme", "number", "mean", "ci95", "unfinished", "seeds")
        return plain.csv_text(headings, rows)
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
    table = plain.markdown([*keys, *result.schemes], cells)
    return f"**{metric_names.described(result.name)}**\n\n{table}"
