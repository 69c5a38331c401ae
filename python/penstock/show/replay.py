# SPDX-License-Identifier: Apache-2.0
"""One burst through a port, packet by packet, under all schemes at once.

The page's script (`replay.js`) draws the packets between two instants, the same for all schemes:
from where most connections begin together or, where none do, from where the queue of the scheme
that dropped most has grown.
"""

import bisect
from typing import Any

import polars as pl

from penstock import units
from penstock.results import Results
from penstock.show import bursts

SECTION = "A burst, packet by packet"
PACKETS = 900
"""Of a scheme at most."""
_QUIET = 0.1
"""A burst begins where the queue was last below this share of its longest."""
_NANO = 1e9
_SYN = 2


def replay(run: Results) -> dict[str, Any] | None:
    """What the script draws; None where no packets were recorded, or no queue was built."""
    packets = run.packets.filter(pl.col("forward")).sort("time_s")
    schemes = [result["scheme"] for result in run.summary["results"]]
    by_scheme = {name: packets.filter(pl.col("scheme") == name) for name in schemes}
    by_scheme = {name: rows for name, rows in by_scheme.items() if not rows.is_empty()}
    if not by_scheme:
        return None
    worst = max(by_scheme.values(), key=_severity)
    span = _burst(worst)
    flows: dict[str, int] = {}
    rows = {
        name: _columns(rows.filter(_is_in(span)), span[0], flows)
        for name, rows in by_scheme.items()
    }
    last = max((times[-1] for columns in rows.values() if (times := columns["time"])), default=0)
    return {
        "begin": span[0],
        "span": max(last, 1),
        "rate": _rate(worst),
        "flows": list(flows),
        "schemes": rows,
    }


def _severity(rows: pl.DataFrame) -> tuple[int, float]:
    return rows["lost"].count(), units.number(rows["queue_bytes"].max())


def _is_in(span: tuple[float, float]) -> pl.Expr:
    """Packets that come between two instants, and those that wait at the first."""
    came = pl.col("time_s").is_between(*span)
    return came | (pl.col("time_s") < span[0]) & (pl.col("left_s") > span[0])


def _burst(rows: pl.DataFrame) -> tuple[float, float]:
    """When it begins and ends."""
    queues, times = rows["queue_bytes"].to_list(), rows["time_s"].to_list()
    # What came before the record began may have been in the queue until then.
    waits = (rows["left_s"] - rows["time_s"]).drop_nulls()
    earliest = min(bisect.bisect_left(times, times[0] + units.number(waits.max())), len(times) - 1)
    opening = rows.filter(pl.col("flags") & (_SYN | 16) == _SYN)["time_s"]
    if (at := bursts.begin(opening)) is not None:
        begin = max(earliest, bisect.bisect_left(times, at))
        return times[begin], times[min(begin + PACKETS, len(times)) - 1]
    lost = rows["lost"].is_not_null().to_list()
    first_loss = lost.index(True) if any(lost) else queues.index(max(queues))
    longest = max(queues)
    begin = first_loss
    while begin > max(earliest, first_loss - PACKETS // 2) and queues[begin] > _QUIET * longest:
        begin -= 1
    end = min(begin + PACKETS, len(times)) - 1
    return times[begin], times[end]


def _rate(rows: pl.DataFrame) -> float:
    """Bytes that the port sends in a nanosecond: those of packets that left one after the other."""
    size = (pl.col("payload") + pl.col("header")).cast(pl.Float64)
    sent = rows.filter(pl.col("left_s").is_not_null()).sort("left_s")
    rates = sent.select((size / (pl.col("left_s").diff() * _NANO)).alias("rate"))["rate"]
    return units.number(rates.drop_nulls().quantile(0.5)) if sent.height > 1 else 1.0


def _columns(rows: pl.DataFrame, begin: float, flows: dict[str, int]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        key: [] for key in ("time", "left", "size", "flow", "seq", "lost", "queue")
    }
    for row in rows.iter_rows(named=True):
        name = "datagrams" if row["traffic"] is None else f"{row['traffic']} {row['flow']}"
        columns["time"].append(round((row["time_s"] - begin) * _NANO))
        left = row["left_s"]
        columns["left"].append(None if left is None else round((left - row["time_s"]) * _NANO))
        columns["size"].append(row["payload"] + row["header"])
        columns["flow"].append(flows.setdefault(name, len(flows)))
        columns["lost"].append(row["lost"] or 0)
        columns["queue"].append(row["queue_bytes"])
        columns["seq"].append(row["seq"])
    return columns
