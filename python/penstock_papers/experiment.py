# SPDX-License-Identifier: Apache-2.0
"""An experiment of a paper, as its folder defines it: scenario, runs, claims, figures."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

from penstock import execution
from penstock.errors import ScenarioError
from penstock.sweeps import values
from penstock_papers.claims import Claim
from penstock_papers.experiment_names import PAPERS
from penstock_papers.measures import Measure

COLUMNS = ("cdf", "histogram")
"""The kinds of figure whose field is a column of the flows' table."""
QUICK_SEEDS = 2

Overrides = dict[str, object]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, to be drawn again."""

    title: str
    where: str
    meaning: str
    kind: Literal["line", "cdf", "bars", "histogram", "heat", "analysis"]
    name: str = ""
    measure: Measure = field(default_factory=Measure)
    x: str = ""
    y: str = ""
    x_label: str = ""
    y_label: str = ""
    log: Literal["", "x", "y", "xy"] = ""
    schemes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    bins: int = 20
    draw: str = ""


@dataclass(frozen=True)
class Shorter:
    """`[quick]`: what makes the runs short."""

    set: dict[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    over: dict[str, Any] = field(default_factory=dict)
    runs: tuple[str, ...] | dict[str, Any] = ()


@dataclass(frozen=True)
class Laboratory:
    """`[lab]`: what real TCP on one machine needs."""

    set: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)
    schemes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Open:
    """One table of `[open]`: what the paper leaves open."""

    reason: str
    """What the paper states of it, or leaves out."""
    range: tuple[Any, ...] = ()
    """Smallest and largest value, as the scenario has it."""
    scale: Literal["linear", "log"] = "linear"
    values: tuple[Any, ...] = ()
    """Instead of a range; each a value of the key, or a table of values by their paths."""
    also: tuple[str, ...] = ()
    """Further keys that have the same value."""


@dataclass(frozen=True)
class Experiment:
    """One folder of `papers`."""

    id: str
    scenario: Path | None
    """None: theory only, nothing is simulated."""
    title: str
    about: str
    why: str
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    names: dict[str, str]
    """Of schemes, as the paper calls them."""
    runs: dict[str, Overrides]
    """The overrides of each run by its name; the only run's is empty."""
    places: dict[str, Overrides] = field(default_factory=dict)
    """Of each run of `[over]` the values that make it, by their paths."""
    quick: Shorter = field(default_factory=Shorter)
    lab: Laboratory = field(default_factory=Laboratory)
    schemes: tuple[str, ...] = ()
    """Instead of the scenario's, where any."""
    seeds: int | tuple[int, ...] | None = None
    """Instead of the scenario's, where given."""
    shortened: str = ""
    """What was shortened; empty: nothing."""
    open: dict[str, Open] = field(default_factory=dict)
    """What the paper leaves open, by the key of the scenario."""

    @property
    def paper(self) -> str:
        """The paper it is of."""
        return PAPERS.get(self.id.partition("-")[0], self.id.partition("-")[0])

    @cached_property
    def document(self) -> dict[str, Any]:
        """The scenario as written."""
        if self.scenario is None:
            return {}
        return tomllib.loads(self.scenario.read_text(encoding="utf-8"))

    def runs_of(self, claim: Claim) -> tuple[str, ...]:
        """The names of the runs that a claim is about."""
        if self.scenario is None:
            return ()
        if claim.run == "*":
            return tuple(self.runs)
        return (claim.run,) if isinstance(claim.run, str) else claim.run

    def quickly(self, seeds: int | None = None) -> "Experiment":
        """The same, shortened as `[quick]` specifies; without it, with two seeds.

        `seeds` are their number instead of that of `[quick]`.
        """
        if self.scenario is None:
            return self
        own = self.document.get("seeds", 1)
        number = own if isinstance(own, int) else len(own)
        seeds = seeds or self.quick.seeds or min(number, QUICK_SEEDS)
        runs, places = self.runs, self.places
        changes = [f"{seeds} of {number} seeds"] if seeds < number else []
        changes += [f"{key} = {value}" for key, value in self.quick.set.items()]
        if self.quick.over:
            runs, places = crossed(self.quick.over)
            changes.append(f"{len(runs)} of {len(self.runs)} runs")
        if isinstance(self.quick.runs, dict):
            runs = {name: overrides(name, table) for name, table in self.quick.runs.items()}
            changed = [(name, key) for name in runs for key in runs[name]]
            changes += [
                f"{key} = {runs[name][key]} ({name})"
                for name, key in changed
                if runs[name][key] != self.runs[name].get(key)
            ]
        elif self.quick.runs:
            runs = {name: self.runs[name] for name in self.quick.runs}
        if len(runs) < len(self.runs) and not self.quick.over:
            changes.append(f"only the runs {', '.join(runs)}")
        return replace(
            self,
            runs={name: {**own, **self.quick.set} for name, own in runs.items()},
            places=places,
            seeds=seeds,
            shortened=", ".join(changes) or "nothing shortened",
        )

    def played(self, on: str, *, quick: bool = False) -> "Experiment":
        """The same, as it is run on a substrate, or shortened."""
        if on != execution.SIMULATOR:
            return self.in_laboratory()
        return self.quickly() if quick else self

    def in_laboratory(self) -> "Experiment":
        """The same, changed as `[lab]` specifies; `why` is about simulations."""
        if self.lab.runs:
            runs = {name: overrides(name, table) for name, table in self.lab.runs.items()}
        else:
            runs = self.runs
        return replace(
            self,
            runs={name: {**own, **self.lab.set} for name, own in runs.items()},
            schemes=self.lab.schemes,
            why="",
        )


def overrides(name: str, table: Any) -> Overrides:  # noqa: ANN401 (of a TOML file)
    """The overrides of a table of `[runs]`.

    Raises:
        ValueError: it is not `set = {...}`.
    """
    if (
        not isinstance(table, dict)
        or set(table) - {"set"}
        or not isinstance(table.get("set", {}), dict)
    ):
        message = f'runs."{name}": give set = {{ "PATH" = VALUE }}'
        raise ValueError(message)
    return dict(table.get("set", {}))


def crossed(over: Mapping[str, Any]) -> tuple[dict[str, Overrides], dict[str, Overrides]]:
    """Every combination of the values, named by them: as overrides, and as places.

    Raises:
        ValueError: they are no values.
    """
    axes = {path: _values(path, given) for path, given in over.items()}
    runs = {}
    for combination in product(*axes.values()):
        name = " ".join(_shown(value) for value in combination)
        runs[name] = dict(zip(axes, combination, strict=True))
    return runs, runs


def _values(path: str, given: object) -> Sequence[object]:
    found = given
    if isinstance(given, str):
        try:
            found = [one.text if one.kind else one.typed for one in values.parse(given)]
        except ScenarioError as error:
            message = f'over: "{path}": {error}'
            raise ValueError(message) from None
    if not isinstance(found, list) or not found:
        message = f'over: "{path}": give a list of values, or a range such as "8..256*2"'
        raise ValueError(message)
    return found


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
