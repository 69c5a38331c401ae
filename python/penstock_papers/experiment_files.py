# SPDX-License-Identifier: Apache-2.0
"""Reads the experiments' folders; a mistake in a `claims.toml` is an error before anything runs."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from penstock import scenario as scenarios
from penstock.errors import PenstockError, RunError
from penstock_papers import rules, templates, typed_tables
from penstock_papers.claims import Claim
from penstock_papers.experiment import (
    Experiment,
    Figure,
    Laboratory,
    Open,
    Overrides,
    Shorter,
    crossed,
    overrides,
)
from penstock_papers.experiment_names import find
from penstock_papers.measures import Measure

T = TypeVar("T")


def load(experiment: str) -> Experiment:
    """Reads an experiment's `claims.toml`.

    Raises:
        ScenarioError: there is no such experiment.
        RunError: its file cannot be read, or breaks a rule of `papers/README.md`.
    """
    path = find(experiment) / "claims.toml"
    try:
        return _read(experiment, path)
    except PenstockError:
        raise
    except (OSError, ValueError) as error:
        message = f"{path}: {error}"
        raise RunError(message) from error


_KEYS = (
    *("scenario", "title", "about", "why", "names"),
    *("runs", "over", "quick", "lab", "open", "default", "claim", "figure"),
)


def _read(experiment: str, path: Path) -> Experiment:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    for key in document:
        typed_tables.one_of("key", key, _KEYS)
    scenario = _scenario(path.parent, document)
    given_open = _open_tables(document, path.parent)
    if scenario is not None and scenario.parent != path.parent:
        document = _inherited(document, scenario.parent / "claims.toml")
    runs, places = _runs(document)
    made = Experiment(
        experiment,
        scenario,
        document.get("title") or (scenarios.title(scenario) if scenario else ""),
        " ".join((document.get("about") or _about(scenario)).split()),
        document.get("why", "").strip(),
        _claims(experiment, document, runs),
        tuple(
            _named("figure", table, _figure)
            for template in document.get("figure", ())
            for table in _named("figure", template, templates.figures)
        ),
        document.get("names", {}),
        runs,
        places,
        _part("quick", Shorter, document),
        _part("lab", Laboratory, document),
        open={key: _open(key, table) for key, table in given_open.items()},
    )
    rules.check(made)
    return made


def _scenario(folder: Path, document: Mapping[str, Any]) -> Path | None:
    """The scenario's file; None where the experiment has none, as theory."""
    if "scenario" in document:
        other = folder.parent / str(document["scenario"]) / "scenario.toml"
        if not other.is_file():
            message = f"scenario: no experiment '{document['scenario']}' with a scenario.toml"
            raise ValueError(message)
        return other
    own = folder / "scenario.toml"
    return own if own.is_file() else None


def _inherited(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """With the runs of the experiment whose scenario is taken, unless it has its own."""
    if "runs" in document or "over" in document or not path.is_file():
        return document
    other = tomllib.loads(path.read_text(encoding="utf-8"))
    return {k: other[k] for k in ("runs", "over", "quick", "lab") if k in other} | document


def _open_tables(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The tables of `[open]`: own ones, over those of the experiment that `like` names.

    Without `[open]` they are those of the experiment whose scenario is taken. What the runs set
    themselves is not open.
    """
    tables = dict(document.get("open", {}))
    name = tables.pop("like", "" if "open" in document else document.get("scenario", ""))
    if not name:
        return tables
    path = folder.parent / str(name) / "claims.toml"
    if not path.is_file():
        message = f"open: like: no experiment '{name}'"
        raise ValueError(message)
    other = _open_tables(tomllib.loads(path.read_text(encoding="utf-8")), path.parent)
    runs = _runs(document)[0].values()
    is_set = {key for run in runs for key in run}
    return {key: table for key, table in other.items() if key not in is_set} | tables


def _open(key: str, table: Any) -> Open:  # noqa: ANN401 (of a TOML file)
    try:
        if not isinstance(table, dict):
            message = "give a table with `range` or `values`, and `reason`"
            raise ValueError(message)
        return typed_tables.typed(Open, table)
    except ValueError as error:
        message = f'open."{key}": {error}'
        raise ValueError(message) from None


def _runs(document: Mapping[str, Any]) -> tuple[dict[str, Overrides], dict[str, Overrides]]:
    """The overrides of each run, and of those of `[over]` the values that make them."""
    if "over" not in document:
        tables = document.get("runs", {})
        return {name: overrides(name, table) for name, table in tables.items()} or {"": {}}, {}
    if "runs" in document:
        message = "give [runs] or [over], not both"
        raise ValueError(message)
    return crossed(document["over"])


def _about(scenario: Path | None) -> str:
    if scenario is None:
        return ""
    return str(tomllib.loads(scenario.read_text(encoding="utf-8")).get("about", ""))


def _part(name: str, kind: type[T], document: Mapping[str, Any]) -> T:
    try:
        return typed_tables.typed(kind, document.get(name, {}))
    except ValueError as error:
        message = f"{name}: {error}"
        raise ValueError(message) from None


def _named(what: str, table: dict[str, Any], read: Callable[[dict[str, Any]], T]) -> T:
    try:
        return read(table)
    except ValueError as error:
        name = table.get("id") or table.get("name") or table.get("title") or "?"
        message = f"{what} {name}: {error}"
        raise ValueError(message) from None


def _claims(
    experiment: str, document: Mapping[str, Any], runs: Mapping[str, Overrides]
) -> tuple[Claim, ...]:
    names, default = document.get("names", {}), document.get("default", {})
    made = []
    for template in document.get("claim", ()):
        tables = _named("claim", template, lambda one: templates.claims(one, default, names, runs))
        made += [{**table, "id": f"{experiment}.{table['id']}"} for table in tables]
    return tuple(_named("claim", table, _claim) for table in made)


def _claim(table: dict[str, Any]) -> Claim:
    return typed_tables.typed(Claim, _with_measures(table, ("measure", "against")))


def _figure(table: dict[str, Any]) -> Figure:
    return typed_tables.typed(Figure, _with_measures(table, ("measure",)))


def _with_measures(table: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    made = dict(table)
    for key in keys:
        if isinstance(table.get(key), dict):
            try:
                made[key] = typed_tables.typed(Measure, table[key])
            except ValueError as error:
                message = f"{key}: {error}"
                raise ValueError(message) from None
    return made
