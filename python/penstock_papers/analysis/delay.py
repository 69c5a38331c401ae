# SPDX-License-Identifier: Apache-2.0
"""Delay differential equations: integration in time, and the rightmost characteristic roots."""

from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
State = tuple[float, ...]


class History:
    """A solution so far; between its steps linear, before its start constant.

    Linear interpolation has an error of O(h²), as Heun's method: the order stays 2.
    """

    def __init__(self, start: State) -> None:
        self.times = [0.0]
        self.states = [start]

    def at(self, time: float) -> State:
        """The state at a time up to the last step, or a little beyond it."""
        if time <= 0.0 or len(self.times) < 2:
            return self.states[0]
        place = min(bisect_right(self.times, time), len(self.times) - 1)
        before, after = self.times[place - 1], self.times[place]
        share = (time - before) / (after - before)
        pairs = zip(self.states[place - 1], self.states[place], strict=True)
        return tuple(a + share * (b - a) for a, b in pairs)

    def add(self, time: float, state: State) -> None:
        """Takes the next step."""
        self.times.append(time)
        self.states.append(state)


def heun(
    slope: Callable[[float, State, History], State],
    start: State,
    step: float,
    steps: int,
    bound: Callable[[State], State] = lambda state: state,
    noted: Callable[[float, State], None] = lambda _time, _state: None,
) -> tuple[Array, Array]:
    """Integrates x' = slope(t, x, history) by Heun's method with steps of one length.

    Args:
        slope: may look up past states; delays should not be below `step`.
        start: the state at time 0 and before.
        step: length of a step, in the unit of time of `slope`.
        steps: how many.
        bound: applied to each new state (a queue is neither negative nor above its buffer).
        noted: called with each new time and state.

    Returns:
        Times, shape (steps + 1,), and states, shape (steps + 1, len(start)).

    Source: Bellen, Zennaro, Numerical Methods for Delay Differential Equations, 2003, §6.
    """
    history = History(start)
    state = start
    for number in range(steps):
        time = number * step
        first = slope(time, state, history)
        guess = bound(tuple(x + step * f for x, f in zip(state, first, strict=True)))
        second = slope(time + step, guess, history)
        slopes = zip(state, first, second, strict=True)
        state = bound(tuple(x + step / 2 * (f + g) for x, f, g in slopes))
        history.add(time + step, state)
        noted(time + step, state)
    return np.array(history.times), np.array(history.states)


def roots(now: Array, delayed: Array, delay: float, points: int = 24) -> NDArray[np.complex128]:
    """Characteristic roots of x'(t) = now x(t) + delayed x(t - delay), the rightmost first.

    The infinitesimal generator of the solution operator, collocated at Chebyshev points of
    [-delay, 0]; its rightmost eigenvalues converge to the roots faster than any power of `points`.

    Args:
        now: shape (n, n).
        delayed: shape (n, n).
        delay: above 0, in the unit of time of the matrices.
        points: Chebyshev points but one.

    Returns:
        Shape ((points + 1) n,), by falling real part; those far left are not roots.

    Source: Breda, Maset, Vermiglio, SIAM J. Sci. Comput. 27 (2005) 482; Trefethen, Spectral
    Methods in MATLAB, 2000, ch. 6 (the differentiation matrix).
    """
    index = np.arange(points + 1)
    node = np.cos(np.pi * index / points)
    weight = np.where((index == 0) | (index == points), 2.0, 1.0) * (-1.0) ** index
    gap = node[:, None] - node[None, :] + np.eye(points + 1)
    derivative = np.outer(weight, 1 / weight) / gap
    derivative -= np.diag(derivative.sum(axis=1))
    order = len(now)
    generator = np.kron(derivative * 2 / delay, np.eye(order))
    generator[:order] = 0.0
    generator[:order, :order] = now
    generator[:order, -order:] += delayed
    found = np.linalg.eigvals(generator)
    return found[np.argsort(-found.real)].astype(np.complex128)
