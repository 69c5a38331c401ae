# SPDX-License-Identifier: Apache-2.0
"""What `run.json` says of the laboratory: what ran, what was not emulated, what went wrong."""

import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.lab.host import Tcp
from penstock.lab.plan import Plan

Row = tuple[str, int, str, bytes, bytes]
"""Scheme, seed, summary (JSON), flows, queue samples (CSV), as the simulator gives them."""

LEAST_IDLE = 0.1
"""Share of the CPUs' time; with less, packets wait for a CPU and not for the port."""


def of(
    rows: Sequence[Row],
    layout: dict[str, Any],
    plans: Sequence[Plan],
    tcps: Mapping[str, Tcp],
    document: dict[str, Any],
    *,
    with_tools: bool,
) -> dict[str, Any]:
    """The entries of `run.json`; `tcps` by scheme, `document` the resolved scenario."""
    delays = sorted({port["delay_s"] for port in layout["ports"]} - {0.0})
    missing = [f"propagation delay of {1e6 * delay:g} us" for delay in delays]
    missing += [
        f"rate of {port.rate_bps / 1e9:g} Gb/s: such a link is as fast as the machine"
        for plan in plans
        for port in plan.ports
        if not port.is_shaped
    ]
    keys = {name: tcp.not_told for name, tcp in tcps.items()}
    missing += _untold(keys) if with_tools else _refused(rows, keys, document)
    return {
        "substrate": "lab",
        "kernel": platform.release(),
        "tcp": list(dict.fromkeys(tcp.congestion for tcp in tcps.values())),
        "not_emulated": list(dict.fromkeys(missing)),
        "traffic": "iperf3, nginx, ab" if with_tools else "penstock-traffic",
        "busy": busy(rows),
        "warnings": _warnings(rows),
    }


def notes(info: Mapping[str, Any]) -> list[str]:
    """What whoever reads the numbers of a run should know, as sentences; `info` is `run.json`."""
    said = [f"{warning}." for warning in info.get("warnings", ())]
    if runs := info.get("busy"):
        said.append(f"This machine was busy, so it may be what was measured: {'; '.join(runs)}.")
    return said


def busy(rows: Sequence[Row]) -> list[str]:
    """Runs during which the CPUs had no rest, so that what they measured may be the machine."""
    idle = [(row[0], row[1], json.loads(row[2])["performance"]["cpu_idle"]) for row in rows]
    return [
        f"{scheme}, repeat {seed}: {share:.0%} idle"
        for scheme, seed, share in idle
        if share < LEAST_IDLE
    ]


def _untold(keys: Mapping[str, Sequence[str]]) -> list[str]:
    """What the scenario says of TCP and nobody told the kernel."""
    return [f"tcp.{key}" for of in keys.values() for key in of]


def _refused(
    rows: Sequence[Row], keys: Mapping[str, Sequence[str]], document: dict[str, Any]
) -> list[str]:
    """The same where penstock-traffic sets socket options: what it says it could not set.

    It knows nothing of routes, so a key that the routes have is not missing, unless a traffic
    has its own.
    """
    own = {key for table in document["traffic"].values() for key in table.get("tcp", {})}
    return [
        f"tcp.{key}"
        for scheme, _, text, _, _ in rows
        for warning in json.loads(text).get("warnings", ())
        if (key := _key(warning)) and (key in keys[scheme] or key in own)
    ]


def _key(warning: str) -> str:
    """The key of `[tcp]` that a warning is about; empty for another."""
    head, colon, _ = warning.partition(": ")
    return head.removeprefix("tcp.") if colon and head.startswith("tcp.") else ""


def _warnings(rows: Sequence[Row]) -> list[str]:
    """What went otherwise than the scenario says, but for its TCP."""
    return [
        f"{scheme}, repeat {seed}: {warning}"
        for scheme, seed, text, _, _ in rows
        for warning in json.loads(text).get("warnings", ())
        if not _key(warning)
    ]
