# SPDX-License-Identifier: Apache-2.0
"""Transfers of CSV: records of NetFlow and IPFIX, and rows of Millisampler."""

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime

from penstock.errors import ScenarioError
from penstock.imports.flows import MOST_FLOWS, Flow, Found

_START = {
    "ts": None,  # nfdump: a date
    "first": 1e-3,
    "firstseen": None,
    "start_s": 1.0,
    "start": None,
    "flowstartmilliseconds": 1e-3,
    "flowstartmicroseconds": 1e-6,
    "flowstartnanoseconds": 1e-9,
    "flowstartseconds": 1.0,
    "timestamp": None,
}
"""Columns of a record's start, in small letters, and their unit; None: seconds or a date."""
_SOURCE = ("sa", "srcaddr", "src_ip", "srcip", "sourceipv4address", "sourceipv6address", "source")
_DESTINATION = (
    *("da", "dstaddr", "dst_ip", "dstip"),
    *("destinationipv4address", "destinationipv6address", "destination"),
)
_BYTES = ("ibyt", "bytes", "in_bytes", "doctets", "octets", "octetdeltacount", "octettotalcount")
_PROTOCOL = ("pr", "proto", "protocol", "prot", "protocolidentifier")
_TCP = {"6", "tcp", ""}

_TIME = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6, "time": None, "timestamp": None}
_INGRESS = ("in_bytes", "ingress_bytes", "inbytes", "rx_bytes", "bytes")
_CONNECTIONS = ("connections", "active_connections", "conns", "in_connections", "flows")
_MOST_CONNECTIONS = 100_000

HOST = "measured"
"""The address of the host that Millisampler's rows are of."""


def columns_of(header: str) -> list[str]:
    """The columns of a first line, in small letters without spaces."""
    return [field.lower() for field in _fields(header.strip().lstrip("\ufeff#"))]


def is_netflow(columns: list[str]) -> bool:
    """Whether these are the columns of flow records."""
    return any(name in columns for name in _SOURCE) and any(
        name in columns for name in _DESTINATION
    )


def is_millisampler(columns: list[str]) -> bool:
    """Whether these are the columns of samples of one host."""
    has_time = any(name in columns for name in _TIME)
    return has_time and any(name in columns for name in _INGRESS) and not is_netflow(columns)


def netflow(lines: Iterator[str], name: str) -> Found:
    """The transfers of flow records: each record is one.

    Raises:
        ScenarioError: a column is missing, or a value is wrong.
    """
    columns = columns_of(next(lines, ""))
    start = _column(name, columns, tuple(_START), "start")
    source = _column(name, columns, _SOURCE, "source address")
    destination = _column(name, columns, _DESTINATION, "destination address")
    size = _column(name, columns, _BYTES, "bytes")
    protocol = next((each for each in _PROTOCOL if each in columns), None)
    found = Found.empty()
    for number, row in _rows(lines, columns):
        if row is None or row[source] in ("", None):
            found.leave_out("lines that are no records")  # nfdump ends with a summary
            continue
        if protocol and row[protocol].lower() not in _TCP:
            found.leave_out("records of other protocols than TCP")
            continue
        where = f"{name}:{number}: "
        time_s = _seconds(where + start, row[start], _START[start])
        count = _whole(where + size, row[size])
        if row[source] == row[destination]:
            found.leave_out("records from a host to itself")
        elif count:
            found.flows.append(Flow(time_s, row[source], row[destination], count))
        if len(found.flows) > MOST_FLOWS:
            found.damage = f"has more than {MOST_FLOWS} records"
            break
    return found


def millisampler(lines: Iterator[str], name: str) -> Found:
    """The bursts that a host receives: rows with bytes that follow each other.

    Each connection of a burst, as many as its row with most has, sends an equal part.

    Raises:
        ScenarioError: a column is missing, or a value is wrong.
    """
    columns = columns_of(next(lines, ""))
    time = _column(name, columns, tuple(_TIME), "time")
    size = _column(name, columns, _INGRESS, "bytes received")
    connections = next((each for each in _CONNECTIONS if each in columns), None)
    found = Found.empty()
    burst: tuple[float, int, int] | None = None
    for number, row in _rows(lines, columns):
        if row is None:
            found.leave_out("lines that are no rows")
            continue
        where = f"{name}:{number}: "
        time_s = _seconds(where + time, row[time], _TIME[time])
        count = _whole(where + size, row[size])
        many = _whole(where + connections, row[connections]) if connections else 1
        many = min(max(many, 1), _MOST_CONNECTIONS)
        if count == 0:
            found.flows += _burst(burst)
            burst = None
        elif burst is None:
            burst = (time_s, count, many)
        else:
            burst = (burst[0], burst[1] + count, max(burst[2], many))
        if len(found.flows) > MOST_FLOWS:
            found.damage = f"has more than {MOST_FLOWS} transfers"
            break
    found.flows += _burst(burst)
    return found


def _burst(burst: tuple[float, int, int] | None) -> Iterator[Flow]:
    if burst is None:
        return
    time_s, size, connections = burst
    each = size // connections
    for number in range(connections if each else 1):
        yield Flow(time_s, f"sender{number + 1}", HOST, each or size)


def _rows(lines: Iterator[str], columns: list[str]) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Each line's number, and its values by column; None if it has not as many."""
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        fields = _fields(line)
        is_row = len(fields) >= len(columns) > 0
        yield number, dict(zip(columns, fields, strict=False)) if is_row else None


def _fields(line: str) -> list[str]:
    """The values of a line, without spaces around them; none if it is damaged."""
    try:
        return [field.strip() for field in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _column(name: str, columns: list[str], known: tuple[str, ...], meaning: str) -> str:
    found = next((each for each in known if each in columns), None)
    if found is None:
        message = f"{name}:1: has no column for the {meaning}; allowed: {', '.join(known)}"
        raise ScenarioError(message)
    return found


def _seconds(where: str, text: str, unit: float | None) -> float:
    """A time: a number of a unit, or seconds or a date in ISO 8601 where the unit is open."""
    try:
        value = float(text) * (unit or 1.0)
    except ValueError:
        if unit is not None:
            return _wrong(where, text, "a number")
        try:
            date = datetime.fromisoformat(text)
            value = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, OSError):
            return _wrong(where, text, "seconds, or a date such as 2026-01-31 12:00:00.000")
    return value if math.isfinite(value) else _wrong(where, text, "a finite number")


def _whole(where: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1 << 50:
        _wrong(where, text, "a number from 0 to 2^50")
    return int(value)


def _wrong(where: str, text: str, allowed: str) -> float:
    message = f"{where}: '{text[:40]}'; allowed: {allowed}"
    raise ScenarioError(message)
