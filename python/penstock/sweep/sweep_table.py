# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep in the terminal."""

from rich.markup import escape

from penstock import units
from penstock.show import terminal
from penstock.sweep.means import Shown


def show(result: Shown) -> None:
    """Prints a row for each point, a column for each scheme."""
    console = terminal.console()
    spread = f"means of {result.seeds} seeds ± 95 % confidence" if result.seeds > 1 else ""
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
