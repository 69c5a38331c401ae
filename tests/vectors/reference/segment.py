# SPDX-License-Identifier: Apache-2.0
"""How large the segments of a port are: the largest full one of the present second or the last."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

SECOND = 1_000_000_000


@dataclass
class Port:
    """The sizes seen in the present period, and what the period before it has left."""

    begin: int = 0
    before: int = 0
    seen: list[int] = field(default_factory=list)

    @property
    def largest(self) -> int:
        return max([self.before, *self.seen])

    def data(self, size_bytes: int, is_full: int, now_ns: int) -> None:
        size = min(size_bytes, 65535)
        if not size or (not is_full and size <= self.largest):
            return
        if now_ns - self.begin >= SECOND:
            self.begin, self.before, self.seen = now_ns, max(self.seen, default=0), []
        self.seen.append(size)


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    """Paths of one MTU, then of another, with short writes between."""
    for case in range(6):
        port, now = Port(), 0
        yield {"case": f"segment-{case}", "params": {}}
        for _ in range(12):
            largest = random.choice([536, 1448, 8948, 70_000])
            for _ in range(12):
                now += random.choice([0, 1000, 100_000_000, 300_000_000, SECOND])
                args = {
                    "size_bytes": random.choice([0, 1, 100, largest, largest, largest]),
                    "is_full": random.choice([0, 1, 1]),
                    "now_ns": now,
                }
                port.data(**args)
                yield {
                    "event": "data", "args": args, "result": None, "state": {"bytes": port.largest},
                }  # fmt: skip
