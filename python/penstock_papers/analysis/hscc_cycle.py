# SPDX-License-Identifier: Apache-2.0
"""The loss cycle of a long flow (HSCC §III, Fig. 2): its windows over time, from `hscc-2`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from penstock_papers.analysis.panels import MOST, Panel, line, panel

if TYPE_CHECKING:
    from penstock.runs import Run

SEGMENT = 1460
"""Payload of a segment, bytes."""
DRAWN = "8"
"""The run whose windows are drawn."""


def windows(runs: Mapping[str, "Run"]) -> list[Panel]:
    """cwnd, rwnd and swnd (segments) over time (ms) of the first flow, at the end of the run."""
    run = runs.get(DRAWN) or next(iter(runs.values()))
    first = run.windows.filter(flow=0, seed=run.windows["seed"].min())
    panels = []
    for result in run.summary["results"]:
        rows = first.filter(scheme=result["scheme"]).tail(MOST)
        time = ((rows["time_s"] - rows["time_s"].min()) * 1e3).to_numpy()
        of = {
            name: (rows[f"{name}_bytes"] / SEGMENT).to_numpy() for name in ("cwnd", "rwnd", "swnd")
        }
        lines = [line(name, time, values, index) for index, (name, values) in enumerate(of.items())]
        panels.append(panel(lines, (0, 1.5 * _top(first)), title=result["scheme"]))
    return panels


def _top(rows: pl.DataFrame) -> float:
    """The congestion window that drop-tail's flow reaches, segments."""
    greatest = rows.filter(scheme="drop-tail")["cwnd_bytes"].quantile(0.99)
    return (greatest or SEGMENT * 30) / SEGMENT
