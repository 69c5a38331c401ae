# SPDX-License-Identifier: Apache-2.0
"""The figures of a sweep: lines over one swept key, coloured tables over two."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from penstock import metric_names, missing, stats, units
from penstock.show import style
from penstock.show.charts import Axis, Chart, Figure, Heat, Panel, Series
from penstock.show.style import Look
from penstock.sweeps import means
from penstock.sweeps.means import Cell, Shown, value_text

TOO_MANY = "Three or more values are swept: there is the table, but no figure of it."
_TICKS = 8  # more values than this have no tick each
_FEW = 5  # fewer seeds are drawn as dots: an interval of so few is wide and unsure
_EDGE = 0.06  # beyond the first and last value, in widths of the plot
_APART = 0.016  # from a scheme's dots and rings to those of the next, in widths of the plot


def figures(results: Sequence[Shown]) -> list[Figure]:
    """One for each number; none where three or more keys are swept."""
    return [
        _lines(result) if len(result.swept) == 1 else _heat(result)
        for result in results
        if result.known() and len(result.swept) <= 2
    ]


def is_geometric(values: Sequence[Any]) -> bool:
    """Whether numbers grow by one factor, so that a logarithmic axis spreads them evenly."""
    if len(values) < 3 or not all(isinstance(v, int | float) and v > 0 for v in values):
        return False
    factors = [later / earlier for earlier, later in pairwise(values)]
    steps = [later - earlier for earlier, later in pairwise(values)]
    return bool(max(steps) > 1.5 * min(steps) and max(factors) < 1.8 * min(factors))


def _lines(result: Shown) -> Chart:
    ((column, key),) = result.swept.items()
    values = [point[0] for point in result.points]
    is_numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    known = result.known()
    is_log = min(known) > 0 and max(known) > 30 * min(known)
    places = (
        [float(value) for value in values] if is_numeric else list(map(float, range(len(values))))
    )
    is_geometric_axis = is_geometric(values)
    least, greatest = _room(places, is_log=is_geometric_axis) if is_numeric else (None, None)
    x = Axis(
        means.key_text(key),
        units.axis_of(column) if is_numeric else "",
        log=is_geometric_axis,
        names=() if is_numeric else tuple(value_text(column, value) for value in values),
        ticks=tuple(places) if is_numeric and len(values) <= _TICKS else (),
        least=least,
        greatest=greatest,
    )
    y = Axis(
        metric_names.described(result.name),
        metric_names.axis_unit(result.name) or "",
        log=is_log,
        least=None if is_log else min(0.0, *known),
    )
    looks = style.looks(result.schemes)
    top = max([*known, *(seed for cell in result.cells.values() for seed in cell.seeds)])
    dodges = _dodges(len(looks), len(values))
    series = [
        line
        for (scheme, look), dodge in zip(looks.items(), dodges, strict=True)
        for line in _of_scheme(scheme, look, places, result, top, dodge)
    ]
    meaning = f"Each point is {_point(result)}"
    if result.seeds >= _FEW:
        meaning += ", the band the 95 % interval of a bootstrap"
    elif result.seeds > 1:
        meaning += ", the dots are the seeds"
    return Chart(*_texts(result), _meaning(result, meaning), x, y, (Panel(tuple(series)),))


def _room(places: list[float], *, is_log: bool) -> tuple[float | None, float | None]:
    """The ends of an axis with room for the marks at its first and last value."""
    low, high = min(places), max(places)
    if low == high:
        return None, None
    if is_log:
        edge = (high / low) ** _EDGE
        return low / edge, high * edge
    return low - _EDGE * (high - low), high + _EDGE * (high - low)


def _dodges(schemes: int, values: int) -> list[float]:
    """How far the marks of each scheme are moved, so that those of one value stay together."""
    apart = min(_APART, 0.8 / (schemes * values))
    return [apart * (number - (schemes - 1) / 2) for number in range(schemes)]


def _of_scheme(
    scheme: str, look: Look, places: list[float], result: Shown, top: float, dodge: float
) -> Iterator[Series]:
    """The line of a scheme, its seeds as dots if they are few, and rings for what is unfinished."""
    cells = [result.cells.get((point, scheme)) or Cell.none() for point in result.points]
    means_of = [cell.value for cell in cells]
    ends = [stats.bootstrap(cell.seeds) for cell in cells] if result.seeds >= _FEW else []
    low, high = ([end[side] for end in ends] or None for side in (0, 1))
    yield Series(scheme, look, places, means_of, low=low, high=high)
    if 1 < result.seeds < _FEW:
        dots = [(x, y) for x, cell in zip(places, cells, strict=True) for y in cell.seeds]
        xs, ys = [x for x, _ in dots], [y for _, y in dots]
        yield Series(scheme, look, xs, ys, kind="dots", dodge=dodge)
    for x, cell in zip(places, cells, strict=True):
        if cell.unfinished:
            yield Series(scheme, look, [x], [top], open_end=missing.UNFINISHED, dodge=dodge)


def _heat(result: Shown) -> Heat:
    (x_column, x_key), (y_column, y_key) = result.swept.items()
    xs = list(dict.fromkeys(point[0] for point in result.points))
    ys = list(dict.fromkeys(point[1] for point in result.points))

    def cell(x: object, y: object, scheme: str) -> tuple[float | None, str]:
        found = result.cells.get(((x, y), scheme)) or Cell.none()
        if found.unfinished:
            return None, missing.UNFINISHED
        return found.value, metric_names.shown(result.name, found.value)

    meaning = f"Each cell is {_point(result)}; all schemes share one scale of colours"
    return Heat(
        *_texts(result),
        f"{meaning}.",
        label=metric_names.described(result.name),
        x=means.key_text(x_key),
        y=means.key_text(y_key),
        xs=tuple(value_text(x_column, x) for x in xs),
        ys=tuple(value_text(y_column, y) for y in ys),
        cells={
            scheme: tuple(tuple(cell(x, y, scheme) for x in xs) for y in ys)
            for scheme in result.schemes
        },
    )


def _point(result: Shown) -> str:
    return "the mean over the seeds" if result.seeds > 1 else "a run"


def _texts(result: Shown) -> tuple[str, str, str]:
    """Section, name and title."""
    over = " and ".join(map(means.key_text, result.swept.values()))
    return f"{metric_names.described(result.name)} over {over}", f"sweep-{result.name}", ""


def _meaning(result: Shown, meaning: str) -> str:
    if any(cell.unfinished for cell in result.cells.values()):
        meaning += "; where too many flows did not end there is a ring at the top"
    return f"{meaning}."
