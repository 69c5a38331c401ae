# SPDX-License-Identifier: Apache-2.0
"""Grant as the head of its header describes it: what packets and time do to the flows of a port."""

from typing import Any

from .grant_flow import (
    ACK,
    ACTIVE,
    CLIENT,
    CLOSING,
    FIN,
    HANDSHAKE,
    IDLE,
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
from .grant_turns import Turns


class Port(Turns):
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
        if is_request and (rests or flow.may_end) and flow.attained:
            self.end_message(flow)
            flow.attained = 0
            if flow.state == WAITING and QUIET not in flow.marks:
                self.ask(number, x["now_ns"])
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
        is_end = fresh > 0 and flow.ends(end, x["payload"], pushes=bool(x["flags"] & PSH))
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
