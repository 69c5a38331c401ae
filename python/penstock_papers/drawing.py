# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of an experiment as the paper did, from `figure_data`: one colour a scheme."""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from penstock import metric_names
from penstock.show import drawing as report
from penstock.show import style
from penstock_papers import figure_axes, figure_data, small_svg
from penstock_papers.claims import Runs
from penstock_papers.experiment import Experiment, Figure
from penstock_papers.figure_data import Data
from penstock_papers.reproduction import Drawn

_HEIGHT = 2.0  # of one of several panels, in inches
_NAME = 24  # the longest title of a scheme that stands in a legend


def draw(made: Experiment, runs: Runs) -> Iterator[Drawn]:
    """All figures of an experiment; one whose runs or schemes were left out is left out."""
    for figure in made.figures:
        data = figure_data.collect(figure, made, runs)
        if data is not None:
            yield redraw(figure, made, data)


def name_of(figure: Figure, made: Experiment) -> str:
    """The name of a figure's files."""
    return f"{made.id}-{figure.name}" if len(made.figures) > 1 else made.id


def redraw(figure: Figure, made: Experiment, data: Data) -> Drawn:
    """A figure from its numbers."""
    names = {scheme: _name(made, scheme) for scheme in data.get("schemes", {})}
    with mpl.rc_context(style.MATPLOTLIB):
        canvas = _KINDS[figure.kind](_Plot(figure, data, names))
        drawing = report.drawing(
            canvas, made.title, name_of(figure, made), figure.title, figure.meaning
        )
        is_large = len(small_svg.small(drawing.svg).encode()) > small_svg.MOST_BYTES
        return Drawn(drawing, figure.where, data, _png(canvas) if is_large else b"")


@dataclass(frozen=True)
class _Plot:
    """What a figure is drawn of."""

    figure: Figure
    data: Data
    names: Mapping[str, str]
    """Of the schemes, as the paper calls them."""

    @property
    def schemes(self) -> dict[str, style.Look]:
        """The colour and dashes of each scheme."""
        return style.looks(self.data["schemes"])


def _name(made: Experiment, scheme: str) -> str:
    title = made.document.get("scheme", {}).get(scheme, {}).get("title", "")
    return made.names.get(scheme) or (title if 0 < len(title) <= _NAME else scheme)


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
    unit = metric_names.axis_unit(f"flows.{figure.measure.field}") if form else None
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
    canvas, panels = _panels(len(plot.data["panels"]), sharex=True)
    for axes, panel in zip(panels, plot.data["panels"], strict=True):
        means: list[float] = []
        for scheme, look in plot.schemes.items():
            points = panel["series"][scheme]
            x, mean = ([point[i] for point in points] for i in (0, 1))
            half = np.array([point[2] or 0.0 for point in points])
            axes.plot(
                x,
                mean,
                color=look.colour,
                linestyle=look.dashes,
                marker="o",
                markersize=2.5,
                label=plot.names[scheme],
            )
            if half.any():
                least = 1e-3 * np.array(mean) if "y" in plot.figure.log else 0.0
                low = np.maximum(np.array(mean) - half, least)
                axes.fill_between(x, low, np.array(mean) + half, color=look.colour, alpha=0.2, lw=0)
            means += mean
        _scale(axes, plot, means)
        if panel["title"]:
            axes.set_title(panel["title"], loc="left", pad=2)
        if "ticks" in plot.data:
            figure_axes.name(axes, plot.data["ticks"])
    return _finish(canvas, panels, plot, "y")


def _scale(axes: Axes, plot: _Plot, means: list[float]) -> None:
    """Lets the means set the scale, as two seeds may give intervals far beyond them."""
    known = [mean for mean in means if mean > 0]
    if not known:
        return
    if "y" in plot.figure.log:
        axes.set_ylim(min(known) / 2, max(known) * 2)
    else:
        axes.set_ylim(0, max(known) * 1.25)


def _cdf(plot: _Plot) -> Canvas:
    canvas, panels = _panels(len(plot.data["panels"]), sharex=True, sharey=True)
    for axes, panel in zip(panels, plot.data["panels"], strict=True):
        greatest = max((x[-1] for x, *_ in panel["series"].values() if x), default=0.0)
        for scheme, look in plot.schemes.items():
            x, known, total = panel["series"][scheme]
            share = [(place + 1) / total for place in figure_data.places(known)]
            axes.step(
                [*x[:1], *x, greatest],
                [*([0.0] if x else []), *share, share[-1] if share else 0.0],
                where="post",
                color=look.colour,
                linestyle=look.dashes,
                label=plot.names[scheme],
            )
        if panel["title"]:
            axes.set_title(panel["title"], loc="left", pad=2)
        axes.set_ylim(0, 1.02)
    return _finish(canvas, panels, plot, "x")


