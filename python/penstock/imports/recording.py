# SPDX-License-Identifier: Apache-2.0
"""A recording as a scenario: a switch with a host for each address, and a trace."""

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from penstock import folders, units
from penstock.errors import ScenarioError
from penstock.imports import capture, connections, rows, sockets
from penstock.imports.flows import Flow, Found
from penstock.scenario import Source, parsed, resolve

FORMATS = ("pcap", "ss", "netflow", "millisampler")
MOST_HOSTS = 1000
"""Hosts of one switch."""
FILE, TABLE = "scenario.toml", "recorded.csv"
_LONGEST_MS = 1_152_921_504  # that a scenario may last

_OPTIONS = {
    "fabric.host_link.rate": "--rate",
    "fabric.host_link.delay": "--delay",
    "fabric.buffer": "--buffer",
}
"""The options by the keys of the scenario that they set."""

_SCENARIO = """\
# Written by `penstock import`. Keys and units: docs/scenarios.md, or `penstock schema`.
title = "Recorded: {title}"
about = "{about}"
duration = "{duration} ms"
until = "done"
schemes = ["drop-tail", "dctcp", "fairq", "hscc"]

# One switch, and a host for each address of the recording; {table} has the addresses.
[fabric]
kind = "leaf-spine"
leaves = 1
spines = 1
hosts_per_leaf = {hosts}
host_link = {{ rate = "{rate}", delay = "{delay}" }}
spine_link = {{ rate = "{rate}", delay = "{delay}" }}
buffer = "{buffer}"

[traffic.recorded]
kind = "trace"
file = "{table}"
"""


@dataclass(frozen=True)
class Recording:
    """What a file holds, as transfers between hosts."""

    name: str
    flows: list[Flow]
    """By their start, the first at 0 s."""
    hosts: dict[str, str]
    """The host of each address."""
    notes: list[str]
    """What was left out, a sentence each."""

    @property
    def count(self) -> str:
        """How many transfers there are, in words."""
        return units.counted(len(self.flows), "transfer")


def read(path: Path, *, kind: str | None = None, gap_s: float = 0.01) -> Recording:
    """Reads a recording.

    Args:
        path: a pcap or pcapng file, a log of `ss -ti`, or CSV of NetFlow, IPFIX or Millisampler.
        kind: one of `FORMATS`; default: as the file's contents suggest.
        gap_s: a pause of a connection that ends one transfer and begins the next.

    Raises:
        ScenarioError: it cannot be read, or holds no transfer; one line.
    """
    if kind is not None and kind not in FORMATS:
        message = f"--as: no format '{kind}'; allowed: {', '.join(FORMATS)}"
        raise ScenarioError(message)
    try:
        with path.open("rb") as file:
            found = _READERS[kind or _kind_of(file, path)](file, str(path), gap_s)
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror})"
        raise ScenarioError(message) from None
    return _recording(path, found)


def write(
    recording: Recording,
    folder: Path,
    *,
    rate: str = "10 Gb/s",
    delay: str = "5 us",
    buffer: str = "256 kB",
) -> Path:
    """Writes the scenario and its table into a folder that is new or empty; returns the scenario.

    Raises:
        ScenarioError: the folder has other files, or cannot be written, or `rate`, `delay` or
            `buffer` is wrong; then nothing is written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder}: exists and is not an empty folder; give another --out"
        raise ScenarioError(message)
    about = {
        "title": _plain(recording.name),
        "about": f"{recording.count} between {len(recording.hosts)} addresses.",
        "table": TABLE,
        "hosts": max(len(recording.hosts), 2),
        "rate": _plain(rate),
        "delay": _plain(delay),
        "buffer": _plain(buffer),
    }
    lines = ["start_s,source,destination,bytes,source_address,destination_address"]
    for flow in recording.flows:
        ends = (flow.source, flow.destination)
        named = (recording.hosts[end] for end in ends)
        fields = (f"{flow.start_s:.9f}", *named, str(flow.size), *map(_field, ends))
        lines.append(",".join(fields))
    table = "\n".join(lines) + "\n"
    quiet_s = 1.5 * recording.flows[-1].start_s + 1.0
    text = _SCENARIO.format(duration=1000, **about)
    bps = _rate(Source(text, folder / FILE, folder.name), table)
    quiet_s += 2 * 8 * _busiest(recording.flows) / bps
    text = _SCENARIO.format(duration=min(int(1000 * quiet_s) + 1, _LONGEST_MS), **about)
    _rate(Source(text, folder / FILE, folder.name), table)
    folders.check_file(folder / FILE)
    folders.write(folder / TABLE, table)
    folders.write(folder / FILE, text)
    return folder / FILE


def _busiest(flows: Iterable[Flow]) -> int:
    """The most bytes that an address sends or receives."""
    sizes: Counter[tuple[str, bool]] = Counter()
    for flow in flows:
        sizes[flow.source, True] += flow.size
        sizes[flow.destination, False] += flow.size
    return max(sizes.values())


def _rate(source: Source, table: str) -> float:
    """The rate of the hosts' links; refuses a scenario that cannot be used, before its folder."""
    with tempfile.TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / TABLE
        path.write_text(table, encoding="utf-8")
        try:
            text = resolve(source, (("traffic.recorded.file", json.dumps(str(path))),))
        except ScenarioError as error:
            raise _of_option(error) from None
    return units.to_bps(parsed(text)["fabric"]["host_link"]["rate"])


