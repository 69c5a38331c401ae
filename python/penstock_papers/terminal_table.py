# SPDX-License-Identifier: Apache-2.0
"""Tables of a reproduction for the terminal."""

from collections.abc import Sequence

from rich.markup import escape

from penstock.show import terminal
from penstock_papers import claims
from penstock_papers.reproduction import Reproduction


def table(done: Reproduction) -> None:
    """Prints an experiment's claims: published and measured."""
    console = terminal.console()
    made = done.experiment
    rows = terminal.table(f"[bold]{made.id}[/]  {escape(made.title)}")
    rows.add_column("claim", ratio=1)
    rows.add_column("published", justify="right", max_width=24)
    rows.add_column("measured", justify="right", max_width=40)
    rows.add_column("", max_width=18)
    for finding in done.findings:
        colour = {True: "green", False: "red", None: "dim"}[finding.holds]
        text = f"{finding.text} (shown: {finding.run})" if finding.run else finding.text
        rows.add_row(
            escape(text),
            escape(claims.published(finding.published)),
            finding.shown,
            f"[{colour}]{finding.verdict}[/]",
        )
    console.print(rows)
    if made.shortened:
        console.print(f"quick: {escape(made.shortened)}")
    for note in done.notes:
        console.print(escape(note))
    console.print()


def summary(done: Sequence[Reproduction]) -> str:
    """How many claims hold: by paper where there are several, and in all."""
    papers: dict[str, list[Reproduction]] = {}
    for one in done:
        papers.setdefault(one.experiment.paper, []).append(one)
    lines = []
    if len(papers) > 1:
        lines = [f"{name:<6} {_counted(members)}" for name, members in papers.items()]
    return "\n".join([*lines, f"{_counted(done)}."])


def _counted(done: Sequence[Reproduction]) -> str:
    held, judged = sum(one.held for one in done), sum(one.judged for one in done)
    left = sum(len(one.findings) for one in done) - judged
    unjudged = f" ({left} not judged)" if left else ""
    return f"{held} of {judged} claims hold{unjudged}"
