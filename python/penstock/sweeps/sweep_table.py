# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep in the terminal."""

from collections.abc import Sequence

from rich.markup import escape

from penstock import metric_names, units
from penstock.show import plain, terminal
from penstock.sweeps.means import Shown


def show(result: Shown) -> None:
    """Prints a row for each point, a column for each scheme.

    Where the terminal is too narrow for all schemes, the rest follow in further tables.
    """
    console = terminal.console()
    confidence = "± 95 % confidence in percent of the mean"  # not in points, where that is a share
    spread = f"means of {result.seeds_text}, {confidence}" if result.seeds > 1 else ""
    console.print(f"[bold]{escape(result.name)}[/]  [dim]{spread}[/]")
    keys = list(result.swept.values())
    points = [result.point_text(point) for point in result.points]
    names = ["  ".join(map(_widest, zip(keys, *points, strict=True)))]
    rows, schemes = _texts(result), result.schemes
    while schemes:
        shown = terminal.fitting(names, schemes, rows, console.width)
        table = terminal.table()
        for key in keys:
            table.add_column(escape(key), style="cyan", justify="right", overflow="fold")
        for scheme in schemes[:shown]:
            table.add_column(escape(scheme), justify="right", no_wrap=True)
        for point, texts in zip(points, rows, strict=True):
            table.add_row(*map(escape, point), *map(escape, texts[:shown]))
        console.print(table)
        console.print()
        rows, schemes = [texts[shown:] for texts in rows], schemes[shown:]


def _widest(texts: Sequence[str]) -> str:
    return max(texts, key=len)


def _texts(result: Shown) -> list[list[str]]:
    """Of each point the number under each scheme."""
    return [
        [
            cell.text(result.name) if (cell := result.cells.get((point, scheme))) else units.NONE
            for scheme in result.schemes
        ]
        for point in result.points
    ]


def text(results: Sequence[Shown], form: str) -> str:
    """The same as CSV, with a line for each number, point and scheme, or as tables in Markdown."""
    if form != "csv":
        return "\n\n".join(map(_markdown, results))
    rows = [
        (*point, scheme, result.name, cell.value, cell.spread, cell.unfinished, len(cell.seeds))
        for result in results
        for (point, scheme), cell in result.cells.items()
    ]
    columns = results[0].swept  # with their units, as values have none
    headings = (*columns, "scheme", "number", "mean", "ci95", "unfinished", "seeds")
    return plain.csv_text(headings, rows)


def _markdown(result: Shown) -> str:
    points = map(result.point_text, result.points)
    cells = [[*point, *texts] for point, texts in zip(points, _texts(result), strict=True)]
    table = plain.markdown([*result.swept.values(), *result.schemes], cells)
    return f"**{metric_names.described(result.name)}**\n\n{table}"
