# SPDX-License-Identifier: Apache-2.0
"""The figures of an experiment, drawn as the paper drew them: one colour a scheme."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from penstock import metrics
from penstock.show import drawing as report
from penstock.show import style
from penstock_papers import figure_axes, measures, small_svg
from penstock_papers.claims import Runs
from penstock_papers.experiment import Experiment, Figure
from penstock_papers.figure_axes import Grid
from penstock_papers.reproduction import Drawn
from penstock_papers.values import Value

POINTS = 80
"""Most points of a distribution's curve, so that the file stays small."""
_HEIGHT = 2.0  # of one of several panels, in inches
_NAME = 24  # the longest title of a scheme that stands in a legend


@dataclass(frozen=True)
class _Plot:
    """What a figure is drawn of."""

    figure: Figure
    runs: Runs
    schemes: dict[str, int]
    """Of those drawn the place in the scenario, which gives the colour."""
    names: dict[str, str]
    places: dict[str, dict[str, object]]

    def value(self, scheme: str, run: str) -> Value | None:
        """The figure's measure."""
        return replace(self.figure.measure, scheme=scheme).of(self.runs[run])

    def members(self, scheme: str, run: str) -> pl.Series:
        """The figure's column of the flows' table, or its statistic of each client."""
        one = self.figure.measure
        frames = measures.samples(self.runs[run], scheme, one.group, one.field, one.each)
        return pl.concat(frames)["value"] if frames else pl.Series([], dtype=pl.Float64)


def draw(made: Experiment, runs: Runs) -> Iterator[Drawn]:
    """All figures of an experiment; one whose runs or schemes were left out is left out."""
    for figure in made.figures:
        name = f"{made.id}-{figure.name}" if len(made.figures) > 1 else made.id
        with mpl.rc_context(style.MATPLOTLIB):
            canvas = _canvas(figure, made, runs)
            if canvas is not None:
                drawing = report.drawing(canvas, made.title, name, figure.title, figure.meaning)
                is_large = len(small_svg.small(drawing.svg).encode()) > small_svg.MOST_BYTES
                yield Drawn(drawing, figure.where, _png(canvas) if is_large else b"")


def _png(canvas: Canvas) -> bytes:
    """As fine as the documentation's limit allows."""
    for dpi in (150, 120, 100, 80):
        made = io.BytesIO()
        canvas.savefig(
            made, format="png", dpi=dpi, facecolor=style.GROUND, metadata={"Software": None}
        )
        if made.tell() <= small_svg.MOST_BYTES:
            break
    return made.getvalue()


def _canvas(figure: Figure, made: Experiment, runs: Runs) -> Canvas | None:
    if figure.kind == "analysis":
        drawn: Canvas = measures.analysis(figure.draw)(runs)
        return drawn
    wanted = [name for name in figure.runs or made.runs if name in runs]
    if not wanted:
        return None
    known = [result["scheme"] for result in runs[wanted[0]].summary["results"]]
    schemes = {s: known.index(s) for s in figure.schemes or known if s in known}
    if not schemes:
        return None
    names = {scheme: _name(made, scheme) for scheme in schemes}
    chosen = {name: runs[name] for name in wanted}
    return _KINDS[figure.kind](_Plot(figure, chosen, schemes, names, made.places))


def _name(made: Experiment, scheme: str) -> str:
    title = made.document.get("scheme", {}).get(scheme, {}).get("title", "")
    return made.names.get(scheme) or (title if 0 < len(title) <= _NAME else scheme)


