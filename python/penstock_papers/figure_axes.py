# SPDX-License-Identifier: Apache-2.0
"""Where the runs of an `[over]` stand in a figure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.show.drawing import shortened

_LETTERS = 42  # of the smallest type, beside each other below a plot


@dataclass(frozen=True)
class Grid:
    """The runs by the values that vary."""

    xs: list[object]
    ys: list[object]
    panels: dict[str, list[tuple[float, str]]]
    """For each combination of the other values (its name): x as a number, and the run."""
    cells: dict[tuple[int, int], str]
    """With `y`: the run at each place of `xs` and `ys`."""
    is_named: bool
    """Whether the x are names, placed evenly, and no numbers."""

    @classmethod
    def of(
        cls, places: Mapping[str, Mapping[str, object]], runs: Iterable[str], x: str, y: str = ""
    ) -> "Grid":
        """Of these runs."""
        at = {run: places[run] for run in runs}
        xs = list(dict.fromkeys(place[x] for place in at.values()))
        ys = list(dict.fromkeys(place[y] for place in at.values())) if y else []
        numbers = _numbers(xs)
        panels: dict[str, list[tuple[float, str]]] = {}
        cells = {}
        for run, place in at.items():
            others = [f"{path.rpartition('.')[2]} {v}" for path, v in place.items() if path != x]
            index = xs.index(place[x])
            number = numbers[index] if numbers else index
            panels.setdefault(", ".join(others), []).append((number, run))
            if y:
                cells[index, ys.index(place[y])] = run
        return cls(
            xs, ys, {name: sorted(line) for name, line in panels.items()}, cells, not numbers
        )


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


def label(axes: Axes, grid: Grid) -> None:
    """Names the places of an axis that has no numbers."""
    if grid.is_named:
        name(axes, [str(x) for x in grid.xs])


def name(axes: Axes, names: list[str]) -> None:
    """Names the places 0, 1, ... of the x axis; upright where they would meet."""
    said = [shortened(one, 20) for one in names]
    room = _LETTERS / max(len(said), 1) - 1
    rotation = 90 if max(map(len, said), default=0) > room else 0
    axes.set_xticks(range(len(said)), said, rotation=rotation)


def _numbers(values: list[object]) -> list[float]:
    """The numbers of values that all have one unit, as `20 packets`; empty if they have not."""
    words = [str(value).split(" ", 1) for value in values]
    if len({tuple(word[1:]) for word in words}) > 1:
        return []
    try:
        return [float(word[0]) for word in words]
    except ValueError:
        return []
