# SPDX-License-Identifier: Apache-2.0
"""Shows a run in a terminal: a line of progress, then tables as wide as the terminal."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from penstock.show import summary_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BAR = 30


class Progress:
    """One line on stderr, rewritten in place; silent where stderr is no terminal that can do so."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Begins to count the time."""
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._begun = time.monotonic()

    def __enter__(self) -> Self:
        """Shows an empty bar."""
        self(0.0, "")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Clears the line."""
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def __call__(self, fraction: float, label: str) -> None:
        """Shows the fraction done, its label, and the estimated time left."""
        if not self._shown:
            return
        passed = time.monotonic() - self._begun
        left = _left(passed / fraction - passed) if fraction > 0.02 and passed > 1 else ""
        bar = ("█" * int(fraction * _BAR)).ljust(_BAR, "░")
        line = f"{bar} {fraction:4.0%}  {label}{left}"
        self._stream.write(f"\r\x1b[2K{line[: self._columns() - 1]}")  # a wrapped one would stay
        self._stream.flush()

    def _columns(self) -> int:
        with suppress(OSError, ValueError, AttributeError):
            if columns := os.get_terminal_size(self._stream.fileno()).columns:
                return columns
        return shutil.get_terminal_size().columns


def _left(seconds: float) -> str:
    """The time that is left, as `, 3 min left`."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f", {seconds / size:.0f} {unit} left"
    return f", {seconds:.0f} s left"


def show(summary: dict[str, Any]) -> None:
    """Prints the tables of a summary, the best value of each column in bold.

    Where the terminal is too narrow the last columns are left out, and named.
    """
    from rich.markup import escape  # start-up: rich

    screen = console()
    if (seeds := len(summary["seeds"])) > 1:
        spread = "± the half-width of the 95 % confidence interval in percent of the mean"
        screen.print(f"Means of {seeds} seeds, {spread}.\n")
    for block in summary_table.blocks(summary):
        cells = _cells(block)
        headings = [column.heading for column in block.columns]
        shown = fitting(("scheme", *block.schemes), headings, cells, screen.width)
        rows = table(f"[bold]{escape(block.title)}[/]  [dim]{block.about}[/]")
        rows.add_column("scheme", style="cyan", no_wrap=True)
        for column in block.columns[:shown]:
            rows.add_column(column.heading, justify="right", no_wrap=True)
        best = [column.best(block.rows) for column in block.columns]
        for number, (scheme, texts) in enumerate(zip(block.schemes, cells, strict=True)):
            marked = [
                f"[bold]{text}[/]" if number in best[place] else text
                for place, text in enumerate(texts[:shown])
            ]
            rows.add_row(escape(scheme), *marked)
        screen.print(rows)
        if left_out := [column.heading for column in block.columns[shown:]]:
            screen.print(f"[dim]no room for: {', '.join(left_out)}[/]")
        screen.print()


def console() -> "Console":
    """Stdout, as wide as the terminal by rich's own measure; else of 100 columns."""
    from rich.console import Console  # start-up: rich

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def table(title: str = "") -> "Table":
    """An empty table without lines, its title (in rich's markup) at the left."""
    from rich.table import Table  # start-up: rich

    empty = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    empty.title, empty.title_style, empty.title_justify = title or None, "", "left"
    return empty


def _cells(block: summary_table.Block) -> list[list[str]]:
    """The texts of a table's rows."""
    return [
        [column.with_spread(row, half) for column in block.columns]
        for row, half in zip(block.rows, block.ci95, strict=True)
    ]


def fitting(
    names: Sequence[str], headings: Sequence[str], cells: Sequence[Sequence[str]], width: int
) -> int:
    """How many of a table's columns fit next to the names of its rows; at least one."""
    used, gap = max(map(len, names)), 2
    for place, heading in enumerate(headings):
        used += gap + max(len(heading), *(len(row[place]) for row in cells))
        if used > width:
            return max(place, 1)
    return len(headings)
