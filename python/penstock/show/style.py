# SPDX-License-Identifier: Apache-2.0
"""Colours and type of the figures, in print and on the page.

A figure is drawn once, in the light colours. On the page each of them becomes a CSS variable, so
that one figure serves light and dark.
"""

import json
import re
import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from penstock import _native


class Ink(NamedTuple):
    """A colour: its CSS variable, and its value on light and on dark."""

    name: str
    light: str
    dark: str


TEXT = Ink("ink", "#1f2430", "#e6e8ee")
QUIET = Ink("quiet", "#6a7180", "#9aa3b5")
GRID = Ink("grid", "#e3e6ec", "#2d3341")

# Near Okabe and Ito's colours, each with a contrast above 3 on the page. Lightness keeps any two
# apart for the colour-blind too: seen without red or green cones they differ by 15 in CIELAB.
SERIES = (
    Ink("s0", "#556d75", "#858c95"),
    Ink("s1", "#9d5a00", "#fab737"),
    Ink("s2", "#2174b4", "#4997ce"),
    Ink("s3", "#0b9c70", "#25c598"),
    Ink("s4", "#c56a9e", "#e994c5"),
    Ink("s5", "#e76e1c", "#f5853f"),
    Ink("s6", "#4a41a6", "#a195fd"),
    Ink("s7", "#876735", "#cead6c"),
)
INKS = (TEXT, QUIET, GRID, *SERIES)
DASHES: tuple[Any, ...] = ("-", (0, (7, 1.5)), (0, (6, 1.5, 1.2, 1.5)), (0, (2, 1)))

_BLACK = "#000000"  # what matplotlib takes where no colour is given
GROUND = "#ffffff"  # of a figure's file, so that it reads on any page

WIDTH_INCHES = 3.4
"""Of a figure: the column of a paper, and on a phone wide enough to read without zooming."""
SMALL = 8.5
"""The smallest type of a figure, in points: 12 pixels on the page, even on a phone."""

MATPLOTLIB: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET.light,
    "axes.grid": True,
    "axes.labelcolor": TEXT.light,
    "axes.formatter.min_exponent": 4,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": GRID.light,
    "grid.linewidth": 0.7,
    "axes.titlesize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.labelcolor": TEXT.light,
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "penstock",
    "text.color": TEXT.light,
    "xtick.color": QUIET.light,
    "xtick.labelcolor": QUIET.light,
    "xtick.labelsize": SMALL,
    "ytick.color": QUIET.light,
    "ytick.labelcolor": QUIET.light,
    "ytick.labelsize": SMALL,
}


class Look(NamedTuple):
    """How a line is drawn: the place of its colour in `SERIES`, that of its dashes in `DASHES`."""

    ink: int
    dash: int = 0

    @property
    def colour(self) -> str:
        """As files have it."""
        return SERIES[self.ink].light

    @property
    def dashes(self) -> Any:  # noqa: ANN401 (matplotlib's)
        """As matplotlib takes them."""
        return DASHES[self.dash]


# Of the families of built-in schemes in the order of `penstock schemes`: a family is a scheme with
# those whose names continue its own. No two families look alike.
_FAMILIES = (
    *(Look(0), Look(7), Look(1), Look(2, 1), Look(4, 1), Look(3, 1), Look(6, 1)),
    *(Look(2), Look(7, 1), Look(4), Look(5), Look(6), Look(3)),
)
_ALL = [Look(ink, dash) for dash in range(len(DASHES)) for ink in range(len(SERIES))]


@cache
def _built_in() -> dict[str, Look]:
    """The looks of the built-in schemes; a member of a family has its colour and other dashes."""
    looks: dict[str, Look] = {}
    heads: dict[str, int] = {}
    for name in json.loads(_native.schemes()):
        head = next((head for head in heads if name.startswith(f"{head}-")), name)
        members = heads.setdefault(head, -1) + 1
        heads[head] = members
        look = _FAMILIES[(list(heads).index(head)) % len(_FAMILIES)]
        looks[name] = Look(look.ink, (look.dash + (0, 2, 3)[members % 3]) % len(DASHES))
    return looks


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The look of each scheme: that of a built-in one always, of others as far as it is free.

    A name that is not built in has a look that follows from its letters, or the next one that no
    scheme of `names` has.
    """
    names = list(dict.fromkeys(names))
    found = {name: _built_in()[name] for name in names if name in _built_in()}
    for name in names:
        if name not in found:
            first = zlib.crc32(name.encode()) % len(_ALL)
            free = [look for look in _ALL[first:] + _ALL[:first] if look not in found.values()]
            found[name] = free[0] if free else _ALL[first]
    return {name: found[name] for name in names}


def css_colours(mode: str) -> str:
    """The declarations of the colour variables, for `light` or `dark`."""
    return " ".join(f"--{ink.name}: {getattr(ink, mode)};" for ink in INKS)


def for_page(svg: str, label: str) -> str:
    """A figure's SVG as the page holds it: colours as variables, the page's type, no names."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="\w+_\d+"', "", svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    svg = svg.replace(f"fill: {GROUND}", "fill: none", 1)  # here the page itself is the ground
    svg = svg.replace(_BLACK, f"var(--{TEXT.name})")
    for ink in INKS:
        svg = svg.replace(ink.light, f"var(--{ink.name})")
    # By the width in points the page knows how far it may shrink the figure's type.
    return re.sub(
        r'<svg (?:xmlns:xlink="[^"]*" )?width="([\d.]+)pt" height="[^"]*" ',
        rf'<svg role="img" aria-label="{label}" style="--points: \1" ',
        svg,
        count=1,
    )
