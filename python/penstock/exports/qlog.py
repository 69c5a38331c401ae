# SPDX-License-Identifier: Apache-2.0
"""Events as JSON in the manner of qlog (draft-ietf-quic-qlog-main-schema): a trace a connection.

The names are qlog's where it has one (`recovery:metrics_updated`, `transport:packet_dropped`), and
of the category `penstock` where it has none. Times are milliseconds since the run began.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import polars as pl

Event = dict[str, Any]

_NAMES = {
    "rto": ("recovery:loss_timer_updated", {"event_type": "expired", "timer_type": "rto"}),
    "syn_timeout": ("recovery:loss_timer_updated", {"event_type": "expired", "timer_type": "syn"}),
    "probe": ("recovery:loss_timer_updated", {"event_type": "expired", "timer_type": "pto"}),
    "window_probe": ("penstock:window_probe", {}),
    "delayed_ack": ("penstock:delayed_ack", {}),
    "retransmit": ("recovery:marked_for_retransmit", {}),
}


def write(file: TextIO, packets: pl.DataFrame, events: pl.DataFrame, title: str, port: str) -> int:
    """Writes the events of all connections; returns how many events.

    Args:
        file: to be written.
        packets: rows of that table, of one scheme and seed.
        events: likewise.
        title: of the run.
        port: the name of the recorded port.
    """
    by_connection = events.partition_by("connection", as_dict=True)
    traces, count = [], 0
    for (connection,), rows in packets.partition_by(
        "connection", as_dict=True, maintain_order=True
    ).items():
        found = [*_packets(rows, port)]
        if (own := by_connection.get((connection,))) is not None:
            found += _events(own)
        found.sort(key=lambda event: event["time"])
        count += len(found)
        traces.append(
            {
                "title": _title(rows.row(0, named=True)),
                "vantage_point": {"name": port, "type": "network"},
                "common_fields": {"group_id": str(connection), "time_format": "relative"},
                "events": found,
            }
        )
    document = {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": title,
        "generator": "penstock export",
        "traces": traces,
    }
    json.dump(document, file, separators=(",", ":"))
    file.write("\n")
    return count


def _title(row: Mapping[str, Any]) -> str:
    return "datagrams" if row["traffic"] is None else f"{row['traffic']} {row['flow']}"


def _packets(rows: pl.DataFrame, port: str) -> Iterator[Event]:
    for row in rows.iter_rows(named=True):
        header = {key: row[key] for key in ("seq", "ack", "payload", "window")}
        data = {"header": header, "source": row["source"], "destination": row["destination"]}
        if row["forward"]:
            data["queue_bytes"] = row["queue_bytes"]
        yield _event(row["time_s"], "transport:packet_received", data)
        if row["lost"]:
            yield _event(row["time_s"], "transport:packet_dropped", data | {"trigger": row["lost"]})
        elif row["left_s"] is not None:
            sent = data | {"header": header | {"window": row["window_after"]}, "port": port}
            yield _event(row["left_s"], "transport:packet_sent", sent)


def _events(rows: pl.DataFrame) -> Iterator[Event]:
    for row in rows.iter_rows(named=True):
        if row["event"] == "window":
            name, data = (
                "recovery:metrics_updated",
                {
                    "congestion_window": row["cwnd_bytes"],
                    "bytes_in_flight": row["in_flight_bytes"],
                    "peer_window": row["window_bytes"],
                },
            )
        else:
            name, data = _NAMES[row["event"]]
        yield _event(row["time_s"], name, {"host": row["host"], **data})


def _event(time_s: float, name: str, data: Mapping[str, Any]) -> Event:
    return {"time": round(time_s * 1000, 6), "name": name, "data": dict(data)}
