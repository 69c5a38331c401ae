# SPDX-License-Identifier: Apache-2.0
"""Draws the charts of a page as files for papers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Scale
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)
from matplotlib.transforms import ScaledTranslation

from penstock import units
from penstock.show import style
from penstock.show.charts import Axis, Bars, Chart, Figure, Heat, Panel
from penstock.show.drawing import Drawing, drawing, label_log, legend, plot, shortened

_HATCHES = ("", "////", "....", "||||", "----", "xxxx", "++++")
"""Of the parts of a bar, which are all of one colour: schemes have the others."""


def save(figures: Sequence[Figure], folder: Path) -> None:
    """Writes each figure as SVG and PDF."""
    for figure in figures:
        draw(figure).save(folder)


def draw(figure: Figure) -> Drawing:
    """A figure as SVG and PDF have it."""
    with mpl.rc_context(style.MATPLOTLIB):
        made = canvas(figure)
        return drawing(made, figure.section, figure.name, figure.title, figure.meaning)


def canvas(figure: Figure) -> Canvas:
    """A figure as matplotlib has it."""
    with mpl.rc_context(style.MATPLOTLIB):
        match figure:
            case Chart():
                return _chart(figure)
            case Bars():
                return _bars(figure)
            case Heat():
                return _heat(figure)


def _chart(chart: Chart) -> Canvas:
    if len(chart.panels) == 1:
        canvas, axes = plot()
        _panel(axes, chart, chart.panels[0])
        axes.set(xlabel=chart.x.label, ylabel=chart.y.label)
        legend(canvas, axes)
        return canvas
    size = style.WIDTH_INCHES, 0.62 * len(chart.panels) + 0.5
    canvas = Canvas(figsize=size, layout="constrained")
    rows = canvas.subplots(len(chart.panels), sharex=True, sharey=True, squeeze=False)[:, 0]
    for row, panel in zip(rows, chart.panels, strict=True):
        _panel(row, chart, panel)
        row.set_title(shortened(panel.title, 32), loc="left", pad=2, weight="bold")
        row.margins(x=0)
        if not chart.x.log:
            row.xaxis.set_major_locator(MaxNLocator(5))
        if not chart.y.log:
            row.yaxis.set_major_locator(MaxNLocator(3))
    if any(len(panel.series) > 1 for panel in chart.panels):
        legend(canvas, rows[0])
    canvas.supxlabel(chart.x.label, fontsize=9)
    canvas.supylabel(chart.y.label, fontsize=9)
    return canvas


def _panel(axes: Axes, chart: Chart, panel: Panel) -> None:
    steps: Any = {"drawstyle": "steps-post"}
    for series in panel.series:
        x, y = (
            [float("nan") if number is None else number for number in numbers]
            for numbers in (series.x, series.y)
        )
        colour, dashes = series.look.colour, series.look.dashes
        if series.low is not None and series.high is not None:
            low: Any = series.low
            high: Any = series.high
            axes.fill_between(x, low, high, color=colour, alpha=0.25, lw=0)
        move = ScaledTranslation(series.dodge * style.WIDTH_INCHES, 0, axes.figure.dpi_scale_trans)
        moved: Any = {"transform": axes.transData + move}
        if series.kind == "specks":
            axes.add_patch(_specks(x, y, colour))
            axes.autoscale_view()
            axes.plot([], [], "o", markersize=3.5, color=colour, label=series.name)
        elif series.kind == "dots":
            axes.plot(x, y, "o", markersize=3.5, color=colour, label=series.name, **moved)
        else:
            kind = steps if series.kind == "step" else {}
            axes.plot(x, y, color=colour, linestyle=dashes, label=series.name, **kind)
        if series.open_end and x:
            ring: Any = {"markerfacecolor": style.GROUND, "markersize": 4, "clip_on": False}
            axes.plot(x[-1:], y[-1:], "o", color=colour, **ring, **moved)
    for axis, letter in ((chart.x, "x"), (chart.y, "y")):
        _scale(axes, letter, axis)
    for value, label in chart.guides:
        axes.axhline(value, color=style.QUIET.light, linewidth=0.6, linestyle=":")
        axes.annotate(
            label,
            (0, value),
            xycoords=("axes fraction", "data"),
            xytext=(2, 1),
            textcoords="offset points",
            color=style.QUIET.light,
            fontsize=7,
        )


def _specks(x: Sequence[float], y: Sequence[float], colour: str) -> PathPatch:
    """Dots as one path of round ends: as markers, a thousand would take 100 kB of SVG."""
    begins, rows = np.asarray(x), np.asarray(y)
    # A line without length would be left out.
    length = 1e-4 * (np.ptp(begins) or abs(begins[0]) or 1.0) if x else 0.0
    places = np.stack([begins, rows, begins + length, rows], axis=1).reshape(-1, 2)
    path = Outline(places, [Outline.MOVETO, Outline.LINETO] * len(x))
    return PathPatch(path, fill=False, linewidth=1.4, capstyle="round", color=colour)


def _scale(axes: Axes, letter: str, axis: Axis) -> None:
    scale: Scale = getattr(axes, f"{letter}axis")
    set_limits: Callable[..., Any] = getattr(axes, f"set_{letter}lim")
    low, high = ("left", "right") if letter == "x" else ("bottom", "top")
    form = _form(axis)
    if axis.log:
        getattr(axes, f"set_{letter}scale")("log")
        label_log(scale, form)
    else:
        scale.set_major_formatter(form)
    limits = {low: axis.least, high: axis.greatest}
    set_limits(**{side: value for side, value in limits.items() if value is not None})
    if axis.ticks:
        scale.set_major_locator(FixedLocator(axis.ticks))
        scale.set_minor_locator(NullLocator())


def _form(axis: Axis) -> Any:  # noqa: ANN401 (of matplotlib)
    if axis.names:
        return FuncFormatter(lambda place, _: dict(enumerate(axis.names)).get(place, ""))
    if axis.unit == "%":
        return PercentFormatter(1.0, symbol=" %")
    if axis.unit:
        return EngFormatter(axis.unit, sep=" ")
    return FuncFormatter(lambda value, _: f"{value:g}")


def _bars(bars: Bars) -> Canvas:
    names = list(bars.rows)
    canvas, axes = plot(height=0.26 * len(names) + 0.6)
    left = [0.0] * len(names)
    for place, part in enumerate(bars.parts):
        widths = [counts[place] for counts in bars.rows.values()]
        axes.barh(
            range(len(names)),
            widths,
            left=left,
            height=0.62,
            label=part,
            color=style.QUIET.light if place == 0 else style.GROUND,
            edgecolor=style.QUIET.light,
            hatch=_HATCHES[place % len(_HATCHES)],
            linewidth=0.7,
        )
        left = [begun + width for begun, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelcolor=style.TEXT.light)
    axes.set_yticks(range(len(names)), [shortened(name, 24) for name in names])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    form = PercentFormatter(1.0, symbol=" %") if bars.unit else None
    axes.xaxis.set_major_formatter(form or FuncFormatter(lambda value, _: units.count(value)))
    axes.set_xlabel(bars.label)
    legend(canvas, axes)
    return canvas


def _heat(heat: Heat) -> Canvas:
    size = style.WIDTH_INCHES, 1.1 * len(heat.cells) + 0.7
    canvas = Canvas(figsize=size, layout="constrained")
    grid = canvas.subplots(len(heat.cells), sharex=True, sharey=True, squeeze=False)[:, 0]
    shades = colors.LinearSegmentedColormap.from_list("", [style.GROUND, style.SERIES[2].light])
    for axes, (scheme, rows) in zip(grid, heat.cells.items(), strict=True):
        depths = [[0.6 * heat.depth(value) for value, _ in row] for row in rows]
        axes.pcolormesh(depths, cmap=shades, vmin=0, vmax=1)
        for y, row in enumerate(rows):
            for x, (_, text) in enumerate(row):
                if len(heat.xs) <= 6:
                    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7)
        axes.set_title(shortened(scheme, 32), loc="left", pad=2)
        axes.grid(visible=False)
        for axis, names in ((axes.xaxis, heat.xs), (axes.yaxis, heat.ys)):
            every = -(-len(names) // (4 if axis is axes.xaxis else 8))
            axis.set_ticks([n + 0.5 for n in range(0, len(names), every)], names[::every])
    canvas.suptitle(heat.label, fontsize=9)
    canvas.supxlabel(heat.x, fontsize=9)
    canvas.supylabel(heat.y, fontsize=9)
    return canvas
