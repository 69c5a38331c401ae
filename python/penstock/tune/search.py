# SPDX-License-Identifier: Apache-2.0
"""The search itself: Optuna proposes, simulations answer, and each answer is kept."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, RunError, ScenarioError
from penstock.execution import Task
from penstock.fields import Field, Result
from penstock.tune import goal
from penstock.tune.goal import Constraint
from penstock.tune.space import Parameter

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

BATCH = 4
"""Trials proposed at once; the same on every machine, so that the seed decides the search."""

JOURNAL = "tune.journal"

Results = list[Result]
"""Of the seeds, in their order."""
Simulate = Callable[[Sequence[Sequence[Task]], str], list[Results | PenstockError]]
"""Runs several sets of tasks at once; what is said is shown with the progress."""


@dataclass(frozen=True)
class Wanted:
    """The question."""

    objective: Field
    """To be made small."""
    constraints: tuple[Constraint, ...]
    baseline: tuple[float | None, ...]
    """What the baseline gives for each constraint."""


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


def answer(number: int, values: dict[str, float], seeds: Results, wanted: Wanted) -> Attempt:
    """What the simulations of a trial say about the question."""
    objective = goal.mean([goal.value(wanted.objective, one) for one in seeds])
    kept = [goal.mean([goal.value(c.field, one) for one in seeds]) for c in wanted.constraints]
    excess = [
        constraint.excess(number, base)
        for constraint, number, base in zip(wanted.constraints, kept, wanted.baseline, strict=True)
    ]
    lost = sum(goal.unfinished(wanted.objective, one) for one in seeds) / len(seeds)
    if objective is None and lost == 0:
        lost = 1.0  # no such number at all
    return Attempt(number, values, objective, tuple(kept), (*excess, lost))


def search(
    folder: Path,
    parameters: Sequence[Parameter],
    first: Mapping[str, float],
    wanted: Wanted,
    tasks: Callable[[Mapping[str, float]], Sequence[Task]],
    simulate: Simulate,
    *,
    trials: int,
    seed: int,
) -> list[Attempt]:
    """Searches until there are `trials` answers in the folder; those that are there count.

    Args:
        folder: keeps the journal.
        parameters: what may be changed.
        first: where to begin: the scheme's own values, those that lie in the ranges.
        wanted: the question.
        tasks: the simulations of a trial.
        simulate: runs those of several trials.
        trials: how many.
        seed: of the search, which is the same for the same seed.

    Raises:
        RunError: no trial could be simulated.
    """
    study = _study(folder / JOURNAL)
    if first and not _done(study):
        study.enqueue_trial(dict(first), skip_if_exists=True)
    while len(done := _done(study)) < trials:
        # Of a sampler's state nothing is kept: a search that was interrupted goes on alike.
        study.sampler = _sampler(seed + len(done))
        asked = [study.ask() for _ in range(min(BATCH, trials - len(done)))]
        values = [{one.key: one.suggest(trial) for one in parameters} for trial in asked]
        said = f"trials {len(done) + 1} to {len(done) + len(asked)} of {trials}: "
        results = _batch(asked, values, wanted, tasks, simulate, said)
        for trial, result in zip(asked, results, strict=True):
            _tell(study, trial, result)
    attempts = [_attempt(trial) for trial in done]
    if all(one.error for one in attempts):
        message = f"none of {len(attempts)} trials could be simulated; the first: "
        raise RunError(message + attempts[0].error)
    return attempts


def _batch(
    asked: Sequence["Trial"],
    values: Sequence[dict[str, float]],
    wanted: Wanted,
    tasks: Callable[[Mapping[str, float]], Sequence[Task]],
    simulate: Simulate,
    said: str,
) -> list[Attempt]:
    made: list[Sequence[Task] | PenstockError] = []
    for one in values:
        try:
            made.append(tasks(one))
        except ScenarioError as error:  # values that do not go together
            made.append(error)
    answers = iter(simulate([one for one in made if not isinstance(one, PenstockError)], said))
    results = []
    for trial, one, taken in zip(asked, values, made, strict=True):
        seeds = taken if isinstance(taken, PenstockError) else next(answers)
        results.append(
            Attempt(trial.number, one, None, (), (), str(seeds))
            if isinstance(seeds, PenstockError)
            else answer(trial.number, one, seeds, wanted)
        )
    return results


def _study(path: Path) -> "Study":
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(path)))
    study = optuna.create_study(study_name="tune", storage=storage, load_if_exists=True)
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)  # was interrupted; asked again
    return study


def _sampler(seed: int) -> Any:  # noqa: ANN401 (Optuna's)
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed)


def _tell(study: "Study", trial: "Trial", result: Attempt) -> None:
    from optuna.trial import TrialState

    trial.set_user_attr("answer", asdict(result))
    if result.error:
        study.tell(trial, state=TrialState.FAIL)
        return
    for number, excess in enumerate(result.excess):
        trial.set_constraint(str(number), excess)
    study.tell(trial, math.inf if result.objective is None else result.objective)


def _done(study: "Study") -> list["FrozenTrial"]:
    return [trial for trial in study.get_trials(deepcopy=False) if "answer" in trial.user_attrs]


def _attempt(trial: "FrozenTrial") -> Attempt:
    kept = trial.user_attrs["answer"]
    return Attempt(**{**kept, "kept": tuple(kept["kept"]), "excess": tuple(kept["excess"])})
