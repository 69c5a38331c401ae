# SPDX-License-Identifier: Apache-2.0
"""Compares FairQ's law with packets: numbers and figures of `fairq-law`.

Each function takes the experiment's runs by name and gives a number or what a figure shows; None
where the runs that it needs are not among them.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.units import to_bps, to_bytes, to_seconds
from penstock_papers.analysis.delay import Array
from penstock_papers.analysis.fairq_law import Law, greatest_gain, iterate, radius
from penstock_papers.analysis.panels import Panel, line, panel
from penstock_papers.analysis.source import queue as queue_of

if TYPE_CHECKING:
    from penstock.runs import Run

Runs = Mapping[str, "Run"]

SLOW = "500 us, M = 10"
DRAWN = (SLOW, "50 us, M = 1", "15 us, M = 1")


def law_of(run: "Run") -> Law:
    """The law of a run of `fairq-law`: its port, T and M; dumbbell and one scheme."""
    document = run.summary["scenario"]
    link, access = document["fabric"]["bottleneck"], document["fabric"]["access"]
    window = document["scheme"]["fairq"]["window"]
    near = 2 * to_seconds(access["delay"])
    return Law(
        rate=to_bps(link["rate"]) / 8,
        round_trip=2 * near + 2 * to_seconds(link["delay"]),
        delay=near,
        buffer=to_bytes(link["buffer"]),
        alpha=window["alpha"],
        interval=to_seconds(window["interval"]),
        intervals=window["intervals"],
    )


class Seen(NamedTuple):
    """A run compared with the law."""

    ratio: float
    """Gain of the law over the greatest stable one."""
    mean: float
    """Mean queue over the target, in the last quarter of the run."""
    deviation: float
    """Its standard deviation over the target."""


@cache
def _limit(ticks: float, intervals: int) -> float:
    return greatest_gain(ticks, intervals)


def seen(run: "Run") -> Seen:
    """How far a run's queue is from its target, and how far its law from the limit."""
    law = law_of(run)
    time, queue = queue_of(run)
    late = queue[time > 0.75 * time[-1]] / law.target
    ratio = law.gain / _limit(law.ticks, law.intervals)
    return Seen(ratio, float(late.mean()), float(late.std()))


def stable_deviation(runs: Runs) -> float | None:
    """Largest deviation of the queue, over its target, of the runs below 0.9 of the limit."""
    known = [one.deviation for one in map(seen, runs.values()) if one.ratio < 0.9]
    return max(known, default=None)


def unstable_deviation(runs: Runs) -> float | None:
    """Smallest deviation of the queue, over its target, of the runs above 1.1 of the limit."""
    known = [one.deviation for one in map(seen, runs.values()) if one.ratio > 1.1]
    return min(known, default=None)


def stable_mean(runs: Runs) -> float | None:
    """Mean queue over its target of that run below 0.9 of the limit which is furthest from it."""
    means = [one.mean for one in map(seen, runs.values()) if one.ratio < 0.9]
    return max(means, key=lambda mean: abs(mean - 1), default=None)


def ramp_packets(runs: Runs) -> float | None:
    """When the queue first reaches its target in the slowest run, s."""
    run = runs.get(SLOW)
    return None if run is None else _reached(*queue_of(run), law_of(run).target)


def ramp_law(runs: Runs) -> float | None:
    """The same by the law, which in slow start adds 2 mss to N W per M T, s."""
    if SLOW not in runs:
        return None
    law = law_of(runs[SLOW])
    steps = iterate(law, [(0.0, 2)], 0.6, is_slow=True)
    return _reached(steps.time, steps.queue, law.target)


def _reached(time: Array, queue: Array, target: float) -> float | None:
    at = np.flatnonzero(queue >= target)
    return float(time[at[0]]) if len(at) else None


def default_radius(_runs: Runs) -> float:
    """Largest spectral radius with T = R, M = 10 and targets of 1 to 1000 segments."""
    trip = 1e-3
    laws = [
        Law(125e6, trip, trip * share, mss * 1460.0, 1.0, trip, 10)
        for mss in (1, 2, 5, 10, 100, 1000)
        for share in (0.1, 0.5, 1.0)
    ]
    return max(radius(law) for law in laws)


def stable_range(runs: Runs) -> list[Panel]:
    """The stable range of the gain mss / (alpha B) over the delay D / T, and the runs in it."""
    ticks = np.unique(np.geomspace(1, 200, 24).round())
    lines = []
    for index, intervals in enumerate((1, 10)):
        limits = [_limit(float(tick), intervals) for tick in ticks]
        lines.append(line(f"limit, M = {intervals}", ticks, limits, index))
    for is_calm, name, mark in ((True, "packets, calm", "o"), (False, "packets, swinging", "x")):
        laws = [law_of(run) for run in runs.values() if (seen(run).deviation < 0.25) == is_calm]
        lines.append(line(name, [law.ticks for law in laws], [law.gain for law in laws], 2, mark))
    return [panel(lines, (None, None))]


def step(runs: Runs) -> list[Panel]:
    """The queue (kB) over time (ms), packets and law, where two flows become four halfway."""
    drawn = [name for name in DRAWN if name in runs] or list(runs)[:1]
    panels = []
    for name in drawn:
        law = law_of(runs[name])
        time, queue = queue_of(runs[name])
        end = float(time[-1])
        steps = iterate(law, [(0.0, 2), (end / 2, 4)], end, is_slow=True)
        lines = []
        for index, (label, when, bytes_) in enumerate(
            (("packets", time, queue), ("law", steps.time, steps.queue))
        ):
            near = np.abs(when - end / 2) < 15e-3
            lines.append(line(label, (when[near] - end / 2) * 1e3, bytes_[near] / 1e3, index))
        title = f"T = {name}: {seen(runs[name]).ratio:.2g} of the limit"
        panels.append(panel(lines, (0, 4 * law.target / 1e3), title=title))
    return panels
