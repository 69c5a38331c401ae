# SPDX-License-Identifier: Apache-2.0
"""From a question to an answer: reference runs, the search, and a check on fresh seeds."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock import api, folders, metric_names
from penstock.errors import (
    InterruptedRunError,
    PenstockError,
    RunError,
    ScenarioError,
    resumable,
)
from penstock.execution import SIMULATOR, Progress, Task, execute
from penstock.metrics import Result
from penstock.scenario import Overrides, Scenario, measured_ports, parsed, settings_of
from penstock.searches import constraints, deploy, space
from penstock.searches.answer import sentences
from penstock.searches.question import Question, Tuned
from penstock.searches.space import Parameter
from penstock.searches.trial import Attempt, Goal
from penstock.searches.verdict import judged

CHECK_SEEDS = 10
"""Fresh seeds of the check, at least."""


def tune(
    file: Scenario,
    scheme: str,
    minimize: str,
    *,
    subject_to: Sequence[str] = (),
    params: Sequence[str] = (),
    overrides: Overrides | None = None,
    baseline: str = "drop-tail",
    trials: int = 40,
    seeds: int = 5,
    seed: int = 1,
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    on: str = SIMULATOR,
) -> Tuned:
    """Searches a scheme's parameters for the smallest value of a number.

    Args:
        file: as `scenario` of `api.run`.
        scheme: whose parameters.
        minimize: the number, as `mice.fct.p99`.
        subject_to: constraints, as `elephants.goodput>=0.95`.
        params: `KEY=LOW..HIGH`; default: the scheme's numeric ones.
        overrides: of the scenario, as `api.run` has them.
        baseline: the scheme that constraints without unit are relative to.
        trials: how many sets of values are tried.
        seeds: of each trial: 1 to this.
        seed: of the search.
        jobs: threads; default: one per core.
        cluster: a Dask scheduler's address.
        out: the folder; default: `runs/NAME-tune`.
        progress: called with (fraction of this batch done, its label).
        on: the substrate, as `api.run` has it.

    Raises:
        ScenarioError: a number, constraint, parameter or scheme is wrong.
        RunError: a run cannot be computed, or another process works on the folder.
        InterruptedRunError: Ctrl-C. Finished trials are in the folder.
    """
    if find_spec("optuna") is None:
        message = "penstock tune needs Optuna; install it with: pip install 'penstock[tune]'"
        raise RunError(message)
    from penstock.searches.search import search  # start-up: Optuna takes a second, and is optional

    if trials < 1:
        message = f"trials: is {trials}; allowed: 1 or more"
        raise ScenarioError(message)
    prepare = partial(api.prepare, file, on=on)
    settings = settings_of(overrides)
    prepared = space.prepared_by(scheme, baseline, prepare, overrides=overrides, seeds=seeds)
    resolved = parsed(prepared.text)
    ports = partial(measured_ports, prepared.text, prepared.origin)
    metric_names.check(minimize, resolved, ports)
    constraints.check(subject_to, resolved, ports)
    table = resolved["scheme"][scheme]
    parameters = tuple(space.named(params) if params else space.usual(scheme, table))
    question = Question(
        prepared.text, scheme, baseline, minimize, tuple(subject_to), parameters, seeds, seed, on
    )

    def is_same(folder: Path) -> bool:
        return _document(folder).get("question") == question.as_json()

    place = None if out is None else Path(out)
    name = f"{prepared.name}-tune"
    folder = folders.for_work(folders.SEARCH, name, place, is_same, "another search")

    def tasks(
        values: Mapping[str, float], which: Sequence[int] | int = seeds, of: str = scheme
    ) -> Sequence[Task]:
        changes = [
            (parameter.key, json.dumps(parameter.value(values[parameter.key])))
            for parameter in parameters
            if parameter.key in values
        ]
        return prepare(schemes=[of], overrides=[*settings, *changes], seeds=which).tasks

    def compute(batch: Sequence[Sequence[Task]], label: str) -> list[Any]:
        def listen(fraction: float, count: str) -> None:
            if progress is not None:
                progress(fraction, f"{label}: {count}")

        return _computed(batch, jobs, cluster, listen)

    _check_keys(parameters, tasks)
    with folders.locked(folder, "search"), _kept(folder):
        references = _or_raise(compute([tasks({}, of=baseline), tasks({})], "references"))
        goal = _goal(question, references[0])
        if not _is_answered(folder):
            folders.write_json(folder / folders.SEARCH.file, {"question": question.as_json()})
        start = _start(parameters, prepared.text)
        attempts = search(folder, parameters, start, goal, tasks, compute, trials=trials, seed=seed)
        best = min(attempts, key=_rank)
        check = None
        if best.is_feasible:
            fresh = list(range(seeds + 1, seeds + 1 + max(CHECK_SEEDS, seeds)))
            variants = {
                baseline: tasks({}, fresh, baseline),
                f"{scheme} (defaults)": tasks({}, fresh),
                f"{scheme} (tuned)": tasks(best.values, fresh),
            }
            results = _or_raise(compute(list(variants.values()), "check"))
            check = judged(dict(zip(variants, results, strict=True)), goal, fresh)
        values = {p.key: p.value(best.values[p.key]) for p in parameters}
        text = tasks(best.values)[0].scenario
        tuned = Tuned(
            folder,
            question,
            attempts,
            best,
            check,
            goal.objective.unit,
            deploy.scheme_table(text, scheme, values),
            deploy.agent_lines(text, scheme, values),
        )
        folders.write_json(folder / folders.SEARCH.file, tuned.as_json(sentences(tuned)))
    return tuned


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        message = f"interrupted; {resumable('finished trials', folder)}"
        raise InterruptedRunError(message) from None


def load(folder: Path) -> dict[str, Any]:
    """`tune.json` of a search that ended.

    Raises:
        RunError: it did not, or is damaged.
    """
    document = folders.read_json(folder / folders.SEARCH.file, "begin again in another --out")
    if not _is_answer(document):
        message = f"{folder}: the search has not ended; the same command goes on with it"
        raise RunError(message)
    return document


def _is_answer(document: Mapping[str, Any]) -> bool:
    return "trials" in document


def _is_answered(folder: Path) -> bool:
    """Whether an earlier command with the same question has ended."""
    return folders.has_kind(folder, folders.SEARCH) and _is_answer(_document(folder))


def _document(folder: Path) -> dict[str, Any]:
    """`tune.json`; empty where it is damaged."""
    try:
        return folders.read_json(folder / folders.SEARCH.file, "")
    except RunError:
        return {}


def _rank(attempt: Attempt) -> tuple[float, float]:
    objective = float("inf") if attempt.objective is None else attempt.objective
    return attempt.missed, objective


def _goal(question: Question, baseline: Sequence[Result]) -> Goal:
    """The question in numbers; the baseline's results have the names and the values."""
    sample = baseline[0]
    objective = metric_names.find(question.minimize, sample)
    bounds = tuple(constraints.constraint(text, sample) for text in question.subject_to)
    values = []
    for bound in bounds:
        values.append(
            constraints.mean([constraints.value(bound.field, result) for result in baseline])
        )
        if bound.is_ratio and values[-1] is None:
            message = (
                f"--subject-to {bound.text}: {question.baseline} has no such number (flows did not "
                "finish); give an absolute bound with its unit, or another --baseline"
            )
            raise ScenarioError(message)
    return Goal(objective, bounds, tuple(values))


