# SPDX-License-Identifier: Apache-2.0
"""The tables of a comparison in the terminal."""

from dataclasses import asdict, fields
from itertools import groupby

from rich.markup import escape

from penstock.comparisons.comparison import Comparison, Line
from penstock.show import plain, terminal


def show(comparison: Comparison) -> None:
    """Prints the settings that differ, then a table for each group of each scheme."""
    console = terminal.console()
    if comparison.settings:
        table = terminal.table("[bold]Settings that differ[/]")
        for heading in ("", *comparison.names):
            table.add_column(escape(heading), overflow="fold")
        for setting in comparison.settings:
            table.add_row(*map(escape, (setting.key, *setting.values)))
        console.print(table)
        console.print()
    for (run, scheme, group), lines in groupby(
        comparison.lines, lambda line: (line.run, line.scheme, line.group)
    ):
        table = terminal.table(f"[cyan]{escape(scheme)}[/]  [bold]{escape(group)}[/]")
        table.add_column("", min_width=12)
        for heading in (comparison.names[0], run, "ratio"):
            table.add_column(escape(heading), justify="right", no_wrap=True)
        table.add_column("")
        for line in filter(lambda line: line.is_shown, lines):
            *texts, verdict = line.shown()
            table.add_row(line.measure, *texts, _coloured(line, verdict))
        console.print(table)
        console.print()
    for sentence in comparison.sentences():
        console.print(escape(sentence))


def _coloured(line: Line, verdict: str) -> str:
    return f"[red]{verdict}[/]" if line.agrees is False else f"[dim]{verdict}[/]"


def text(comparison: Comparison, form: str) -> str:
    """The numbers as CSV, or as a table in Markdown."""
    if form == "csv":
        rows = [tuple(asdict(line).values()) for line in comparison.lines]
        return plain.csv_text([field.name for field in fields(Line)], rows)
    cells = [
        (f"{line.scheme}, {line.group}: {line.measure}", line.run, *line.shown())
        for line in comparison.lines
        if line.is_shown
    ]
    return plain.markdown(("number", "run", comparison.names[0], "there", "ratio", ""), cells)
