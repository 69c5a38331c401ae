# SPDX-License-Identifier: Apache-2.0
"""The check on fresh seeds: means, their confidence intervals, and which differences are noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock import stats
from penstock.metric_names import Field
from penstock.metrics import Result
from penstock.searches import constraints
from penstock.searches.constraints import Constraint
from penstock.searches.trial import Goal


@dataclass(frozen=True)
class Number:
    """One number of one variant over the fresh seeds."""

    mean: float | None
    """None: too many flows did not finish, in `missing` of the seeds."""
    ci95: float | None
    """Half-width of the 95 % confidence interval."""
    missing: int
    text: str
    """As people read it."""


@dataclass(frozen=True)
class Kept:
    """Whether the tuned variant keeps a constraint."""

    text: str
    is_kept: bool
    is_sure: bool
    """Beyond the noise: the confidence interval of its distance is on one side."""


@dataclass(frozen=True)
class Check:
    """Baseline, defaults and tuned on seeds the search has not seen."""

    seeds: list[int]
    names: list[str]
    """Of the numbers: the objective, then the constraints'."""
    variants: dict[str, list[Number]]
    """The baseline, the defaults, the tuned; by name, in the order of `names`."""
    change: float | None
    """Mean difference of the objective, tuned minus defaults, of equal seeds."""
    change_ci95: float | None
    change_text: str
    is_better: bool
    """Beyond the noise."""
    kept: list[Kept]

    def as_json(self) -> dict[str, Any]:
        """As `tune.json` has it."""
        return asdict(self)


def judged(variants: Mapping[str, Sequence[Result]], goal: Goal, seeds: Sequence[int]) -> Check:
    """Judges three variants: the baseline, the defaults, the tuned, in this order."""
    fields = [goal.objective, *(constraint.field for constraint in goal.constraints)]
    values = {
        name: [[constraints.value(field, result) for result in results] for field in fields]
        for name, results in variants.items()
    }
    base, defaults, tuned = values.values()
    change, width, is_better = _compared(tuned[0], defaults[0])
    kept = [
        _kept(constraint, tuned[place], base[place])
        for place, constraint in enumerate(goal.constraints, 1)
    ]
    objective = goal.objective
    return Check(
        list(seeds),
        [field.name for field in fields],
        {
            name: [_number(field, column) for field, column in zip(fields, columns, strict=True)]
            for name, columns in values.items()
        },
        change,
        width,
        "" if change is None else _signed(objective, change, width),
        is_better,
        kept,
    )


def spread(values: Sequence[float]) -> float | None:
    """Half-width of the 95 % confidence interval of the mean; None below two values."""
    half = stats.ci95_of(list(values))
    return None if half is None else float(half)


def _number(field: Field, values: Sequence[float | None]) -> Number:
    known = [value for value in values if value is not None]
    missing = len(values) - len(known)
    if missing:
        text = f"unfinished in {missing} of {len(values)} seeds"
        return Number(None, None, missing, text)
    mean, half = math.fsum(known) / len(known), spread(known)
    return Number(mean, half, 0, field.text(mean) + _half_text(field, half, mean))


def _compared(
    tuned: Sequence[float | None], defaults: Sequence[float | None]
) -> tuple[float | None, float | None, bool]:
    """Mean difference, its half-width, and whether it is below 0 beyond the noise."""
    pairs = [
        (a, b) for a, b in zip(tuned, defaults, strict=True) if a is not None and b is not None
    ]
    if len(pairs) < len(tuned):
        lost = [sum(value is None for value in side) for side in (tuned, defaults)]
        return None, None, lost[0] == 0 < lost[1]
    differences = [a - b for a, b in pairs]
    mean, half = math.fsum(differences) / len(differences), spread(differences)
    return mean, half, mean + (half or 0.0) < 0


def _kept(
    constraint: Constraint, tuned: Sequence[float | None], base: Sequence[float | None]
) -> Kept:
    excess = [constraint.excess(a, b) for a, b in zip(tuned, base, strict=True)]
    mean, half = math.fsum(excess) / len(excess), spread(excess) or 0.0
    return Kept(constraint.text, mean <= 0, half == 0 or abs(mean) > half)


def _signed(field: Field, change: float, half: float | None) -> str:
    sign = "−" if change < 0 else "+"
    return f"{sign}{field.text(abs(change))}{_half_text(field, half, change)}"


def _half_text(field: Field, half: float | None, mean: float) -> str:
    """Nothing where seeds differ by the rounding of floats alone."""
    return f" ± {field.text(half)}" if half and half > 1e-9 * abs(mean) else ""
