# SPDX-License-Identifier: Apache-2.0
"""Compares HSCC's model with its proof and with packets: numbers and figures of `hscc-model`.

Each function takes the experiment's runs by name and gives a number or what a figure shows; None
where the runs that it needs are not among them.
"""

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.units import to_bps, to_bytes, to_seconds
from penstock_papers.analysis import hscc_model as model
from penstock_papers.analysis.delay import Array, roots
from penstock_papers.analysis.hscc_model import Port, Rest
from penstock_papers.analysis.hscc_time import CORRECTED, PRINTED, Cycle, Reading, cycle, integrate
from penstock_papers.analysis.panels import Panel, line, panel
from penstock_papers.analysis.source import queue as queue_of

if TYPE_CHECKING:
    from penstock.runs import Run

Runs = Mapping[str, "Run"]

BITS = 12000
"""A packet of 1500 bytes."""

FLOWS = (2, 5, 10, 20, 50, 100, 200, 400)
RATES = (1e8, 1e9, 1e10, 4e10)
ROUND_TRIPS = (20e-6, 100e-6, 500e-6, 2e-3, 10e-3)
BUFFERS = (85, 170, 680)
THRESHOLDS = ((0.1, 0.25), (0.25, 0.5), (0.1, 0.75))


class Point(NamedTuple):
    """A port of the grid, at a queue midway between its thresholds."""

    port: Port
    rest: Rest | None
    """Of eq. 1."""
    printed: Rest | None
    """Of eq. 2."""


@cache
def grid() -> tuple[Point, ...]:
    """All combinations of the constants above: 1440 ports."""
    points = []
    for flows, rate, trip, buffer, (low, high) in product(
        FLOWS, RATES, ROUND_TRIPS, BUFFERS, THRESHOLDS
    ):
        port = Port(flows, rate / BITS, trip, buffer, low * buffer, high * buffer)
        rest = model.equilibrium(port, port.middle)
        points.append(Point(port, rest, model.printed_equilibrium(port, port.middle)))
    return tuple(points)


def _resting() -> list[tuple[Port, Rest]]:
    return [(port, rest) for port, rest, _ in grid() if rest]


def _conditioned() -> list[tuple[Port, Rest]]:
    known = [(port, rest) for port, _, rest in grid() if rest]
    return [(port, rest) for port, rest in known if model.printed_conditions(port, rest)]


def _share(holds: list[bool]) -> float:
    return sum(holds) / len(holds)


def hurwitz(_runs: Runs) -> float:
    """Share of the grid's ports with C tau0 > N whose A, as derived, has both eigenvalues left."""
    found = [np.linalg.eigvals(model.jacobian(*point).merged).real for point in _resting()]
    return _share([bool(real.max() < 0) for real in found])


def printed_hurwitz(_runs: Runs) -> float:
    """Share of the ports under the printed conditions whose A, as printed, is Hurwitz."""
    found = [np.linalg.eigvals(model.printed_matrix(*point)).real for point in _conditioned()]
    return _share([bool(real.max() < 0) for real in found])


def printed_share(_runs: Runs) -> float:
    """Share of the ports under the printed conditions where the printed P0 is below 1."""
    return _share([rest.clamped < 1 for _, rest in _conditioned()])


def printed_rest(_runs: Runs) -> float:
    """Median over the ports of |dq/dt| / C by eq. 1 in the printed equilibrium with P0 below 1."""
    left = []
    for port, _, rest in grid():
        if rest and rest.clamped < 1:
            state = (rest.window, rest.queue)
            losses = port.kappa * rest.clamped
            left.append(abs(model.slopes(port, state, state, rest.clamped, losses)[1]) / port.rate)
    return float(np.median(left))


def printed_factor(_runs: Runs) -> float:
    """V1 as the text has it over V1 as eq. 3 has it."""
    port, rest = _conditioned()[0]
    text, equation = (model.printed_matrix(port, rest, factor)[0, 0] for factor in (2, 1))
    return float(text / equation)


@cache
def _rightmost() -> Array:
    """Real part of the rightmost root times tau0, shape (ports, 2): p as input; p by the queue."""
    found = []
    for port, rest in _resting():
        linear = model.jacobian(port, rest)
        closed = linear.closed(1 / (port.alpha2 - port.alpha1))
        found.append(
            [
                roots(linear.now, past, rest.round_trip, 16)[0].real * rest.round_trip
                for past in (linear.past, closed)
            ]
        )
    return np.array(found)


