# SPDX-License-Identifier: Apache-2.0
r"""FairQ's update law as a loop with delay (FairQ §III-A, Alg. 1).

N flows whose window W the port writes have N W bytes under way, and what the path does not hold
waits in the queue. A window written now shows in the queue when the ACK has come to the sender and
its data back to the port: D later, which is less than the round trip R by the way from the port to
the receiver and back, and has no queue in it. With S = N W,

    Q(t) = S(t - D) - C R                                  within 0 .. B
    S(k+1) = S(k) + mss / M * sum of 1 - Q(t) / (alpha B)     over the M samples, T apart

The number of flows cancels: a flow that comes or goes leaves S as it is. The law rests at
Q = alpha B, W = (C R + alpha B) / N. About it, with e = S - S0 and the gain g = mss / (alpha B),

    e(k+1) = e(k) - g / M * sum over j = 1 .. M of e(floor(k + (j - d) / M)),   d = D / T

a linear recursion, stable if and only if the spectral radius of its companion matrix is below 1.
With c = ceil(d) - 1 samples that miss the last change: for c < M it has two terms, and Jury's test
gives g c / M < 1 and g (1 - 2 c / M) < 2. For M = 1 it is e(k+1) = e(k) - g e(k-c), stable for
g < 2 sin(pi / (4 c + 2)) (Levin, May, Theor. Popul. Biol. 9 (1976) 178).
In slow start S grows by 2 mss per M T (as printed 2 N mss) until Q is at the target.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from penstock_papers.analysis.delay import Array


@dataclass(frozen=True)
class Law:
    """A port with FairQ. Bytes and seconds."""

    rate: float
    """C, bytes per second."""
    round_trip: float
    """R, without the queue, s."""
    delay: float
    """D: from the port to a sender and back, s."""
    buffer: float
    """B, bytes."""
    alpha: float = 0.1
    """The queue aimed at, as a share of B."""
    interval: float = 100e-6
    """T, s."""
    intervals: int = 10
    """M."""
    mss: float = 1460.0
    """Payload of a segment, bytes."""

    @property
    def target(self) -> float:
        """The queue aimed at: alpha B, bytes."""
        return self.alpha * self.buffer

    @property
    def gain(self) -> float:
        """What a deviation loses per change: g."""
        return self.mss / self.target

    @property
    def ticks(self) -> float:
        """d: D in intervals."""
        return self.delay / self.interval

    def window(self, flows: int) -> float:
        """The fair window at rest, bytes."""
        return (self.rate * self.round_trip + self.target) / flows


def companion(law: Law) -> Array:
    """The recursion as a matrix that takes e(k), e(k-1), ... one step on.

    Returns:
        Shape (n, n), where n - 1 window changes are under way.
    """
    ages = [
        -math.floor((number - law.ticks + 1e-9) / law.intervals)
        for number in range(1, law.intervals + 1)
    ]
    # An age below 0 would be a change that the sample just precedes.
    ages = [max(0, age) for age in ages]
    matrix = np.eye(max(ages) + 1, k=-1)
    matrix[0, 0] += 1.0
    for age in ages:
        matrix[0, age] -= law.gain / law.intervals
    return matrix


def radius(law: Law) -> float:
    """Spectral radius: what a deviation is multiplied by at each window change, in the long run."""
    return float(np.abs(np.linalg.eigvals(companion(law))).max())


def greatest_gain(ticks: float, intervals: int) -> float:
    """The gain mss / (alpha B) from which the law is unstable; for M > 1 by bisection, within 1e-6.

    Args:
        ticks: d, the delay in intervals.
        intervals: M.
    """
    if intervals == 1:
        missed = math.ceil(ticks - 1e-9) - 1
        return 2 * math.sin(math.pi / (4 * max(0, missed) + 2))
    law = Law(1.0, ticks, ticks, buffer=1.0, alpha=1.0, interval=1.0, intervals=intervals)
    low, high = 0.0, 4.0
    while high - low > 1e-6:
        gain = (low + high) / 2
        low, high = (gain, high) if radius(replace(law, mss=gain)) < 1 else (low, gain)
    return low


@dataclass(frozen=True)
class Steps:
    """The law, iterated: a value for each interval T."""

    time: Array
    """s, shape (n,)."""
    window: Array
    """W, bytes."""
    queue: Array
    """Q, bytes."""


def iterate(
    law: Law,
    flows: list[tuple[float, int]],
    duration: float,
    *,
    total: float | None = None,
    is_slow: bool = False,
    is_clipped: bool = True,
) -> Steps:
    """Iterates Algorithm 1 interval by interval, with the queue D behind.

    Args:
        law: the port.
        flows: (time, number of flows) at which the number changes, in order, the first at 0.
        duration: s.
        total: N W at the beginning, bytes; default: alpha B, as the law starts.
        is_slow: begin in slow start.
        is_clipped: False: the queue may be negative or above the buffer, as in the linear law.
    """
    number = flows[0][1]
    window = (law.target if total is None else total) / number
    changes = list(flows[1:])
    under_way, queues, windows = [number * window], [], []
    gamma, ticks = 0.0, 0
    count = round(duration / law.interval)
    for tick in range(1, count + 1):
        now = tick * law.interval
        while changes and changes[0][0] <= now:
            window *= number / changes[0][1]
            number = changes.pop(0)[1]
        # The total that was written last before D ago.
        seen = under_way[max(0, math.floor(tick - law.ticks + 1e-9))]
        queue = seen - law.rate * law.round_trip
        queue = min(law.buffer, max(0.0, queue)) if is_clipped else queue
        gamma += (1 - queue / law.target) * law.mss / law.intervals
        ticks += 1
        if ticks == law.intervals:
            window += 2 * law.mss / number if is_slow else gamma / number
            window = max(0.0, window) if is_clipped else window
            gamma, ticks = 0.0, 0
        is_slow = is_slow and queue < law.target
        under_way.append(number * window)
        windows.append(window)
        queues.append(queue)
    time = np.arange(1, count + 1, dtype=np.float64) * law.interval
    return Steps(time, np.array(windows, float), np.array(queues, float))
