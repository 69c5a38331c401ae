# SPDX-License-Identifier: Apache-2.0
"""Draws a fabric: of a row that is too long for a page some switches, and the others as one box."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock import units
from penstock.show.topology import Cable, Fabric, counted, listed, span

WIDTH = 760
_LEFT, _TOP, _ROW, _BOX = 170, 40, 96, 36
_IN_ROW = 6
_LETTER = 6.6  # wide, at the size that the page has


@dataclass(frozen=True)
class Box:
    """A switch, or several switches or hosts as one."""

    x: float
    """Its middle."""
    y: float
    """Its top."""
    width: float
    lines: tuple[str, ...]
    kind: str
    """`switch`, `hosts`, or `more`: switches that have no box of their own."""
    title: str
    place: int = 0
    """In its row, from 0."""
    height: int = _BOX


@dataclass(frozen=True)
class Line:
    """All cables between two boxes, as an SVG path."""

    path: str
    title: str
    is_marked: bool


@dataclass(frozen=True)
class Text:
    """How fast the cables are."""

    x: float
    y: float
    text: str
    anchor: str = "start"


@dataclass
class Picture:
    """The parts of an SVG drawing."""

    height: int
    label: str
    """For those who do not see it."""
    meaning: str
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def picture(fabric: Fabric, marked: Sequence[str] = (), why: str = "") -> Picture:
    """A fabric as a drawing.

    Args:
        fabric: what is drawn.
        marked: ports, as `left->right`, that are drawn thick; default: the measured ones.
        why: they are marked.
    """
    marked = marked or fabric.measured
    why = why or "where the queue is measured"
    meaning = "Rates and delays are those of one link"
    if marked:
        meaning += f"; thick: {listed(marked)}, {why}"
    bottom = _TOP + _ROW * len(fabric.rows)
    drawn = Picture(bottom + _BOX + 8, fabric.size, f"{meaning}.")
    ends = {end for port in marked for end in port.split("->", 1)}
    of_switch: dict[str, Box] = {}
    for number, row in enumerate(fabric.rows):
        of_switch |= _row(row, bottom - _ROW * (number + 1), ends)
    drawn.boxes += dict.fromkeys(of_switch.values())
    _draw_cables(drawn, fabric, of_switch, set(marked))
    _draw_hosts(drawn, fabric, of_switch, ends)
    return drawn


def _row(row: list[str], y: float, wanted: set[str]) -> dict[str, Box]:
    """The box of each switch of a row."""
    shown = row
    if len(row) > _IN_ROW:
        first = [name for name in row if name in wanted][: _IN_ROW - 1]
        others = [name for name in row if name not in first]
        chosen = {*first, *others[: _IN_ROW - 1 - len(first)]}
        shown = [name for name in row if name in chosen]
    hidden = [name for name in row if name not in shown]
    places = len(shown) + bool(hidden)
    room = (WIDTH - _LEFT) / places
    width = min(112.0, 0.86 * room)
    middles = [_LEFT + room * (number + 0.5) for number in range(places)]
    boxes = {
        name: Box(x, y, width, _fitting((name,), width), "switch", name, place)
        for place, (name, x) in enumerate(zip(shown, middles, strict=False))
    }
    if hidden:
        text = (f"{units.count(len(hidden))} more", _short(hidden))
        about = f"{text[0]}: {span(hidden)}"
        box = Box(middles[-1], y, width, _fitting(text, width), "more", about, len(shown))
        boxes |= dict.fromkeys(hidden, box)
    return boxes


def _draw_cables(drawn: Picture, fabric: Fabric, boxes: dict[str, Box], marked: set[str]) -> None:
    between: dict[tuple[Box, Box], list[Cable]] = defaultdict(list)
    for cable in fabric.cables:
        one, other = (boxes[end] for end in cable.ends)
        if one != other:
            between[one, other].append(cable)
    for (one, other), cables in between.items():
        ports = {f"{a}->{b}" for each in cables for a, b in (each.ends, each.ends[::-1])}
        title = f"{one.title}, {other.title}: {'; '.join(counted(each.text for each in cables))}"
        drawn.lines.append(Line(_path(one, other), title, bool(ports & marked)))
    for number, row in enumerate(fabric.rows):
        y = boxes[row[0]].y + _BOX / 2
        if number and (below := fabric.between(number, number - 1)):
            _draw_texts(drawn, below, 0, y + _ROW / 2)
        if level := fabric.between(number, number):
            is_pair = len(row) == 2
            x = (boxes[row[0]].x + boxes[row[1]].x) / 2 if is_pair else 0
            _draw_texts(drawn, level, x, y - 8 if is_pair else y, "middle" if is_pair else "start")


def _path(one: Box, other: Box) -> str:
    """Straight, but around the boxes between two of one row."""
    y1, y2 = (box.y + _BOX / 2 for box in (one, other))
    if y1 != y2 or abs(one.place - other.place) == 1:
        return f"M{one.x:.0f} {y1:.0f}L{other.x:.0f} {y2:.0f}"
    over = 2 * (_BOX / 2 + _TOP - 12)
    middle = (one.x + other.x) / 2
    return f"M{one.x:.0f} {y1:.0f}Q{middle:.0f} {y1 - over:.0f} {other.x:.0f} {y2:.0f}"


def _draw_texts(
    drawn: Picture, cables: Iterable[Cable], x: float, y: float, anchor: str = "start"
) -> None:
    texts = counted(cable.text for cable in cables)
    for number, text in enumerate(texts):
        drawn.texts.append(Text(x, y + 15 * (number + 1 - len(texts)) + 4, text, anchor))


def _draw_hosts(drawn: Picture, fabric: Fabric, boxes: dict[str, Box], marked: set[str]) -> None:
    """Below each box of a switch one of its hosts."""
    bottom = drawn.height - _BOX - 8
    below: dict[Box, list[str]] = defaultdict(list)
    cables = []
    for switch, by_link in fabric.hosts.items():
        for text, names in by_link.items():
            below[boxes[switch]] += names
            cables += [Cable((switch, name), text) for name in names]
    for box, names in below.items():
        count = f"{units.count(len(names))} host{'s' if len(names) > 1 else ''}"
        about = (count, _short(names))
        path = f"M{box.x:.0f} {box.y + _BOX:.0f}V{bottom:.0f}"
        title = f"{box.title}, {count}: {span(names)}"
        drawn.lines.append(Line(path, title, bool(marked & set(names))))
        lines = _fitting(about, box.width)
        drawn.boxes.append(Box(box.x, bottom, box.width, lines, "hosts", f"{count}: {span(names)}"))
    _draw_texts(drawn, cables, 0, bottom - (_ROW - _BOX) / 2)


def _short(names: Sequence[str]) -> str:
    """`host1-16`, but with a dash, where names differ in their numbers only."""
    first, last = (re.fullmatch(r"(.*?)(\d+)", name) for name in (names[0], names[-1]))
    if len(names) > 1 and first and last and first[1] == last[1]:
        return f"{first[0]}–{last[2]}"
    return span(names)


def _fitting(lines: tuple[str, ...], width: float) -> tuple[str, ...]:
    most = int(width / _LETTER)
    return tuple(text if len(text) <= most else f"{text[: most - 1]}…" for text in lines)
