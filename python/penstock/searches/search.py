# SPDX-License-Identifier: Apache-2.0
"""The search itself: Optuna proposes values, runs measure them, a journal keeps each trial."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import optuna
from optuna import Study
from optuna.samplers import TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from penstock.errors import PenstockError, RunError, ScenarioError
from penstock.execution import Task
from penstock.searches.space import Parameter
from penstock.searches.trial import Attempt, Goal, Results, answer

BATCH = 4
"""Trials proposed at once; the same on every machine, so that the seed decides the search."""

JOURNAL = "tune.journal"
_SEEDS = 1 << 32
"""The sampler's seeds are below this."""

Compute = Callable[[Sequence[Sequence[Task]], str], list[Results | PenstockError]]
"""Runs several sets of tasks at once; the text labels the progress."""


def search(
    folder: Path,
    parameters: Sequence[Parameter],
    start: Mapping[str, float],
    goal: Goal,
    tasks: Callable[[Mapping[str, float]], Sequence[Task]],
    compute: Compute,
    *,
    trials: int,
    seed: int,
) -> list[Attempt]:
    """Searches until the folder has `trials` finished trials; those of earlier commands count.

    Args:
        folder: keeps the journal; locked by the caller.
        parameters: the dimensions of the search.
        start: the first trial: the scheme's own values, those that lie in the ranges.
        goal: the question.
        tasks: the runs of a trial.
        compute: runs those of several trials.
        trials: how many.
        seed: of the search, which is the same for the same seed.

    Raises:
        RunError: no trial could be computed.
    """
    study = _study(folder / JOURNAL)
    # An interrupted first trial has failed, so it is proposed once more.
    if start and not _done(study) and not _in_state(study, TrialState.WAITING):
        study.enqueue_trial(dict(start))
    while len(done := _done(study)) < trials:
        # No state of the sampler is kept, so an interrupted search goes on as if it had not been.
        study.sampler = TPESampler(seed=(seed + len(done)) % _SEEDS)
        proposed = [study.ask() for _ in range(min(BATCH, trials - len(done)))]
        values = [{p.key: p.suggest(trial) for p in parameters} for trial in proposed]
        label = f"trials {len(done) + 1} to {len(done) + len(proposed)} of {trials}"
        attempts = _batch(proposed, values, goal, tasks, compute, label)
        for trial, attempt in zip(proposed, attempts, strict=True):
            _record(study, trial, attempt)
    attempts = [_attempt(trial) for trial in done]
    if all(attempt.error for attempt in attempts):
        message = f"none of {len(attempts)} trials could be computed; the first: "
        raise RunError(message + attempts[0].error)
    return attempts


def _batch(
    proposed: Sequence[Trial],
    values: Sequence[dict[str, float]],
    goal: Goal,
    tasks: Callable[[Mapping[str, float]], Sequence[Task]],
    compute: Compute,
    label: str,
) -> list[Attempt]:
    prepared: list[Sequence[Task] | PenstockError] = []
    for trial_values in values:
        try:
            prepared.append(tasks(trial_values))
        except ScenarioError as error:  # values that do not go together
            prepared.append(error)
    valid = [entry for entry in prepared if not isinstance(entry, PenstockError)]
    computed = iter(compute(valid, label))
    attempts = []
    for trial, trial_values, entry in zip(proposed, values, prepared, strict=True):
        seeds = entry if isinstance(entry, PenstockError) else next(computed)
        attempts.append(
            Attempt(trial.number, trial_values, None, (), (), str(seeds))
            if isinstance(seeds, PenstockError)
            else answer(trial.number, trial_values, seeds, goal)
        )
    return attempts


def _study(path: Path) -> Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(path)))
    study = optuna.create_study(study_name="tune", storage=storage, load_if_exists=True)
    for trial in _in_state(study, TrialState.RUNNING):
        study.tell(trial.number, state=TrialState.FAIL)  # was interrupted; proposed again
    return study


def _record(study: Study, trial: Trial, attempt: Attempt) -> None:
    trial.set_user_attr("answer", asdict(attempt))
    if attempt.error:
        study.tell(trial, state=TrialState.FAIL)
        return
    for number, excess in enumerate(attempt.excess):
        trial.set_constraint(str(number), excess)
    study.tell(trial, math.inf if attempt.objective is None else attempt.objective)


def _in_state(study: Study, state: TrialState) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(state,))


def _done(study: Study) -> list[FrozenTrial]:
    return [trial for trial in study.get_trials(deepcopy=False) if "answer" in trial.user_attrs]


def _attempt(trial: FrozenTrial) -> Attempt:
    fields = trial.user_attrs["answer"]
    return Attempt(**{**fields, "kept": tuple(fields["kept"]), "excess": tuple(fields["excess"])})
