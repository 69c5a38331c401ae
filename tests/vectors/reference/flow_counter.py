# SPDX-License-Identifier: Apache-2.0
"""The counter of FairQ §IV-E: SYN-ACKs of both directions minus FINs and RSTs of the outgoing."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from .flow import ACK, FIN, RST, SYN

IDLE_NS = 1_000_000_000


@dataclass
class Counter:
    count: int = 0
    last_data: int = 0

    def packet(self, flags: int, payload: int, is_out: int, now_ns: int) -> int:
        opens = flags & SYN and flags & ACK
        if payload or opens:
            self.last_data = now_ns
        self.count += 1 if opens else 0
        if is_out and (flags & FIN or flags & RST):
            self.count = max(0, self.count - 1)
        return self.count

    def expire(self, now_ns: int, idle_ns: int) -> int:
        if now_ns - self.last_data >= idle_ns:
            self.count = 0
        return self.count


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    """Packets of connections of which some are lost, repeated or reset."""
    for case in range(8):
        counter, now = Counter(), 0
        yield {"case": f"counter-{case}", "params": {}}
        for _ in range(60):
            now += random.choice([1000, 1_000_000, 300_000_000])
            args = {
                "flags": random.choice([SYN, SYN | ACK, SYN | ACK, ACK, ACK, FIN | ACK, RST]),
                "payload": random.choice([0, 0, 1448]),
                "is_out": random.randrange(2),
                "now_ns": now,
            }
            yield {"event": "packet", "args": args, "result": counter.packet(**args)}
            args = {
                "now_ns": now + random.choice([0, IDLE_NS - 1, IDLE_NS]),
                "idle_ns": IDLE_NS,
            }
            yield {"event": "expire", "args": args, "result": counter.expire(**args)}
