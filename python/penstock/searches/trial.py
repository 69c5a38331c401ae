# SPDX-License-Identifier: Apache-2.0
"""A trial of a search: the values tried, and how far its runs reach the goal."""

import math
from dataclasses import dataclass

from penstock.metric_names import Field
from penstock.metrics import Result
from penstock.searches.constraints import MISSING, Constraint, mean, unfinished, value

Results = list[Result]
"""Of the seeds, in their order."""


@dataclass(frozen=True)
class Goal:
    """The question in numbers."""

    objective: Field
    """To be minimized."""
    constraints: tuple[Constraint, ...]
    baseline: tuple[float | None, ...]
    """The baseline's value for each constraint."""


@dataclass(frozen=True)
class Attempt:
    """A trial that was answered."""

    number: int
    values: dict[str, float]
    """By the keys of the parameters; numbers in their units."""
    objective: float | None
    """Mean over the seeds; None: too many flows did not finish."""
    kept: tuple[float | None, ...]
    """What the constraints are about, likewise."""
    excess: tuple[float, ...]
    """By how much each constraint is missed, as a share; the last: flows that did not finish."""
    error: str = ""
    """Why it could not be simulated."""

    @property
    def is_feasible(self) -> bool:
        """Whether all constraints are kept and the objective is there."""
        return not self.error and self.objective is not None and max(self.excess) <= 0

    @property
    def missed(self) -> float:
        """By how much the constraints are missed, together."""
        return math.inf if self.error else sum(max(0.0, excess) for excess in self.excess)


def answer(number: int, values: dict[str, float], seeds: Results, goal: Goal) -> Attempt:
    """A trial with the results of its seeds."""
    objective = mean([value(goal.objective, result) for result in seeds])
    constrained = [mean([value(c.field, result) for result in seeds]) for c in goal.constraints]
    excess = [
        constraint.excess(number, base)
        for constraint, number, base in zip(
            goal.constraints, constrained, goal.baseline, strict=True
        )
    ]
    lost = sum(unfinished(goal.objective, result) for result in seeds) / len(seeds)
    if objective is None and lost == 0:
        lost = MISSING  # no such number at all
    return Attempt(number, values, objective, tuple(constrained), (*excess, lost))
