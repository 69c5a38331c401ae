# SPDX-License-Identifier: Apache-2.0
"""Published claims, and whether runs bear them out.

`scenarios/papers/README.md` defines `claims.toml`: runs, measures, relations, tolerances.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from penstock import units
from penstock.errors import RunError

T = TypeVar("T")

Summaries = Mapping[str, Mapping[str, Any]]
"""The summary of each run of an experiment, by the run's name; the only run's is empty."""

_FORMS: dict[str, Callable[[float | None], str]] = {
    "fct_s": units.seconds,
    "longest_silence_s": units.seconds,
    "goodput_bps": units.rate,
    "block_goodput_bps": units.rate,
    "queue_bytes": units.size,
}


@dataclass(frozen=True)
class Measure:
    """A number of a summary: in the result of a scheme, of a traffic or a port."""

    scheme: str
    field: str
    """Dotted path, as `fct_s.mean`."""
    group: str = ""
    port: str = ""

    def of(self, summary: Mapping[str, Any]) -> float | None:
        """The number, or None where the run has none (no flow finished: no FCT).

        Raises:
            RunError: the run has no such scheme, traffic, port or field.
        """
        results = {result["scheme"]: result for result in summary["results"]}
        kind, name = ("groups", self.group) if self.group else ("ports", self.port)
        value: Any = results
        for key in (self.scheme, kind, name, *self.field.split(".")):
            if value is None:
                return None
            if not isinstance(value, Mapping) or key not in value:
                has = ", ".join(value) if isinstance(value, Mapping) else "nothing"
                message = f"{self}: no '{key}'; the run has {has}"
                raise RunError(message)
            value = value[key]
        return None if value is None else float(value)

    def show(self, value: float | None) -> str:
        """The number as people read it."""
        form = _FORMS.get(self.field.partition(".")[0])
        if form is not None:
            return form(value)
        return units.NONE if value is None else f"{value:.4g}"

    def __str__(self) -> str:
        """Its path, for messages."""
        return f"{self.scheme}/{self.group or self.port}/{self.field}"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper: how a measured number relates to another."""

    id: str
    text: str
    published: str | float
    measure: Measure
    relation: str
    against: Measure | float
    where: str = ""
    run: str = ""
    factor: float = 1.0
    percent: float = 0.0

    def is_borne_out(self, measured: float | None, against: float | None) -> bool:
        """Whether the relation holds; what is missing bears nothing out."""
        if measured is None or against is None:
            return False
        return _RELATIONS[self.relation](measured, against, self.factor, self.percent / 100)

    def measured_in(self, runs: Summaries) -> tuple[float | None, float | None]:
        """The measured number, and the one it is held against.

        Raises:
            RunError: a run, or what is looked up in it, does not exist.
        """
        summary = runs[self.run]
        against = self.against
        try:
            measured = self.measure.of(summary)
            other = against.of(summary) if isinstance(against, Measure) else against
        except RunError as error:
            message = f"claim {self.id}: {error}"
            raise RunError(message) from None
        return measured, other

    def show(self, measured: float | None, against: float | None) -> str:
        """What was measured as people read it, and what it was held against if that was too."""
        shown = self.measure.show(measured)
        if isinstance(self.against, Measure):
            return f"{shown} vs {self.against.show(against)}"
        return shown


# m: measured, a: against, f: factor, p: percent as a fraction.
_RELATIONS: dict[str, Callable[[float, float, float, float], bool]] = {
    "lower": lambda m, a, f, _: m * f < a,
    "higher": lambda m, a, f, _: m > a * f,
    "at-most": lambda m, a, _, p: m <= a * (1 + p),
    "at-least": lambda m, a, _, p: m >= a * (1 - p),
    "about": lambda m, a, f, _: a / f <= m <= a * f,
    "within": lambda m, a, _, p: abs(m - a) <= a * p,
    "equal": lambda m, a, _f, _p: m == a,
}


@dataclass(frozen=True)
class Claims:
    """The claims of one experiment, and the runs it takes to judge them."""

    claims: tuple[Claim, ...]
    runs: dict[str, dict[str, object]] = field(default_factory=lambda: {"": {}})
    """The overrides of each run, by its name."""


def load(path: Path) -> Claims:
    """Reads an experiment's `claims.toml`.

    Raises:
        RunError: it cannot be read, or a claim is not as the README says.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: {error}"
        raise RunError(message) from error
    runs = {name: run.get("set", {}) for name, run in document.get("runs", {}).items()} or {"": {}}
    claims = []
    for table in document.get("claim", ()):
        try:
            claims.append(_claim(table, runs))
        except (TypeError, ValueError) as error:
            message = f"{path}: claim {table.get('id', '?')}: {error}"
            raise RunError(message) from error
    return Claims(tuple(claims), runs)


def _claim(table: dict[str, Any], runs: Mapping[str, object]) -> Claim:
    values = dict(table)
    for key in ("measure", "against"):
        if isinstance(values.get(key), dict):
            values[key] = _typed(Measure, values[key])
    claim = _typed(Claim, values)
    if not isinstance(claim.measure, Measure):
        message = "measure: give { scheme, group or port, field }"
        raise TypeError(message)
    _one_of("relation", claim.relation, _RELATIONS)
    _one_of("run", claim.run, runs)
    return claim


def _typed(kind: type[T], values: dict[str, Any]) -> T:
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        _one_of("key", name, known)
    for name, one in known.items():
        if one.default is MISSING and name not in values:
            message = f"{name} is missing"
            raise ValueError(message)
    return kind(**values)


def _one_of(what: str, name: str, allowed: Mapping[str, object]) -> None:
    if name not in allowed:
        message = f"unknown {what} '{name}'; known: {', '.join(allowed)}"
        raise ValueError(message)
