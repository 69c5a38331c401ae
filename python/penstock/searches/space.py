# SPDX-License-Identifier: Apache-2.0
"""What is searched: a scheme's parameters, and the range of each."""

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import units
from penstock.errors import ScenarioError
from penstock.scenario import OPTIONS, settings_of

if TYPE_CHECKING:
    from optuna.trial import Trial

    from penstock.api import Prepared

_END = r"(\d+(?:\.\d+)?)\s*((?!log\b)[A-Za-zµ]*(?:/s)?)"
_RANGE = re.compile(rf"{_END}\.\.{_END}( +log)?")
_SCALES = {"s": Fraction(10) ** 9}
_BASES = {"s": "ns", "bps": "b/s", "bytes": "B", "packets": "packets"}
"""The unit in which a parameter is searched, by the quantity of its range."""
_UNITS = {
    name: (_BASES[unit.quantity], float(unit.factor * _SCALES.get(unit.quantity, 1)))
    for name, unit in units.UNITS.items()
    if unit.quantity in _BASES
}
"""Unit of a range: the base unit, and its size in that."""

_MOST = 1 << 53
"""Whole numbers from here on are not all floats, as those of a search are."""

Value = float | int | str


@dataclass(frozen=True)
class Parameter:
    """One dimension of the search."""

    key: str
    """Dotted path in the scenario, as `scheme.fairq.window.alpha`."""
    low: float
    high: float
    """In `unit`, both ends included."""
    unit: str = ""
    """`ns`, `b/s`, `B`, `packets`, or none."""
    is_whole: bool = False
    is_log: bool = False

    @property
    def name(self) -> str:
        """Its last part, for figures and tables."""
        return self.key.rpartition(".")[2]

    def suggest(self, trial: "Trial") -> float:
        """The number that the search proposes."""
        if self.is_whole:
            return trial.suggest_int(self.key, int(self.low), int(self.high), log=self.is_log)
        return trial.suggest_float(self.key, self.low, self.high, log=self.is_log)

    def value(self, number: float) -> Value:
        """The number as a scenario has it; three digits, which is more than is known."""
        if self.unit == "ns":
            sizes = {name: _UNITS[name][1] for name in ("s", "ms", "us", "ns")}
            unit = next((name for name, size in sizes.items() if number >= size), "ns")
            return f"{float(f'{number / sizes[unit]:.3g}'):g} {unit}"
        number = round(number) if self.is_whole else float(f"{number:.3g}")
        return f"{number} {self.unit}" if self.unit else number

    def number(self, value: object) -> float | None:
        """A scenario's value as a number of this dimension; None where it is none or outside."""
        text = str(value).strip()
        match = re.fullmatch(r"([\d._]+)\s*(\S*)", text)
        if match is None:
            return None
        base, size = _UNITS.get(match[2], (match[2], 1.0))
        number = float(match[1]) * size
        return number if base == self.unit and self.low <= number <= self.high else None


def parameter(key: str, text: str) -> Parameter:
    """A parameter from its range: `0.05..0.5`, `1..64 log`, `10us..1ms log`.

    Both ends without a point and unit: whole numbers; so are times, rates, bytes and packets.

    Raises:
        ScenarioError: it is not a range.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        if text.lstrip().startswith("-"):
            message = f"--param {key}={text}: the lower end is negative; allowed: 0 or more"
            raise ScenarioError(message)
        message = f"--param {key}={text}: give LOW..HIGH, as 0.05..0.5, 1..64, or 10us..1ms log"
        raise ScenarioError(message)
    first, low_unit, second, high_unit, log = match.groups()
    ends, base = [], ""
    for number, unit in ((first, low_unit or high_unit), (second, high_unit or low_unit)):
        if unit and unit not in _UNITS:
            message = f"--param {key}={text}: unknown unit '{unit}'; known: {', '.join(_UNITS)}"
            raise ScenarioError(message)
        base, size = _UNITS.get(unit, ("", 1.0))
        ends.append(float(number) * size)
    low, high = ends
    if not low < high or (log and low <= 0):
        message = f"--param {key}={text}: the lower end must be below the upper" + (
            " and above 0" if log else ""
        )
        raise ScenarioError(message)
    is_whole = bool(base) or not ("." in first or "." in second)
    if is_whole:
        low, high = math.ceil(low), math.floor(high)
        if not low < high < _MOST:
            unit = f" of {base}" if base else ""
            message = f"--param {key}={text}: give two whole numbers{unit} or more, below 2^53"
            raise ScenarioError(message)
    return Parameter(key, low, high, base, is_whole, bool(log))


def named(texts: Sequence[str]) -> list[Parameter]:
    """The parameters of `--param KEY=RANGE` options.

    Raises:
        ScenarioError: one is not of this form, or is given twice.
    """
    parameters: dict[str, Parameter] = {}
    for text in texts:
        key, equals, range_text = text.partition("=")
        if not (key and equals):
            message = f"--param {text}: give KEY=LOW..HIGH, as scheme.fairq.window.alpha=0.05..0.5"
            raise ScenarioError(message)
        if key in parameters:
            message = f"--param {key}: given twice"
            raise ScenarioError(message)
        if option := OPTIONS.get(key.strip()):
            message = f"--param {key}: is not searched; give {option}"
            raise ScenarioError(message)
        parameters[key.strip()] = parameter(key.strip(), range_text)
    return list(parameters.values())


def usual(name: str, scheme: Mapping[str, Any]) -> list[Parameter]:
    """The numeric parameters of a scheme, with the ranges of `ranges.toml`.

    Args:
        name: of the scheme.
        scheme: its parts, as a resolved scenario has them.

    Raises:
        ScenarioError: it has none.
    """
    ranges = tomllib.loads((Path(__file__).parent / "ranges.toml").read_text(encoding="utf-8"))
    parameters = [
        parameter(f"scheme.{name}.{part}.{key}", text)
        for part, kinds in ranges.items()
        for key, text in kinds.get(scheme.get(part, {}).get("kind"), {}).items()
    ]
    if not parameters:
        message = f"{name}: no parameters to search; name one, as --param tcp.min_rto=1ms..200ms"
        raise ScenarioError(message)
    return parameters


def prepared_by(
    scheme: str,
    baseline: str,
    prepare: Callable[..., "Prepared"],
    **options: Any,  # noqa: ANN401 (of prepare)
) -> "Prepared":
    """The scenario of a search, whose errors name the option that has the wrong value."""
    for key, _ in settings_of(options.get("overrides")):
        if option := OPTIONS.get(key):
            message = f"--set {key}: is not set by it here; give {option}"
            raise ScenarioError(message)
    try:
        return prepare(schemes=list(dict.fromkeys([baseline, scheme])), **options)
    except ScenarioError as error:
        prefix = f"--scheme {baseline}: "
        if baseline == scheme or not str(error).startswith(prefix):
            raise
        message = f"--baseline {baseline}: {str(error).removeprefix(prefix)}"
        raise ScenarioError(message) from None
