# SPDX-License-Identifier: Apache-2.0
"""A burst as one row for each of its transfers: when each had its turn at the port."""

from collections.abc import Iterator

import polars as pl

from penstock import tables
from penstock.results import Results
from penstock.show import bursts
from penstock.show.charts import Axis, Chart, Panel, Series
from penstock.show.recorded import Recorded
from penstock.show.style import Look

_MOST = 1200
"""Packets of a scheme that are drawn, and as many that were dropped."""
_COLUMNS = ("time_s", "left_s", "lost")
_KINDS = (("sent", Look(2), "left_s"), ("dropped", Look(5), "time_s"))


def charts(run: Results) -> Iterator[Chart]:
    """The packets of the burst that most transfers begin; none if none were recorded."""
    if run.packets.is_empty() or run.flows.is_empty():
        return
    recorded = Recorded(run)
    flows = recorded.flows.filter(pl.col("start_s") <= recorded.last)
    schemes = [result["scheme"] for result in run.summary["results"]]
    begins = (bursts.begin(flows.filter(pl.col("scheme") == name)["start_s"]) for name in schemes)
    begin = next((at for at in begins if at is not None), None)
    if begin is None:
        return
    flows = flows.filter(pl.col("start_s").is_between(begin, begin + bursts.AT_ONCE_S))
    panels = []
    for scheme in schemes:
        rows = _rows(flows.filter(pl.col("scheme") == scheme), recorded)
        panels.append(Panel(tuple(_series(rows, begin, scheme)), title=scheme, scheme=scheme))
    if any(series.x for panel in panels for series in panel.series):
        yield Chart(
            *("A burst, transfer by transfer", "turns", ""),
            "Each row is a transfer, in the order of their ends, and each point one of its "
            "packets, or of very many every n-th: sent by the port, or dropped there.",
            Axis("time since the burst began", "s", least=0.0),
            Axis("transfer", least=0.0),
            tuple(panels),
        )


def _rows(flows: pl.DataFrame, recorded: Recorded) -> pl.DataFrame:
    """The data packets of the transfers, with the `row` of each."""
    ordered = flows.sort("end_s", "start_s", nulls_last=True)
    rows = [tables.NO_PACKETS.select(_COLUMNS).with_columns(row=pl.lit(0))]
    is_data = pl.col("forward") & (pl.col("payload") > 0)
    for row, flow in enumerate(ordered.iter_rows(named=True), 1):
        data = recorded.packets_of(flow).filter(is_data, recorded.is_within(flow))
        rows.append(data.select(_COLUMNS).with_columns(row=pl.lit(row)))
    return pl.concat(rows, how="vertical_relaxed")


def _series(rows: pl.DataFrame, begin: float, scheme: str) -> Iterator[Series]:
    for name, look, when in _KINDS:
        of = rows.filter(pl.col("lost").is_null() == (name == "sent")).drop_nulls(when).sort(when)
        of = of.gather_every(-(-of.height // _MOST) or 1)
        times = (of[when] - begin).to_list()
        yield Series(name, look, times, of["row"].to_list(), kind="specks", scheme=scheme)
