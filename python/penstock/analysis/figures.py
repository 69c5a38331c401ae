# SPDX-License-Identifier: Apache-2.0
"""Axes for the figures of the analysis, in the report's size."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.report import style


def axes_of(x_label: str, y_label: str, height: float = 2.6) -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    figure = Figure(figsize=(style.WIDTH_INCHES, height), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure, axes


def panels(count: int, x_label: str, y_label: str) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels below each other that share both axes."""
    figure = Figure(figsize=(style.WIDTH_INCHES, 0.95 * count + 0.6), layout="constrained")
    rows = list(figure.subplots(count, sharex=True, sharey=True, squeeze=False)[:, 0])
    figure.supylabel(y_label, fontsize=9)
    rows[-1].set_xlabel(x_label)
    return figure, rows
