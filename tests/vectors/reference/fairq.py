# SPDX-License-Identifier: Apache-2.0
"""FairQ by Algorithm 1 (FairQ §III-A), and FairSwitch by §IV-E.

Exact fractions, cut to 1/256 byte where state is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Any

from .tcp_rewrite import FIRST, LARGEST, LATER, SYN, UNKNOWN, lowered

DEFAULT = {
    "interval_ns": 100000, "buffer_bytes": 125000, "alpha_q16": 16384, "intervals": 10,
    "mss_bytes": 1460, "paths": 1, "slow_start": 0, "flow_rule": 0, "floor_segments": 2,
    "first_floor_segments": 2, "rounds_down": 0, "longest_rtt_ns": 10**7, "sample_interval_ns": 0,
}  # fmt: skip
SHARED, EACH, OFF = range(3)  # slow_start
SCALE, DIVIDE = range(2)  # flow_rule

PAPER = {
    "slow_start": EACH, "floor_segments": 0, "first_floor_segments": 0, "rounds_down": 1,
    "longest_rtt_ns": 0,
}  # fmt: skip
FAIRSWITCH = PAPER | {
    "flow_rule": DIVIDE, "sample_interval_ns": 48_000, "floor_segments": 1,
    "first_floor_segments": 1,
}  # fmt: skip


def q8(value: Fraction) -> Fraction:
    return Fraction(floor(value * 256), 256)


@dataclass
class Port:
    p: dict[str, int]
    beta: int = 0
    gamma: Fraction = Fraction(0)
    ticks: int = 0
    mss: int = 0
    sent: int = 0
    sent_before: int = 0
    round_start: int = 0
    round_total: int = 0
    samples: list[int] = field(default_factory=lambda: [0] * 32)
    age: int = 0

    def __post_init__(self) -> None:
        self.target = floor(Fraction(self.p["buffer_bytes"] * self.p["alpha_q16"], 65536))
        self.mss = self.p["mss_bytes"]
        self.restart()

    def restart(self) -> None:
        self.wnd, self.slow_start = Fraction(min(self.target, LARGEST)), True

    def flow(self, delta: int) -> None:
        """Lines 3 to 12: the SYN-ACK's and the FIN's share."""
        beta = self.beta
        if delta > 0:
            if beta == 0:
                self.restart()
            else:
                self.wnd = self.shared(beta, beta + 1)
            self.beta += 1
        elif delta < 0 and beta > 0:
            self.beta -= 1
            if self.beta > 0:
                self.wnd = self.shared(beta, self.beta)
            else:
                self.restart()

    def shared(self, before: int, flows: int) -> Fraction:
        """Algorithm 1 keeps flows * Rwnd; DIV_32 divides the target (§IV-E)."""
        total = self.target if self.p["flow_rule"] == DIVIDE else self.wnd * before
        return min(q8(Fraction(total) / flows), Fraction(LARGEST))

    def on_mss(self, mss_bytes: int) -> None:
        self.mss = min(max(mss_bytes, 1), 65535)

    def sent_by(self, total_bytes: int, now_ns: int) -> None:
        """Not in the paper: what left in a round bounds the window, so that it does not wind up."""
        self.sent = total_bytes - self.round_total
        periods = ("longest_rtt_ns", "interval_ns", "sample_interval_ns")
        length = max(self.p[name] for name in periods)
        age = now_ns - self.round_start
        if age >= length:
            self.sent_before = self.sent if age < 2 * length else 0
            self.sent, self.round_start, self.round_total = 0, now_ns, total_bytes

    def sample(self, queue_bytes: int) -> None:
        self.samples = [*self.samples[1:], queue_bytes]

    def tick(self, queue_bytes: int, total_bytes: int, now_ns: int) -> None:
        """The timer, that of AVG_32 where there is one; every T then at the next sample."""
        self.sent_by(total_bytes, now_ns)
        if self.p["sample_interval_ns"] == 0:
            return self.interval(queue_bytes)
        self.sample(queue_bytes)
        self.age += self.p["sample_interval_ns"]
        if self.age >= self.p["interval_ns"]:
            self.age = min(self.age - self.p["interval_ns"], self.p["interval_ns"])
            self.interval(queue_bytes)
        return None

    def interval(self, queue_bytes: int) -> None:
        """Lines 16 to 24."""
        queue = sum(self.samples) // 32 if self.p["sample_interval_ns"] else queue_bytes
        queue = min(queue, self.p["buffer_bytes"])
        kappa = 1 - Fraction(queue, self.target)
        step = q8(abs(kappa) * self.mss / self.p["intervals"])
        self.gamma += step if kappa > 0 else -step
        self.ticks += 1
        if self.ticks == self.p["intervals"]:
            if self.slow_start and self.p["slow_start"] != OFF:
                share = max(self.beta, 1) if self.p["slow_start"] == SHARED else 1
                self.wnd += q8(Fraction(2 * self.mss, share))
            elif self.beta > 0:
                part = q8(abs(self.gamma) / self.beta)
                self.wnd += part if self.gamma >= 0 else -part
            self.wnd = min(max(self.wnd, Fraction(0)), Fraction(LARGEST))
            if self.p["longest_rtt_ns"] and self.beta > 0:
                total = self.p["buffer_bytes"] + max(self.sent, self.sent_before)
                self.wnd = min(self.wnd, q8(Fraction(total * self.p["paths"], self.beta)))
            self.gamma, self.ticks = Fraction(0), 0
        if queue >= self.target:
            self.slow_start = False

    def ack(self, window: int, scale: int, mss_bytes: int, kind: int) -> dict[str, int]:
        """Lines 13 to 15, but not below the floor; a SYN-ACK is not scaled."""
        mss = mss_bytes or self.mss
        shift = 0 if kind == SYN else scale
        floor_of = "floor_segments" if kind == LATER else "first_floor_segments"
        least, unit = mss * self.p[floor_of], 2 ** min(shift, 14)
        if least and ceil(Fraction(least, unit)) * unit * self.beta > self.p["buffer_bytes"]:
            least = mss
        limit = min(floor(self.wnd / self.p["paths"]), LARGEST)
        if self.p["rounds_down"]:
            limit = floor(Fraction(limit, unit)) * unit
        return lowered(window, shift, limit, least)

    def state(self) -> dict[str, int]:
        return {
            "window_q8": int(self.wnd * 256), "gamma_q8": int(self.gamma * 256), "flows": self.beta,
            "mss_bytes": self.mss, "ticks": self.ticks, "in_slow_start": int(self.slow_start),
            "sent_bytes": self.sent, "sent_before_bytes": self.sent_before,
            "round_ns": self.round_start, "round_total": self.round_total,
            "update_age_ns": self.age,
        }  # fmt: skip


CASES = {
    "quarter": {},
    "paper": PAPER,
    "fairswitch": FAIRSWITCH,
    "without slow start": PAPER | {"slow_start": OFF, "intervals": 1},
    "wound up": {"buffer_bytes": 20000, "intervals": 2},
    "slow samples": {"sample_interval_ns": 250_000, "intervals": 2, "flow_rule": DIVIDE},
    "ecmp": {"paths": 3, "alpha_q16": 65536, "intervals": 1},
    "large": {"buffer_bytes": 2**32 - 1, "alpha_q16": 65536, "mss_bytes": 65535, "intervals": 1},
    "small": {"buffer_bytes": 9000, "alpha_q16": 8, "intervals": 2},
}


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    for name, changes in CASES.items():
        params = DEFAULT | changes
        port = Port(params)
        yield {"case": name, "params": params}
        now = total = 0
        kinds = ["flow", "flow", "mss", "sample", "interval", "interval", "interval", "ack"]
        kinds += ["sent", "sent"]
        if params["sample_interval_ns"]:
            kinds += ["sample"] * 4 + ["tick"] * 20
        for _ in range(120):
            event = random.choice(kinds)
            queue = random.choice(
                [0, random.randrange(2 * port.target) % 2**32, params["buffer_bytes"]]
            )
            now += random.choice([0, 100_000, 5_000_000, 10_000_000, 20_000_000])
            total += random.choice([0, random.randrange(10**4), random.randrange(10**7)])
            args = {
                "sent": {"total_bytes": total, "now_ns": now},
                "flow": {"delta": random.choice([1, 1, 1, -1, 0])},
                "mss": {"mss_bytes": random.choice([0, 100, 1448, 1460])},
                "sample": {"queue_bytes": queue},
                "tick": {"queue_bytes": queue, "total_bytes": total, "now_ns": now},
                "interval": {"queue_bytes": queue},
                "ack": {
                    "window": random.choice([0, 1, 64, 2000, 65535]),
                    "scale": random.choice([0, 7, 10, 14, UNKNOWN]),
                    "mss_bytes": random.choice([0, 1448, 536]),
                    "kind": random.choice([LATER, FIRST, SYN]),
                },
            }[event]
            result = getattr(port, {"sent": "sent_by", "mss": "on_mss"}.get(event, event))(**args)
            yield {"event": event, "args": args, "result": result, "state": port.state()}
