# SPDX-License-Identifier: Apache-2.0
"""The tables of a comparison in the terminal."""

from rich.markup import escape
from rich.table import Table

from penstock.compare.comparison import Comparison
from penstock.show import terminal


def show(comparison: Comparison) -> None:
    """Prints a table for each group of each scheme."""
    console = terminal.console()
    tables: dict[tuple[str, str], Table] = {}
    for line in comparison.lines:
        key = line.scheme, line.group
        if key not in tables:
            table = terminal.table(f"[cyan]{escape(line.scheme)}[/]  [bold]{escape(line.group)}[/]")
            table.add_column("", min_width=12)
            for heading in (*comparison.names, "ratio"):
                table.add_column(escape(heading), justify="right", no_wrap=True)
            table.add_column("")
            tables[key] = table
        first, second, ratio, verdict = line.shown()
        coloured = f"[red]{verdict}[/]" if line.agrees is False else f"[dim]{verdict}[/]"
        tables[key].add_row(line.measure, first, second, ratio, coloured)
    for table in tables.values():
        console.print(table)
        console.print()
    counted = comparison.as_json()
    console.print(f"{counted['agree']} of {counted['of']} numbers agree.")
