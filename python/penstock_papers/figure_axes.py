# SPDX-License-Identifier: Apache-2.0
"""The axes of the papers' figures: scales, units, names."""

import math

from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.show.drawing import shortened

_LETTERS = 42  # of the smallest type, in one line below a plot


def scale(axes: Axes, letter: str, unit: str | None, *, log: bool) -> None:
    """Makes an axis logarithmic, and writes its numbers with their unit, never as powers."""
    side = axes.xaxis if letter == "x" else axes.yaxis
    has_any = math.isfinite(axes.dataLim.minposx if letter == "x" else axes.dataLim.minposy)
    if log and has_any:
        (axes.set_xscale if letter == "x" else axes.set_yscale)("log")
        low, high = side.get_view_interval()
        if low > 0 and high / low < 300:  # too short for powers of ten alone
            side.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 30 else (1, 3)))
        side.set_minor_locator(NullLocator())
    if unit is not None:
        if letter == "x" and not log:
            side.set_major_locator(MaxNLocator(5))  # numbers with units are wide
        side.set_major_formatter(EngFormatter(unit, sep=" "))
    elif log and has_any:
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def name(axes: Axes, names: list[str]) -> None:
    """Names the places 0, 1, ... of the x axis; upright where they would meet."""
    labels = [shortened(one, 20) for one in names]
    room = _LETTERS / max(len(labels), 1) - 1
    rotation = 90 if max(map(len, labels), default=0) > room else 0
    axes.set_xticks(range(len(labels)), labels, rotation=rotation)
