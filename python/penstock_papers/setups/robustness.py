# SPDX-License-Identifier: Apache-2.0
"""How far a claim depends on what its paper leaves open: the share of set-ups in which it holds."""

import math
from dataclasses import dataclass
from enum import StrEnum

from penstock.stats import NORMAL

ROBUST, REFUTED = 0.9, 0.1
"""A claim that holds in at least, or at most, this share of the set-ups."""
FEWEST = 20
"""Set-ups that a share needs; of 20 that agree, the interval is 84 to 100 %."""
FEWEST_TO_RANK = 30
"""Set-ups that are needed to name the open value that decides."""


class Kind(StrEnum):
    """What the set-ups show of a claim."""

    ROBUST = "robust"
    FRAGILE = "fragile"
    REFUTED = "refuted"
    TOO_FEW = "too few"
    NOT_RUN = "not run"


MEANINGS = {
    Kind.ROBUST: f"in {100 * ROBUST:.0f} % of the set-ups or more",
    Kind.FRAGILE: f"in between {100 * REFUTED:.0f} and {100 * ROBUST:.0f} %",
    Kind.REFUTED: f"in {100 * REFUTED:.0f} % or fewer",
    Kind.TOO_FEW: f"in any share of fewer than {FEWEST}",
    Kind.NOT_RUN: "no set-ups were run, or nothing is open",
}
"""In which set-ups a claim of a kind holds."""

RULES = (
    f"**{Kind.ROBUST}** if it holds {MEANINGS[Kind.ROBUST]}, **{Kind.REFUTED}** if "
    f"{MEANINGS[Kind.REFUTED]}, **{Kind.FRAGILE}** between; with fewer than {FEWEST} set-ups it is "
    f"**{Kind.TOO_FEW}**"
)
"""The thresholds as Markdown."""


@dataclass(frozen=True)
class Share:
    """In how many of the set-ups a claim holds."""

    held: int
    judged: int

    @property
    def value(self) -> float | None:
        """The share; None where nothing was judged."""
        return self.held / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval."""
        if not self.judged:
            return 0.0, 1.0
        number, share, square = self.judged, self.held / self.judged, NORMAL**2
        middle = share + square / (2 * number)
        half = NORMAL * math.sqrt(share * (1 - share) / number + square / (4 * number**2))
        below = 1 + square / number
        return max(0.0, (middle - half) / below), min(1.0, (middle + half) / below)

    @property
    def kind(self) -> Kind:
        """By the thresholds above."""
        if self.value is None:
            return Kind.NOT_RUN
        if self.judged < FEWEST:
            return Kind.TOO_FEW
        if self.value >= ROBUST:
            return Kind.ROBUST
        return Kind.REFUTED if self.value <= REFUTED else Kind.FRAGILE

    def __str__(self) -> str:
        """As `97 % of 64 (89 to 99 %)`."""
        if self.value is None:
            return "–"
        low, high = self.interval
        return f"{self.value:.0%} of {self.judged} ({low:.0%} to {high:.0%})".replace("%", " %")
