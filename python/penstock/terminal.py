# SPDX-License-Identifier: Apache-2.0
"""What a run looks like in a terminal: a line of progress, then tables that fit 100 columns."""

import sys
import time
from types import TracebackType
from typing import Any, Self, TextIO

from penstock import columns

_BAR = 30


class Progress:
    """One line on stderr, rewritten in place; silent where stderr is no terminal."""

    def __init__(self, stream: TextIO | None = None, prefix: str = "") -> None:
        """Begins to count the time; `prefix` goes before every label."""
        self._prefix = prefix
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()
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
        """Shows the fraction done, what is being done, and how long it will yet take."""
        if not self._shown:
            return
        passed = time.monotonic() - self._begun
        left = f"{passed / fraction - passed:.0f} s left" if fraction > 0.02 and passed > 1 else ""
        bar = ("█" * int(fraction * _BAR)).ljust(_BAR, "░")
        self._stream.write(f"\r\x1b[2K{bar} {fraction:4.0%}  {self._prefix}{label}  {left}")
        self._stream.flush()


def show(summary: dict[str, Any]) -> None:
    """Prints the tables of a summary, the best value of each column in bold."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    for block in columns.blocks(summary):
        table = Table(
            title=f"[bold]{escape(block.title)}[/]  [dim]{block.about}[/]",
            title_justify="left",
            title_style="",
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
        )
        table.add_column("scheme", style="cyan", no_wrap=True)
        for column in block.columns:
            table.add_column(column.heading, justify="right", no_wrap=True)
        best = [column.best(block.rows) for column in block.columns]
        for number, (scheme, row) in enumerate(zip(block.schemes, block.rows, strict=True)):
            texts = [column.with_spread(row, block.ci95[number]) for column in block.columns]
            cells = [
                f"[bold]{text}[/]" if number in best[place] else text
                for place, text in enumerate(texts)
            ]
            table.add_row(escape(scheme), *cells)
        console.print(table, "")
