# SPDX-License-Identifier: Apache-2.0
"""The measured ports' queues over time, read by one `tc` a port that stays open."""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import RunError
from penstock.execution.lab import system
from penstock.execution.lab.plan import Plan, Port


@dataclass
class Samples:
    """What was seen of one port."""

    port: Port
    lengths: list[tuple[float, int, int]] = field(default_factory=list)
    """Seconds, bytes, packets."""
    last: dict[str, Any] = field(default_factory=dict)
    """The port's counters at the end, as `tc -s -j` gives them."""

    def summary(self, duration_s: float) -> dict[str, Any]:
        """As the simulator sums a port up."""
        queue = sorted(length for _, length, _ in self.lengths) or [0]
        drops, sent = int(self.last.get("drops", 0)), int(self.last.get("bytes", 0))
        return {
            "drops": drops,
            "drops_by_reason": {"qdisc": drops},
            "utilization": min(8 * sent / (self.port.rate_bps * duration_s), 1.0),
            "queue_bytes": {
                "mean": sum(queue) / len(queue),
                "p99": queue[min(len(queue) - 1, int(0.99 * len(queue)))],
                "max": queue[-1],
            },
            "sent_packets": int(self.last.get("packets", 0)),
            "sent_bytes": sent,
            **dict.fromkeys(("marks", "rewrites", "clamps", "floors"), 0),
        }


@contextlib.contextmanager
def sampled(plan: Plan, tag: str, every_s: float) -> Iterator[list[Samples]]:
    """Samples every measured port while the block runs; complete when it has ended."""
    found = [Samples(port) for port in plan.ports if port.is_measured]
    stop = threading.Event()
    begun = time.monotonic()
    threads = [
        threading.Thread(target=_watch, args=(one, plan, tag, every_s, begun, stop))
        for one in found
    ]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _watch(
    into: Samples, plan: Plan, tag: str, every_s: float, begun: float, stop: threading.Event
) -> None:
    command = ("tc", "-s", "-j", "-batch", "-")
    inside = system.inside(plan.name(into.port.node, tag), "stdbuf", "-oL", *command)
    with subprocess.Popen(
        inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            message = "lab: tc has no pipes"
            raise RunError(message)
        is_last = False
        while not is_last:
            is_last = stop.wait(every_s)
            process.stdin.write(f"qdisc show dev {into.port.interface}\n")
            process.stdin.flush()
            told = process.stdout.readline()
            if not told:
                break
            into.last = next(one for one in json.loads(told) if one.get("root"))
            sample = (time.monotonic() - begun, into.last["backlog"], into.last["qlen"])
            into.lengths.append(sample)
        process.stdin.close()
