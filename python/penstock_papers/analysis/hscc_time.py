# SPDX-License-Identifier: Apache-2.0
"""HSCC's delay equations integrated in time, with the hysteresis itself in place of its mean."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock_papers.analysis.delay import Array, History, heun
from penstock_papers.analysis.hscc_model import Port, equilibrium, slopes


@dataclass(frozen=True)
class Reading:
    """How eq. 1 is read. The default is the printed one, losses too: p_l = kappa p_u."""

    is_overflow: bool = False
    """Losses are what a full buffer cannot hold, instead of kappa p."""
    is_direct: bool = False
    """The clamp takes effect after T, not tau: ACKs do not pass the port's queue."""
    is_silent: bool = False
    """A clamped sender with more than a segment under way sends nothing until that is ACKed."""


PRINTED = Reading()
CORRECTED = Reading(is_overflow=True, is_direct=True, is_silent=True)


@dataclass(frozen=True)
class Course:
    """A solution over time."""

    time: Array
    """s, shape (steps + 1,)."""
    window: Array
    """w, segments; the same shape."""
    queue: Array
    """q, segments; the same shape."""


@dataclass(frozen=True)
class Cycle:
    """What goes round, over the second half of a course."""

    queue: float
    """Mean, segments."""
    clamped: float
    """Share of time in the clamp."""
    period: float | None
    """s from one clamp to the next; None where fewer than two began."""


class _Hysteresis:
    """When the clamp began and ended."""

    def __init__(self) -> None:
        self.times = [0.0]
        self.modes = [0.0]

    def at(self, time: float) -> float:
        place = bisect_right(self.times, time) - 1
        return self.modes[place] if place >= 0 else 0.0

    def note(self, port: Port, time: float, queue: float) -> None:
        mode = _next(port, self.modes[-1], queue)
        if mode != self.modes[-1]:
            self.times.append(time)
            self.modes.append(mode)


def _next(port: Port, mode: float, queue: float) -> float:
    if queue >= port.alpha2:
        return 1.0
    return 0.0 if queue <= port.alpha1 else mode


def integrate(
    port: Port,
    reading: Reading = PRINTED,
    *,
    duration: float = 0.1,
    step: float = 4e-6,
    start: tuple[float, float] = (2.0, 0.0),
) -> Course:
    """Integrates eq. 1 with p_u = 1 from when the queue reaches alpha2 until it is at alpha1.

    Args:
        port: the port.
        reading: printed, or with what it leaves out.
        duration: s.
        step: s.
        start: window and queue, segments.
    """
    clamp = _Hysteresis()

    def arrivals(state: tuple[float, ...], clamped: float) -> float:
        window, queue = state
        if clamped and reading.is_silent and queue + port.rate * port.delay > port.flows:
            return 0.0
        return port.flows * (window * (1 - clamped) + clamped) / port.round_trip(queue)

    def delay(state: tuple[float, ...]) -> float:
        return port.delay if reading.is_direct else port.round_trip(state[1])

    def losses(time: float, past: tuple[float, ...]) -> float:
        if past[1] < port.buffer:
            return 0.0
        offered = arrivals(past, clamp.at(time - delay(past)))
        return max(0.0, 1 - port.rate / offered) if offered else 0.0

    def slope(time: float, state: tuple[float, ...], history: History) -> tuple[float, ...]:
        before = time - port.round_trip(state[1])
        past = history.at(before)
        clamped = clamp.at(time - delay(state))
        lost = losses(before, past) if reading.is_overflow else port.kappa * clamped
        opening, _ = slopes(port, (state[0], state[1]), (past[0], past[1]), clamped, lost)
        return opening, arrivals(state, clamped) - port.rate

    def noted(time: float, state: tuple[float, ...]) -> None:
        clamp.note(port, time, state[1])

    time, states = heun(slope, start, step, round(duration / step), _within(port), noted)
    return Course(time, states[:, 0], states[:, 1])


def averaged(
    port: Port, *, duration: float, step: float, start: tuple[float, float], slope: float = 0.0
) -> Course:
    """Integrates eq. 1 with a share p that rises linearly with the queue, about the equilibrium.

    Args:
        port: the port; its equilibrium midway between the thresholds gives p0 and q0.
        duration: s.
        step: s.
        start: window and queue, segments.
        slope: dp/dq, per segment; 0: p stays p0, as in the paper's proof.

    Raises:
        ValueError: there is no equilibrium.
    """
    rest = equilibrium(port, port.middle)
    if rest is None:
        message = f"{port}: no equilibrium, C tau0 <= N"
        raise ValueError(message)

    def change(time: float, state: tuple[float, ...], history: History) -> tuple[float, ...]:
        past = history.at(time - port.round_trip(state[1]))
        clamped = min(1.0, max(0.0, rest.clamped + slope * (past[1] - rest.queue)))
        now = (state[0], state[1])
        return slopes(port, now, (past[0], past[1]), clamped, port.kappa * clamped)

    time, states = heun(change, start, step, round(duration / step), _within(port))
    return Course(time, states[:, 0], states[:, 1])


def _within(port: Port) -> Callable[[tuple[float, ...]], tuple[float, ...]]:
    return lambda state: (max(1.0, state[0]), min(port.buffer, max(0.0, state[1])))


def cycle(port: Port, time: Array, queue: Array) -> Cycle:
    """Mean queue, share of time clamped and period of a queue's course, over its second half.

    Args:
        port: whose thresholds hold.
        time: s, evenly spaced, shape (n,).
        queue: segments, shape (n,).
    """
    modes = [0.0]
    for value in queue:
        modes.append(_next(port, modes[-1], float(value)))
    late = time >= (time[0] + time[-1]) / 2
    mode = np.array(modes[1:])
    began = time[1:][(np.diff(mode) == 1) & late[1:]]
    period = float(np.diff(began).mean()) if len(began) > 1 else None
    return Cycle(float(queue[late].mean()), float(mode[late].mean()), period)
