# SPDX-License-Identifier: Apache-2.0
"""Flows that programs other than penstock-traffic report, in the tables of a run."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from penstock.execution.lab.sampler import Samples

STALL_S = 0.19


@dataclass(frozen=True)
class Flow:
    """A transfer; the names are those of the simulator's columns."""

    traffic: str
    flow: int
    source: str
    destination: str
    start_s: float
    end_s: float | None
    bytes: int | None
    delivered_bytes: int
    fct_s: float | None
    goodput_bps: float | None
    retransmits: int | None
    packets: int = 0
    timeouts: int | None = None
    syn_timeouts: int | None = None
    drops: int = 0
    longest_silence_s: float | None = None
    missed_deadline: bool | None = None


def summed(
    names: Sequence[str], flows: Sequence[Flow], ports: Sequence[Samples], duration_s: float
) -> tuple[dict[str, Any], bytes, bytes]:
    """The summary, flows and queue samples of a run."""
    summary: dict[str, Any] = {
        "groups": {name: _group([one for one in flows if one.traffic == name]) for name in names},
        "ports": {one.port.name: one.summary(duration_s) for one in ports},
    }
    summary["drops"] = sum(port["drops"] for port in summary["ports"].values())
    samples = ((place, *sample) for place, one in enumerate(ports) for sample in one.lengths)
    columns = [column.name for column in fields(Flow)]
    rows = [[_cell(value) for value in asdict(one).values()] for one in flows]
    return (
        summary,
        _csv(columns, rows),
        _csv(["port", "time_s", "bytes", "packets"], [list(sample) for sample in samples]),
    )


def _group(flows: list[Flow]) -> dict[str, Any]:
    times = [one.fct_s for one in flows if one.fct_s is not None]
    rates = [one.goodput_bps for one in flows if one.goodput_bps is not None]
    squares = math.fsum(rate**2 for rate in rates)
    return {
        "flows": len(flows),
        "finished": len(times),
        "fct_s": _times(times) if times else None,
        "missed_deadlines": None,
        "goodput_bps": (
            {"mean": math.fsum(rates) / len(rates), "min": min(rates), "max": max(rates)}
            if rates
            else None
        ),
        "jain": math.fsum(rates) ** 2 / (len(rates) * squares) if squares else None,
        "retransmits": sum(one.retransmits or 0 for one in flows),
        "timeouts": None,
        "syn_timeouts": None,
        "stalled": sum(time > STALL_S for time in times),
        "drops": 0,
        **dict.fromkeys(_UNKNOWN),
    }


# What these tools do not tell of a group; the simulator's summary has it.
_UNKNOWN = (
    *("starved", "packets_variance", "first_bin"),
    *("longest_silence_s", "block_goodput_bps"),
)


def _times(times: list[float]) -> dict[str, float]:
    ranked = sorted(times)
    mean = math.fsum(times) / len(times)
    variance = math.fsum((time - mean) ** 2 for time in times) / len(times)
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    quantiles = {name: _quantile(ranked, share) for name, share in shares.items()}
    return {"mean": mean, "sd": math.sqrt(variance), **quantiles, "max": ranked[-1]}


def _quantile(ranked: list[float], share: float) -> float:
    """By linear interpolation between the ranks."""
    place = share * (len(ranked) - 1)
    low = int(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (place - low) * (ranked[high] - ranked[low])


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else value


def _csv(columns: list[str], rows: list[list[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()
