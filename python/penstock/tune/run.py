# SPDX-License-Identifier: Apache-2.0
"""From a question to an answer: references, search, and a check on fresh seeds."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock import _native, api, fields, provenance, terminal
from penstock.errors import PenstockError, RunError, ScenarioError
from penstock.execution import Progress, Task, execute, simulator
from penstock.fields import Result
from penstock.results import free_folder
from penstock.tune import deploy, goal, space
from penstock.tune.search import Attempt, Wanted, search
from penstock.tune.space import Parameter
from penstock.tune.verdict import Check, judged

FILE = "tune.json"
CHECK_SEEDS = 10
"""Fresh seeds of the check, at least."""


@dataclass(frozen=True)
class Question:
    """What was asked for; the same question goes on where it stopped."""

    scenario: str
    """As resolved, with the baseline's and the scheme's tables."""
    scheme: str
    baseline: str
    minimize: str
    subject_to: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    seeds: int
    seed: int

    def digest(self) -> dict[str, Any]:
        """As JSON has it."""
        asked = asdict(self) | {"simulator": simulator()}
        return json.loads(json.dumps(asked))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Tuned:
    """The answer, as `tune.json` keeps it."""

    folder: Path
    question: Question
    attempts: list[Attempt]
    best: Attempt
    """The best feasible trial, or the one nearest to that."""
    check: Check | None
    """None where no trial was feasible."""
    unit: str
    """Of what is minimized: `s`, `bps`, `bytes`, or empty."""
    scheme_toml: str
    agent_toml: str

    @property
    def is_feasible(self) -> bool:
        """Whether the best trial keeps all constraints."""
        return self.best.is_feasible

    @property
    def title(self) -> str:
        """The scenario's."""
        return str(tomllib.loads(self.question.scenario)["title"])


def tune(
    file: str | Path,
    scheme: str,
    minimize: str,
    *,
    subject_to: Sequence[str] = (),
    params: Sequence[str] = (),
    overrides: Sequence[tuple[str, str]] = (),
    baseline: str = "drop-tail",
    trials: int = 40,
    seeds: int = 5,
    seed: int = 1,
    jobs: int | None = None,
    cluster: str | None = None,
    out: Path | None = None,
) -> Tuned:
    """Searches the parameters of a scheme that make a number small.

    Args:
        file: a scenario, or a template's name.
        scheme: whose parameters.
        minimize: the number, as `mice.fct.p99`.
        subject_to: constraints, as `elephants.goodput>=0.95`.
        params: `KEY=LOW..HIGH`; default: the scheme's numeric ones.
        overrides: of the scenario.
        baseline: the scheme that constraints without unit are shares of.
        trials: how many sets of values are tried.
        seeds: of each trial: 1 to this.
        seed: of the search.
        jobs: threads; default: one a core.
        cluster: a Dask scheduler's address.
        out: the folder; default: `runs/NAME-tune`.

    Raises:
        ScenarioError: the question cannot be asked.
        RunError: a simulation cannot be computed.
    """
    if find_spec("optuna") is None:
        message = "penstock tune needs Optuna; install it with: pip install 'penstock[tune]'"
        raise RunError(message)
    prepare = partial(api.prepare, file)
    both = list(dict.fromkeys([baseline, scheme]))
    made = prepare(schemes=both, overrides=overrides, seeds=seeds)
    own = tomllib.loads(made.text)["scheme"][scheme]
    parameters = tuple(space.named(params) if params else space.usual(scheme, own))
    question = Question(
        made.text, scheme, baseline, minimize, tuple(subject_to), parameters, seeds, seed
    )
    folder = _folder(out, f"{made.name}-tune", question)

    def tasks(
        values: Mapping[str, float], which: Sequence[int] | int = seeds, of: str = scheme
    ) -> Sequence[Task]:
        tried = [one for one in parameters if one.key in values]
        changed = [(one.key, json.dumps(one.value(values[one.key]))) for one in tried]
        settings = [*overrides, *changed]
        return prepare(schemes=[of], overrides=settings, seeds=which).tasks

    _check_keys(parameters, tasks)
    with terminal.Progress() as progress:

        def simulate(sets: Sequence[Sequence[Task]], said: str) -> list[Any]:
            return _simulated(
                sets, jobs, cluster, lambda share, label: progress(share, said + label)
            )

        references = simulate([tasks({}, of=baseline), tasks({})], "references: ")
        sample = _or_raise(references)[0][0]
        wanted = _wanted(question, sample, references[0])
        _keep(folder, {"question": question.digest()})
        attempts = search(
            folder,
            parameters,
            _first(parameters, made.text),
            wanted,
            tasks,
            simulate,
            trials=trials,
            seed=seed,
        )
        best = min(attempts, key=_rank)
        check = None
        if best.is_feasible:
            fresh = list(range(seeds + 1, seeds + 1 + max(CHECK_SEEDS, seeds)))
            named = {
                baseline: tasks({}, fresh, baseline),
                f"{scheme} (defaults)": tasks({}, fresh),
                f"{scheme} (tuned)": tasks(best.values, fresh),
            }
            results = _or_raise(simulate(list(named.values()), "check: "))
            check = judged(dict(zip(named, results, strict=True)), wanted, fresh)
    found = {one.key: one.value(best.values[one.key]) for one in parameters}
    text = tasks(best.values)[0].scenario
    tuned = Tuned(
        folder,
        question,
        attempts,
        best,
        check,
        wanted.objective.unit,
        deploy.scheme_table(text, scheme, found),
        deploy.agent_lines(text, scheme, found),
    )
    _keep(folder, as_json(tuned))
    return tuned


