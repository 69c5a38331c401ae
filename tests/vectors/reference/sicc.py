# SPDX-License-Identifier: Apache-2.0
"""SICC by Algorithms 1 and 2 (SICC §4.1, §4.2), and as the prose or real TCP wants it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf
from random import Random
from typing import Any

from .tcp_rewrite import FIRST, LATER, SYN, UNKNOWN, lowered

KEEP, ON, OFF, OFF_ON, ON_ONE = 0, 1, 2, 3, 4
COUNTS_SYN, COUNTS_SYN_ACK = 0, 1
DEFAULT = {
    "interval_ns": 500000, "duration_ns": 10000000, "buffer_bytes": 125000,
    "alpha1_q16": 13107, "alpha2_q16": 65536, "initial_window_segments": 10, "mss_bytes": 1460,
    "floor_segments": 1, "off_needs_both": 0, "off_always": 0, "on_when_old": 0, "at_once": 0,
    "counts": COUNTS_SYN, "options_of": 0, "expires": 1, "pair_scale": 0, "rounds_down": 0,
}  # fmt: skip
PAPER = {
    "off_needs_both": 1, "off_always": 1, "on_when_old": 1, "options_of": 1, "expires": 0,
    "pair_scale": 1, "rounds_down": 1,
}  # fmt: skip
SYN_FLAG, FIN_FLAG, ACK_FLAG = 2, 1, 16


@dataclass
class World:
    """One switch port at the controller and one pair at a shim."""

    p: dict[str, int]
    beta: int = 0
    mean: Fraction = Fraction(0)
    kappa: int | None = None
    is_on: bool = False
    pair: tuple[int, int, float] | None = None

    def packet(self, flags: int, now_ns: int) -> int:
        is_answer = bool(flags & ACK_FLAG) or self.p["counts"] == COUNTS_SYN
        is_new = bool(flags & SYN_FLAG) and is_answer
        self.beta = max(0, self.beta + is_new - bool(flags & FIN_FLAG))
        is_free = self.is_old(now_ns) or not self.p["on_when_old"]
        if not (self.p["at_once"] and is_new and is_free and self.is_ahead()):
            return KEEP
        was_on, self.is_on, self.kappa = self.is_on, True, now_ns
        return ON_ONE if was_on else ON

    def is_old(self, now_ns: int) -> bool:
        return self.kappa is None or now_ns - self.kappa >= self.p["duration_ns"]

    def is_ahead(self) -> bool:
        gamma = self.beta * self.p["initial_window_segments"] * self.p["mss_bytes"] + self.mean
        start = self.p["buffer_bytes"] * self.p["alpha2_q16"] // 65536
        return self.beta > 0 and floor(gamma) >= start

    def interval(self, queue_bytes: int, now_ns: int) -> int:
        size, off, on = self.p["buffer_bytes"], False, False
        self.mean = Fraction(floor((self.mean / 4 + Fraction(3 * queue_bytes, 4)) * 256), 256)
        is_old = self.is_old(now_ns)
        is_short = queue_bytes <= size * self.p["alpha1_q16"] // 65536
        if self.is_on or self.p["off_always"]:
            off = (all if self.p["off_needs_both"] else any)([is_old, is_short])
        if is_old or not self.p["on_when_old"]:
            on = self.is_ahead()
            self.beta = 0
        if on:
            self.kappa = now_ns
        self.is_on = on or (self.is_on and not off)
        if off and on:
            return OFF_ON if self.p["off_always"] else ON
        return ON if on else OFF if off else KEEP

    def pair_on(self, mss_bytes: int, scale: int, now_ns: int) -> None:
        if mss_bytes:
            end = now_ns + self.p["duration_ns"] if self.p["expires"] else inf
            self.pair = (max(mss_bytes, 536), scale, end)

    def pair_off(self) -> None:
        self.pair = None

    def pair_ack(self, window: int, scale: int, kind: int, now_ns: int) -> dict[str, int]:
        if self.pair is None or now_ns >= self.pair[2]:
            return {"window": window, "changed": 0, "floored": 0}
        clamp = self.pair[0] * self.p["floor_segments"]
        shift = self.pair[1]
        if not self.p["pair_scale"]:
            shift = 0 if kind == SYN else shift if scale == UNKNOWN else scale
        if self.p["rounds_down"]:
            clamp -= clamp % 2 ** min(shift, 14)
        return lowered(window, shift, clamp, clamp)

    def state(self) -> dict[str, int]:
        return {"beta": self.beta, "queue_q8": int(self.mean * 256), "is_on": int(self.is_on)}


CASES = {
    "default": {},
    "paper": PAPER,
    **{name: {name: value} for name, value in PAPER.items()},
    "SYN-ACKs": {"counts": COUNTS_SYN_ACK},
    "at once": {"at_once": 1},
    "at once, when old": {"at_once": 1, "on_when_old": 1, "counts": COUNTS_SYN_ACK},
    "threshold": {"buffer_bytes": 1, "initial_window_segments": 1, "mss_bytes": 1},
    "large": {
        "buffer_bytes": 2**32 - 1,
        "alpha2_q16": 2,
        "initial_window_segments": 65535,
        "mss_bytes": 65535,
    },
}


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    for name, changes in CASES.items():
        params = DEFAULT | changes
        world, now = World(params), 0
        yield {"case": name, "params": params}
        for _ in range(250):
            now += random.choice([1000, 500000, 1000000, 5000000])
            event = random.choice(
                ["packet"] * 12
                + ["interval"] * 4
                + ["pair_on"] * 2
                + ["pair_off"]
                + ["pair_ack"] * 4
            )
            share = random.choice([0, 0.1, 0.2, 0.3, 0.8, 1])
            flags = random.choice(
                [SYN_FLAG] * 2 + [SYN_FLAG | ACK_FLAG] * 5 + [FIN_FLAG | ACK_FLAG, ACK_FLAG]
            )
            args = {
                "packet": {"flags": flags, "now_ns": now},
                "interval": {"queue_bytes": int(params["buffer_bytes"] * share), "now_ns": now},
                "pair_on": {
                    "mss_bytes": random.choice([0, 88, 1448, 1448, 8948]),
                    "scale": random.choice([0, 7, 12, UNKNOWN]),
                    "now_ns": now,
                },
                "pair_off": {},
                "pair_ack": {
                    "window": random.choice([0, 1, 100, 65535, 65535]),
                    "scale": random.choice([UNKNOWN, 7, 10]),
                    "kind": random.choice([LATER, FIRST, SYN]),
                    "now_ns": now,
                },
            }[event]
            result = getattr(world, event)(**args)
            yield {"event": event, "args": args, "result": result, "state": world.state()}
