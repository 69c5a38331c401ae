# SPDX-License-Identifier: Apache-2.0
"""Tables brought to the size of a picture: no curve has more points than can be seen."""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POINTS = 240
"""Most points of a curve."""
TAIL = 60
"""Of a distribution, so many of its largest values are always drawn."""


class Curve(NamedTuple):
    """Points of a line."""

    x: Floats
    y: Floats


class Envelope(NamedTuple):
    """A time series by intervals: the mean of each, between its least and its greatest value."""

    time: Floats
    least: Floats
    mean: Floats
    greatest: Floats


def cdf(flows: pl.DataFrame) -> Curve:
    """The completion times, and the share of all flows that ended within each.

    Unfinished flows keep the curve below 1.
    """
    times = flows["fct_s"].drop_nulls().sort().to_numpy()
    picked = _picked(len(times))
    shares = (picked + 1) / max(flows.height, 1)
    if not len(times):
        return Curve(times, shares)
    return Curve(np.insert(times[picked], 0, times[0]), np.insert(shares, 0, 0.0))


def sorted_goodput(flows: pl.DataFrame) -> Curve:
    """The flows' goodputs in b/s from the slowest to the fastest, over the share of slower ones."""
    rates = flows["goodput_bps"].drop_nulls().sort().to_numpy()
    picked = _picked(len(rates))
    if not len(rates):
        return Curve(rates, rates)
    ranks = (picked + 0.5) / len(rates)  # to both ends, or a single flow would be no line
    return Curve(np.concatenate([[0.0], ranks, [1.0]]), np.pad(rates[picked], 1, mode="edge"))


def envelope(samples: pl.DataFrame) -> Envelope:
    """The queue in bytes over time, in at most `POINTS` intervals."""
    size = -(-samples.height // POINTS) or 1
    by_interval = (
        samples.sort("time_s")
        .with_row_index("interval")
        .group_by(pl.col("interval") // size, maintain_order=True)
        .agg(
            pl.col("time_s").mean(),
            pl.col("bytes").min().alias("least"),
            pl.col("bytes").mean().alias("mean"),
            pl.col("bytes").max().alias("greatest"),
        )
    )
    queue = [by_interval[name].to_numpy() for name in ("least", "mean", "greatest")]
    return Envelope(by_interval["time_s"].to_numpy(), *queue)


def _picked(count: int) -> NDArray[np.int64]:
    """Indices into `count` sorted values: all, or evenly spread ones and the whole tail."""
    if count <= POINTS:
        return np.arange(count)
    spread = np.linspace(0, count - 1, POINTS - TAIL).astype(np.int64)
    return np.union1d(spread, np.arange(count - TAIL, count))
