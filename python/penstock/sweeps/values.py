# SPDX-License-Identifier: Apache-2.0
"""The grammar of `--over KEY=VALUES`: lists and ranges, with units.

0.1,0.25,0.5     a list; its parts may be ranges
1..9             1, 2, ... 9
0..1+0.25        0, 0.25, ... 1
8..256*2         8, 16, ... 256
1ms..16ms*2      the same with a unit
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from penstock.errors import ScenarioError
from penstock.units import UNITS

MOST = 10_000
"""Values of one key."""

_EXACT = 10**15
_LARGEST = 2**63  # that an integer column does not hold

_NUMBER = r"([+-]?\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,2})?)\s*([A-Za-zµ/%]*)"
_RANGE = re.compile(rf"{_NUMBER}\s*\.\.\s*{_NUMBER}\s*(?:([*+])\s*{_NUMBER})?")


@dataclass(frozen=True)
class Value:
    """One value of a swept key."""

    text: str
    """As the scenario has it: `10 kB`."""
    kind: str
    """`s`, `bps`, `bytes`, `packets`; empty for a plain number; `truth`; `text`."""
    typed: float | int | bool | str
    """In seconds, bits per second or bytes where it has a unit."""


def parse(text: str) -> list[Value]:
    """All values that a text in this grammar means, each once, in its order.

    Raises:
        ScenarioError: it cannot be read; each line that does not name the key.
    """
    distinct: dict[object, Value] = {}
    for part in _parts(text):
        if not part:
            message = "a value is missing next to a comma"
            raise ScenarioError(message)
        ranged = _RANGE.fullmatch(part)
        texts = _expand(part, *ranged.groups()) if ranged else [part]
        if not ranged and re.match(r"[+-]?\d.*\.\.", part):
            message = f"'{part}' is no range; give A..B, A..B+STEP or A..B*FACTOR"
            raise ScenarioError(message)
        for each in texts:
            value = _value(each)
            distinct.setdefault((value.kind, value.typed), value)
        if len(distinct) > MOST:
            message = f"more than {MOST} values"
            raise ScenarioError(message)
    return list(distinct.values())


def _parts(text: str) -> list[str]:
    """The parts between commas, other than those within quotes, lists and tables."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _expand(
    part: str,
    start: str,
    unit: str,
    end: str,
    end_unit: str,
    how: str | None,
    step: str | None,
    step_unit: str | None,
) -> list[str]:
    unit = unit or end_unit
    number, end_number = _in(unit, start, unit, part), _in(unit, end, end_unit, part)
    step_number = (
        _in(unit if how == "+" else "", step, step_unit or "", part) if step else Fraction(1)
    )
    if number > end_number:
        message = f"'{part}' ends before it begins"
        raise ScenarioError(message)
    if (how == "*" and (step_number <= 1 or number <= 0)) or step_number <= 0:
        message = f"'{part}' never ends; a step must be above 0, a factor above 1 and begin above 0"
        raise ScenarioError(message)
    numbers: list[Fraction] = []
    while number <= end_number and len(numbers) <= MOST:
        numbers.append(number)
        number = number * step_number if how == "*" else number + step_number
        if number.denominator > _EXACT:  # fractions of ever more digits take ever longer
            number = Fraction(repr(float(number)))
    return [f"{_plain(number)} {unit}".strip() for number in numbers]


def _in(unit: str, number: str, own_unit: str, part: str) -> Fraction:
    """A number in another unit of its kind; one without a unit has it already."""
    for name in (unit, own_unit):
        if name not in UNITS:
            message = f"'{part}': unknown unit '{name}'; units: {', '.join(filter(None, UNITS))}"
            raise ScenarioError(message)
    (kind, size), (own_kind, own_size) = UNITS[unit], UNITS[own_unit or unit]
    if kind != own_kind:
        message = f"'{part}': '{own_unit}' does not go with '{unit or 'plain numbers'}'"
        raise ScenarioError(message)
    return Fraction(number) * own_size / size


def _plain(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else repr(float(number))


def _value(text: str) -> Value:
    match = re.fullmatch(_NUMBER, text)
    if match and match[2] in UNITS:
        kind, size = UNITS[match[2]]
        exact = Fraction(match[1]) * size
        whole = exact.denominator == 1 and not (kind == "" and re.search(r"[.e]", match[1]))
        return Value(text, kind, int(exact) if whole and abs(exact) < _LARGEST else float(exact))
    if text in ("true", "false"):
        return Value(text, "truth", text == "true")
    return Value(text, "text", text.strip("\"'"))
