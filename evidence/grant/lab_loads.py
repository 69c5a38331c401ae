# SPDX-License-Identifier: Apache-2.0
"""The loads of lab.py, and the bound of each: a port that never idles or loses, first in first out.

The laboratory's ports count IP packets, so the bound does as well. loads.py has loads of its own.
"""

import math
from dataclasses import dataclass

from penstock.units import to_bytes

RATE_BPS, BUFFER = 200e6, "128 kB"
MSS_BYTES, HEADER_BYTES = 1448, 52
FIRST_FLIGHT = 10
"""Segments: Linux's initial window."""
HANDSHAKE_BYTES = 60 + 52 + 52  # SYN-ACK, ACK of the request, FIN
LONG_SHARE = 1 / 8
"""Grant's `long_share`, which elephants get."""


@dataclass(frozen=True)
class Load:
    """Answers to clients, next to elephants."""

    name: str
    clients: int
    size: str = "11.5 kB"
    elephants: int = 0
    kind: str = "at-once"
    """`at-once`, `persistent` or `new`: the last two in a closed loop."""
    every_ms: int = 700
    epochs: int = 4
    rate_bps: float = RATE_BPS
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def is_closed_loop(self) -> bool:
        """Whether a client asks again as soon as it has its answer."""
        return self.kind != "at-once"

    @property
    def is_one_flight(self) -> bool:
        """Whether each answer leaves at once, so that a FIFO of packets is one of answers."""
        return self.size != MIXED and to_bytes(self.size) <= FIRST_FLIGHT * MSS_BYTES

    @property
    def scenario(self) -> str:
        """The shipped scenario that it changes."""
        name = "persistent" if self.is_closed_loop else "at-once"
        return f"grant/{name}-elephants" if self.elephants else f"grant/{name}"

    def overrides(self) -> list[tuple[str, str]]:
        """What differs from the scenario."""
        sets = {"traffic.answers.flows": str(self.clients), "traffic.answers.size": self.size}
        if self.is_closed_loop:
            sets["traffic.answers.connection"] = self.kind
            if self.elephants > 8:  # they need longer to pass their first megabyte, then take turns
                sets |= {"traffic.answers.start": "1500 ms", "measure.from": "2 s"}
                sets["duration"] = "6 s"
        else:
            start_ms = 1500 if self.elephants else 100
            sets |= {
                "traffic.answers.start": f"{start_ms} ms",
                "traffic.answers.every": f"{self.every_ms} ms",
                "traffic.answers.epochs": str(self.epochs),
                "duration": f"{start_ms + self.epochs * self.every_ms} ms",
            }
        if self.rate_bps != RATE_BPS:
            sets["fabric.bottleneck.rate"] = f"{self.rate_bps:.0f} b/s"
        if self.elephants:
            sets["traffic.elephants.flows"] = str(self.elephants)
        return [*sets.items(), *self.settings]

    def bound_s(self, starts: list[float], sizes: list[int]) -> tuple[float, float]:
        """Mean and maximum of its times, from the starts and sizes of the answers.

        Elephants take the share that Grant is to give them. Clients of a burst connect one after
        another, and ask when all have connected: penstock-traffic does.
        """
        left = self.rate_bps * (1 - LONG_SHARE if self.elephants else 1)
        answer_s = sum(map(self.wire_bytes, sizes)) / len(sizes) * 8 / left
        if self.is_closed_loop:
            return self.clients * answer_s, self.clients * answer_s
        bursts: dict[int, list[float]] = {}
        for start in starts:
            burst = round(1e3 * (start - min(starts)) / self.every_ms)
            bursts.setdefault(burst, []).append(start)
        waits = [max(burst) - start for burst in bursts.values() for start in burst]
        mean = sum(waits) / len(waits) + (self.clients + 1) / 2 * answer_s
        return mean, max(waits) + self.clients * answer_s

    def wire_bytes(self, size: float) -> float:
        """What an answer takes of the port."""
        handshake = 0 if self.kind == "persistent" else HANDSHAKE_BYTES
        return size + math.ceil(size / MSS_BYTES) * HEADER_BYTES + handshake


def _congestion(name: str) -> tuple[tuple[str, str], ...]:
    return (("tcp.congestion", name),)


PUSH = (("traffic.answers.mode", "push"),)
MIXED = '{ exponential = "23 kB" }'

LOADS = [
    *(Load(f"{clients} at once", clients) for clients in (16, 32, 63, 126, 252, 630)),
    Load("2000 at once", 2000, every_ms=2500, epochs=3),
    Load("126 at once, 8 elephants", 126, elephants=8),
    Load("126 at once, 21 elephants", 126, elephants=21),
    *(Load(f"{clients} persistent", clients, kind="persistent") for clients in (16, 32, 100)),
    Load("32 persistent, 8 elephants", 32, elephants=8, kind="persistent"),
    Load("32 persistent, 21 elephants", 32, elephants=21, kind="persistent"),
    Load("32 new, closed loop", 32, kind="new"),
    Load("126 new, closed loop", 126, kind="new"),
    Load("126 at once, push", 126, settings=PUSH),
    Load("32 persistent, push", 32, kind="persistent", settings=PUSH),
    Load("126 at once, 1 Gb/s", 126, rate_bps=1e9),
    Load("32 persistent, 1 Gb/s", 32, kind="persistent", rate_bps=1e9),
    Load("126 of 1 kB", 126, "1 kB", every_ms=400),
    Load("126 of 23 kB", 126, "23 kB"),
    Load("126 of 64 kB", 126, "64 kB"),
    Load("126 of 256 kB", 126, "256 kB", every_ms=1600, epochs=2),
    Load("126 of mixed sizes", 126, MIXED),
    Load("126 at once, scale 0", 126, settings=(("tcp.window_scale", "0"),)),
    Load("126 at once, scale 7", 126, settings=(("tcp.window_scale", "7"),)),
    Load("126 at once, Reno", 126, settings=_congestion("newreno")),
    Load("126 at once, BBR", 126, settings=_congestion("bbr")),
]
