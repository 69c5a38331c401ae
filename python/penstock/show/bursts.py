# SPDX-License-Identifier: Apache-2.0
"""When a burst begins: many transfers or connections at once."""

import bisect
from collections.abc import Iterable

AT_ONCE_S = 0.002
"""Seconds within which they begin."""
_TOGETHER = 4
"""So many are a burst."""


def begin(starts: Iterable[float]) -> float | None:
    """When the largest burst begins, the first if several are as large; None if there is none."""
    times = sorted(starts)
    ends = [bisect.bisect_left(times, start + AT_ONCE_S) for start in times]
    together = [(end - n, -at) for n, (at, end) in enumerate(zip(times, ends, strict=True))]
    most, at = max(together, default=(0, 0.0))
    return -at if most >= _TOGETHER else None
