# SPDX-License-Identifier: Apache-2.0
"""HCF by Algorithm 1, §III-D and §IV, over real queues of packets."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

DYNAMIC, FIXED, ORDERED = 0, 1, 2
OWN, BOTH = 0, 1
NONE = 2
WORD = 2**32
GOLDEN = 0x9E3779B1
DEFAULT = {
    "bins": 20, "credits": 1, "capacity_packets": [10, 10], "capacity_bytes": [0, 0],
    "hashes": 1, "period": DYNAMIC, "swap": 1, "credits_in_bytes": 0, "drop": OWN,
    "low_keeps_credits": 0,
}  # fmt: skip


@dataclass
class Port:
    p: dict[str, Any]
    seed: int
    queues: list[deque[int]] = field(default_factory=lambda: [deque(), deque()])
    periods: int = 0
    due: bool = False

    def __post_init__(self) -> None:
        self.random = self.seed or GOLDEN
        self.renew()
        self.hp, self.lp = self.queues

    def next_random(self) -> int:
        x = self.random
        x ^= x << 13 & WORD - 1
        x ^= x >> 17
        x ^= x << 5 & WORD - 1
        self.random = x
        return x

    def renew(self) -> None:
        """init() of Algorithm 1."""
        self.credits = [self.p["credits"]] * self.p["bins"]
        self.multiplier, self.offset = self.next_random() | 1, self.next_random()
        self.periods += 1
        self.due = False

    def end_period(self) -> None:
        self.renew()
        if self.p["swap"] and not self.hp:
            self.hp, self.lp = self.lp, self.hp

    def bins_of(self, key: int) -> set[int]:
        found = set()
        for i in range(self.p["hashes"]):
            x = ((key + i * GOLDEN) * self.multiplier + self.offset) % WORD
            x = (x ^ x >> 16) * GOLDEN % WORD
            found.add(x * self.p["bins"] // WORD)
        return found

    def fits(self, queues: list[deque[int]], roles: list[int], size: int) -> bool:
        packets = [self.p["capacity_packets"][r] for r in roles]
        sizes = [self.p["capacity_bytes"][r] for r in roles]
        count = sum(len(q) for q in queues)
        load = sum(sum(q) for q in queues)
        has_packets = not all(packets) or count < sum(packets)
        return has_packets and (not all(sizes) or load + size <= sum(sizes))

    def enqueue(self, key: int, size_bytes: int) -> int:
        """arrive() of Algorithm 1; credits by Bloom counter (§IV-A).

        `drop` BOTH: step 2 of §III-B in words. `low_keeps_credits`: without step 4 (footnote 1).
        """
        if not self.fits(self.queues, [0, 1], size_bytes):
            return NONE
        bins = self.bins_of(key)
        cost = size_bytes if self.p["credits_in_bytes"] else 1
        high_is_full, low_is_full = (
            not self.fits([queue], [role], size_bytes)
            for role, queue in enumerate([self.hp, self.lp])
        )
        is_high = any(self.credits[b] for b in bins) and not high_is_full
        if self.p["drop"] == BOTH and low_is_full and not high_is_full:
            is_high = True
        if is_high:
            for b in bins:
                self.credits[b] = max(0, self.credits[b] - cost)
            chosen = self.hp
        elif not low_is_full:
            for b in bins:
                if not self.p["low_keeps_credits"]:
                    self.credits[b] = 0
            chosen = self.lp
        else:
            return NONE
        chosen.append(size_bytes)
        return self.index(chosen)

    def index(self, queue: deque[int]) -> int:
        return 0 if queue is self.queues[0] else 1

    def dequeue(self) -> int:
        """transmit() of Algorithm 1."""
        queue = self.hp or self.lp
        if not queue:
            return NONE
        queue.popleft()
        sent = self.index(queue)
        if queue is self.hp and not queue and (self.p["period"] == DYNAMIC or self.due):
            self.end_period()
        return sent

    def tick(self) -> None:
        if self.p["period"] == FIXED or (self.p["period"] == ORDERED and not self.hp):
            self.end_period()
        elif self.p["period"] == ORDERED:
            self.due = True

    def state(self) -> dict[str, Any]:
        return {
            "packets": [len(q) for q in self.queues], "bytes": [sum(q) for q in self.queues],
            "epoch": self.periods, "high": self.index(self.hp), "credits": sum(self.credits),
        }  # fmt: skip


def flow_key(
    seed: int, source: int, destination: int, source_port: int, destination_port: int
) -> int:
    """Two rounds of multiplication by 2^64 / golden ratio, the upper half each time."""
    golden, word = 0x9E3779B97F4A7C15, 2**64
    x = (source << 32 | destination) * (2 * seed + 1) % word
    x ^= source_port << 16 | destination_port
    x = x * golden % word
    return (x ^ x >> 29) * golden % word >> 32


CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"swap": 0},
    "bloom": {"hashes": 3, "credits": 4, "bins": 32},
    "byte-credits": {"credits_in_bytes": 1, "credits": 3000, "capacity_bytes": [9000, 9000]},
    "bytes-only": {"capacity_packets": [0, 0], "capacity_bytes": [6000, 12000], "bins": 256},
    "fixed": {"period": FIXED, "bins": 8},
    "ordered": {"period": ORDERED, "bins": 8},
    "unequal": {"capacity_packets": [1, 12], "bins": 1, "credits": 5},
    "conference": {"capacity_packets": [3, 8], "credits": 2, "swap": 0, "low_keeps_credits": 1},
    "prose": {"capacity_packets": [8, 3], "drop": BOTH},
    "prose-bytes": {
        "capacity_packets": [0, 0],
        "capacity_bytes": [9000, 4000],
        "drop": BOTH,
        "low_keeps_credits": 1,
        "hashes": 2,
        "credits": 2,
    },
}


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    for seed, (name, changes) in enumerate(CASES.items()):
        params = DEFAULT | changes
        port = Port(params, seed)
        yield {"case": name, "params": params, "seed": seed}
        is_busy = True
        for step in range(160):
            if step % 40 == 39:
                is_busy = not is_busy
            event = random.choice(["enqueue"] * (12 if is_busy else 2) + ["dequeue"] * 4 + ["tick"])
            args = {}
            if event == "enqueue":
                key = random.randrange(12) * 0x01000193 % WORD
                args = {"key": key, "size_bytes": random.choice([40, 576, 1500])}
            result = getattr(port, event)(**args)
            yield {"event": event, "args": args, "result": result, "state": port.state()}
        for _ in range(8):
            args = {"seed": random.choice([0, random.randrange(WORD)])}
            args |= {"source": random.randrange(WORD), "destination": random.randrange(WORD)}
            args |= {"source_port": random.randrange(65536), "destination_port": 65535}
            yield {
                "event": "flow_key",
                "args": args,
                "result": flow_key(**args),
                "state": port.state(),
            }
