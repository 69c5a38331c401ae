# SPDX-License-Identifier: Apache-2.0
"""Transfers between addresses."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

MOST_FLOWS = 5_000_000
"""More than a run could hold."""


class Flow(NamedTuple):
    """A transfer."""

    start_s: float
    source: str
    """An address."""
    destination: str
    size: int
    """Bytes."""


@dataclass
class Found:
    """What a file holds."""

    flows: list[Flow]
    left_out: dict[str, int]
    """What was skipped, by its cause: `packets without TCP` and how many."""
    damage: str = ""
    """Where the file ends or breaks off before its time."""

    @classmethod
    def empty(cls) -> "Found":
        """Nothing yet."""
        return cls([], {})

    def leave_out(self, cause: str, count: int = 1) -> None:
        """Counts something that is no part of a transfer."""
        self.left_out[cause] = self.left_out.get(cause, 0) + count


class Stream:
    """What one end of a connection has sent, split into transfers where it paused."""

    def __init__(self, source: str, destination: str) -> None:
        """Nothing sent yet."""
        self._ends = (source, destination)
        self._start = self._last = 0.0
        self._size = 0

    def add(self, time_s: float, size: int, gap_s: float) -> Iterable[Flow]:
        """Counts bytes; yields the transfer before, if this begins another."""
        if self._size and time_s - self._last > gap_s:
            yield from self.end()
        if not self._size:
            self._start = time_s
        self._size += size
        self._last = max(time_s, self._last)

    def end(self) -> Iterable[Flow]:
        """The transfer under way, if there is one."""
        if self._size:
            yield Flow(self._start, *self._ends, self._size)
        self._size = 0