def _of_option(error: ScenarioError) -> ScenarioError:
    """The error of a file that is not written, as that of the option whose value is wrong."""
    for key, option in _OPTIONS.items():
        _, found, what = str(error).partition(f" {key}: ")
        if found:
            return ScenarioError(f"{option}: {what.partition(' (and ')[0]}")
    return error


def _recording(path: Path, found: Found) -> Recording:
    flows = sorted(flow for flow in found.flows if flow.source != flow.destination)
    if within := len(found.flows) - len(flows):
        found.leave_out("transfers within one address", within)
    notes = [f"left out: {count} {cause}" for cause, count in found.left_out.items()]
    if found.damage:
        notes.append(f"the file {found.damage}; what comes before is imported")
    if not flows:
        reason = f" ({'; '.join(notes)})" if notes else ""
        message = f"{path}: holds no transfer{reason}"
        raise ScenarioError(message)
    first = flows[0].start_s
    span = flows[-1].start_s - first
    if span > 1e6:
        message = f"{path}: lasts {span:.3g} s; allowed: at most 10^6 s; import a part of it"
        raise ScenarioError(message)
    flows = [flow._replace(start_s=flow.start_s - first) for flow in flows]
    addresses = list(
        dict.fromkeys(end for flow in flows for end in (flow.source, flow.destination))
    )
    if len(addresses) > MOST_HOSTS:
        message = (
            f"{path}: has {len(addresses)} addresses; allowed: at most {MOST_HOSTS}; import a part "
            "of it, such as the traffic of one rack"
        )
        raise ScenarioError(message)
    hosts = {address: f"host{number}" for number, address in enumerate(addresses, 1)}
    return Recording(path.stem, flows, hosts, notes)


def _kind_of(file: BinaryIO, path: Path) -> str:
    """What a file seems to be, by its first bytes.

    Raises:
        ScenarioError: nothing that is known.
    """
    start = file.read(4096)
    file.seek(0)
    if capture.is_capture(start):
        return "pcap"
    first = start.decode("utf-8", errors="replace").partition("\n")[0]
    columns = rows.columns_of(first)
    if rows.is_netflow(columns):
        return "netflow"
    if rows.is_millisampler(columns):
        return "millisampler"
    if b"bytes_acked:" in start or b"bytes_received:" in start or path.suffix == ".ss":
        return "ss"
    message = (
        f"{path}: of no known format; allowed: pcap, pcapng, a log of `ss -tin`, CSV of NetFlow, "
        "IPFIX or Millisampler; or name it with --as"
    )
    raise ScenarioError(message)


def _lines(file: BinaryIO) -> Iterator[str]:
    return (line.decode("utf-8", errors="replace") for line in file)


_READERS: dict[str, Callable[[BinaryIO, str, float], Found]] = {
    "pcap": connections.read,
    "ss": lambda file, name, gap_s: sockets.read(_lines(file), name, gap_s),
    "netflow": lambda file, name, _: rows.netflow(_lines(file), name),
    "millisampler": lambda file, name, _: rows.millisampler(_lines(file), name),
}


def _plain(text: str) -> str:
    """What a TOML text may have between its quotes."""
    kept = itertools.filterfalse(lambda c: c in '"\\' or not c.isprintable(), text)
    return "".join(kept)


def _field(text: str) -> str:
    """What a field of CSV may have."""
    return "".join("_" if c in ',"\r\n' or not c.isprintable() else c for c in text)
