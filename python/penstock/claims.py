# SPDX-License-Identifier: Apache-2.0
"""Published claims, and whether a run bears them out.

An experiment's `claims.toml` holds `source` (the paper and figure), perhaps `seeds`, and one
`[[claim]]` table each with the fields of `Claim`.
"""

import operator
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from penstock import units
from penstock.errors import RunError

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_FORMS: dict[str, Callable[[float | None], str]] = {
    "": lambda value: units.NONE if value is None else f"{value:.4g}",
    "s": units.seconds,
    "b/s": units.rate,
    "B": units.size,
    "%": units.percent,
}


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, as a comparison of measured numbers."""

    id: str
    text: str
    published: str | float
    """What the paper prints."""
    value: str
    """Dotted path into a scheme's result, as `groups.mice.fct_s.mean` or `ports."a->b".drops`."""
    scheme: str
    """Whose result."""
    holds: str
    """`< 1`, `>= 0.9`, `== 0`, or a range `0.28 .. 0.36` with both ends."""
    over: str = ""
    """Measure the ratio to this scheme's value."""
    minus: str = ""
    """Measure the difference from this scheme's value."""
    unit: str = ""
    """Of the measured value, for people: `s`, `b/s`, `B`, `%` (of a fraction) or nothing."""

    def measure(self, results: dict[str, dict[str, Any]]) -> float | None:
        """The measured number, or None where a run has no such (no flow finished: no FCT).

        Raises:
            RunError: there is no such scheme or value.
        """
        value = self._look_up(results, self.scheme)
        other = self.over or self.minus
        if not other or value is None:
            return value
        base = self._look_up(results, other)
        if base is None or (self.over and base == 0):
            return None
        return value / base if self.over else value - base

    def is_borne_out(self, measured: float | None) -> bool:
        """Whether the measured number meets `holds`; what could not be measured does not."""
        if measured is None:
            return False
        low, dots, high = self.holds.partition("..")
        if dots:
            return float(low) <= measured <= float(high)
        compare, bound = self.holds.split()
        return _COMPARE[compare](measured, float(bound))

    def show(self, measured: float | None) -> str:
        """The measured number as people read it."""
        return _FORMS[self.unit](measured)

    def _look_up(self, results: dict[str, dict[str, Any]], scheme: str) -> float | None:
        where: Any = results
        for key in (scheme, *_keys(self.value)):
            if where is None:
                return None
            if not isinstance(where, dict) or key not in where:
                has = ", ".join(where) if isinstance(where, dict) else "nothing below it"
                message = f"claim {self.id}: no '{key}' for '{self.value}' of {scheme}; has {has}"
                raise RunError(message)
            where = where[key]
        return None if where is None else float(where)


@dataclass(frozen=True)
class Claims:
    """The claims of one experiment."""

    source: str
    seeds: int | None
    claims: tuple[Claim, ...]


def load(path: Path) -> Claims:
    """Reads an experiment's `claims.toml`.

    Raises:
        RunError: it cannot be read, or a claim is not as `Claim` says.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: {error}"
        raise RunError(message) from error
    claims = tuple(_claim(path, table) for table in document.get("claim", ()))
    return Claims(str(document.get("source", "")), document.get("seeds"), claims)


def _claim(path: Path, table: dict[str, Any]) -> Claim:
    known = {field.name for field in fields(Claim)}
    named = f"{path}: claim {table.get('id', '?')}"
    if unknown := sorted(set(table) - known):
        message = f"{named}: unknown key '{unknown[0]}'; known: {', '.join(sorted(known))}"
        raise RunError(message)
    try:
        claim = Claim(**table)
        claim.is_borne_out(0.0)
        claim.show(0.0)
    except (TypeError, KeyError, ValueError) as error:
        message = f"{named}: {error}"
        raise RunError(message) from error
    return claim


def _keys(path: str) -> list[str]:
    """`ports."a->b".drops` is `ports`, `a->b`, `drops`."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^."]+)', path)]
