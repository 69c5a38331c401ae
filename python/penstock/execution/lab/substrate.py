# SPDX-License-Identifier: Apache-2.0
"""What a run of the laboratory reports of itself: its TCP, what it did not emulate, warnings."""

import platform
from collections.abc import Iterator
from typing import Any

from penstock import units
from penstock.execution.lab import ovs
from penstock.execution.lab.host import Tcp
from penstock.execution.lab.plan import Plan
from penstock.execution.task import LABORATORY, OVS, TOOLS, Task
from penstock.scenario import parsed
from penstock.units import to_seconds

LEAST_IDLE = 0.1
"""Share of the CPUs' time; with less, packets wait for a CPU and not for the port."""

MOST_STOLEN = 0.02
"""Share of the CPUs' time that a hypervisor gave to others; it does so for milliseconds at once."""

MOST_MSS = 1460
"""Bytes: the MTU of the cables is 1500."""

LEAST_PERIOD_S = 1e-3
"""Between two samples of the queues (`crates/loadgen/src/player/ports.rs`)."""


def described(
    task: Task, summary: dict[str, Any], layout: dict[str, Any], plan: Plan, tcp: Tcp
) -> dict[str, Any]:
    """The entries of `run.json` for one task; those of several are merged there.

    `summary` is that of the traffic, with `performance`; `layout` is the fabric's.
    """
    client = next((name for name, substrate in TOOLS.items() if task.on == substrate), None)
    missing = [
        f"{name} of {1e6 * time:g} us"
        for key, name in (("delay_s", "propagation delay"), ("jitter_s", "jitter"))
        for time in sorted({port[key] for port in layout["ports"]} - {0.0})
    ]
    missing += [
        f"rate of {port.rate_bps / 1e9:g} Gb/s: such a link is as fast as the machine"
        for port in plan.ports
        if not port.is_shaped
    ]
    warnings = summary.get("warnings", ())
    document = parsed(task.scenario)
    keys = tcp.not_set if client else _refused(warnings, tcp, document)
    missing += [f"tcp.{key}" for key in keys]
    missing += _too_much(document, task.scheme)
    repeat = f"{task.scheme}, repeat {task.seed}"
    performance = summary["performance"]
    return {
        "substrate": OVS if task.on == OVS else LABORATORY,
        "kernel": platform.release(),
        **({"datapath": ovs.datapath_type()} if task.on == OVS else {}),
        "tcp": summary["tcp"].split(","),
        "not_emulated": list(dict.fromkeys(missing)),
        "traffic": f"iperf3, nginx, {client}" if client else "penstock-traffic",
        "busy": [f"{repeat}: {reason}" for reason in _busy(**performance)],
        "warnings": [f"{repeat}: {warning}" for warning in warnings if not _key(warning)],
    }


def _busy(*, cpu_idle: float, cpu_stolen: float, **_: float) -> Iterator[str]:
    """Why packets may have waited for a CPU."""
    if cpu_idle < LEAST_IDLE:
        limit = f"(needed: {100 * LEAST_IDLE:g} % or more)"
        yield f"CPUs were idle for {units.percent(cpu_idle)} of the time {limit}"
    if cpu_stolen > MOST_STOLEN:
        limit = f"(allowed: {100 * MOST_STOLEN:g} % or less)"
        share = units.percent(cpu_stolen)
        yield f"the hypervisor gave {share} of the CPU time to other guests {limit}"


def _too_much(document: dict[str, Any], scheme: str) -> Iterator[str]:
    """Values that this laboratory takes as the most, or the least, that it has, or does without."""
    own = document.get("scheme", {}).get(scheme, {})
    tables = [document, own, *document["traffic"].values()]
    if any(table.get("tcp", {}).get("mss", 0) > MOST_MSS for table in tables):
        yield f"tcp.mss above {MOST_MSS} bytes"
    every = document.get("measure", {}).get("queue_every")
    if every is not None and to_seconds(every) < LEAST_PERIOD_S:
        yield f"measure.queue_every below {1e3 * LEAST_PERIOD_S:g} ms"
    if own.get("window", {}).get("sigma", 1) != 1:
        yield f"scheme.{scheme}.window.sigma, as penstockd drops no data"
    queue = own.get("queue", {})
    if queue.get("kind") == "red":
        yield f"scheme.{scheme}.queue.weight, as tc derives it from the burst"
        if queue["gentle"]:
            yield f"scheme.{scheme}.queue.gentle, as the kernel drops or marks all above max"


def _refused(warnings: list[str], tcp: Tcp, document: dict[str, Any]) -> list[str]:
    """Keys of `[tcp]` that neither routes nor penstock-traffic's socket options could set.

    penstock-traffic warns of each key that sockets lack. It does not know the routes, so a key
    that these set is not missing, unless a traffic has its own.
    """
    of_traffic = {key for table in document["traffic"].values() for key in table.get("tcp", {})}
    refused = [key for warning in warnings if (key := _key(warning))]
    return [key for key in refused if key in tcp.not_set or key in of_traffic]


def _key(warning: str) -> str:
    """The key of `[tcp]` that a warning is about; empty for another."""
    head, colon, _ = warning.partition(": ")
    return head.removeprefix("tcp.") if colon and head.startswith("tcp.") else ""
