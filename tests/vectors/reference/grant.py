# SPDX-License-Identifier: Apache-2.0
"""Connections at a port under Grant, and what its model (`grant_port.py`) decides about them."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from .grant_credit import DEFAULT, LIMIT, RECEIVER
from .grant_flow import ACK, FIN, PSH, RST, WORD, beyond
from .grant_port import Port

CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "receiver": {
        "side": RECEIVER,
        "target_bytes": 40_000,
        "long_target_bytes": 40_000,
        "allowance_segments": 0,
    },
    "limit": {"side": LIMIT, "grant_segments": 4},
    "never-shrinks": {"target_bytes": 20_000},
    "fair-share": {"levels": 1, "learns": 0, "long_share_q16": 0},
    "learnt": {"long_share_q16": 20000},
    "fast": {"rtt_ns": 20_000, "target_bytes": 100_000, "levels": 15},
    "far": {"rtt_ns": 4_000_000, "buffer_bytes": 100_000},
    "far and fast": {"rtt_ns": 5_000_000},
    "late": {"side": RECEIVER, "buffer_bytes": 96_000},
    "openers": {},
    "few": {"rtt_ns": 1_000_000, "buffer_bytes": 1_000_000, "target_bytes": 200_000, "levels": 4},
}


@dataclass
class Sender:
    """A sender that obeys its windows, roughly: some of its segments come twice, some never."""

    number: int
    seq: int
    scale: int
    mss: int
    edge: int
    left: int = 0
    acked: int = 0
    cut: int = 0
    """Rest of a segment of which a window took a part."""


class Story:
    """Connections at a port, as a list of events."""

    def __init__(self, port: Port, random: Random) -> None:
        self.port, self.random = port, random
        self.now = 0
        self.senders: list[Sender] = []

    def event(self, name: str, number: int, args: dict[str, Any]) -> dict[str, Any]:
        call = {"syn": self.port.syn_window, "close": self.port.close, "learn": self.port.learn}
        call |= {"bytes": self.port.bytes, "next": self.port.next, "timer": self.port.timer}
        if name == "ack":
            packet = {key: args[key] for key in args if key not in ("flow", "queue")}
            result: Any = self.port.acked(number, packet, args["queue"])
        elif name == "begin":
            packet = {key: args[key] for key in args if key != "opening"}
            result = self.port.begin(packet, args["opening"])
        elif name == "data":
            result = self.port.data(number, {key: args[key] for key in args if key != "flow"})
        else:
            result = call[name](*args.values())
        state = self.port.state(number)
        if name == "learn":
            order = self.port.order
            state |= {"order": list(order.order), "reach": list(order.reach)}
            state |= {"ended": list(order.ended), "passed": list(order.passed)}
        return {"event": name, "args": args, "result": result, "state": state}

    def ack(self, sender: Sender, payload: int, flags: int = ACK) -> dict[str, Any]:
        window = self.random.choice(
            [65535 >> sender.scale, 2000, 40, 0] if self.random.random() < 0.1 else [60000]
        )
        args = {
            "flow": sender.number, "now_ns": self.now, "seq": 1000 + sender.acked % 7,
            "ack": sender.acked,
            "payload": payload, "ts_val": self.now % 977, "ts_ecr": 5, "window": window, "mss": 0,
            "scale": 0, "flags": flags,
            "queue": self.random.choice([0, 0, 3000, 30_000, 90_000]),
        }  # fmt: skip
        row = self.event("ack", sender.number, args)
        sender.edge = (sender.acked + (row["result"] << sender.scale)) % WORD
        return row

    def data(self, sender: Sender, segments: int = 1) -> dict[str, Any]:
        random = self.random
        room = beyond(sender.edge, sender.seq)
        whole = min(sender.cut or sender.mss * max(segments, 1), sender.left)
        payload = min(whole, room)
        if random.random() < 0.05:
            payload = random.choice([0, 1])
        flags = ACK
        pushes = 0.5 if sender.cut else 0.05
        if (payload and payload == sender.left) or random.random() < pushes:
            flags |= PSH
        if random.random() < 0.01:
            flags |= FIN
        if random.random() < 0.002:
            flags |= RST
        back = random.choice([1, sender.mss]) if random.random() < 0.05 else 0
        args = {
            "flow": sender.number, "now_ns": self.now, "seq": (sender.seq - back) % WORD, "ack": 7,
            "payload": payload, "ts_val": 0, "ts_ecr": 0, "window": 0,
            "mss": random.choice([0, 0, sender.mss]), "scale": 0, "flags": flags,
        }  # fmt: skip
        row = self.event("data", sender.number, args)
        if not back:
            sender.seq = (sender.seq + payload) % WORD
            sender.left -= payload
            sender.cut = whole - payload if payload > 1 else sender.cut
        if random.random() < 0.5:
            sender.acked = sender.seq
        return row

    def connect(self, scale: int, *, opens: bool = False) -> Iterator[dict[str, Any]]:
        """A connection, which the sender of the data opens or the other end."""
        random = self.random
        seq, mss = random.choice([random.randrange(WORD), WORD - 3000]), random.choice([536, 1448])
        packet = {
            "now_ns": self.now, "seq": 1000, "ack": seq, "payload": 0, "ts_val": self.now % 977,
            "ts_ecr": 5, "window": 60000, "mss": random.choice([mss, mss, mss, 0]), "scale": scale,
            "flags": ACK, "opening": None,
        }  # fmt: skip
        sender = Sender(0, seq, scale, mss, seq, 0, seq)
        if opens:
            args = {"mss": mss, "half_open": random.choice([0, 0, 3, 40])}
            args |= {"queue": random.choice([0, 0, 30_000]), "now_ns": self.now}
            row = self.event("syn", 0, args)
            yield row
            offered = random.choice([65535, 65535, 3000])
            shown = min(row["result"], offered)
            sender.edge = (seq + shown) % WORD
            packet |= {"seq": seq, "ack": 1000}
            packet["opening"] = {"seq": seq, "window": offered, "shown": shown}
        row = self.event("begin", 0, packet)
        sender.number = row["result"]
        self.senders.append(sender)
        yield row

    @property
    def any_scale(self) -> int:
        return self.random.choice([0, 7, 10, 14])

    def messages(self) -> Iterator[dict[str, Any]]:
        """Enough messages, most of them short, that the order follows them."""
        while self.port.order.messages < 70:
            self.senders = [s for s in self.senders if s.number in self.port.flows]
            if not self.senders:
                yield from self.connect(self.any_scale)
            sender = self.senders[0]
            self.now += 1_000_000
            sender.left = self.random.choice([600, 600, 5000, 7500, 40_000])
            sender.acked = sender.seq
            yield self.ack(sender, 100)
            for _ in range(60):
                if not sender.left or sender.number not in self.port.flows:
                    break
                self.now += 600_000
                yield self.data(sender)
                yield self.event("timer", 0, {"queue": 0, "now_ns": self.now})
                if not beyond(sender.edge, sender.seq) and sender.number in self.port.flows:
                    sender.acked = sender.seq
                    yield self.ack(sender, 0)
        yield self.event("learn", 0, {})

    def requests(self, count: int, answer_bytes: int) -> Iterator[dict[str, Any]]:
        """As many new connections, on each of which a client asks."""
        for _ in range(count):
            yield from self.connect(7)
            self.senders[-1].left = answer_bytes
            yield self.ack(self.senders[-1], 100)

    def openers(self, count: int, size: int) -> Iterator[dict[str, Any]]:
        """As many connections whose senders opened them, and begin with so many bytes."""
        for _ in range(count):
            yield from self.connect(7, opens=True)
            sender = self.senders[-1]
            self.now += 20_000
            if self.random.random() < 0.9:
                yield self.data(sender, 0)
            if self.random.random() < 0.1:
                yield self.ack(sender, 90)  # the other end speaks first
            sender.left = size
            for _ in range(40):
                if not sender.left or sender.number not in self.port.flows:
                    break
                self.now += 100_000
                yield self.data(sender)
                yield self.decide("timer")
            if sender.number in self.port.flows:
                sender.acked = sender.seq
                yield self.ack(sender, 200)  # the answer
        self.senders = [s for s in self.senders[-5:] if s.number in self.port.flows]

    def long_messages(self, count: int, size: int) -> Iterator[dict[str, Any]]:
        """Few flows send much, in bursts as large as a receiver puts together."""
        self.senders = []
        for number in list(self.port.flows):
            yield self.event("close", number, {"flow": number})
        yield from self.requests(count, size)
        for _ in range(100):
            for sender in self.senders:
                self.now += 100_000 if self.random.random() < 0.99 else 3_000_000
                sender.left = sender.left or size
                room = beyond(sender.edge, sender.seq) // sender.mss
                yield self.data(sender, min(room // self.random.choice([1, 2]), 40))
                if self.random.random() < 0.5:
                    sender.acked = sender.seq
                    yield self.ack(sender, 0)
                yield self.decide("next")
            self.senders = [s for s in self.senders if s.number in self.port.flows]

    def late(self, count: int) -> Iterator[dict[str, Any]]:
        """Many ask at once, and their servers have nothing until much later."""
        yield from self.requests(count, 11_500)
        for _ in range(300):
            self.now += self.random.choice([0, 0, 200_000, 1_700_000])
            yield self.decide("timer")
        for sender in self.senders:
            self.now += 100_000
            yield self.data(sender, 2)
            yield self.decide("timer")
        self.senders = [s for s in self.senders if s.number in self.port.flows]

    def exchange(self, sender: Sender) -> Iterator[dict[str, Any]]:
        random = self.random
        if not sender.left:
            nearly = 3 * sender.mss - 18
            sender.left = random.choice([200, 1000, nearly, 11_500, 60_000, 3_000_000])
            sender.acked = sender.seq
            yield self.ack(sender, 100)
            return
        for _ in range(random.choice([1, 1, 5])):
            if sender.left:
                yield self.data(sender)
        if random.random() < 0.6:
            sender.acked = sender.seq
            # Both ends may send, and the other may end first.
            fin = FIN if random.random() < 0.05 else 0
            yield self.ack(sender, random.choice([0, 0, 0, 100, sender.mss]), ACK | fin)

    def step(self) -> Iterator[dict[str, Any]]:
        random = self.random
        self.now += random.choice([0, 1000, 60_000, 60_000, 60_000, 2_000_000])
        if len(self.senders) < 12 and random.random() < 0.2:
            opens = random.random() < 0.4
            yield from self.connect(self.any_scale, opens=opens)
            if opens:
                self.senders[-1].left = random.choice([500, 20_000, 2_000_000])
        elif self.senders and random.random() < 0.8:
            yield from self.exchange(random.choice(self.senders))
            self.senders = [s for s in self.senders if s.number in self.port.flows]
        elif random.random() < 0.3:
            bytes_passed = random.choice([60, 1500, 64_000])
            yield self.event("bytes", 0, {"count": bytes_passed, "now_ns": self.now})
        for name in ("next", "next", "timer"):
            if random.random() < 0.6:
                yield self.decide(name)
        if random.random() < 0.05:
            yield self.event("learn", 0, {})
        if self.senders and random.random() < 0.01:
            sender = self.senders.pop()
            yield self.event("close", sender.number, {"flow": sender.number})

    def decide(self, name: str) -> dict[str, Any]:
        queue = self.random.choice([0, 20_000, 90_000])
        row = self.event(name, 0, {"queue": queue, "now_ns": self.now})
        for sender in self.senders:
            if row["result"] and sender.number == row["result"][0]:
                unit = self.port.flows[sender.number].unit
                sender.edge = (row["result"][2] + row["result"][-1] * unit) % WORD
        return row


RATES = {"limit": 10_000_000, "fast": 10**10, "far and fast": 10**9}


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    for name, changes in CASES.items():
        params = DEFAULT | changes
        rate, never_shrinks = RATES.get(name, 200_000_000), name == "never-shrinks"
        yield {
            "case": name,
            "params": params,
            "rate_bps": rate,
            "never_shrinks": int(never_shrinks),
        }
        story = Story(Port(params, rate, never_shrinks), random)
        if name == "learnt":
            yield from story.messages()
        if name == "late":
            yield from story.late(40)
        if name == "openers":
            for count, size in ((50, 300), (6, 20_000), (20, 2896), (50, 400)):
                yield from story.openers(count, size)
        if name in ("few", "far and fast"):
            for count, size in ((1, 2_000_000), (2, 2_000_000), (5, 2_000_000), (1, 100_000)):
                yield from story.long_messages(count, size)
        for _ in range(200):
            yield from story.step()
