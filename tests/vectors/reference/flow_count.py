# SPDX-License-Identifier: Apache-2.0
"""Which flows can still send: connections distinguished by their initial sequence numbers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .tcp_rewrite import UNKNOWN

FIN, SYN, RST, ACK = 1, 2, 4, 16
DATA, ACKS = 0, 1
NO_SCALE = 0xFE


@dataclass
class Offer:
    """What one side's SYN has."""

    isn: int
    mss: int
    scale: int
    answers: bool


@dataclass
class Flow:
    offers: dict[int, Offer] = field(default_factory=dict)
    can_send: bool = False
    has_ended: bool = False
    is_idle: bool = False
    last: int = 0

    def packet(
        self, now_ns: int, seq: int, payload: int, mss: int, scale: int, flags: int, direction: int
    ) -> int:
        before, self.last = self.can_send, now_ns
        if flags & RST:
            self.end()
        elif flags & SYN:
            self.syn(direction, Offer(seq, mss, scale, bool(flags & ACK)))
        elif flags & FIN and direction == DATA:
            self.end()
        elif payload and direction == DATA and self.is_idle:
            self.can_send, self.is_idle = True, False
        return self.can_send - before

    def end(self) -> None:
        if self.offers:
            self.can_send, self.has_ended, self.is_idle = False, True, False

    def syn(self, direction: int, offer: Offer) -> None:
        known = self.offers.get(direction)
        if known and known.isn == offer.isn:
            return
        if known or self.has_ended:
            self.offers = {}
        self.offers[direction] = offer
        self.can_send, self.has_ended, self.is_idle = True, False, False

    def expire(self, now_ns: int, idle_ns: int) -> int:
        if not self.can_send or now_ns - self.last < idle_ns:
            return 0
        self.can_send, self.is_idle = False, True
        return -1

    def scale(self, direction: int) -> int:
        """RFC 7323 §2.2: both sides must have offered; only an offer is answered by an offer."""
        own, peer = self.offers.get(direction), self.offers.get(1 - direction)
        if any(offer and offer.scale == NO_SCALE for offer in (own, peer)):
            return 0
        if own and (peer or own.answers):
            return min(own.scale, 14)
        return UNKNOWN

    def state(self) -> dict[str, int]:
        other = self.offers.get(ACKS)
        return {
            "is_counted": int(self.can_send), "scale_data": self.scale(DATA),
            "scale_acks": self.scale(ACKS), "mss": other.mss if other else 0,
        }  # fmt: skip


@dataclass
class Counter:
    """The counter of FairQ §IV-E: SYN-ACKs of both directions, FINs and RSTs of the outgoing."""

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


def packet(random: Random, now: int, direction: int, flags: int, isn: int) -> dict[str, int]:
    is_syn = bool(flags & SYN)
    return {
        "now_ns": now, "seq": isn + direction if is_syn else isn + 100,
        "payload": random.choice([0, 1448]) if not is_syn and direction == DATA else 0,
        "mss": random.choice([536, 1460, 8960]) if is_syn else 0,
        "scale": random.choice([0, 7, 14, 15, NO_SCALE]) if is_syn else 0,
        "flags": flags, "direction": direction,
    }  # fmt: skip


STORY = [
    (DATA, SYN), (DATA, SYN), (ACKS, SYN | ACK), (ACKS, SYN | ACK), (DATA, ACK), (DATA, ACK),
    (ACKS, ACK), (ACKS, FIN | ACK), (DATA, ACK), (DATA, FIN | ACK), (DATA, FIN | ACK),
]  # fmt: skip


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    """Connections one after the other on the same ports, with packets lost, repeated and reset."""
    for case in range(12):
        flow, counter, now = Flow(), Counter(), 0
        yield {"case": f"flow-{case}", "params": {}}
        for connection in range(6):
            mirrored = random.randrange(2)
            for direction, flags in STORY:
                if random.random() < 0.25:
                    continue
                if random.random() < 0.05:
                    flags = RST
                now += random.choice([1000, 1000000])
                args = packet(random, now, direction ^ mirrored, flags, 1000 * connection)
                result = flow.packet(**args)
                yield {"event": "packet", "args": args, "result": result, "state": flow.state()}
                if random.random() < 0.2:
                    now += random.choice([0, 2000000000])
                    args = {"now_ns": now, "idle_ns": 1000000000}
                    yield {
                        "event": "expire",
                        "args": args,
                        "result": flow.expire(**args),
                        "state": flow.state(),
                    }
                args = {
                    "flags": flags,
                    "payload": args.get("payload", 0),
                    "is_out": random.randrange(2),
                    "now_ns": now,
                }
                yield {
                    "event": "counter_packet",
                    "args": args,
                    "result": counter.packet(**args),
                    "state": flow.state(),
                }
                args = {
                    "now_ns": now + random.choice([0, 999999999, 1000000000]),
                    "idle_ns": 1000000000,
                }
                yield {
                    "event": "counter_expire",
                    "args": args,
                    "result": counter.expire(**args),
                    "state": flow.state(),
                }
