# SPDX-License-Identifier: Apache-2.0
r"""HSCC's fluid model (HSCC §IV, eqs. 1 to 5), as printed and as it follows from eq. 1.

With w the window (segments), q the queue (segments), tau = q / C + T, p the share of time in
the clamp, kappa p the losses, and a prime for one round trip ago, eq. 1 is

    w' = (1 - p') / tau + p' / (w tau) - kappa p' w w' / (2 tau')
    q' = N w (1 - p') / tau + N p' / tau - C

**Equilibrium.** With D = C tau0 / N, the two lines at rest are

    p0 = 1 / (1 - 1 / w0 + kappa w0^2 / 2)        printed: kappa w0 tau0 / 2 for kappa w0^2 / 2
    w0 (1 - p0) + p0 = D                          printed: w0 = D - p0

Put into each other: kappa w^4 - D kappa w^3 - 2 D w + 2 D = 0. For D > 1 the left side is negative
at 1 and at w* = (2 / kappa)^(1/3), and by Descartes' rule only one root lies beyond 1: so
w0 > max(1, w*), hence 0 < p0 < 1. C tau0 > N alone is enough. The printed lines are those of
another system, with losses p_l per time (not per packet) and arrivals N w / tau (not
N w (1 - p) / tau).

**Jacobian.** At rest, (1 - p0) + p0 / w0 = kappa p0 w0^2 / 2 =: L. By the product rule

    by w:   -p0 / (w0^2 tau0) - kappa p0 w0 / (2 tau0)      by w': -kappa p0 w0 / (2 tau0)
    by q:   -L / (C tau0^2)                                 by q': +L / (C tau0^2)
    by p':  -1 / (tau0 p0)
    and for q':  by w: (1 - p0) N / tau0,  by q: -1 / tau0,  by p': -N (w0 - 1) / tau0

Without the delay in w and q, as the paper takes it, the primed add to the unprimed: V2 cancels, A
is triangular, V1 = p0 (1 / w0^2 + kappa w0) / tau0, and its eigenvalues are -V1 and -1 / tau0.
Eq. 3 prints p0 / tau0 (1 / (w0 tau0) + kappa w0 / 2) for V1, the text below it twice that: the
second term is then that of the sum, the first is neither (it has another dimension).
"""

from dataclasses import dataclass

import numpy as np

from penstock_papers.analysis.delay import Array


@dataclass(frozen=True)
class Port:
    """N long flows through one port with HSCC. Lengths in segments, times in seconds."""

    flows: int
    """N."""
    rate: float
    """C, segments per second."""
    delay: float
    """T: round trip without the queue, s."""
    buffer: float
    """M."""
    alpha1: float
    """Queue at which the clamp ends."""
    alpha2: float
    """Queue at which it begins."""

    @property
    def kappa(self) -> float:
        """Losses per clamp: N / (M - alpha2) (HSCC §IV)."""
        return self.flows / (self.buffer - self.alpha2)

    @property
    def middle(self) -> float:
        """The queue midway between the thresholds, about which the model is linearised."""
        return (self.alpha1 + self.alpha2) / 2

    def round_trip(self, queue: float) -> float:
        """tau, s."""
        return queue / self.rate + self.delay

    def share(self, queue: float) -> float:
        """D = C tau / N: what each flow has under way."""
        return self.rate * self.round_trip(queue) / self.flows


@dataclass(frozen=True)
class Rest:
    """An equilibrium of a port."""

    window: float
    """w0, segments."""
    clamped: float
    """p0."""
    queue: float
    """q0, segments."""
    round_trip: float
    """tau0, s."""


def slopes(
    port: Port, now: tuple[float, float], past: tuple[float, float], clamped: float, losses: float
) -> tuple[float, float]:
    """Eq. 1: the slopes of window and queue.

    Args:
        port: the port.
        now: window and queue, segments.
        past: the same, one round trip ago.
        clamped: p_u one round trip ago.
        losses: p_l one round trip ago.

    Returns:
        dw/dt and dq/dt, segments per second.
    """
    window, queue = now
    trip = port.round_trip(queue)
    grown = (1 - clamped) / trip + clamped / (window * trip)
    lost = window * losses / 2 * past[0] / port.round_trip(past[1])
    arrivals = port.flows * (window * (1 - clamped) + clamped) / trip
    return grown - lost, arrivals - port.rate


