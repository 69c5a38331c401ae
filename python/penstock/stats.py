# SPDX-License-Identifier: Apache-2.0
"""Several seeds into one result: means, and half-widths of their 95 % confidence intervals."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
_STUDENT_T = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
NORMAL = 1.959964
"""The two-sided 95 % quantile of the normal distribution."""


def student_t(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t, within 1e-4.

    Beyond 30 degrees of freedom by its expansion about the normal (Abramowitz & Stegun 26.7.5).
    """
    if freedom <= len(_STUDENT_T):
        return _STUDENT_T[freedom - 1]
    z = NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def mean_of(values: Sequence[Any]) -> Any:  # noqa: ANN401 (a JSON value)
    """The mean of the seeds' values, key by key; what is no number stays as the first has it.

    A value that a seed lacks (no flow finished: no FCT) is left out of the mean.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    if isinstance(known[0], dict):
        return {key: mean_of(values) for key, values in _by_key(known)}
    if not _is_number(known[0]) or all(value == known[0] for value in known):
        return known[0]
    return math.fsum(known) / len(known)


def ci95_of(values: Sequence[Any]) -> Any:  # noqa: ANN401 (a JSON value)
    """Half-widths of the 95 % confidence intervals of the means, key by key.

    None where fewer than two seeds have the value, or where it is no number.
    """
    known = [value for value in values if value is not None]
    if known and isinstance(known[0], dict):
        return {key: ci95_of(values) for key, values in _by_key(known)}
    if len(known) < 2 or not _is_number(known[0]):
        return None
    mean = math.fsum(known) / len(known)
    variance = math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return student_t(len(known) - 1) * math.sqrt(variance / len(known))


def welch(first: tuple[float, float, int], second: tuple[float, float, int]) -> bool:
    """Whether two means differ at 95 % (Welch's t test, two-sided).

    Each is a mean, its standard error, and how many values it is of (two or more). Without any
    spread, different means differ.
    """
    (one, error, count), (other, its_error, its_count) = first, second
    variance = error**2 + its_error**2
    if variance == 0:
        return one != other
    freedom = variance**2 / (error**4 / (count - 1) + its_error**4 / (its_count - 1))
    return abs(one - other) > student_t(max(1, int(freedom))) * math.sqrt(variance)


def bootstrap(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean by the percentiles of resampled means.

    Unlike Student's it never leaves the range of the values, so it is right on a logarithmic axis.
    """
    if not values:
        return None, None
    drawn = np.random.default_rng(1).choice(np.array(values), (2000, len(values)))
    low, high = np.quantile(drawn.mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _by_key(tables: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Each key that any of the tables has, with the values of those that have it."""
    for key in dict.fromkeys(key for table in tables for key in table):
        yield key, [table[key] for table in tables if key in table]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
