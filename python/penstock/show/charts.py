# SPDX-License-Identifier: Apache-2.0
"""What a figure shows, apart from how it is drawn.

`page.js` draws a chart on the page, and `drawing` in a file for papers.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar

from penstock.show.style import DASHES, SERIES, Look

Numbers = Sequence[float | None]
_DIGITS = 5


@dataclass(frozen=True)
class Axis:
    """An axis: its label, the quantity of its numbers, and its scale."""

    label: str
    unit: str = ""
    """`s`, `b/s` or `B` gets prefixes; `%` none; empty for numbers."""
    log: bool = False
    names: tuple[str, ...] = ()
    """Instead of the numbers 0, 1, 2, ... of this axis."""
    ticks: tuple[float, ...] = ()
    """Where it has labels; empty: anywhere."""
    least: float | None = None
    greatest: float | None = None


@dataclass(frozen=True)
class Series:
    """A line, steps, dots, or specks: dots for a thousand values."""

    name: str
    look: Look
    x: Numbers
    y: Numbers
    kind: Literal["line", "step", "dots", "specks"] = "line"
    low: Numbers | None = None
    high: Numbers | None = None
    """A band about the line, from `low` to `high`."""
    open_end: str = ""
    """What the last point leaves out, as `3 of 60 unfinished`: it is drawn as an open mark."""
    scheme: str = ""
    """That the page's scheme picker knows it by; default: the name."""
    dodge: float = 0.0
    """How far its marks are moved along x, in widths of the plot: others would hide them."""


@dataclass(frozen=True)
class Panel:
    """One plot of a chart."""

    series: tuple[Series, ...]
    title: str = ""
    scheme: str = ""
    """The only scheme that it shows, if it is one."""


@dataclass(frozen=True)
class Chart:
    """One or more plots with the same axes."""

    section: str
    name: str
    """Its file's name, without suffix."""
    title: str
    meaning: str
    """One sentence: how to read it."""
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    linked: str = ""
    """Charts of the same name are zoomed together along x."""
    is_grid: bool = False
    """Its plots stand next to each other, not below each other as strips."""
    guides: tuple[tuple[float, str], ...] = ()
    """Values of y that are marked by a line and a label, and on each curve by a dot."""

    def as_json(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {
            "name": self.name,
            "x": asdict(self.x),
            "y": asdict(self.y),
            "linked": self.linked,
            "isGrid": self.is_grid,
            "guides": self.guides,
            "panels": [
                {
                    "title": panel.title,
                    "scheme": panel.scheme,
                    "series": [_as_json(series) for series in panel.series],
                }
                for panel in self.panels
            ],
        }


@dataclass(frozen=True)
class Bars:
    """Rows of stacked bars, as drops by their reason: on the page HTML."""

    section: str
    name: str
    title: str
    meaning: str
    label: str
    """Of the axis."""
    parts: tuple[str, ...]
    rows: dict[str, tuple[float, ...]]
    """Of each scheme a number for each part."""
    unit: str = ""
    """`%`: the numbers are shares of 1."""
    sums: dict[str, str] = field(default_factory=dict)
    """What stands at the end of each row, if not its sum."""

    @property
    def longest(self) -> float:
        """The sum of the longest row."""
        return max(map(sum, self.rows.values()))


@dataclass(frozen=True)
class Heat:
    """A table of numbers for each scheme, coloured by them."""

    section: str
    name: str
    title: str
    meaning: str
    label: str
    x: str
    y: str
    xs: tuple[str, ...]
    ys: tuple[str, ...]
    cells: dict[str, tuple[tuple[tuple[float | None, str], ...], ...]]
    """Of each scheme a row for each y, of a number and its text for each x."""

    def depth(self, value: float | None) -> float:
        """Where a number lies among all of them, from 0 to 1; by its logarithm if they are wide."""
        rows = (row for rows in self.cells.values() for row in rows)
        known = [number for row in rows for number, _ in row if number is not None]
        if value is None or min(known) == max(known):
            return 0.0
        is_log = min(known) > 0 and max(known) > 30 * min(known)
        least, here, greatest = (
            math.log(number) if is_log else number for number in (min(known), value, max(known))
        )
        return (here - least) / (greatest - least)


Figure = Chart | Bars | Heat
Drawn = TypeVar("Drawn", Chart, Figure)
_LONGEST = 100  # characters of a file's name, without suffix


def file_name(figure: str) -> str:
    """The name of a figure's files, without what stands for their kind.

    A size class follows a point, which the names of traffics cannot have.
    """
    return re.sub(r"[^\w.]+", "-", figure.replace("/", "."))[:_LONGEST]


def distinct(figures: Iterable[Drawn]) -> list[Drawn]:
    """The figures, with a number after the name of each whose files would be those of another."""
    used: set[str] = set()
    made = []
    for figure in figures:
        name, number = figure.name, 1
        while file_name(name).lower() in used:
            number += 1
            ending = f"-{number}"
            name = figure.name[: _LONGEST - len(ending)] + ending
        used.add(file_name(name).lower())
        made.append(replace(figure, name=name))
    return made


def _as_json(series: Series) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": series.name,
        "scheme": series.scheme or series.name,
        "ink": SERIES[series.look.ink].name,
        "dash": dash_of(series.look),
        "kind": series.kind,
        "x": _rounded(series.x),
        "y": _rounded(series.y),
    }
    if series.low is not None and series.high is not None:
        made |= {"low": _rounded(series.low), "high": _rounded(series.high)}
    if series.open_end:
        made["open"] = series.open_end
    if series.dodge:
        made["dodge"] = round(series.dodge, 4)
    return made


def dash_of(look: Look) -> list[float]:
    """The lengths of a look's dashes and gaps, in widths of its line; empty for a whole line."""
    return [] if look.dashes == DASHES[0] else list(look.dashes[1])


def _rounded(numbers: Numbers) -> list[float | None]:
    return [None if n is None else float(f"{n:.{_DIGITS}g}") for n in numbers]
