# SPDX-License-Identifier: Apache-2.0
"""The figures of a sweep: lines over one swept key, heat-maps over two."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from matplotlib import colors
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, NullLocator

from penstock import metrics
from penstock.show import style
from penstock.show.drawing import Drawing, drawing, label_log, legend, plot, shortened
from penstock.sweep.means import Shown, value_text

TOO_MANY = "Three or more values are swept: there is the table, but no figure of it."
_TICKS = 8  # more values than this have no tick each
_WIDE = 4  # so many have room below a panel of a heat-map


def draw(results: Sequence[Shown]) -> Iterator[Drawing]:
    """A figure for each number; none where three or more keys are swept."""
    with mpl.rc_context(style.MATPLOTLIB):
        for result in results:
            if result.known() and len(result.swept) <= 2:
                yield _lines(result) if len(result.swept) == 1 else _heat(result)


def is_geometric(values: Sequence[Any]) -> bool:
    """Whether numbers grow by one factor, so that a logarithmic axis spreads them evenly."""
    if len(values) < 3 or not all(isinstance(v, int | float) and v > 0 for v in values):
        return False
    factors = [later / earlier for earlier, later in pairwise(values)]
    steps = [later - earlier for earlier, later in pairwise(values)]
    return bool(max(steps) > 1.5 * min(steps) and max(factors) < 1.8 * min(factors))


def _lines(result: Shown) -> Drawing:
    ((column, key),) = result.swept.items()
    values = [point[0] for point in result.points]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    places: list[Any] = values if numeric else list(range(len(values)))
    figure, axes = plot()
    for index, scheme in enumerate(result.schemes):
        cells = [result.cells.get((point, scheme)) for point in result.points]
        means = [math.nan if c is None or c.value is None else c.value for c in cells]
        halves = [0.0 if c is None else c.half or 0.0 for c in cells]
        colour, dashes = style.series(index)
        low = [mean - half for mean, half in zip(means, halves, strict=True)]
        high = [mean + half for mean, half in zip(means, halves, strict=True)]
        axes.fill_between(places, low, high, color=colour, alpha=0.2, lw=0)
        axes.plot(places, means, color=colour, linestyle=dashes, marker=".", label=scheme)
    axes.set(xlabel=key, ylabel=result.name)
    known = result.known()
    if min(known) > 0 and max(known) > 30 * min(known):
        axes.set_yscale("log")
        label_log(axes.yaxis, _formatter(result.name))
    else:
        axes.set_ylim(bottom=min(0.0, *known))
        axes.yaxis.set_major_formatter(_formatter(result.name))
    if is_geometric(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if len(values) <= _TICKS or not numeric:
        axes.xaxis.set_major_locator(FixedLocator(places))
        labels = dict(zip(places, (value_text(column, v) for v in values), strict=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: labels.get(place, "")))
    else:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: value_text(column, float(v))))
    legend(figure, axes)
    meaning = "Each point is the mean over the seeds, the band its 95 % confidence interval"
    return _drawing(figure, result, meaning)


def _heat(result: Shown) -> Drawing:
    (x_column, x_key), (y_column, y_key) = result.swept.items()
    xs = list(dict.fromkeys(point[0] for point in result.points))
    ys = list(dict.fromkeys(point[1] for point in result.points))
    cells = {at: cell.value for at, cell in result.cells.items()}
    known = result.known()
    log = min(known) > 0 and max(known) > 30 * min(known)
    norm = (colors.LogNorm if log else colors.Normalize)(min(known), max(known))
    rows = len(result.schemes)
    figure = Figure(figsize=(style.WIDTH_INCHES, 1.1 * rows + 1.0), layout="constrained")
    grid = figure.subplots(rows, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, scheme in zip(grid, result.schemes, strict=True):
        means = [[cells.get(((x, y), scheme)) for x in xs] for y in ys]
        numbers = [[math.nan if mean is None else mean for mean in row] for row in means]
        drawn = axes.pcolormesh(numbers, norm=norm, cmap="viridis_r")
        axes.set_title(shortened(scheme, 32), loc="left", pad=2)
        axes.grid(visible=False)
        for axis, column, values in ((axes.xaxis, x_column, xs), (axes.yaxis, y_column, ys)):
            every = -(-len(values) // (_WIDE if axis is axes.xaxis else _TICKS))
            axis.set_ticks(
                [number + 0.5 for number in range(0, len(values), every)],
                [value_text(column, value) for value in values[::every]],
            )
    figure.colorbar(
        drawn, ax=grid, location="top", aspect=40, format=_formatter(result.name), label=result.name
    )
    figure.supxlabel(x_key, fontsize=9)
    figure.supylabel(y_key, fontsize=9)
    meaning = "Each cell is the mean over the seeds; all schemes share one scale of colours"
    return _drawing(figure, result, meaning)


def _formatter(name: str) -> Any:  # noqa: ANN401 (of matplotlib)
    if unit := metrics.axis_unit(name):
        return EngFormatter(unit, sep=" ")
    return FuncFormatter(lambda value, _: f"{value:g}")


def _drawing(figure: Figure, result: Shown, meaning: str) -> Drawing:
    if any(cell.unfinished for cell in result.cells.values()):
        meaning += "; where more than 1 % of the flows did not end there is a gap"
    over = " and ".join(result.swept.values())
    return drawing(figure, f"{result.name} over {over}", f"sweep-{result.name}", "", f"{meaning}.")
