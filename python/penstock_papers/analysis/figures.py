# SPDX-License-Identifier: Apache-2.0
"""Panels for the figures of the analysis, in the report's size."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.show import style


def panels(count: int, x_label: str, y_label: str) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels below each other that share both axes."""
    figure = Figure(figsize=(style.WIDTH_INCHES, 0.95 * count + 0.6), layout="constrained")
    rows = list(figure.subplots(count, sharex=True, sharey=True, squeeze=False)[:, 0])
    figure.supylabel(y_label, fontsize=9)
    rows[-1].set_xlabel(x_label)
    return figure, rows
