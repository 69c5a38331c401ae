# SPDX-License-Identifier: Apache-2.0
"""What a figure of the analysis shows: panels of lines, as `figure_data` keeps them."""

from collections.abc import Iterable, Sequence
from typing import Any

from penstock_papers.analysis.delay import Array

Panel = dict[str, Any]
MOST = 400
"""Most points of a line; of more, evenly chosen ones are shown."""


def line(
    name: str, x: Array | Sequence[float], y: Array | Sequence[float], colour: int, mark: str = ""
) -> Panel:
    """A line, or with `mark` (as matplotlib has it) its points only; the name is for the legend."""
    step = -(-len(x) // MOST) or 1
    return {"name": name, "x": x[::step], "y": y[::step], "colour": colour, "mark": mark}


def panel(
    lines: Iterable[Panel],
    limits: tuple[float | None, float | None],
    *,
    title: str = "",
    levels: Sequence[float] = (),
) -> Panel:
    """A panel with the limits of its y axis, and levels that are marked on it."""
    return {"title": title, "lines": list(lines), "levels": levels, "limits": limits}
