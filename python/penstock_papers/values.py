# SPDX-License-Identifier: Apache-2.0
"""Measured numbers with their confidence, and what may be computed of several."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock import stats


@dataclass(frozen=True)
class Value:
    """A mean over seeds."""

    mean: float
    half: float | None = None
    """Half-width of its 95 % confidence interval; None with one seed."""

    @property
    def ends(self) -> tuple[float, float]:
        """The interval: both the mean where there is one seed."""
        half = self.half or 0.0
        return self.mean - half, self.mean + half


def of_seeds(values: Sequence[float | None]) -> Value | None:
    """The mean of the seeds' values; None where a seed has none, as it is beyond every value."""
    if not values or None in values:
        return None
    return Value(stats.mean_of(values), stats.ci95_of(values))


def difference(one: Value, other: Value) -> Value:
    """One less the other, with the half-width that both bring (independent)."""
    mean = one.mean - other.mean
    if one.half is None or other.half is None:
        return Value(mean)
    return Value(mean, math.hypot(one.half, other.half))


def ratio(above: Value, below: Value) -> Value | None:
    """One over the other, with the half-width that both bring (first order, independent)."""
    if below.mean == 0:
        return None
    mean = above.mean / below.mean
    if above.half is None or below.half is None:
        return Value(mean)
    return Value(mean, math.hypot(above.half, mean * below.half) / abs(below.mean))


def _mean(values: Sequence[Value]) -> Value:
    halves = [value.half for value in values]
    known = [half for half in halves if half is not None]
    half = math.hypot(*known) / len(values) if len(known) == len(values) else None
    return Value(math.fsum(value.mean for value in values) / len(values), half)


def _spread(values: Sequence[Value]) -> Value | None:
    return ratio(_greatest(values), _least(values))


def _greatest(values: Sequence[Value]) -> Value:
    return max(values, key=lambda value: value.mean)


def _least(values: Sequence[Value]) -> Value:
    return min(values, key=lambda value: value.mean)


ACROSS: dict[str, Callable[[Sequence[Value]], Value | None]] = {
    "max": _greatest,
    "min": _least,
    "mean": _mean,
    "spread": _spread,
}
"""One number of those of several runs; spread is the greatest over the least."""