def as_json(tuned: Tuned) -> dict[str, Any]:
    """What `tune.json` and `--json` have."""
    from penstock.tune.show import sentences

    best = {key: _value(tuned, key, number) for key, number in tuned.best.values.items()}
    return {
        "title": tuned.title,
        "feasible": tuned.is_feasible,
        "said": sentences(tuned),
        "unit": tuned.unit,
        "best": {"trial": tuned.best.number, "values": best, **_numbers(tuned.best)},
        "check": tuned.check.as_json() if tuned.check else None,
        "scheme_toml": tuned.scheme_toml,
        "agent_toml": tuned.agent_toml,
        "trials": [{"trial": one.number, **asdict(one)} for one in tuned.attempts],
        "question": tuned.question.digest(),
        "penstock": _native.__version__,
        "command": provenance.command(),
    }


def _numbers(one: Attempt) -> dict[str, Any]:
    return {"objective": one.objective, "constraints": list(one.kept)}


def _value(tuned: Tuned, key: str, number: float) -> space.Value:
    by_key = {one.key: one for one in tuned.question.parameters}
    return by_key[key].value(number)


def _rank(one: Attempt) -> tuple[float, float]:
    objective = float("inf") if one.objective is None else one.objective
    return one.missed, objective


def _wanted(question: Question, sample: Result, baseline: Sequence[Result]) -> Wanted:
    objective = fields.find(question.minimize, sample)
    constraints = tuple(goal.constraint(text, sample) for text in question.subject_to)
    values = []
    for one in constraints:
        values.append(goal.mean([goal.value(one.field, summary) for summary in baseline]))
        if one.is_ratio and values[-1] is None:
            message = (
                f"--subject-to {one.text}: {question.baseline} has no such number (flows did not "
                "finish); give an absolute bound with its unit, or another --baseline"
            )
            raise ScenarioError(message)
    return Wanted(objective, constraints, tuple(values))


def _check_keys(
    parameters: Sequence[Parameter], tasks: Callable[[Mapping[str, float]], object]
) -> None:
    """Refuses a parameter that the scenario takes at neither end of its range.

    Raises:
        ScenarioError: there is one.
    """
    for one in parameters:
        try:
            tasks({one.key: one.low})
        except ScenarioError:
            try:
                tasks({one.key: one.high})
            except ScenarioError as error:
                message = str(error).replace("--set ", "--param ", 1)
                raise ScenarioError(message) from None


def _first(parameters: Sequence[Parameter], scenario: str) -> dict[str, float]:
    """The scenario's own values of the parameters, those that it has and that lie in the range."""
    found = {}
    for one in parameters:
        value: Any = tomllib.loads(scenario)
        for part in one.key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        number = None if value is None else one.number(value)
        if number is not None:
            found[one.key] = round(number) if one.is_whole else number
    return found


def _simulated(
    sets: Sequence[Sequence[Task]],
    jobs: int | None,
    cluster: str | None,
    progress: Progress,
) -> list[list[Result] | PenstockError]:
    """The results of each set's seeds, or what went wrong in it."""
    failures: dict[Task, PenstockError] = {}
    every = [task for one in sets for task in one]
    rows = dict(
        execute(
            every,
            jobs=jobs,
            cluster=cluster,
            progress=progress,
            failed=failures.__setitem__,
        )
    )
    results: list[list[Result] | PenstockError] = []
    for one in sets:
        failed = [failures[task] for task in one if task in failures]
        results.append(failed[0] if failed else [json.loads(rows[task][2]) for task in one])
    return results


def _or_raise(results: Sequence[Any]) -> list[list[Result]]:
    for result in results:
        if isinstance(result, PenstockError):
            raise result
    return list(results)


def _folder(out: Path | None, name: str, question: Question) -> Path:
    """The folder: one that holds the same question, a new one, or an empty one.

    Raises:
        ScenarioError: `out` holds something else.
    """
    folder = out or Path("runs") / name
    if _holds(folder, question) or not folder.exists() or not any(folder.iterdir()):
        pass
    elif out is None:
        folder = free_folder(name)
    else:
        message = f"{folder}: holds another search, or something else; give another --out"
        raise ScenarioError(message)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _holds(folder: Path, question: Question) -> bool:
    try:
        kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(kept.get("question") == question.digest())


def _keep(folder: Path, content: Mapping[str, Any]) -> None:
    if "title" not in content and (folder / FILE).exists():
        return  # of an earlier call with the same question
    new = folder / f".{FILE}"
    new.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(folder / FILE)


def load(folder: Path) -> dict[str, Any]:
    """`tune.json` of a search that ended.

    Raises:
        RunError: it did not, or is damaged.
    """
    try:
        kept: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{folder / FILE}: {error}"
        raise RunError(message) from error
    if "trials" not in kept:
        message = f"{folder}: the search has not ended; the same command goes on with it"
        raise RunError(message)
    return kept
