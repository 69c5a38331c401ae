# SPDX-License-Identifier: Apache-2.0
"""The order in which Grant serves levels, learned from the sizes of the messages that passed."""

from dataclasses import dataclass, field

from .grant_flow import KILO, LEVELS, level_of

COMMON = 9
"""Levels of common messages: up to 256 KiB, or what a slow link carries in 10 ms."""
PRIOR = 8
"""Beyond the largest message that ended, as if so many had been seen in each level, half of which
ended in it."""


@dataclass
class Order:
    levels: int
    """Of these, the last is always served last."""
    brief: int
    """Bytes that the link carries in 10 ms."""
    messages: int = 0
    ended: list[int] = field(default_factory=lambda: [0] * LEVELS)
    passed: list[int] = field(default_factory=lambda: [0] * LEVELS)
    reach: list[int] = field(default_factory=lambda: [LEVELS - 1] * LEVELS)

    def __post_init__(self) -> None:
        # Until sizes are known: of common ones the longer message first, then the shorter one.
        common = min(self.last, COMMON, level_of(self.brief) + 1)
        self.order = [*reversed(range(common)), *range(common, LEVELS)]

    @property
    def last(self) -> int:
        return self.levels - 1

    def level(self, attained: int) -> int:
        return min(level_of(attained), self.last)

    def is_overtaken(self, level: int) -> bool:
        """Whether new messages come before it."""
        return self.order.index(level) > self.order.index(0)

    def grow(self, before: int, attained: int) -> None:
        """A message has sent more."""
        for level in range(LEVELS):
            self.passed[level] += before < KILO << level <= attained

    def end(self, attained: int) -> None:
        """A message is over."""
        if attained:
            self.messages += 1
            self.ended[level_of(attained)] += 1

    def index(self, level: int) -> int:
        """Gittins index by the product-limit estimate and rule of succession, in fixed point."""
        left, ended, work, best = 2**16, 0, 0, 0
        for i in range(level, self.last):
            prior = 0 if any(self.ended[i:]) else PRIOR
            count = self.ended[i] + self.passed[i] + prior
            dies = left * (self.ended[i] + prior // 2) // max(count, 1)
            ended += dies
            work += (left - dies // 2) * (1 if i == 0 else 2 ** (i - 1))
            left -= dies
            index = (ended << 20) // max(work, 1)
            if index > best:
                best = index
                self.reach[level] = i
        return best

    def learn(self) -> None:
        if self.messages + self.passed[COMMON - 1] < 32:
            return
        last = self.last
        self.reach[:last] = [LEVELS - 1] * last
        index = [self.index(level) for level in range(last)]
        # Of equal ones the longer first.
        self.order[:last] = sorted(range(last), key=lambda i: (-index[i], -i))
        if self.messages >= 65536:
            self.messages //= 2
            self.ended = [count // 2 for count in self.ended]
            self.passed = [count // 2 for count in self.passed]
