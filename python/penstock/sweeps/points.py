# SPDX-License-Identifier: Apache-2.0
"""The points of a sweep, and the runs that they take."""

import itertools
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from penstock import api, metric_names
from penstock.errors import ScenarioError, suggestion
from penstock.execution import SIMULATOR, Task
from penstock.scenario import (
    OPTIONS,
    PARTS,
    Overrides,
    Scenario,
    measured_ports,
    parameters,
    settings_of,
)
from penstock.sweeps import values
from penstock.sweeps.values import Value

MOST_RUNS = 1_000_000

Point = tuple[Value, ...]
"""A value for each swept key."""


@dataclass(frozen=True)
class Key:
    """A swept key with its values."""

    name: str
    """As `--over` has it."""
    kind: str
    """That of all values (see `Value`); `text` where they differ."""
    values: tuple[Value, ...]

    @property
    def column(self) -> str:
        """Its name in tables: that of a value with a unit ends with that unit."""
        return self.name + (f"_{self.kind}" if self.kind not in ("", "truth", "text") else "")

    def typed(self, value: Value) -> float | int | bool | str:
        """The value as tables have it."""
        return value.text if self.kind == "text" and value.kind != "text" else value.typed


@dataclass(frozen=True)
class Plan:
    """A sweep, checked and ready to be computed."""

    name: str
    base: dict[str, Any]
    """The scenario as resolved, but for what is swept."""
    keys: tuple[Key, ...]
    points: dict[Point, tuple[Task, ...]]

    @property
    def schemes(self) -> list[str]:
        """In the order of the scenario."""
        return list(self.base["schemes"])

    @cached_property
    def tasks(self) -> list[Task]:
        """Those of all points."""
        return [task for tasks in self.points.values() for task in tasks]

    def where(self, task: Task) -> str:
        """The point of a task, for messages."""
        point = next(point for point, tasks in self.points.items() if task in tasks)
        return ", ".join(f"{k.name}={v.text}" for k, v in zip(self.keys, point, strict=True))


def plan(
    scenario: Scenario,
    over: Sequence[str],
    *,
    schemes: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    seeds: int | Sequence[int] | None = None,
    on: str = SIMULATOR,
) -> Plan:
    """Reads the `--over` options and checks every point.

    Each of `over` is `KEY=VALUES`; the points are all combinations. The other arguments are those
    of `api.run`.

    Raises:
        ScenarioError: a point's scenario cannot be used; one line that names its `--over`.
    """
    if not over:
        message = "--over: is missing; give KEY=VALUES, such as --over scheme.alpha=0.1,0.25,0.5"
        raise ScenarioError(message)
    keys = [_key(text) for text in over]
    for key in keys:
        if [other.name for other in keys].count(key.name) > 1:
            message = f"--over {key.name}: given twice; put all its values into one list"
            raise ScenarioError(message)
    base = api.prepare(scenario, schemes=schemes, overrides=overrides, seeds=seeds, on=on)
    document = tomllib.loads(base.text)
    settings = settings_of(overrides)
    paths = {key.name: _paths(key.name, document) for key in keys}
    for first, other in itertools.combinations(paths, 2):
        if both := set(paths[first]) & set(paths[other]):
            message = f"--over {other}: sets {both.pop()}, as --over {first} does; leave out one"
            raise ScenarioError(message)
    points = list(itertools.product(*(key.values for key in keys)))
    if len(points) * len(base.tasks) > MOST_RUNS:
        message = f"--over: {len(points) * len(base.tasks)} runs; at most {MOST_RUNS} make sense"
        raise ScenarioError(message)
    tasks = {}
    for point in points:
        swept = [
            (path, value.text)
            for key, value in zip(keys, point, strict=True)
            for path in paths[key.name]
        ]
        try:
            prepared = api.prepare(
                scenario, schemes=schemes, overrides=[*settings, *swept], seeds=seeds, on=on
            )
        except ScenarioError as error:
            raise _renamed(error, swept) from None
        tasks[point] = prepared.tasks
    return Plan(base.name, document, tuple(keys), tasks)


def check(numbers: Iterable[str], plan: Plan) -> None:
    """Refuses numbers to show that no run of a plan has.

    Raises:
        ScenarioError: one is wrong.
    """
    for number in numbers:
        is_of_port = "->" in number or number.startswith(f"{metric_names.PORT}.")
        # Each point may measure other ports, and one that has the number is enough.
        for place, (task, *_) in enumerate(plan.points.values(), 1):
            ports = partial(measured_ports, task.scenario, task.origin)
            try:
                metric_names.check(number, plan.base, ports)
                break
            except ScenarioError as error:
                if not is_of_port or place == len(plan.points):
                    message = f"--show {error}"
                    raise ScenarioError(message) from None


def _key(text: str) -> Key:
    name, equals, listed = (part.strip() for part in text.partition("="))
    if not (name and equals and listed):
        message = f"--over {text}: give KEY=VALUES, such as --over scheme.alpha=0.1,0.25,0.5"
        raise ScenarioError(message)
    if option := OPTIONS.get(name):
        message = f"--over {name}: is not swept; give {option}"
        raise ScenarioError(message)
    try:
        parsed = values.parse(listed)
    except ScenarioError as error:
        message = f"--over {name}: {error}"
        raise ScenarioError(message) from None
    kinds = {value.kind for value in parsed}
    return Key(name, kinds.pop() if len(kinds) == 1 else "text", tuple(parsed))


def _paths(name: str, document: dict[str, Any]) -> list[str]:
    """The key itself; `scheme.alpha` is that parameter of every scheme that has it."""
    first, _, parameter = name.partition(".")
    if first != "scheme" or "." in parameter or not parameter:
        return [name]
    known: dict[str, list[str]] = {}
    for scheme in document["schemes"]:
        for part in PARTS:
            kind = document["scheme"][scheme].get(part, {}).get("kind")
            for key in parameters(part, kind):
                known.setdefault(key, []).append(f"scheme.{scheme}.{part}.{key}")
    if parameter in known:
        return known[parameter]
    hint = suggestion(parameter, known, f"they have: {', '.join(sorted(known))}")
    message = f"--over {name}: no scheme of {', '.join(document['schemes'])} has it; {hint}"
    raise ScenarioError(message)


def _renamed(error: ScenarioError, values: list[tuple[str, str]]) -> ScenarioError:
    """Names `--over` where the wrong setting is one of its values."""
    message = str(error)
    for path, value in values:
        message = message.replace(f"--set {path}={value}", f"--over {path}={value}")
    if "--over" not in message:
        settings = ", ".join(f"{path}={value}" for path, value in values)
        message = f"{message} (with --over {settings})"
    return ScenarioError(message)
