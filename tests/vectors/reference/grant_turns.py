# SPDX-License-Identifier: Apache-2.0
"""Which flow is next under Grant: those that wait, by level, and those that have credit; lists."""

from .grant_credit import Credit
from .grant_flow import ACTIVE, IDLE, LASTING, LEVELS, SILENT, WAITING, WORD, Flow


class Turns(Credit):
    def leave(self, number: int) -> None:
        if self.flows[number].state == ACTIVE:
            self.give_back(self.flows[number])
        self.unlist(number)

    def unlist(self, number: int) -> None:
        for queue in (*self.waiting, self.active, self.late):
            if number in queue:
                queue.remove(number)

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

    def lacks(self, flow: Flow) -> bool:
        """Whether one waits behind it, or behind another that waits."""
        waiting = [place for place, level in enumerate(self.order.order) if self.waiting[level]]
        first = min([self.order.order.index(flow.level), *waiting])
        return any(place > first for place in waiting)

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