def _check_keys(
    parameters: Sequence[Parameter], tasks: Callable[[Mapping[str, float]], object]
) -> None:
    """Refuses a parameter that the scenario takes at neither end of its range.

    Raises:
        ScenarioError: there is one.
    """
    for parameter in parameters:
        try:
            tasks({parameter.key: parameter.low})
        except ScenarioError:
            try:
                tasks({parameter.key: parameter.high})
            except ScenarioError as error:
                message = str(error).replace("--set ", "--param ", 1)
                raise ScenarioError(message) from None


def _start(parameters: Sequence[Parameter], scenario: str) -> dict[str, float]:
    """The scenario's own values of the parameters, those that it has and that lie in the range."""
    start = {}
    for parameter in parameters:
        value: Any = parsed(scenario)
        for part in parameter.key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        number = None if value is None else parameter.number(value)
        if number is not None:
            start[parameter.key] = round(number) if parameter.is_whole else number
    return start


def _computed(
    batch: Sequence[Sequence[Task]],
    jobs: int | None,
    cluster: str | None,
    progress: Progress,
) -> list[list[Result] | PenstockError]:
    """The results of each set's seeds, or the error of one of them."""
    errors: dict[Task, PenstockError] = {}
    every = [task for tasks in batch for task in tasks]
    failed = errors.__setitem__
    rows = dict(execute(every, jobs=jobs, cluster=cluster, progress=progress, failed=failed))
    results: list[list[Result] | PenstockError] = []
    for tasks in batch:
        error = next((errors[task] for task in tasks if task in errors), None)
        results.append(error or [json.loads(rows[task].summary) for task in tasks])
    return results


def _or_raise(results: Sequence[Any]) -> list[list[Result]]:
    for result in results:
        if isinstance(result, PenstockError):
            raise result
    return list(results)
