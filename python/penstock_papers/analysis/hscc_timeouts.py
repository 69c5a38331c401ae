# SPDX-License-Identifier: Apache-2.0
"""What timeouts cost a transfer (HSCC §II): throughput without and with them, and in `hscc-1`."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from penstock_papers.analysis.panels import Panel, line, panel

if TYPE_CHECKING:
    from penstock.runs import Run

Runs = Mapping[str, "Run"]

ROUND_TRIP_S, RTO_S = 100e-6, 0.2
"""Typical round trip and least retransmission timeout (HSCC §II)."""
RATE = 1e9 / 8
"""Bytes per second of the testbed's links."""
SEGMENT, FIRST_FLIGHT = 1460, 10
"""Payload of a segment, bytes; segments of the initial window."""
LARGEST = 30e6
"""Bytes of WebSearch's largest flow."""


def trips(size: float) -> float:
    """The x of §II: round trips of a handshake and of slow start without loss."""
    return 1 + max(1.0, math.log2(size / (SEGMENT * FIRST_FLIGHT) + 1))


def best_throughput(size: float, flows: int = 1, rate: float = RATE) -> float:
    """rho*, bytes per second: F / (x tau + N F / C), of one of N flows of F bytes."""
    return size / (trips(size) * ROUND_TRIP_S + flows * size / rate)


def collapsed_throughput(size: float, timeouts: float, flows: int = 1, rate: float = RATE) -> float:
    """rho-, bytes per second: F / (n RTO + x tau + N F / C), after n timeouts."""
    return size / (timeouts * RTO_S + size / best_throughput(size, flows, rate))


def over_trips_of_small(_runs: Runs) -> float:
    """One RTO over x tau, of a flow that fits in the first flight."""
    return RTO_S / (trips(SEGMENT) * ROUND_TRIP_S)


def over_trips_of_large(_runs: Runs) -> float:
    """The same of the largest flow, whose x is that of a full pipe: F / (C tau)."""
    return RTO_S / (LARGEST / RATE)


def added_websearch(runs: Runs) -> float | None:
    """Time in timeouts over the rest of the mean completion time, WebSearch."""
    return _added(runs.get("websearch"))


def added_datamining(runs: Runs) -> float | None:
    """The same for DataMining."""
    return _added(runs.get("datamining"))


def _added(run: "Run | None") -> float | None:
    if run is None:
        return None
    group = run.summary["results"][0]["groups"]["web"]
    if group["fct_s"] is None:
        return None
    waited = RTO_S * group["timeouts"] / group["flows"]
    return float(waited / (group["fct_s"]["mean"] - waited))


def collapse(_runs: Runs) -> list[Panel]:
    """rho- / rho* over the size, for 1/2, 1 and 2 timeouts, of a flow alone and of 126."""
    sizes = np.logspace(3, math.log10(LARGEST), 80)

    def ratio(timeouts: float, flows: int) -> list[float]:
        pairs = ((collapsed_throughput(s, timeouts, flows), s) for s in sizes)
        return [collapsed / best_throughput(s, flows) for collapsed, s in pairs]

    lines = [
        line(
            f"n = {name}, {flows} flow{'s' if flows > 1 else ''}",
            sizes,
            ratio(n, flows),
            index,
            mark,
        )
        for index, (name, n) in enumerate({"1/2": 0.5, "1": 1.0, "2": 2.0}.items())
        for flows, mark in ((1, ""), (126, "."))
    ]
    return [panel(lines, (None, 1.0))]
