# SPDX-License-Identifier: Apache-2.0
"""A flow under Grant: sequence numbers, where its messages end, and its credit."""

from dataclasses import dataclass, field

WORD = 2**32
IDLE, WAITING, ACTIVE = 1, 2, 3
HANDSHAKE, SILENT, QUIET, CLOSING, OPENER, CLIENT = 1, 2, 4, 8, 64, 128
LASTING = {QUIET, CLOSING, OPENER, CLIENT}
FIN, RST, PSH, ACK = 1, 4, 8, 16
LEVELS, KILO = 16, 1024
OPTIONS = 40
"""Of a segment, at most."""
LEAD = 8
"""Beyond `grant`, at most such a part of what a message has sent,"""
RUN_LEAD = 64
"""or of all that was sent without a rest."""


def beyond(seq: int, than: int) -> int:
    """How far a sequence number is ahead of another; 0 if it is not (RFC 9293 §3.4)."""
    ahead = (seq - than) % WORD
    return ahead if ahead < WORD // 2 else 0


def level_of(attained: int) -> int:
    level = 0
    while level < LEVELS - 1 and attained >= KILO << level:
        level += 1
    return level


@dataclass
class Flow:
    mss: int
    size: int
    scale: int
    seen: int
    edge: int
    most: int
    ack: int
    last: int = 0
    shown: int = 0
    cut: int = 0
    may_end: bool = False
    seq: int = 0
    stamps: tuple[int, int] = (0, 0)
    attained: int = 0
    run: int = 0
    window: int = 0
    state: int = IDLE
    level: int = 0
    marks: set[int] = field(default_factory=set)
    resends: int = 0
    since: int = 0

    @property
    def unit(self) -> int:
        return 1 << self.scale

    def see(self, seq: int) -> None:
        """What is behind `seq` from here on is no longer ahead, not even after half a cycle."""
        fresh = beyond(seq, self.seen)
        edge, most = beyond(self.edge, self.seen), beyond(self.most, self.seen)
        self.edge = self.edge if edge >= fresh else seq
        self.most = self.most if most >= fresh else seq
        self.ack = self.ack if beyond(seq, self.ack) else seq
        self.seen = seq

    def note_edge(self) -> None:
        """Its sender may have filled the window up to the edge, which is to move."""
        self.last = self.last if beyond(self.last, self.edge) else self.edge
        self.shown = min(beyond(self.most, self.last), self.unit - 1)

    def forget_edge(self) -> None:
        self.last = (self.seen - 2**14) % WORD

    def note_mss(self, named: int, payload: int, goes_on: bool) -> None:
        """The size of a SYN's option has room for options; a full segment has what is left."""
        if not named:
            return
        if payload > named or not 0 <= named - self.mss <= OPTIONS:
            self.mss = named
        if goes_on and named - OPTIONS <= payload <= named:
            self.mss = payload

    def ends(self, end: int, payload: int, *, pushes: bool) -> bool:
        """Whether a short segment ends a message: no window cut it, or what it is left of."""
        tail = payload % self.mss
        self.may_end = False
        if not tail:
            return False
        at_edge = (end - self.edge) % WORD < self.unit or (self.most - end) % WORD < self.unit
        is_cut = not beyond(self.edge, end) and at_edge
        is_cut = is_cut or (end - self.last) % WORD <= self.shown
        rest = (self.cut + tail) % self.mss
        self.cut = rest if is_cut else 0
        self.may_end = pushes and not is_cut and rest > 0
        return self.may_end and tail < self.mss - OPTIONS

    @property
    def offered(self) -> int:
        """The right edge of what its receiver has room for."""
        return (self.ack + self.window * self.unit) % WORD

    def is_beyond_all(self, end: int) -> bool:
        """Whether neither a window shown nor the receiver's own has so much room."""
        room = (self.offered + self.unit) % WORD
        return beyond(end, self.most) > 0 and beyond(end, room) > 0

    @property
    def is_shut(self) -> bool:
        return not beyond(self.offered, self.seen)

    @property
    def lead(self) -> int:
        return max(self.attained // LEAD, self.run // RUN_LEAD)

    @property
    def credit(self) -> int:
        if self.state != ACTIVE:
            return 0
        return max(beyond(self.edge, self.seen), beyond(self.most, self.seen))
