# SPDX-License-Identifier: Apache-2.0
"""The recorded packets and events of single flows."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from penstock import tables, units
from penstock.results import Results

_AT_ONCE = 0.01  # seconds from the start of a flow to its first packet at the port

Row = Mapping[str, Any]
_Ends = tuple[str, str, int, frozenset[str]]
"""Scheme, traffic, flow, and both hosts."""


class Recorded:
    """The packets and events of a run by connection, and the connections of its flows."""

    def __init__(self, run: Results) -> None:
        packets = run.packets.filter(pl.col("traffic").is_not_null())
        # Epochs, and transfers of a job, have the same number of a flow; a connection is of one
        # pair of hosts.
        self._packets = packets.partition_by("scheme", "connection", as_dict=True)
        self._all_events = run.events
        self._connections: dict[_Ends, list[int]] = {}
        first = ["scheme", "traffic", "flow", "source", "destination", "connection"]
        for *ends, one, other, number in packets.unique(first, keep="first", maintain_order=True)[
            first
        ].iter_rows():
            numbers = self._connections.setdefault((*ends, frozenset((one, other))), [])
            if number not in numbers:
                numbers.append(number)
        begin = units.number(packets["time_s"].min())
        self.flows = run.flows.filter(
            pl.col("seed") == run.summary["seeds"][0],  # of the packets
            pl.col("start_s") >= begin - 1e-3,
            pl.col("bytes").is_not_null(),
        )
        """Of the packets' seed, not endless, begun within the record or just before."""
        self.last = units.number(
            packets.group_by("scheme").agg(pl.col("time_s").max())["time_s"].min()
        )
        """Until when there are packets of each scheme."""
        self._end = max(
            units.number(packets["time_s"].max()), units.number(run.flows["end_s"].max() or 0.0)
        )

    def has(self, flow: Row) -> bool:
        """Whether there are packets of the flow, from its start on."""
        key = self._key(flow)
        if key is None:
            return False
        end = self._end_of(flow)
        first = self._first(key, flow["start_s"])
        return first is not None and first <= min(end, flow["start_s"] + _AT_ONCE)

    def _key(self, flow: Row) -> tuple[str, int] | None:
        """The connection of a flow: of its hosts that which is the next to have a packet.

        Of several that have one, as where an epoch before it has not ended, the one that is new.
        """
        scheme, start = flow["scheme"], flow["start_s"]
        ends = (
            *(scheme, flow["traffic"], flow["flow"]),
            frozenset((flow["source"], flow["destination"])),
        )
        found = []
        for number in self._connections.get(ends, ()):
            first = self._first((scheme, number), start)
            if first is not None and first <= self._end_of(flow):
                is_old = self._packets[scheme, number]["time_s"][0] < start
                found.append((is_old, first, number))
        new = [each for each in found if not each[0] and each[1] <= start + _AT_ONCE]
        return (scheme, min(new or found)[2]) if found else None

    def _first(self, key: tuple[str, int], start: float) -> float | None:
        """When the first packet of a connection came that is not before a time."""
        times = self._packets[key]["time_s"]
        place = times.search_sorted(start)
        return float(times[place]) if place < len(times) else None

    @cached_property
    def _events(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self._all_events.partition_by("scheme", "connection", as_dict=True)

    def _end_of(self, flow: Row) -> float:
        """When it ended, or what is known of it does."""
        return float(flow["end_s"] or self._end)

    def is_within(self, flow: Row) -> pl.Expr:
        """Whether a packet or event is from the time of the flow."""
        return pl.col("time_s").is_between(flow["start_s"], self._end_of(flow))

    def packets_of(self, flow: Row) -> pl.DataFrame:
        """The packets of its connection."""
        key = self._key(flow)
        return self._packets[key] if key else tables.NO_PACKETS

    def events_of(self, flow: Row) -> pl.DataFrame:
        """The events of its connection."""
        key = self._key(flow)
        return self._events.get(key, tables.NO_EVENTS) if key else tables.NO_EVENTS
