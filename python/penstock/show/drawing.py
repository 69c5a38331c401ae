# SPDX-License-Identifier: Apache-2.0
"""Figures as files for papers, of a column's width: SVG and PDF."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, Formatter, LogLocator, MaxNLocator, NullFormatter

from penstock import folders
from penstock.show import charts, style

# Of a legend, in ems: the length of a line before its name, and the room between columns.
_HANDLE, _GAP = 2.2, 1.2
_FEW = 6  # names that may have a line each
_TICKS = 5  # most labels of a logarithmic axis

file_name = charts.file_name


@dataclass(frozen=True)
class Drawing:
    """A figure with its texts on the page."""

    section: str
    name: str
    """Its file's name, without suffix."""
    title: str
    meaning: str
    """One sentence: how to read it."""
    svg: str
    figure: Figure

    def save(self, folder: Path) -> None:
        """Writes `NAME.svg` and `NAME.pdf`."""
        folder.mkdir(parents=True, exist_ok=True)
        folders.write(folder / f"{self.name}.svg", self.svg)
        folders.write(folder / f"{self.name}.pdf", self.pdf())

    def pdf(self) -> bytes:
        """The figure for papers, its fonts embedded, without a ground."""
        from matplotlib.backends.backend_pdf import FigureCanvasPdf  # start-up: fontTools

        made = io.BytesIO()
        with mpl.rc_context(style.MATPLOTLIB):
            self.figure.set_facecolor("none")
            canvas: Any = FigureCanvasPdf(self.figure)
            canvas.print_pdf(made, metadata={"CreationDate": None, "Creator": "Penstock"})
        return made.getvalue()


def plot(height: float = 2.4) -> tuple[Figure, Axes]:
    """An empty plot of the usual width; the height is in inches, and `legend` adds to it."""
    figure = Figure(figsize=(style.WIDTH_INCHES, height), layout="constrained")
    return figure, figure.subplots()


def legend(figure: Figure, axes: Axes) -> None:
    """Names the lines above the plot, in as many columns as fit, and adds the room for it."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    most = 40 if len(labels) <= _FEW else 18  # so that two fit next to each other
    labels = [shortened(label, most) for label in labels]
    ems = figure.get_figwidth() * 72 / style.SMALL
    widest = 0.53 * max(map(len, labels)) + _HANDLE + 0.8 + _GAP
    columns = max(1, min(4, len(labels), int(ems / widest)))
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + rows * 1.5 * style.SMALL / 72)
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=columns,
        handlelength=_HANDLE,
        columnspacing=_GAP,
    )


def label_log(axis: Axis, form: Formatter) -> None:
    """Labels some powers of ten of a logarithmic axis, or what has room where there is only one.

    Call it after drawing, when the limits of the axis are known.
    """
    least, greatest = sorted(axis.get_view_interval())
    for locator in (LogLocator(numticks=_TICKS), MaxNLocator(_TICKS - 1)):
        ticks = [tick for tick in locator.tick_values(least, greatest) if least <= tick <= greatest]
        if len(ticks) > 1:
            break
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(form)
    axis.set_minor_formatter(NullFormatter())


def shortened(name: str, most: int) -> str:
    """A name with its middle left out where it is too long for a figure."""
    head = most - most // 3 - 1
    return name if len(name) <= most else f"{name[:head]}…{name[-(most // 3) :]}"


def drawing(figure: Figure, section: str, name: str, title: str, meaning: str) -> Drawing:
    """The figure as files and page have it; `name` becomes the files' name."""
    svg = io.StringIO()
    figure.set_facecolor(style.GROUND)
    canvas: Any = FigureCanvasSVG(figure)
    # Not by `savefig`, which would draw everything twice.
    canvas.print_svg(svg, metadata={"Date": None, "Creator": "Penstock"})
    figure.set_layout_engine("none")  # the PDF is laid out like the SVG
    return Drawing(section, file_name(name), title, meaning, svg.getvalue(), figure)
