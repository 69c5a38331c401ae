# SPDX-License-Identifier: Apache-2.0
"""HSCC by Fig. 3 and Fig. 5b (HSCC §III-A), and the first flight and release of Penstock."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any

from .tcp_rewrite import FIRST, LARGEST, LATER, SYN, UNKNOWN, lowered

PAPER = {
    "buffer_bytes": 125000, "expiry_ns": 0, "release_interval_ns": 1000000, "release_step_bytes": 0,
    "alpha1_bytes": 31250, "alpha2_bytes": 62500, "sigma_bytes": 0, "mss_bytes": 1460,
    "floor_segments": 1, "first_flight_segments": 0, "cuts": 0,
}  # fmt: skip
DEFAULT = PAPER | {
    "expiry_ns": 100000000, "release_step_bytes": 1460,
    "alpha1_bytes": 12500, "alpha2_bytes": 31250, "sigma_bytes": 121094, "floor_segments": 2,
    "first_flight_segments": 2,
}  # fmt: skip
CASES = {
    "paper": PAPER, "gradual": DEFAULT, "cut": DEFAULT | {"cuts": 1},
    "flight of three": DEFAULT | {"floor_segments": 1, "first_flight_segments": 3},
}  # fmt: skip


@dataclass
class Port:
    p: dict[str, int]
    clamps: bool = False
    reported: int = 0
    released: int | None = None
    flows: int = 0

    def flow(self, delta: int) -> None:
        self.flows = max(0, self.flows + delta)

    def queue(self, queue_bytes: int, now_ns: int) -> None:
        self.reported = now_ns
        if queue_bytes >= self.p["alpha2_bytes"]:
            self.clamps = True
        elif queue_bytes <= self.p["alpha1_bytes"]:
            if self.clamps:
                self.released = now_ns
            self.clamps = False

    def is_alive(self, now_ns: int) -> bool:
        return self.p["expiry_ns"] == 0 or now_ns - self.reported < self.p["expiry_ns"]

    def segments(self, number: int, mss: int, shift: int) -> int:
        """Two segments keep a receiver from delaying ACKs, but only where the buffer holds all."""
        unit = 2 ** min(shift, 14)
        is_held = ceil(number * mss / unit) * unit * self.flows <= self.p["buffer_bytes"]
        return number * mss if is_held else mss

    def ack(
        self, window: int, scale: int, mss_bytes: int, kind: int, now_ns: int
    ) -> dict[str, int]:
        mss = mss_bytes or self.p["mss_bytes"]
        shift = 0 if kind == SYN else scale
        clamp = self.segments(self.p["floor_segments"], mss, shift)
        limits, floor = [LARGEST], clamp
        if kind != LATER and self.p["first_flight_segments"]:
            limits.append(self.segments(self.p["first_flight_segments"], mss, shift))
            floor = max(limits[-1], clamp)
        if self.clamps and self.is_alive(now_ns):
            limits.append(clamp)
        if not self.clamps and self.released is not None and self.p["release_step_bytes"]:
            intervals = (now_ns - self.released) // self.p["release_interval_ns"]
            limits.append(clamp + intervals * self.p["release_step_bytes"])
        return lowered(window, shift, min(limits), floor)

    def drops(self, queue_bytes: int, packet_bytes: int, is_control: int) -> int:
        """0: passes, 1: is dropped, 2: is cut (§III-B)."""
        is_beyond = queue_bytes + packet_bytes > self.p["sigma_bytes"] > 0
        if is_control or not is_beyond:
            return 0
        return 2 if self.p["cuts"] else 1

    def state(self, now_ns: int) -> dict[str, int]:
        clamps = int(self.clamps and self.is_alive(now_ns))
        return {"is_clamping": clamps, "flows": self.flows}


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    for name, params in CASES.items():
        port, now = Port(params), 0
        yield {"case": name, "params": params}
        for _ in range(200):
            now += random.choice([0, 1000, 300000, 2000000, 2000000, 100000000])
            event = random.choice(["queue", "ack", "ack", "drops", "flow"])
            queue = random.choice(
                [0, params["alpha1_bytes"], params["alpha1_bytes"] + 1, params["alpha2_bytes"] - 1,
                 params["alpha2_bytes"], random.randrange(125001), 125000]
            )  # fmt: skip
            args = {
                "flow": {"delta": random.choice([1, 10, 20, -5])},
                "queue": {"queue_bytes": queue, "now_ns": now},
                "ack": {
                    "window": random.choice([0, 1, 64, 2000, 65535]),
                    "scale": random.choice([0, 7, 10, UNKNOWN]),
                    "mss_bytes": random.choice([0, 1448]),
                    "kind": random.choice([LATER, LATER, FIRST, SYN]),
                    "now_ns": now,
                },
                "drops": {
                    "queue_bytes": random.choice([0, 121094 - 1500, 121094 - 1499, 125000]),
                    "packet_bytes": 1500,
                    "is_control": random.randrange(2),
                },
            }[event]
            result = getattr(port, event)(**args)
            yield {
                "event": event,
                "args": args,
                "now_ns": now,
                "result": result,
                "state": port.state(now),
            }
