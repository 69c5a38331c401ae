# SPDX-License-Identifier: Apache-2.0
"""Grant as the head of its header describes it: credit as sums over flows, lists as lists."""

from dataclasses import dataclass, field
from typing import Any

from .grant_flow import (
    ACK,
    ACTIVE,
    CLIENT,
    CLOSING,
    FIN,
    HANDSHAKE,
    IDLE,
    KILO,
    LASTING,
    LEVELS,
    OPENER,
    PSH,
    QUIET,
    RST,
    SILENT,
    WAITING,
    WORD,
    Flow,
    beyond,
)
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
class Port:
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
        self.order = Order(self.p["levels"])

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

    def begin(self, x: dict[str, int], opening: dict[str, int] | None) -> int:
        """A flow is followed from a packet on; its sender opened the connection, or did not."""
        number = self.unused.pop() if self.unused else self.used
        self.used += number == self.used
        mss = x["mss"] or self.p["mss_bytes"]
        seq = opening["seq"] if opening else x["ack"]
        flow = Flow(mss, self.p["grant_segments"] * mss, min(x["scale"], 14), seq, seq, seq, seq)
        flow.seq = x["ack"] if opening else x["seq"]
        flow.edge = (seq + self.p["allowance_segments"] * mss) % WORD
        flow.forget_edge()
        self.flows[number] = flow
        if opening:
            flow.marks = {HANDSHAKE, OPENER}
            flow.window = opening["window"] // flow.unit
            flow.stamps = (x["ts_ecr"], x["ts_val"])
            flow.most = (seq + opening["shown"]) % WORD
            flow.edge = flow.edge if opening["shown"] else seq
            if opening["shown"] > self.p["allowance_segments"] * mss:
                self.start(number, opening["shown"], x["now_ns"])
        return number

    def syn_window(self, mss: int, half_open: int, queue: int, now_ns: int) -> int:
        """What the SYN-ACK to a sender may offer: as much as all that are half open could have."""
        mss = mss or self.p["mss_bytes"]
        new = Flow(mss, self.p["grant_segments"] * mss, 0, 0, 0, 0, 0)
        allowance, grant = self.p["allowance_segments"] * mss, min(self.size(new), 65535)
        if self.openers_are_brief:
            return allowance
        if any(self.waiting):
            return 0
        used = self.outstanding + self.queue(queue, now_ns)
        all_bytes = (half_open + 1) * grant
        fits = used + all_bytes <= self.budget and self.is_paced(all_bytes, now_ns)
        if grant > allowance and fits:
            return grant
        return allowance if used + (half_open + 1) * allowance <= self.budget else 0

    def close(self, number: int) -> None:
        if number in self.flows:
            self.leave(number)
            del self.flows[number]
            self.unused.append(number)

    def leave(self, number: int) -> None:
        if self.flows[number].state == ACTIVE:
            self.give_back(self.flows[number])
        self.unlist(number)

    def unlist(self, number: int) -> None:
        for queue in (*self.waiting, self.active, self.late):
            if number in queue:
                queue.remove(number)

    def give_back(self, flow: Flow) -> None:
        if self.burst < self.budget:
            self.virtual = max(self.virtual - beyond(flow.edge, flow.seen), 0)

    def rest(self, number: int) -> None:
        flow = self.flows[number]
        self.leave(number)
        flow.state, flow.attained, flow.level, flow.resends = IDLE, 0, 0, 0
        flow.marks &= LASTING
        flow.edge = (flow.seen + self.p["allowance_segments"] * flow.mss) % WORD

    def ask(self, number: int, now: int) -> None:
        flow = self.flows[number]
        level = self.order.level(flow.attained)
        goes_on = flow.state == ACTIVE and flow.attained > 0 and flow.level == level
        goes_on = goes_on and level < min(self.order.last, 11)  # from 1 MiB on they take turns
        if flow.state == IDLE and now - flow.since >= self.idle_ns:
            flow.run = 0
        self.wait(number, level, goes_on, now)

    def wait(self, number: int, level: int, is_first: bool, now: int) -> None:
        flow = self.flows[number]
        self.leave(number)
        flow.state, flow.level, flow.resends, flow.since = WAITING, level, 0, now
        flow.marks &= LASTING
        self.waiting[level].insert(0 if is_first else len(self.waiting[level]), number)

    def choose(self) -> tuple[int, bool]:
        """Who is next, and whether by the share of those behind others."""
        best = next((level for level in self.order.order if self.waiting[level]), None)
        if best is None:
            return 0, False
        if self.owed_q16 >= self.turn_bytes << 16:
            # All that wait in a level before the turn comes to it are served.
            here = self.waiting[self.turn]
            stays = here and self.flows[here[0]].since < self.turn_ns and self.turn != LEVELS - 1
            first = 0 if stays else 1  # of late ones one at a time
            steps = [(self.turn + first + step) % LEVELS for step in range(LEVELS)]
            is_ahead = not self.order.is_overtaken(best)
            none = {0} | ({best} if is_ahead else set())
            others = [level for level in steps if level not in none and self.waiting[level]]
            if best and self.waiting[0] and (not others or self.owed_grants % 8 == 0):
                return self.waiting[0][0], True
            if others:
                return self.waiting[others[0]][0], True
        return self.waiting[best][0], False

    @property
    def turn_bytes(self) -> int:
        """So much is owed before a grant of it is given."""
        return max(min(self.p["grant_segments"] * self.p["mss_bytes"], self.budget // 2), 1)

    def lacks(self, flow: Flow) -> bool:
        """Whether one waits behind it, or behind another that waits."""
        waiting = [place for place, level in enumerate(self.order.order) if self.waiting[level]]
        first = min([self.order.order.index(flow.level), *waiting])
        return any(place > first for place in waiting)

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

    def activate(self, number: int, size: int, is_owed: bool, now: int) -> None:
        flow = self.flows[number]
        self.leave(number)
        if is_owed:
            self.owed_grants = (self.owed_grants + 1) % 256
            if flow.level not in (0, self.turn):
                self.turn, self.turn_ns = flow.level, now
            self.owed_q16 -= size << 16
        self.start(number, size, now)

    def start(self, number: int, size: int, now: int) -> None:
        flow = self.flows[number]
        flow.state, flow.since, flow.resends = ACTIVE, now, 0
        flow.marks = flow.marks & LASTING | {SILENT}
        flow.note_edge() if flow.attained else flow.forget_edge()
        flow.edge = (flow.seen + size) % WORD
        if not (self.active or self.late):
            self.busy_ns = max(self.busy_ns, now)
        self.active.append(number)
        self.grant_ns = now
        self.counts["grants"] += 1
        self.granted += size
        if self.burst < self.budget:
            self.fill(size, now)

    def write(self, flow: Flow, ack: int, window: int) -> int:
        unit = flow.unit
        left = beyond(flow.seen if flow.state == WAITING else flow.edge, ack)
        if self.never_shrinks:
            left = max(left, beyond(flow.most, ack))
        fields = -(-left // unit)
        if flow.state == WAITING and not self.never_shrinks:
            # It is shown no more than before, least of all by rounding.
            fields = fields if not beyond((ack + fields * unit) % WORD, flow.most) else left // unit
        window = min(fields, window)
        shown = (ack + window * unit) % WORD
        if beyond(shown, flow.most):
            flow.most = shown
        return window

    def update(self, number: int) -> list[int]:
        flow = self.flows[number]
        window = self.write(flow, flow.ack, flow.window)
        return [number, flow.seq, flow.ack, *flow.stamps, window]

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

    def acked(self, number: int, x: dict[str, int], queue: int) -> int:
        flow = self.flows.get(number)
        if x["flags"] & RST:
            self.close(number)
        if flow is None or x["flags"] & (RST | ACK) != ACK:
            return x["window"]
        end = (x["seq"] + x["payload"] + bool(x["flags"] & FIN)) % WORD
        fits = x["ack"] == flow.ack and not beyond(flow.seq, end)
        if beyond(x["ack"], flow.ack) or fits:
            flow.ack = x["ack"]
            if beyond(end, flow.seq) or beyond(flow.seq, end) > 65535:
                flow.seq = end
            flow.stamps = (x["ts_val"], x["ts_ecr"])
            flow.window = x["window"]
        if beyond(x["ack"], flow.seen):
            flow.see(x["ack"])
            if flow.state == IDLE:
                flow.edge = (flow.seen + self.p["allowance_segments"] * flow.mss) % WORD
        if CLOSING in flow.marks and not beyond(flow.seen, x["ack"]):
            self.close(number)
            return x["window"]
        is_request = 0 < x["payload"] < flow.mss and x["ack"] == flow.seen
        rests = flow.state == ACTIVE and x["now_ns"] - flow.since >= self.idle_ns
        if is_request and rests and flow.attained:
            self.end_message(flow)
            flow.attained = 0
        answered = {QUIET, CLIENT} | ({OPENER} if self.openers_are_brief else set())
        if flow.state == IDLE and x["payload"] > 0 and not flow.marks & answered:
            self.ask(number, x["now_ns"])
        chosen, is_owed = self.choose()
        is_next = flow.state == WAITING and chosen == number
        size = self.room_of(flow, queue, x["now_ns"], is_owed) if is_next else 0
        if size and not flow.is_shut:
            self.activate(number, size, is_owed, x["now_ns"])
        self.renew(flow, queue, x["now_ns"])
        self.heed_receiver(flow)
        return self.write(flow, x["ack"], x["window"])

    def renew(self, flow: Flow, queue: int, now: int) -> None:
        """While no flow waits, credit goes on before it is used up."""
        if flow.state != ACTIVE or SILENT in flow.marks or flow.resends or any(self.waiting):
            return
        flow.level = self.order.level(flow.attained)
        share = self.budget_of(flow) // max(len(self.active) + len(self.late), 1)
        grant = self.p["grant_segments"] * flow.mss
        share = min(share, max(grant, flow.lead))
        share = share // flow.mss * flow.mss  # of the whole budget, as none takes turns
        is_small = flow.size < grant
        size = max(self.size(flow), min(flow.size, share) if is_small else share)
        left = beyond(flow.edge, flow.seen)
        if left >= size // 2:
            return
        size = left + self.step(size - left, flow.mss)
        if not self.is_paced(size - left, now):
            return
        if not self.room(flow, size, size, self.budget_of(flow), queue, now):
            return
        flow.note_edge()
        flow.edge = (flow.seen + size) % WORD
        self.granted += size - left
        flow.size = min(2 * flow.size, self.p["grant_segments"] * flow.mss)
        if self.burst < self.budget:
            self.fill(size - left, now)

    def heed_receiver(self, flow: Flow) -> None:
        """Credit beyond what the receiver offers is none."""
        refused = min(beyond(flow.edge, flow.offered), beyond(flow.edge, flow.seen))
        if flow.state != ACTIVE or flow.resends:
            return
        flow.edge = (flow.edge - refused) % WORD
        self.granted = max(self.granted - refused, 0)
        if self.burst < self.budget:
            self.virtual = max(self.virtual - refused, 0)

    def notice(self, flow: Flow, end: int, now: int) -> None:
        """Data beyond all credit was sent before that was taken back: a queue held it."""
        is_beyond = beyond(end, flow.edge) and beyond(end, flow.most)
        had_credit = not beyond(end, (flow.last + flow.unit) % WORD)
        if is_beyond and had_credit:
            self.queued_ns = now + 2 * 10**7

    def data(self, number: int, x: dict[str, int]) -> None:
        if x["flags"] & RST:
            self.close(number)
        flow = self.flows.get(number)
        if flow is None:
            return
        is_fin = bool(x["flags"] & FIN)
        end = (x["seq"] + x["payload"] + is_fin) % WORD
        if flow.is_beyond_all(end):
            return  # no receiver takes it
        flow.note_mss(x["mss"], x["payload"], not x["flags"] & PSH)
        fresh = beyond(end, flow.seen)
        is_end = fresh > 0 and flow.ends(end, x["payload"]) and bool(x["flags"] & PSH)
        is_last = is_fin or is_end
        opens = HANDSHAKE in flow.marks
        opens = opens and (flow.edge == flow.seen or not self.openers_are_brief)
        flow.marks.discard(HANDSHAKE)
        is_behind = flow.state == WAITING and flow.level == LEVELS - 1
        probes = x["payload"] <= 1 and (flow.ack - x["seq"]) % WORD == 1 and flow.edge == flow.seen
        self.notice(flow, end, x["now_ns"])
        if x["payload"]:
            flow.marks -= {SILENT, QUIET, CLIENT} if SILENT in flow.marks else set()
            flow.resends = 0
            if flow.state == ACTIVE:
                flow.since = x["now_ns"]
                self.unlist(number)
                self.active.append(number)
        if fresh:
            self.advance(flow, end, fresh - is_fin, fresh)  # a FIN alone is no message
        if is_fin:
            flow.marks.add(CLOSING)
        if is_last and end == flow.seen:
            self.end_message(flow)
            self.left_over += beyond(flow.edge, flow.seen) * (flow.state == ACTIVE)
            self.rest(number)
        elif flow.state == ACTIVE and beyond(flow.edge, flow.seen) < flow.mss:
            flow.size = min(2 * flow.size, self.p["grant_segments"] * flow.mss)
            self.ask(number, x["now_ns"])
        elif (flow.state == IDLE or is_behind) and (fresh or probes or opens):
            if not fresh and opens:
                flow.size = min(flow.size, max(self.p["allowance_segments"], 2) * flow.mss)
            self.ask(number, x["now_ns"])

    def advance(self, flow: Flow, end: int, data: int, fresh: int) -> None:
        before, flow.attained = flow.attained, min(flow.attained + min(data, 2**30), 2**30)
        self.order.grow(before, flow.attained)
        if flow.attained >= self.p["allowance_segments"] * flow.mss:
            self.note_opener(flow, is_short=False)
        flow.run = min(flow.run + min(fresh, 2**30), 2**30)
        flow.see(end)
        if self.lacks(flow):
            due = min(fresh, 2**30) * self.p["long_share_q16"]
            self.owed_q16 = min(self.owed_q16 + due, 2 * self.turn_bytes << 16)

    @property
    def openers_are_brief(self) -> bool:
        """Those who open connections begin with short messages: they need no grant for them."""
        return self.brief >= 224

    def note_opener(self, flow: Flow, *, is_short: bool) -> None:
        """The first message of one who opened its connection: each counts a 16th."""
        if OPENER not in flow.marks:
            return
        flow.marks.remove(OPENER)
        if is_short:
            flow.marks.add(CLIENT)
            self.brief += -(-(255 - self.brief) // 16)
        else:
            self.brief -= -(-self.brief // 16)

    def end_message(self, flow: Flow) -> None:
        if flow.attained:
            self.note_opener(flow, is_short=True)
        self.order.end(flow.attained)

    def next(self, queue: int, now: int) -> list[int]:
        number, is_owed = self.choose()
        size = self.room_of(self.flows[number], queue, now, is_owed) if number else 0
        if not size:
            return []
        flow = self.flows[number]
        if flow.is_shut:
            self.rest(number)
            allowed = max(self.p["allowance_segments"], 1) * flow.mss
            flow.edge = (flow.seen + allowed) % WORD
            return []
        self.activate(number, size, is_owed, now)
        return self.update(number)

    def without_effect(self, queue: int, now: int) -> int:
        """A flow to be reminded of its grant, or to lose it."""
        wait = (self.delay >> 8) * self.p["resend_after_q16"] >> 8
        wait *= 8 if now < self.queued_ns else 1
        if self.late:
            flow = self.flows[self.late[0]]
            if flow.edge == flow.seen or now - flow.since >= wait:
                return self.late[0]
        if self.active:
            since = self.flows[self.active[0]].since
            idle = now - self.busy_ns >= 4 * self.idle_ns and now - since >= self.idle_ns
            others_wait = any(self.waiting) and not self.queue(queue, now)
            idle = idle and now >= self.queued_ns
            if now - since >= wait or (others_wait and idle):
                return self.active[0]
        return 0

    @property
    def rest_bytes(self) -> int:
        target = self.p["target_bytes"]
        return int(max(self.p["buffer_bytes"] - 2 * target, target))

    def may_lapse(self, now: int) -> bool:
        """Half of what the buffer has left lapses in 100 ms, and as much at once."""
        if self.never_shrinks:
            return True
        if self.lapse_ns > now + 10**8:
            return False
        lapsing = self.p["allowance_segments"] * self.p["mss_bytes"]
        self.lapse_ns = max(self.lapse_ns, now) + lapsing * 2 * 10**8 // max(self.rest_bytes, 1)
        return True

    def timer(self, queue: int, now: int) -> list[int]:
        number = self.without_effect(queue, now)
        if not number:
            return self.next(queue, now)
        flow = self.flows[number]
        left, allowance = beyond(flow.edge, flow.seen), self.p["allowance_segments"] * flow.mss
        allowance = max(allowance, flow.mss)
        if flow.resends == 3 and not self.may_lapse(now):
            flow.note_edge()
            flow.size = allowance
            level = LEVELS - 1 if QUIET in flow.marks else self.order.level(flow.attained)
            self.wait(number, level, False, now)
            flow.marks.add(QUIET)
            flow.edge = flow.most = flow.seen
            self.counts["resends"] += 1
            return self.update(number)
        if flow.resends == 3:
            if SILENT in flow.marks:
                flow.marks.add(QUIET)
            self.counts["lapses"] += 1
            self.rest(number)
            return self.update(number)
        self.unlist(number)
        if not flow.resends and SILENT not in flow.marks:
            flow.size = 2 * max(flow.size - left, flow.mss)
        if not flow.resends:
            flow.note_edge()
        if not flow.resends and left > allowance + flow.unit and not self.never_shrinks:
            self.give_back(flow)
            self.doubt += left
            flow.edge = flow.most = flow.seen  # window 0, and the allowance after it
            self.late.insert(0, number)
        else:
            more = allowance if not left else 0 if flow.resends else flow.unit
            flow.edge = (flow.edge + more) % WORD
            self.late.append(number)
        flow.resends, flow.since = flow.resends + 1, now
        self.counts["resends"] += 1
        return self.update(number)

    def learn(self) -> None:
        if not self.p["learns"]:
            return
        self.unused_q16 = min((self.left_over << 16) // max(self.granted, 1), 2**16)
        if self.granted >= 2**20:
            self.granted, self.left_over = self.granted // 2, self.left_over // 2
        self.order.learn()

    def state(self, number: int) -> dict[str, Any]:
        state = {
            "outstanding": self.outstanding, "late": self.late_credit,
            "unused_q16": self.unused_q16, "virtual_bytes": self.virtual, "doubt": self.doubt,
            "waiting": sum(map(len, self.waiting)), "active": len(self.active) + len(self.late),
            "used": self.used,
            "owed_q16": self.owed_q16, "turn": self.turn, "turn_ns": self.turn_ns,
            "messages": self.order.messages, "brief": self.brief,
        } | self.counts  # fmt: skip
        flow = self.flows.get(number)
        if flow:
            state["flow"] = {
                "edge": flow.edge, "most": flow.most, "seen": flow.seen, "credit": flow.credit,
                "attained": flow.attained, "size": flow.size, "level": flow.level,
                "state": flow.state, "flags": sum(flow.marks) | flow.resends << 4,
                "mss": flow.mss, "cut": flow.cut,
            }  # fmt: skip
        return state
