# SPDX-License-Identifier: Apache-2.0
"""Published claims, and whether runs bear them out.

`papers/README.md` defines relations and tolerances.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from penstock.errors import RunError
from penstock.runs import Run
from penstock_papers import measures, values
from penstock_papers.measures import Measure
from penstock_papers.values import Value

Runs = Mapping[str, Run]
"""The runs of an experiment by name; the only run's is empty."""

# How far a relation is from not holding, as a share of the value against; below 0 it does not.
# m: measured, a: against, f: factor, p: percent as a fraction.
_SLACKS: dict[str, Callable[[float, float, float, float], float]] = {
    "lower": lambda m, a, f, _: a - m * f,
    "higher": lambda m, a, f, _: m - a * f,
    "at-most": lambda m, a, _, p: a * (1 + p) - m,
    "at-least": lambda m, a, _, p: m - a * (1 - p),
    "about": lambda m, a, f, _: min(m - a / f, a * f - m),
    "within": lambda m, a, _, p: abs(a) * p - abs(m - a),
    "equal": lambda m, a, _f, _p: -abs(m - a),
}
_STRICT = ("lower", "higher")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper: how a measured number relates to another."""

    id: str
    text: str
    published: str | float
    measure: Measure
    relation: Literal["lower", "higher", "at-most", "at-least", "about", "within", "equal"]
    against: Measure | float
    where: str = ""
    run: str | tuple[str, ...] = ""
    factor: float = 1.0
    percent: float = 0.0

    @property
    def sides(self) -> list[Measure]:
        """What is measured: the number, and that which it is compared with if that is one."""
        return [side for side in (self.measure, self.against) if isinstance(side, Measure)]

    def is_borne_out(self, measured: float | None, against: float | None) -> bool:
        """Whether the relation holds; what is missing bears nothing out."""
        slack = self.slack(measured, against)
        return slack > 0 or (slack == 0 and self.relation not in _STRICT)

    def slack(self, measured: float | None, against: float | None) -> float:
        """How far the relation is from failing, relative to what is compared."""
        if measured is None or against is None:
            return -math.inf
        slack = _SLACKS[self.relation](measured, against, self.factor, self.percent / 100)
        return slack / (max(abs(measured), abs(against)) or 1.0)

    def is_open(self, measured: Value | None, against: Value | None) -> bool:
        """Whether values within both confidence intervals give the other verdict."""
        if measured is None or against is None:
            return False
        found = self.is_borne_out(measured.mean, against.mean)
        for other in against.ends:
            low, high = measured.ends
            inside = min(max(other, low), high)  # the likeliest to hold, where a range is asked for
            if any(self.is_borne_out(m, other) != found for m in (low, inside, high)):
                return True
        return False

    def show(self, measured: Value | None, against: Value | None) -> str:
        """The measured number with its unit, and a measured one that it is compared with."""
        shown = self.measure.show_with_half(measured)
        if isinstance(self.against, Measure):
            return f"{shown} vs {self.against.show_with_half(against)}"
        return shown


@dataclass(frozen=True)
class Finding:
    """A claim, and what was found."""

    id: str
    text: str
    where: str
    published: str | float
    measured: float | None
    ci95: float | None
    """Half-width of the measured number's 95 % confidence interval; None with one seed."""
    against: float | None
    """The number that the measured one is compared with."""
    against_ci95: float | None
    holds: bool | None
    """None: not judged, as none of its runs or not its scheme was run."""
    within_noise: bool
    """Whether the confidence intervals leave the verdict open."""
    run: str
    """Of several, that which is nearest to failing."""
    shown: str = field(repr=False)
    """The measured number as people read it."""

    @property
    def verdict(self) -> str:
        """In words."""
        return verdict(self.holds, is_open=self.within_noise)

    def as_json(self) -> dict[str, Any]:
        """As `penstock reproduce --json` prints it."""
        return asdict(self)


def verdict(holds: bool | None, *, is_open: bool) -> str:
    """What was found, in words."""
    if holds is None:
        return "not judged"
    return ("holds" if holds else "does not hold") + (", within the noise" if is_open else "")


def published(value: str | float) -> str:
    """The published value as text."""
    return value if isinstance(value, str) else f"{value:g}"


def judge(claim: Claim, names: tuple[str, ...], runs: Runs, schemes: set[str]) -> Finding:
    """Judges a claim by those of its runs (`names`) that were made.

    Raises:
        RunError: it is about something that its run does not have.
    """
    made = {name: runs[name] for name in names if name in runs}
    if (
        (names and not made)
        or any({side.scheme, side.minus} - {""} - schemes for side in claim.sides)
        or any(side.run and side.run not in runs for side in claim.sides)
    ):
        return unjudged(claim)
    try:
        pairs = _pairs(claim, made, runs)
    except RunError as error:
        message = f"claim {claim.id}: {error}"
        raise RunError(message) from None
    slacks = {name: claim.slack(*map(_mean, pair)) for name, pair in pairs.items()}
    worst = min(slacks, key=lambda name: slacks[name])
    holds = all(claim.is_borne_out(*map(_mean, pair)) for pair in pairs.values())
    return finding(claim, holds, *pairs[worst], worst if len(pairs) > 1 else "")


def unjudged(claim: Claim) -> Finding:
    """That nothing is known of a claim."""
    return finding(claim, None, None, None, "")


def _pairs(claim: Claim, made: Runs, runs: Runs) -> dict[str, tuple[Value | None, Value | None]]:
    """For each run the two values that are compared; for one number over all a single pair."""
    sides = (claim.measure, claim.against)
    if any(isinstance(side, Measure) and (side.across or side.analysis) for side in sides):
        return {"": (_one(sides[0], made, runs), _one(sides[1], made, runs))}
    return {
        name: (_one(sides[0], {name: run}, runs), _one(sides[1], {name: run}, runs))
        for name, run in made.items()
    }


def _one(side: Measure | float, made: Runs, runs: Runs) -> Value | None:
    if not isinstance(side, Measure):
        return Value(float(side))
    if side.analysis:
        return measures.analysed(side.analysis, runs)
    found = [side.of(run) for run in ([runs[side.run]] if side.run else made.values())]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    return values.ACROSS[side.across](known) if side.across else known[0]


def _mean(value: Value | None) -> float | None:
    return None if value is None else value.mean


def _half(value: Value | None) -> float | None:
    return None if value is None else value.half


def finding(
    claim: Claim, holds: bool | None, measured: Value | None, against: Value | None, run: str
) -> Finding:
    """A claim with what was found of it."""
    return Finding(
        claim.id,
        claim.text,
        claim.where,
        claim.published,
        _mean(measured),
        _half(measured),
        _mean(against),
        _half(against),
        holds,
        holds is not None and claim.is_open(measured, against),
        run,
        claim.show(measured, against),
    )
