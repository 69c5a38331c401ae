# SPDX-License-Identifier: Apache-2.0
"""The space that the tables of `[open]` span, and samples of it."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock import units
from penstock.errors import ScenarioError
from penstock.sweeps import values
from penstock.sweeps.values import Value
from penstock_papers.experiment import Experiment, Open

_KINDS = ("", "packets", *units.FORMS)
"""Of values that have a range."""

Settings = dict[str, object]
"""Overrides by dotted path."""


@dataclass(frozen=True)
class Choice:
    """A value of an open parameter."""

    shown: str
    """As people read it."""
    settings: Settings


@dataclass(frozen=True)
class Parameter:
    """One open parameter of an experiment."""

    key: str
    table: Open

    def at(self, place: float) -> Choice:
        """The value at a place of [0, 1), which a sample gives."""
        if self.choices:
            return self.choices[int(place * len(self.choices))]
        low, high = self._ends
        first, last = float(low.typed), float(high.typed)
        if self.table.scale == "log":
            value = math.exp(math.log(first) + place * (math.log(last) - math.log(first)))
        else:
            value = first + place * (last - first)
        if low.kind in units.FORMS:
            return self._choice(units.FORMS[low.kind](value))
        whole = low.kind == "packets" or all(isinstance(end.typed, int) for end in (low, high))
        number = round(value) if whole else float(f"{value:.3g}")
        return self._choice(f"{number} packets" if low.kind == "packets" else number)

    @property
    def given(self) -> str:
        """The range or the values, as people read them."""
        if self.choices:
            return " or ".join(choice.shown for choice in self.choices)
        low, high = (str(end) for end in self.table.range)
        return f"{low} to {high}" + (" (log)" if self.table.scale == "log" else "")

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """The values of a list; none of a range."""
        return tuple(
            Choice(_shown(value.get(self.key, dict(value))), dict(value))
            if isinstance(value, Mapping)
            else self._choice(value)
            for value in self.table.values
        )

    def _choice(self, value: object) -> Choice:
        keys = (self.key, *self.table.also)
        return Choice(_shown(value), dict.fromkeys(keys, value))

    @cached_property
    def _ends(self) -> tuple[Value, Value]:
        low, high = (values.parse(str(end))[0] for end in self.table.range)
        return low, high

    def check(self) -> None:
        """Refuses a table that spans nothing.

        Raises:
            ValueError: one line, with the key.
        """
        try:
            self._check()
        except (ValueError, ScenarioError) as error:
            message = f'open."{self.key}": {error}'
            raise ValueError(message) from None

    def _check(self) -> None:
        table = self.table
        if bool(table.range) == bool(table.values):
            message = "give either `range` or `values`"
            raise ValueError(message)
        if not table.reason.strip():
            message = "reason: is empty; what does the paper state, or leave out?"
            raise ValueError(message)
        if table.values:
            if len({choice.shown for choice in self.choices}) < 2 or table.scale != "linear":
                message = "values: give at least two that differ, and no scale"
                raise ValueError(message)
            return
        if len(table.range) != 2:
            message = f"range: has {len(table.range)} values; give the smallest and the largest"
            raise ValueError(message)
        low, high = self._ends
        if low.kind not in _KINDS or low.kind != high.kind:
            message = 'range: give two numbers of one unit, such as ["1 ms", "1 s"]'
            raise ValueError(message)
        if float(low.typed) >= float(high.typed):
            message = f"range: {low.text} is not below {high.text}"
            raise ValueError(message)
        if table.scale == "log" and float(low.typed) <= 0:
            message = "scale: log needs a range above 0"
            raise ValueError(message)


def parameters(made: Experiment) -> tuple[Parameter, ...]:
    """The open parameters of an experiment, in the order of its file."""
    return tuple(Parameter(key, table) for key, table in made.open.items())


def check(made: Experiment) -> None:
    """Refuses an `[open]` that cannot be sampled, or that a run would override.

    Raises:
        ValueError: one line, with the key.
    """
    keys = []
    for parameter in parameters(made):
        parameter.check()
        choice = parameter.at(0.0)
        for key in choice.settings:
            for name, own in made.runs.items():
                if key in own:
                    message = f'open."{parameter.key}": the run "{name}" sets {key} itself'
                    raise ValueError(message)
        keys += [*choice.settings]
    if twice := next((key for key in keys if keys.count(key) > 1), ""):
        message = f"open: {twice} is set by two tables"
        raise ValueError(message)


@dataclass(frozen=True)
class SetUp:
    """One point of the space."""

    number: int
    places: tuple[float, ...]
    """Of each parameter, in [0, 1)."""
    choices: tuple[Choice, ...]

    @property
    def settings(self) -> Settings:
        """All overrides."""
        return {key: value for one in self.choices for key, value in one.settings.items()}


def sample(made: Experiment, number: int, seed: int) -> Iterator[SetUp]:
    """A Latin hypercube of the space: each parameter's range is covered evenly.

    Equal spaces with equal seeds have equal samples, so that experiments share runs.
    """
    open_ = parameters(made)
    for place, row in enumerate(_hypercube(len(open_), number, seed)):
        choices = tuple(one.at(value) for one, value in zip(open_, row, strict=True))
        yield SetUp(place, tuple(row), choices)


def _hypercube(dimensions: int, number: int, seed: int) -> list[list[float]]:
    from scipy.stats import (  # type: ignore[import-untyped]  # start-up: optional
        qmc,
    )

    rows: list[list[float]] = qmc.LatinHypercube(d=dimensions, rng=seed).random(number).tolist()
    return rows


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