def delayed(_runs: Runs) -> float:
    """Share of the ports with C tau0 > N whose delay system has all roots left, p an input."""
    return float((_rightmost()[:, 0] < 0).mean())


def closed(_runs: Runs) -> float:
    """The same when p follows the queue: 0 at alpha1, 1 at alpha2 (gain 1 / (alpha2 - alpha1))."""
    return float((_rightmost()[:, 1] < 0).mean())


def port_of(run: "Run") -> Port:
    """The port of a run of `hscc-model`, as the model has it."""
    document = run.summary["scenario"]
    link, access = document["fabric"]["bottleneck"], document["fabric"]["access"]
    # The RTT is all propagation; each hop adds the time of a packet, which T leaves out.
    trip = 2 * (to_seconds(link["delay"]) + 2 * to_seconds(access["delay"]))
    buffer = to_bytes(link["buffer"]) * 8 / BITS
    return Port(
        document["traffic"]["long"]["flows"],
        to_bps(link["rate"]) / BITS,
        trip,
        buffer,
        buffer / 4,
        buffer / 2,
    )


def _packets(run: "Run") -> tuple[Array, Array]:
    """Time, s, and queue, packets, of a run."""
    time, queue = queue_of(run)
    return time, queue * 8 / BITS


def _seen(run: "Run") -> Cycle:
    return cycle(port_of(run), *_packets(run))


@cache
def _solved(port: Port, reading: Reading) -> Cycle:
    course = integrate(port, reading)
    return cycle(port, course.time, course.queue)


def fluid_queue(runs: Runs) -> float | None:
    """Mean queue of the printed equations, packets."""
    return _solved(port_of(runs["20"]), PRINTED).queue if "20" in runs else None


def fluid_period(runs: Runs) -> float | None:
    """Their time from one clamp to the next, s."""
    return _solved(port_of(runs["20"]), PRINTED).period if "20" in runs else None


def corrected_queue(runs: Runs) -> float | None:
    """Mean queue of the equations with what they leave out, packets."""
    return _solved(port_of(runs["20"]), CORRECTED).queue if "20" in runs else None


def corrected_period(runs: Runs) -> float | None:
    """Their time from one clamp to the next, s."""
    return _solved(port_of(runs["20"]), CORRECTED).period if "20" in runs else None


def packet_queue(runs: Runs) -> float | None:
    """Mean queue of the packet simulation, packets, over its second half."""
    return _seen(runs["20"]).queue if "20" in runs else None


def packet_period(runs: Runs) -> float | None:
    """Its time from one clamp to the next, s."""
    return _seen(runs["20"]).period if "20" in runs else None


def locked_queue(runs: Runs) -> float | None:
    """Mean queue, packets, of the packet simulation with 40 flows."""
    if "40" not in runs:
        return None
    time, queue = _packets(runs["40"])
    return float(queue[time >= time[-1] / 2].mean())


def locked_prediction(runs: Runs) -> float | None:
    """N - C T: the queue under a clamp, which never ends where this is above alpha1."""
    if "40" not in runs:
        return None
    port = port_of(runs["40"])
    return port.flows - port.rate * port.delay


def queue_over_time(runs: Runs) -> list[Panel]:
    """The queue (packets) over time (ms): packets, the printed and the corrected equations."""
    run = runs.get("20") or next(iter(runs.values()))
    port = port_of(run)
    time, queue = _packets(run)
    courses = [("packets", time, queue)]
    for name, reading in (("eq. 1", PRINTED), ("eq. 1, corrected", CORRECTED)):
        course = integrate(port, reading)
        courses.append((name, course.time, course.queue))
    panels = []
    for index, (name, times, queues) in enumerate(courses):
        shown = times >= times[-1] - 10e-3
        when = (times[shown] - times[-1] + 10e-3) * 1e3
        lines = [line("", when, queues[shown], index)]
        levels = (port.alpha1, port.alpha2)
        panels.append(panel(lines, (0, port.buffer * 1.05), title=name, levels=levels))
    return panels


def rightmost_roots(_runs: Runs) -> list[Panel]:
    """Growth per round trip over (alpha2 - alpha1) / N (w0 - 1), of every third port of the grid.

    It is the real part of the rightmost root.
    """
    width = [
        (port.alpha2 - port.alpha1) / (port.flows * (rest.window - 1))
        for port, rest in _resting()[::3]
    ]
    names = ("p as input (the proof)", "p by the queue (closed loop)")
    lines = [
        line(name, width, _rightmost()[::3, index], index, ".") for index, name in enumerate(names)
    ]
    return [panel(lines, (-1.5, 3), levels=(0,))]