def equilibrium(port: Port, queue: float) -> Rest | None:
    """Where eq. 1 rests at a queue; None where it does not (C tau0 <= N)."""
    kappa, share = port.kappa, port.share(queue)
    if share <= 1:
        return None
    found = np.roots([kappa, -share * kappa, 0.0, -2 * share, 2 * share])
    window = max(root.real for root in found if abs(root.imag) < 1e-9 * abs(root))
    clamped = 1 / (1 - 1 / window + kappa * window**2 / 2)
    return Rest(window, clamped, queue, port.round_trip(queue))


def printed_equilibrium(port: Port, queue: float) -> Rest | None:
    """Eq. 2 as printed, in seconds; None where it has no window of a segment or more.

    With P0 put in, w0 = D - p0 is a cubic; of several roots the largest is taken.
    """
    kappa, share, trip = port.kappa, port.share(queue), port.round_trip(queue)
    half = kappa * trip / 2
    # (w - D) (half w^2 + w - 1) + w = 0
    found = np.roots([half, 1 - share * half, -share, share])
    windows = [root.real for root in found if abs(root.imag) < 1e-9 * abs(root) and root.real >= 1]
    if not windows:
        return None
    window = max(windows)
    return Rest(window, 1 / (half * window - 1 / window + 1), queue, trip)


@dataclass(frozen=True)
class Linear:
    """x' = now x + past x(t - tau0) + gain p(t - tau0), with x = (w, q) about the equilibrium."""

    now: Array
    """Shape (2, 2)."""
    past: Array
    """Shape (2, 2)."""
    gain: Array
    """Shape (2,)."""

    @property
    def merged(self) -> Array:
        """A, with the delay in w and q left out as in the paper; shape (2, 2)."""
        return self.now + self.past

    def closed(self, slope: float) -> Array:
        """`past` when the share clamped rises with the queue by `slope` per segment."""
        return self.past + np.outer(self.gain, [0.0, slope])


def jacobian(port: Port, rest: Rest) -> Linear:
    """The linear system about an equilibrium of eq. 1, derived above."""
    window, clamped, trip = rest.window, rest.clamped, rest.round_trip
    half = port.kappa * clamped * window / (2 * trip)
    queueing = half * window / (port.rate * trip)
    now = [
        [-clamped / (window**2 * trip) - half, -queueing],
        [(1 - clamped) * port.flows / trip, -1 / trip],
    ]
    past = [[-half, queueing], [0.0, 0.0]]
    gain = [-1 / (trip * clamped), -port.flows * (window - 1) / trip]
    return Linear(np.array(now), np.array(past), np.array(gain))


def printed_matrix(port: Port, rest: Rest, factor: float = 2.0) -> Array:
    """A of eq. 4, shape (2, 2).

    Args:
        port: the port.
        rest: of `printed_equilibrium`.
        factor: of V1: 2 as the text below eq. 3 has it, 1 as eq. 3.
    """
    window, clamped, trip = rest.window, rest.clamped, rest.round_trip
    v1 = factor * clamped / trip * (1 / (window * trip) + port.kappa * window / 2)
    v2 = clamped / (port.rate * trip**3)
    v3 = (1 - clamped) * port.flows / trip
    return np.array([[-v1, -v2], [v3, -1 / trip]])


def printed_conditions(port: Port, rest: Rest) -> bool:
    """C tau0 >= N, w0 >= 1, 0 < kappa w0 tau0 < 2 (HSCC §IV), tau0 in seconds."""
    enough = port.share(rest.queue) >= 1
    return enough and rest.window >= 1 and 0 < port.kappa * rest.window * rest.round_trip < 2
