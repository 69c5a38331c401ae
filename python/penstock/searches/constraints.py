# SPDX-License-Identifier: Apache-2.0
"""Constraints on numbers, and completion times where flows did not finish."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import metric_names, missing, units
from penstock.errors import ScenarioError
from penstock.metric_names import Field
from penstock.metrics import Result

MISSING = 1e9
"""The excess of a number that is not there."""

_CONSTRAINT = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=)\s*(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(\S*)\s*")


def unfinished(field: Field, result: Result) -> float:
    """Share of unfinished flows beyond what a completion time bears; 0 for other numbers."""
    kind, owner, *path = field.path
    return missing.unfinished(".".join(path), result[kind][owner]) if kind == "groups" else 0.0


def value(field: Field, result: Result) -> float | None:
    """The number of one seed; None where it is missing, or too many flows did not finish."""
    return None if unfinished(field, result) > 0 else field.of(result)


def mean(numbers: Sequence[float | None]) -> float | None:
    """The mean over seeds; None where one has no number."""
    known = [number for number in numbers if number is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(numbers) else None


@dataclass(frozen=True)
class Constraint:
    """A number that must be at least, or at most, something."""

    text: str
    field: Field
    is_least: bool
    limit: float
    is_ratio: bool
    """`limit` is a share of the baseline's value."""

    def bound(self, baseline: float) -> float:
        """What the number is compared with, in its own unit."""
        return self.limit * baseline if self.is_ratio else self.limit

    def excess(self, number: float | None, baseline: float | None) -> float:
        """By how much it is missed, as a share of the bound; 0 or less: kept."""
        if number is None or (self.is_ratio and baseline is None):
            return MISSING
        bound = self.bound(baseline or 0.0)
        short = bound - number if self.is_least else number - bound
        return short / abs(bound) if bound else short


def check(
    texts: Sequence[str],
    scenario: Mapping[str, Any],
    ports: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Refuses constraints whose form or number is wrong, before anything runs.

    The arguments are those of `metric_names.check`.

    Raises:
        ScenarioError: one is.
    """
    for text in texts:
        metric_names.check(_parts(text)[0], scenario, ports)


def constraint(text: str, sample: Result) -> Constraint:
    """A constraint from its text: `elephants.goodput>=0.95`, `bottleneck.queue.p99<=60kB`.

    A bare number is a share of the baseline's value; with a unit it is absolute; `abs` is the unit
    of counts and ratios.

    Args:
        text: as the option has it.
        sample: a result of the scenario, for the names.

    Raises:
        ScenarioError: it is not of this form, names no number, or has the wrong unit.
    """
    name, relation, number, unit = _parts(text)
    field = metric_names.find(name, sample)
    known = {name: float(u.factor) for name, u in units.UNITS.items() if u.quantity == field.unit}
    known = known if field.unit else {"abs": 1.0}
    if unit and unit not in known:
        message = f"--subject-to {text}: '{unit}' is no unit of {name}; known: {', '.join(known)}"
        raise ScenarioError(message)
    limit = float(number) * known.get(unit, 1.0)
    return Constraint(text.replace(" ", ""), field, relation == ">=", limit, not unit)


def _parts(text: str) -> tuple[str, str, str, str]:
    """Name, relation, number, unit."""
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        message = (
            f"--subject-to {text}: give NUMBER>=VALUE or NUMBER<=VALUE, as elephants.goodput>=0.95"
        )
        raise ScenarioError(message)
    name, relation, number, unit = match.groups()
    if math.isinf(float(number)):
        message = f"--subject-to {text}: {number} is too large"
        raise ScenarioError(message)
    return name, relation, number, unit