def _bars(plot: _Plot) -> Canvas:
    canvas, axes = report.plot()
    clusters, means = plot.data["clusters"], []
    width = 0.8 / len(plot.schemes)
    for number, (scheme, look) in enumerate(plot.schemes.items()):
        # No number is not 0, which looks best: NaN leaves a gap.
        heights = np.array([mean for mean, _ in plot.data["series"][scheme]], dtype=float)
        offset = (number - (len(plot.schemes) - 1) / 2) * width
        axes.bar(
            [cluster + offset for cluster in range(len(clusters))],
            heights,
            width,
            yerr=[half or 0.0 for _, half in plot.data["series"][scheme]],
            error_kw={"elinewidth": 0.8, "ecolor": style.QUIET.light},
            color=look.colour,
            hatch="//" * look.dash,  # another scheme of this colour
            edgecolor=style.GROUND,
            linewidth=0,
            label=plot.names[scheme],
        )
        means += list(heights)
    _scale(axes, plot, means)
    figure_axes.name(axes, clusters)
    axes.grid(visible=False, axis="x")
    if clusters == [""]:
        axes.set_xticks([])
    return _finish(canvas, [axes], plot, "y")


def _histogram(plot: _Plot) -> Canvas:
    canvas, panels = _panels(len(plot.schemes), sharex=True, sharey=True)
    for axes, (scheme, look) in zip(panels, plot.schemes.items(), strict=True):
        counts = plot.data["series"][scheme]
        edges = np.linspace(0, plot.data["greatest"], len(counts) + 1)
        axes.stairs(counts, edges, fill=True, color=look.colour)
        axes.set_title(plot.names[scheme], loc="left", pad=2)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    return _finish(canvas, panels, plot, "x")


def _heat(plot: _Plot) -> Canvas:
    """Opacity instead of a scale of colours: it reads on light and dark."""
    canvas, panels = _panels(len(plot.schemes), sharex=True, sharey=True)
    xs, ys = plot.data["xs"], plot.data["ys"]
    for axes, (scheme, look) in zip(panels, plot.schemes.items(), strict=True):
        cells = plot.data["series"][scheme]
        values = [value for *_, value in cells]
        least, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
        for x, y, value in cells:
            depth = 0.03 + 0.32 * ((value - least) / span if span else 0.0)
            axes.add_patch(
                mpl.patches.Rectangle(
                    (x - 0.5, y - 0.5), 1, 1, color=look.colour, alpha=depth, lw=0
                )
            )
            text = replace(plot.figure.measure, scheme=scheme).show(value)
            axes.text(x, y, text.replace(" ", "\n"), ha="center", va="center", fontsize=style.SMALL)
        axes.set(xlim=(-0.5, len(xs) - 0.5), ylim=(-0.5, len(ys) - 0.5))
        axes.set_xticks(range(len(xs)), xs)
        axes.set_yticks(range(len(ys)), ys)
        axes.grid(visible=False)
        axes.set_title(plot.names[scheme], loc="left", pad=2)
    return _finish(canvas, panels, plot, "")


def _analysis(plot: _Plot) -> Canvas:
    """Lines of a model: a line is dashed, or of marks only."""
    canvas, panels = _panels(len(plot.data["panels"]), sharex=True, sharey=True)
    for axes, panel in zip(panels, plot.data["panels"], strict=True):
        for line in panel["lines"]:
            look = style.Look(line["colour"])
            dashes = "" if line["mark"] else style.DASHES[line["colour"] % len(style.DASHES)]
            shown = {"color": look.colour, "linestyle": dashes, "marker": line["mark"]}
            axes.plot(line["x"], line["y"], markersize=3, lw=0.9, label=line["name"], **shown)
        for level in panel["levels"]:
            axes.axhline(level, color=style.QUIET.light, linewidth=0.7, linestyle=":")
        if panel["title"]:
            axes.set_title(panel["title"], loc="left", pad=2, fontsize=9)
        axes.set_ylim(*panel["limits"])
    return _finish(canvas, panels, plot, "")


_KINDS: dict[str, Callable[[_Plot], Canvas]] = {
    "line": _line,
    "cdf": _cdf,
    "bars": _bars,
    "histogram": _histogram,
    "heat": _heat,
    "analysis": _analysis,
}
