# SPDX-License-Identifier: Apache-2.0
"""Which flows exist and can still send: what a port may believe of the packets that pass.

Sequence numbers are compared modulo 2^32 (RFC 9293 §3.4).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from .tcp_rewrite import UNKNOWN

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
DATA, ACKS = 0, 1
NO_SCALE = 0xFE
LEAST_MSS = 536
ORDINARY_MSS = 1460
SECOND = 1_000_000_000


class Packet(NamedTuple):
    now_ns: int
    seq: int
    ack: int
    payload: int
    mss: int
    scale: int
    flags: int
    direction: int


def distance(start: int, end: int) -> int:
    """How far `end` is beyond `start`; negative if it is before."""
    return (end - start + 2**31) % 2**32 - 2**31


@dataclass
class Offer:
    """What a SYN has: an answer acknowledges the SYN of the other side."""

    isn: int
    mss: int
    scale: int
    is_answer: bool


@dataclass
class Claim:
    """A flow that no one has acknowledged yet: by its SYNs, or by data without them."""

    since: int
    offers: dict[int, Offer] = field(default_factory=dict)
    data_from: int | None = None

    def scale(self, side: int) -> int:
        """RFC 7323 §2.2: both sides must have offered; only an offer is answered by an offer."""
        own, peer = self.offers.get(side), self.offers.get(1 - side)
        if any(offer and offer.scale == NO_SCALE for offer in (own, peer)):
            return NO_SCALE
        if own and (peer or own.is_answer):
            return min(own.scale, 14)
        return UNKNOWN


@dataclass
class Connection:
    """An acknowledged flow, and what each side has sent of it."""

    scales: tuple[int, int]
    mss: int
    acked: list[int]
    sent: list[int]
    last: int
    full: int = 0
    shorter: int = 0
    state: str = "counted"

    def window(self, side: int) -> int:
        scale = self.scales[side]
        return 65535 << (0 if scale == NO_SCALE else min(scale, 14))

    def would_take(self, p: Packet) -> bool:
        """Whether the ends would (RFC 9293 §3.10.7.4), but for what may come a little late."""
        own, peer, late = p.direction, 1 - p.direction, 65536
        if p.flags & SYN or not p.flags & ACK:
            return False
        in_window = -late <= distance(self.acked[own], p.seq) <= self.window(peer)
        sent = distance(self.acked[peer], self.sent[peer])
        return in_window and -late <= distance(self.acked[peer], p.ack) <= sent

    def is_reset_by(self, p: Packet) -> bool:
        own = p.direction
        sent = distance(self.acked[own], self.sent[own])
        return 0 <= distance(self.acked[own], p.seq) <= sent

    def take(self, p: Packet) -> None:
        own, peer = p.direction, 1 - p.direction
        fin = 1 if p.flags & FIN else 0
        end = (p.seq + p.payload + fin) % 2**32
        is_new = distance(self.sent[own], end) > 0
        is_progress = distance(self.acked[peer], p.ack) > 0
        self.last = p.now_ns
        if own == DATA and p.payload:
            self.measure(p.mss or p.payload, p.mss > 0 or not p.flags & (PSH | FIN))
        if is_new:
            self.sent[own] = end
        if is_progress:
            self.acked[peer] = p.ack
        if own == DATA:
            if fin and end == self.sent[own]:
                self.state = "ended"
            elif p.payload and self.state == "idle":
                self.state = "counted"
            elif is_new and self.state == "ended":
                self.state = "doubted"
        elif is_progress and self.state == "doubted":
            self.state = "counted"

    def measure(self, size: int, is_full: bool) -> None:
        """The largest full segment, until eight shorter ones in a row; in steps of eight bytes."""
        size = min(-(-size // 8) * 8, 65528)
        is_larger = size > self.full
        if not is_full and not (self.full and is_larger):
            return
        self.shorter = self.shorter + 1 if size < self.full else 0
        if is_larger or self.shorter == 8:
            self.full, self.shorter = size, 0

    def expected(self, port: int) -> int:
        """What a segment may measure: never more than offered, never less than an ordinary one."""
        shown = max(self.full or port, ORDINARY_MSS)
        if not self.mss:
            return shown if self.full else 0
        return min(self.mss, shown)


@dataclass
class Flow:
    claim: Claim | None = None
    connection: Connection | None = None

    @property
    def is_counted(self) -> bool:
        return self.connection is not None and self.connection.state == "counted"

    def packet(self, **args: int) -> int:
        before = self.is_counted
        self.follow(Packet(**args))
        return self.is_counted - before

    def follow(self, p: Packet) -> None:
        known = self.connection
        is_live = known is not None and known.state in ("counted", "idle")
        if p.flags & RST:
            if not is_live and self.is_ended_by(p):
                self.claim = None
            if known and known.is_reset_by(p):
                known.state = "ended"
            return
        if p.flags & SYN:
            self.offer(p)
            return
        fits = known is not None and known.would_take(p)
        if not (is_live and fits) and self.is_ended_by(p):
            self.claim = None
        if not (is_live and fits) and self.is_proof(p, is_live, fits):
            self.establish(p)
        elif not fits and p.payload and p.direction == DATA and p.flags & (ACK | FIN) == ACK:
            self.see_data(p)
        if self.connection and self.connection.would_take(p):
            self.connection.take(p)

    def offer(self, p: Packet) -> None:
        own, peer = p.direction, 1 - p.direction
        if not self.claim or p.now_ns - self.claim.since >= 3 * SECOND or not self.claim.offers:
            self.claim = Claim(p.now_ns)
        self.claim.since = p.now_ns
        offers = self.claim.offers
        is_answer = bool(p.flags & ACK)
        known, other = offers.get(own), offers.get(peer)
        is_repeated = known is not None and known.isn == p.seq
        if other:
            contradicts_answer = is_answer and not 0 <= distance(other.isn + 1, p.ack) <= 16384
            renews_answered = not is_answer and not is_repeated and other.is_answer
            if contradicts_answer or renews_answered:
                del offers[peer]
        if is_repeated and known:
            known.is_answer = known.is_answer or is_answer
        else:
            mss = max(p.mss, LEAST_MSS)
            offers[own] = Offer(p.seq, mss, p.scale, is_answer)

    def is_ended_by(self, p: Packet) -> bool:
        if self.claim and self.claim.data_from is not None:
            return p.direction == DATA and p.flags & (FIN | RST) != 0
        if not p.flags & RST:
            return False
        offers = self.claim.offers if self.claim else {}
        own, other = offers.get(p.direction), offers.get(1 - p.direction)
        if own and p.seq == (own.isn + 1) % 2**32:
            return True
        return bool(other and p.flags & ACK and p.ack == (other.isn + 1) % 2**32)

    def see_data(self, p: Packet) -> None:
        if self.claim:
            life = 3 * SECOND if self.claim.offers else SECOND // 4
            if p.now_ns - self.claim.since < life:
                return
        self.claim = Claim(p.now_ns, data_from=p.seq)

    def is_proof(self, p: Packet, is_live: bool, fits: bool) -> bool:
        claim, own, peer = self.claim, p.direction, 1 - p.direction
        if not claim or not p.flags & ACK or p.now_ns - claim.since >= 3 * SECOND:
            return False
        if claim.data_from is not None:
            return not fits and own == ACKS and 0 < (p.ack - claim.data_from) % 2**32 <= 2**20
        answer, syn = claim.offers.get(peer), claim.offers.get(own)
        if not answer or p.ack != (answer.isn + 1) % 2**32:
            return False
        if not is_live:
            return True
        return (
            syn is not None and answer.is_answer and (p.seq - syn.isn - 1) % 2**32 <= 65536
        )  # fmt: skip

    def establish(self, p: Packet) -> None:
        claim = self.claim
        assert claim
        sequence = [p.seq, p.ack] if p.direction == DATA else [p.ack, p.seq]
        full = shorter = 0
        if claim.data_from is None:
            scales, mss = (claim.scale(DATA), claim.scale(ACKS)), 0
            mss = min(offer.mss for offer in claim.offers.values())
        elif self.connection:
            scales, mss = self.connection.scales, self.connection.mss
            full, shorter = self.connection.full, self.connection.shorter
        else:
            scales, mss = (UNKNOWN, UNKNOWN), 0
        acked = sequence[:]
        if claim.data_from is None and p.direction in claim.offers:
            acked[p.direction] = (claim.offers[p.direction].isn + 1) % 2**32
        self.connection = Connection(scales, mss, acked, sequence, p.now_ns, full, shorter)
        self.claim = None

    def expire(self, now_ns: int, idle_ns: int) -> int:
        if not self.is_counted or not self.connection or now_ns - self.connection.last < idle_ns:
            return 0
        self.connection.state = "idle"
        return -1

    def state(self) -> dict[str, int]:
        known = self.connection
        scales = known.scales if known else (UNKNOWN, UNKNOWN)
        scale_data, scale_acks = (0 if scale == NO_SCALE else scale for scale in scales)
        return {
            "is_counted": int(self.is_counted), "scale_data": scale_data,
            "scale_acks": scale_acks, "mss": known.expected(0) if known else 0,
            "mss_at_port": known.expected(8960) if known else 0,
            "is_half_open": int(bool(self.claim and self.claim.offers)),
        }  # fmt: skip


class Side:
    """One end of a connection as it sends."""

    def __init__(self, random: Random) -> None:
        self.next = random.choice([0, 2**32 - 2, random.randrange(2**32)])
        self.heard = 0
        self.mss = random.choice([0, 100, 536, 1460, 8960])
        self.scale = random.choice([0, 7, 14, 15, NO_SCALE])


STORY = [
    (DATA, SYN, 0), (ACKS, SYN | ACK, 0), (DATA, ACK, 0), (DATA, ACK, 1448), (DATA, ACK, 1448),
    (ACKS, ACK, 0), (DATA, ACK, 1448), (ACKS, ACK, 100), (DATA, ACK, 1448), (ACKS, ACK, 0),
    (ACKS, FIN | ACK, 0), (DATA, ACK, 700), (ACKS, ACK, 0), (DATA, FIN | ACK, 0), (ACKS, ACK, 0),
]  # fmt: skip


def forged(random: Random, p: dict[str, int]) -> dict[str, int]:
    """Packets of a sender who knows addresses and ports only, or almost the numbers too."""
    flags = random.choice([SYN, SYN | ACK, RST, RST | ACK, FIN | ACK, ACK])
    near = [-70000, -65536, -1, 0, 1, 1448, 65535, 65536, 2**20 + 1, 2**23, 2**30]
    return p | {
        "seq": random.choice([p["seq"] + random.choice(near), random.randrange(2**32)]) % 2**32,
        "ack": random.choice([p["ack"] + random.choice(near), random.randrange(2**32)]) % 2**32,
        "flags": flags,
        "payload": 0 if flags & SYN else random.choice([0, 1, 1448]),
        "mss": 1 if flags & SYN else 0,
        "scale": random.choice([0, 14]) if flags & SYN else 0,
        "direction": random.randrange(2),
    }


def story(random: Random, now: int) -> Iterator[dict[str, int]]:
    """The packets of a connection, some lost, repeated or forged; some connections begin before."""
    sides, mirrored = [Side(random), Side(random)], random.randrange(2)
    begin = random.choice([0, 0, 0, 1, 2, 4])
    for number, (way, flags, payload) in enumerate(STORY):
        own, peer = sides[way], sides[1 - way]
        is_syn = bool(flags & SYN)
        p = {
            "now_ns": now, "seq": own.next, "ack": own.heard if flags & ACK else 0,
            "payload": payload, "mss": own.mss if is_syn else 0,
            "scale": own.scale if is_syn else 0, "flags": flags, "direction": way ^ mirrored,
        }  # fmt: skip
        own.next = (own.next + payload + (1 if flags & (SYN | FIN) else 0)) % 2**32
        if random.random() < 0.95:
            peer.heard = own.next
        if number < begin:
            continue
        if payload and random.random() < 0.3:
            p["flags"] |= PSH
        elif payload and random.random() < 0.3:
            p["mss"] = random.choice([9, 724, 1448])
        for _ in range(random.choice([0, 1, 1, 1, 1, 1, 2, 9 if payload else 1])):
            now += random.choice([1000, 1000, 1_000_000, 1_000_000, 300_000_000, 3 * SECOND])
            yield p | {"now_ns": now}
        if random.random() < 0.3:
            yield forged(random, p | {"now_ns": now})


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    """Connections one after the other on the same ports."""
    for case in range(24):
        flow, now = Flow(), 0
        yield {"case": f"flow-{case}", "params": {}}
        for _ in range(6):
            for args in story(random, now):
                now = args["now_ns"]
                result = flow.packet(**args)
                yield {"event": "packet", "args": args, "result": result, "state": flow.state()}
                if random.random() < 0.1:
                    now += random.choice([0, 2 * SECOND])
                    args = {"now_ns": now, "idle_ns": SECOND}
                    yield {
                        "event": "expire", "args": args, "result": flow.expire(**args),
                        "state": flow.state(),
                    }  # fmt: skip
