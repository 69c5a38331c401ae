# SPDX-License-Identifier: Apache-2.0
"""Tables as CSV for programs, and as Markdown for documents."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock import metric_names, missing
from penstock.show import summary_table


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV with a line of headings; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
    return text.getvalue().rstrip("\n")


def markdown(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, has_numbers: bool = True
) -> str:
    """A table in Markdown; the first column is at the left, and so are the others of texts."""
    others = "---:" if has_numbers else "---"
    lines = [headings, ["---", *[others] * (len(headings) - 1)], *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def summary(summary: dict[str, Any], form: str) -> str:
    """A run's summary: as `csv` every number of every scheme, as `md` the terminal's tables."""
    if form == "csv":
        rows = (row for result in summary["results"] for row in _numbers(result))
        return csv_text(("scheme", "number", "value", "ci95", "unfinished"), rows)
    return "\n\n".join(_block(block) for block in summary_table.blocks(summary, is_detailed=True))


def _numbers(result: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """Of each number its mean and half-width; neither where too many flows did not finish."""
    halves = metric_names.flat(result["ci95"]) if result["ci95"] else {}
    for name, value in metric_names.flat(result).items():
        owner, _, path = name.partition(".")
        group = result["groups"].get(owner)
        if group is not None and missing.is_cut_off(path, group):
            yield result["scheme"], name, None, None, True
        else:
            yield result["scheme"], name, value, halves.get(name), False


def _block(block: summary_table.Block) -> str:
    rows = [
        [scheme, *(column.with_spread(row, half) for column in block.columns)]
        for scheme, row, half in zip(block.schemes, block.rows, block.ci95, strict=True)
    ]
    headings = ["scheme", *(column.heading for column in block.columns)]
    return f"**{block.title}** {block.about}\n\n{markdown(headings, rows)}"
