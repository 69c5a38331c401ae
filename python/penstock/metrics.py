# SPDX-License-Identifier: Apache-2.0
"""The names people write for the numbers of a summary: `mice.fct.p99`, `bottleneck.drops`."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock import units
from penstock.errors import ScenarioError

Result = Mapping[str, Any]
"""One scheme's part of a summary, of one seed or the mean of several."""
Path = tuple[str, ...]

PORT = "bottleneck"
"""Another name of the measured port, where there is only one."""

FORMS: dict[str, Callable[[float | None], str]] = {
    "s": units.seconds,
    "bps": units.rate,
    "bytes": units.size,
}
"""How people read numbers with a unit, by the unit at the end of their names."""

_AXES = {"s": "s", "bps": "b/s", "bytes": "B"}
_SUFFIXES = ("_by_reason", *(f"_{unit}" for unit in FORMS))  # may be left out
_OF_TIMES = ("mean", "sd", "p50", "p90", "p95", "p99", "max")
# Where no flow has such a number the simulator gives null instead of a table.
_TABLES = {
    "fct_s": _OF_TIMES,
    "longest_silence_s": _OF_TIMES,
    "goodput_bps": ("mean", "min", "max"),
}


@dataclass(frozen=True)
class Field:
    """A number of a summary."""

    name: str
    """As it was written."""
    path: Path
    """The keys that lead to it in a result: `("groups", "mice", "fct_s", "p99")`."""

    def of(self, result: Result) -> float | None:
        """The number, or None where the result has none (no flow finished: no FCT).

        The same path leads to the half-width of its confidence interval in a result's `ci95`.
        """
        value: Any = result
        for key in self.path:
            value = None if value is None else value.get(key)
        return None if value is None else float(value)

    @property
    def unit(self) -> str:
        """`s`, `bps` or `bytes`; empty for counts and ratios."""
        ends = (unit for key in self.path[1:] for unit in FORMS if key.endswith(f"_{unit}"))
        return next(ends, "")

    def text(self, value: float | None) -> str:
        """The number as people read it."""
        if form := FORMS.get(self.unit):
            return form(value)
        return units.NONE if value is None else f"{value:.4g}"


def find(name: str, result: Result) -> Field:
    """The field that a name means.

    A name is that of a traffic or a port, then the keys below it in `summary.json`, joined by
    dots. Units (`fct_s`) and a last `mean` may be left out; `bottleneck` is the measured port where
    there is only one; `performance.wall` is how long the simulation took.

    Raises:
        ScenarioError: there is no such number; the message names the nearest.
    """
    known = {".".join(said): path for said, path in _named(result)}
    own = {".".join(path[1:]): path for path in known.values() if path[0] == "ports"}
    known = own | known if name.startswith(tuple(result["ports"])) else known
    return Field(name, known[match(name, known)])


def match(name: str, known: Iterable[str]) -> str:
    """The full name, as `mice.fct_s.mean`, that a name means.

    Raises:
        ScenarioError: there is no such number; the message names the nearest.
    """
    full = {short: one for one in known for short in (".".join(map(_short, one.split("."))), one)}
    for said in (name, f"{name}.mean"):
        if said in full:
            return full[said]
    near = difflib.get_close_matches(name, full, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"allowed: {', '.join(full)}"
    message = f"{name}: no such number in the summary; {hint}"
    raise ScenarioError(message)


def text(name: str, value: float | None) -> str:
    """The number of a full name as people read it."""
    return Field(name, tuple(name.split("."))).text(value)


def axis_unit(name: str) -> str | None:
    """The unit that prefixes go to on an axis of a full name's numbers; None for mere numbers."""
    return _AXES.get(Field(name, tuple(name.split("."))).unit)


def flat(result: Result) -> dict[str, float | None]:
    """Every number of a result by its full name, as `mice.fct_s.p99`; what is absent as None."""
    return {".".join(said): Field("", path).of(result) for said, path in _named(result)}


def _named(result: Result) -> Iterator[tuple[Path, Path]]:
    """The parts of each number's name, and the path to it."""
    for kind in ("groups", "ports"):
        for owner, table in result[kind].items():
            alone = kind == "ports" and len(result[kind]) == 1 and PORT not in result["groups"]
            said = PORT if alone else owner
            for path in _leaves(table):
                yield (said, *path), (kind, owner, *path)
    for path in _leaves(result.get("performance", {})):
        yield ("performance", *path), ("performance", *path)


def _leaves(table: Mapping[str, Any]) -> Iterator[Path]:
    for key, value in table.items():
        below = dict.fromkeys(_TABLES[key]) if value is None and key in _TABLES else value
        if isinstance(below, Mapping):
            yield from ((key, *path) for path in _leaves(below))
        else:
            yield (key,)


def _short(key: str) -> str:
    ends = (suffix for suffix in _SUFFIXES if key.endswith(suffix))
    return key.removesuffix(next(ends, ""))
