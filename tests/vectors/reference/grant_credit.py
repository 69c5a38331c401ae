# SPDX-License-Identifier: Apache-2.0
"""How much credit a port has under Grant, and how much of it a flow may have; sums over flows."""

from dataclasses import dataclass, field
from typing import Any

from .grant_flow import ACTIVE, KILO, LEVELS, WORD, Flow, beyond
from .grant_order import Order

PORT, RECEIVER, LIMIT = 0, 1, 2
DEFAULT = {
    "buffer_bytes": 128_000, "mss_bytes": 1460, "side": PORT,
    "target_bytes": 25_600, "long_target_bytes": 6_400,
    "rtt_ns": 50_000, "grant_segments": 10, "allowance_segments": 2,
    "levels": 14, "learns": 1, "long_share_q16": 8192,
    "resend_after_q16": 98304, "timer_ns": 250_000,
}  # fmt: skip


@dataclass
class Credit:
    p: dict[str, Any]
    rate: int
    never_shrinks: bool
    flows: dict[int, Flow] = field(default_factory=dict)
    waiting: list[list[int]] = field(default_factory=lambda: [[] for _ in range(LEVELS)])
    active: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    unused: list[int] = field(default_factory=list)
    used: int = 1
    grant_ns: int = 0
    busy_ns: int = 0
    queued_ns: int = 0
    lapse_ns: int = 0
    doubt: int = 0
    granted: int = 0
    left_over: int = 0
    unused_q16: int = 0
    drained_ns: int = 0
    owed_q16: int = 0
    virtual: int = 0
    turn: int = 0
    turn_ns: int = 0
    owed_grants: int = 0
    brief: int = 0
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("grants", "resends", "lapses"), 0)
    )

    def __post_init__(self) -> None:
        self.order = Order(self.p["levels"], self.bytes_in(10_000_000))

    def bytes_in(self, time_ns: int) -> int:
        return (self.rate // 1024) * min(time_ns, 10**9) // 7_812_500

    @property
    def budget(self) -> int:
        return min(self.p["target_bytes"] + self.bytes_in(self.p["rtt_ns"]), 2**30)

    @property
    def burst(self) -> int:
        """What of it may be given at once, as that and a target more may also come at once."""
        target = self.p["target_bytes"]
        fits = max(self.p["buffer_bytes"] - target, target)
        return min(fits, self.budget) if self.p["side"] == PORT else self.budget

    def is_overtaken(self, flow: Flow) -> bool:
        return self.order.is_overtaken(flow.level)

    def budget_of(self, flow: Flow) -> int:
        """A flow that comes after new messages leaves room for them."""
        of_long = self.p["long_target_bytes"] + self.bytes_in(self.p["rtt_ns"])
        return min(of_long, self.budget) if self.is_overtaken(flow) else self.budget

    @property
    def delay(self) -> int:
        return self.p["rtt_ns"] + self.p["target_bytes"] * 8 * 10**9 // self.rate

    @property
    def idle_ns(self) -> int:
        return 2 * self.p["rtt_ns"] + self.p["mss_bytes"] * 8 * 10**9 // self.rate

    @property
    def outstanding(self) -> int:
        return sum(flow.credit for flow in self.flows.values())

    @property
    def late_credit(self) -> int:
        """Of those whose grant had to be sent again."""
        return sum(self.flows[number].credit for number in self.late)

    def give_back(self, flow: Flow) -> None:
        if self.burst < self.budget:
            self.virtual = max(self.virtual - beyond(flow.edge, flow.seen), 0)

    @property
    def turn_bytes(self) -> int:
        """So much is owed before a grant of it is given."""
        return max(min(self.p["grant_segments"] * self.p["mss_bytes"], self.budget // 2), 1)

    def size(self, flow: Flow) -> int:
        budget, turns = self.budget_of(flow), 3 if self.is_overtaken(flow) else 2
        grant = self.p["grant_segments"] * flow.mss
        others = max(sum(map(len, self.waiting)) + len(self.active) + len(self.late) - 1, 0)
        if grant >= budget // turns:
            whole = max(budget // turns // flow.mss, 2) * flow.mss
            size = min(flow.size, grant, whole if self.is_overtaken(flow) else budget // turns)
        elif flow.size >= grant:  # few flows have more
            part = min(budget // (turns + others), flow.lead)
            size = max(grant, part // flow.mss * flow.mss)
        else:
            size = flow.size
        reach = self.order.reach[flow.level]
        if reach < LEVELS - 1:
            segments = -(-max((KILO << reach) - flow.attained, 0) // flow.mss)
            size = min(size, max(segments, 2) * flow.mss)
        return self.step(max(size, flow.mss), flow.mss)

    def step(self, count: int, mss: int) -> int:
        """What is given at once where credit is paced: half of the burst, in whole segments."""
        half = self.burst // 2
        if self.burst >= self.budget or not half:
            return count
        return min(count, max(half // mss * mss, mss))

    def queue(self, bytes_at_port: int, now: int) -> int:
        return {PORT: bytes_at_port, RECEIVER: 0, LIMIT: self.virtual_at(now)}[self.p["side"]]

    def room_of(self, flow: Flow, queue: int, now: int, is_owed: bool = False) -> int:
        """Bytes of the next grant of a flow that waits; an idle link may only stand still."""
        size, budget = self.size(flow), self.budget if is_owed else self.budget_of(flow)
        least = min(max(self.p["allowance_segments"], 1) * flow.mss, size)
        size = self.room(flow, size, least, budget, queue, now)
        return size if self.is_paced(size, now) else 0

    def is_paced(self, count: int, now: int) -> bool:
        left = self.virtual_at(now)
        return self.burst >= self.budget or not left or left + count <= self.burst

    def room(
        self, flow: Flow, size: int, least: int, budget: int, queue: int, now: int
    ) -> int:  # fmt: skip
        outstanding, target = self.outstanding - flow.credit, self.p["target_bytes"]
        has_active = bool(self.active or self.late)
        late = 0 if now < self.queued_ns else self.late_credit
        without_data = late + (outstanding * self.unused_q16 >> 16)
        since = max(self.busy_ns, self.grant_ns)
        is_free = has_active and not self.queue(queue, now)
        idles = is_free and now >= self.queued_ns and now - since >= self.idle_ns

        def fits(count: int, beyond_it: int) -> bool:
            used = outstanding + max(count, beyond(flow.most, flow.seen))
            return used + self.queue(queue, now) <= budget + beyond_it

        if is_free and self.doubt and now - self.busy_ns >= self.idle_ns:
            size = least
        if fits(size, min(without_data, target)):
            return size
        if not has_active and now - self.grant_ns >= self.delay:
            return size
        return least if idles and fits(least, target) else 0

    def virtual_at(self, now_ns: int) -> int:
        return max(self.virtual - self.bytes_in(max(now_ns - self.drained_ns, 0)), 0)

    def bytes(self, count: int, now_ns: int) -> None:
        # A packet of 1 KiB or more shows that the link is busy, a smaller one in part.
        busy_ns = max(self.busy_ns, now_ns - self.idle_ns)
        self.busy_ns = min(busy_ns + self.idle_ns * min(count, KILO) // KILO, now_ns)
        self.doubt = max(self.doubt - count, 0)
        if self.p["side"] == LIMIT:
            self.fill(count, now_ns)
            self.virtual = min(self.virtual, max(self.p["buffer_bytes"], self.budget))

    def fill(self, count: int, now_ns: int) -> None:
        self.virtual = self.virtual_at(now_ns) + count
        self.drained_ns = max(self.drained_ns, now_ns)

    def heed_receiver(self, flow: Flow) -> None:
        """Credit beyond what the receiver offers is none."""
        refused = min(beyond(flow.edge, flow.offered), beyond(flow.edge, flow.seen))
        if flow.state != ACTIVE or flow.resends:
            return
        flow.edge = (flow.edge - refused) % WORD
        self.granted = max(self.granted - refused, 0)
        if self.burst < self.budget:
            self.virtual = max(self.virtual - refused, 0)

    @property
    def openers_are_brief(self) -> bool:
        """Those who open connections begin with short messages: they need no grant for them."""
        return self.brief >= 224

    def learn(self) -> None:
        if not self.p["learns"]:
            return
        self.unused_q16 = min((self.left_over << 16) // max(self.granted, 1), 2**16)
        if self.granted >= 2**20:
            self.granted, self.left_over = self.granted // 2, self.left_over // 2
        self.order.learn()