def _panels(number: int, **shared: Any) -> tuple[Canvas, list[Axes]]:  # noqa: ANN401
    """One plot, or a few below each other."""
    if number == 1:
        canvas, axes = report.plot()
        return canvas, [axes]
    columns = 1 if number <= 3 else 2
    rows = -(-number // columns)
    size = (style.WIDTH_INCHES, (_HEIGHT if columns == 1 else 0.75 * _HEIGHT) * rows)
    canvas = Canvas(figsize=size, layout="constrained")
    grid = list(canvas.subplots(rows, columns, squeeze=False, **shared).flat)
    for axes in grid[number:]:
        axes.set_axis_off()
    return canvas, grid[:number]


def _finish(canvas: Canvas, panels: list[Axes], plot: _Plot, form: str) -> Canvas:
    """Labels with units, scales, and the legend."""
    figure = plot.figure
    unit = metrics.axis_unit(f"flows.{figure.measure.field}")
    for axes in panels:
        for letter in "xy":
            own = unit if letter == form else None
            figure_axes.scale(axes, letter, own, log=letter in figure.log)
    y_label = figure.y_label
    if figure.kind == "cdf" and not y_label:
        y_label = "share of clients" if figure.measure.each else "share of flows"
    if len(panels) > 1:
        canvas.supxlabel(figure.x_label, fontsize=9)
        canvas.supylabel(y_label, fontsize=9)
    else:
        panels[0].set(xlabel=figure.x_label, ylabel=y_label)
    report.legend(canvas, panels[0])
    return canvas


def _line(plot: _Plot) -> Canvas:
    grid = Grid.of(plot.places, plot.runs, plot.figure.x)
    canvas, panels = _panels(len(grid.panels), sharex=True)
    for axes, (title, cells) in zip(panels, grid.panels.items(), strict=True):
        for scheme, place in plot.schemes.items():
            points = [(x, plot.value(scheme, run)) for x, run in cells]
            known = [(x, value) for x, value in points if value is not None]
            colour, dashes = style.series(place)
            x = np.array([x for x, _ in known])
            axes.plot(
                x,
                [value.mean for _, value in known],
                color=colour,
                linestyle=dashes,
                marker="o",
                markersize=2.5,
                label=plot.names[scheme],
            )
            if any(value.half for _, value in known):
                ends = np.array([value.ends for _, value in known])
                least = 1e-3 * ends.mean(axis=1) if "y" in plot.figure.log else 0.0
                low = np.maximum(ends[:, 0], least)
                axes.fill_between(x, low, ends[:, 1], color=colour, alpha=0.2, lw=0)
        _fit(axes, plot)
        if title:
            axes.set_title(title, loc="left", pad=2)
        figure_axes.label(axes, grid)
    return _finish(canvas, panels, plot, "y")


def _fit(axes: Axes, plot: _Plot) -> None:
    """Lets the means set the scale, as two seeds may give intervals far beyond them."""
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
    _scale(axes, plot, np.concatenate(lines))


def _scale(axes: Axes, plot: _Plot, means: Any) -> None:  # noqa: ANN401 (an array)
    means = means[means > 0]
    if not len(means):
        return
    if "y" in plot.figure.log:
        axes.set_ylim(means.min() / 2, means.max() * 2)
    else:
        axes.set_ylim(0, means.max() * 1.25)


def _cdf(plot: _Plot) -> Canvas:
    canvas, panels = _panels(len(plot.runs), sharex=True, sharey=True)
    for axes, run in zip(panels, plot.runs, strict=True):
        columns = {scheme: plot.members(scheme, run) for scheme in plot.schemes}
        greatest = _greatest(columns.values())
        for scheme, place in plot.schemes.items():
            x, share = _distribution(columns[scheme])
            colour, dashes = style.series(place)
            axes.step(
                [*x, greatest],
                [*share, share[-1] if len(share) else 0.0],
                where="post",
                color=colour,
                linestyle=dashes,
                label=plot.names[scheme],
            )
        if run:
            axes.set_title(run, loc="left", pad=2)
        axes.set_ylim(0, 1.02)
    return _finish(canvas, panels, plot, "x")


def _greatest(columns: Iterable[pl.Series]) -> float:
    return max((float(c.drop_nulls().to_numpy().max(initial=0.0)) for c in columns), default=0.0)


def _distribution(column: pl.Series) -> tuple[Any, Any]:
    """Sorted values and the share of all that is at most so great; nulls are beyond."""
    known = column.drop_nulls().sort().to_numpy()
    if not len(known):
        return known, known
    picked = np.unique(np.linspace(0, len(known) - 1, POINTS).astype(int))
    x, share = known[picked], (picked + 1) / len(column)
    return np.insert(x, 0, x[0]), np.insert(share, 0, 0.0)


def _bars(plot: _Plot) -> Canvas:
    canvas, axes = report.plot()
    heights: list[float] = []
    width = 0.8 / len(plot.schemes)
    for number, (scheme, place) in enumerate(plot.schemes.items()):
        found = [plot.value(scheme, run) for run in plot.runs]
        means = [0.0 if value is None else value.mean for value in found]
        heights += means
        axes.bar(
            [
                cluster + (number - (len(plot.schemes) - 1) / 2) * width
                for cluster in range(len(found))
            ],
            means,
            width,
            yerr=[0.0 if value is None else value.half or 0.0 for value in found],
            error_kw={"elinewidth": 0.8, "ecolor": style.QUIET.light},
            color=style.SERIES[place % len(style.SERIES)].light,
            hatch="//" * (place // len(style.SERIES)),  # colours begin again
            edgecolor=style.GROUND,
            linewidth=0,
            label=plot.names[scheme],
        )
    _scale(axes, plot, np.array(heights))
    figure_axes.name(axes, list(plot.runs))
    axes.grid(visible=False, axis="x")
    if list(plot.runs) == [""]:
        axes.set_xticks([])
    return _finish(canvas, [axes], plot, "y")


def _histogram(plot: _Plot) -> Canvas:
    """How many flows of a seed have which value, in the mean over the seeds."""
    run = next(iter(plot.runs))
    columns = {scheme: plot.members(scheme, run).drop_nulls() for scheme in plot.schemes}
    greatest = _greatest(columns.values())
    seeds = len(plot.runs[run].summary["seeds"])
    edges = np.linspace(0, greatest or 1.0, plot.figure.bins + 1)
    canvas, panels = _panels(len(columns), sharex=True, sharey=True)
    for axes, (scheme, column) in zip(panels, columns.items(), strict=True):
        counts, _ = np.histogram(column.to_numpy(), edges)
        colour = style.SERIES[plot.schemes[scheme] % len(style.SERIES)].light
        axes.stairs(counts / seeds, edges, fill=True, color=colour)
        axes.set_title(plot.names[scheme], loc="left", pad=2)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    return _finish(canvas, panels, replace(plot, schemes={}), "x")


def _heat(plot: _Plot) -> Canvas:
    """Opacity instead of a scale of colours: it reads on light and dark."""
    grid = Grid.of(plot.places, plot.runs, plot.figure.x, plot.figure.y)
    canvas, panels = _panels(len(plot.schemes), sharex=True, sharey=True)
    for axes, (scheme, place) in zip(panels, plot.schemes.items(), strict=True):
        cells = {cell: plot.value(scheme, run) for cell, run in grid.cells.items()}
        known = [value.mean for value in cells.values() if value is not None]
        least, span = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0))
        colour = style.SERIES[place % len(style.SERIES)].light
        for (x, y), value in cells.items():
            if value is None:
                continue
            depth = 0.03 + 0.32 * ((value.mean - least) / span if span else 0.0)
            axes.add_patch(
                mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, color=colour, alpha=depth, lw=0)
            )
            text = replace(plot.figure.measure, scheme=scheme).show(value.mean)
            axes.text(x, y, text.replace(" ", "\n"), ha="center", va="center", fontsize=style.SMALL)
        axes.set(xlim=(-0.5, len(grid.xs) - 0.5), ylim=(-0.5, len(grid.ys) - 0.5))
        axes.set_xticks(range(len(grid.xs)), [str(x) for x in grid.xs])
        axes.set_yticks(range(len(grid.ys)), [str(y) for y in grid.ys])
        axes.grid(visible=False)
        axes.set_title(plot.names[scheme], loc="left", pad=2)
    return _finish(canvas, panels, replace(plot, schemes={}), "")


_KINDS: dict[str, Callable[[_Plot], Canvas]] = {
    "line": _line,
    "cdf": _cdf,
    "bars": _bars,
    "histogram": _histogram,
    "heat": _heat,
}
