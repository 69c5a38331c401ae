# SPDX-License-Identifier: Apache-2.0
"""The names of numbers: `mice.fct.p99` as people write it, without units, is `mice.fct_s.p99`.

`find` and `match` look names up; `check` does so before there is a result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import units
from penstock.errors import ScenarioError, suggestion
from penstock.metrics import CAUSES, GROUPS, OF_SEEDS, PORTS, Result

Path = tuple[str, ...]

PORT = "bottleneck"
"""Another name of the measured port, where there is only one."""

_SUFFIXES = ("_by_reason", *(f"_{quantity}" for quantity in units.FORMS))  # may be left out
_OF_TIMES = ("mean", "sd", "p50", "p90", "p95", "p99", "p999", "max")
# Where no flow has such a number the simulator gives null instead of a table.
_TABLES = {
    "fct_s": _OF_TIMES,
    "time_s": _OF_TIMES,
    "slowdown": _OF_TIMES,
    "slow": ("flows", "lasted_s", *(cause.name for cause in CAUSES)),
    "longest_silence_s": _OF_TIMES,
    "goodput_bps": ("mean", "min", "max"),
}


_DESCRIBED = GROUPS | PORTS
_FEW = 4  # ports in a message


@dataclass(frozen=True)
class Field:
    """A number of a result."""

    name: str
    """As it was written."""
    path: Path
    """The keys that lead to it in a result: `("groups", "mice", "fct_s", "p99")`."""

    def of(self, result: Result) -> float | None:
        """The number, or None where the result has none (no flow finished: no FCT).

        The same path leads to the half-width of its confidence interval in a result's `ci95`.
        """
        return number(result, self.path)

    @property
    def unit(self) -> str:
        """`s`, `bps` or `bytes`; empty for counts and ratios."""
        has_owner = self.path[0] in ("groups", "ports")  # whose name may end like a unit
        return quantity(self.path[2 if has_owner else 1 :])

    def text(self, value: float | None) -> str:
        """The number as people read it."""
        return _text(self.unit, value)


def find(name: str, result: Result) -> Field:
    """The field that a name means.

    A name is that of a traffic or a port, then the keys below it in `summary.json`, joined by
    dots. Units (`fct_s`) and a last `mean` may be left out; `bottleneck` is the measured port where
    there is only one; `controller.messages_sent` is a count of SICC's controller, and
    `performance.wall` is how long the simulation took.

    Raises:
        ScenarioError: there is no such number; the message names the nearest.
    """
    if not {"groups", "ports"} <= set(result):
        message = "result: has no groups and ports; allowed: one of the `results` of a summary"
        raise ScenarioError(message)
    known = {".".join(parts): path for parts, path in _named(result)}
    ports = {".".join(path[1:]): path for path in known.values() if path[0] == "ports"}
    known = ports | known if name.startswith(tuple(result["ports"])) else known
    return Field(name, known[match(name, known)])


def match(name: str, known: Iterable[str]) -> str:
    """The full name, as `mice.fct_s.mean`, that a name means.

    Raises:
        ScenarioError: there is no such number; the message names the nearest.
    """
    names = list(known)
    full: dict[str, str] = {}
    for full_name in names:
        full.setdefault(_without_units(full_name), full_name)
    full |= {full_name: full_name for full_name in names}
    name = name.replace("p99.9", "p999")
    for alias in (name, f"{name}.mean"):
        if alias in full:
            return full[alias]
    message = f"{name}: no such number; {suggestion(name, full, _allowed(name, full), cutoff=0.8)}"
    raise ScenarioError(message)


def _allowed(name: str, known: Iterable[str]) -> str:
    """What may follow the part of a name that is right."""
    parts = name.split(".")
    for depth in range(len(parts), -1, -1):
        right = "".join(f"{part}." for part in parts[:depth])
        next_parts = dict.fromkeys(
            each.removeprefix(right).partition(".")[0] for each in known if each.startswith(right)
        )
        short = list(dict.fromkeys(map(_short, next_parts) if right else next_parts))
        if short:
            break
    after = f" after '{right}'" if right else ""
    return f"allowed{after}: {', '.join(short)}"


def names(scenario: Mapping[str, Any]) -> list[str]:
    """The full names of what a scenario's runs may have, before there is one.

    Left out are what no list here has: ports by their own names, the controller's counts, and
    those of the simulator's performance.

    Args:
        scenario: with its defaults.
    """
    traffic, measure = scenario["traffic"], scenario.get("measure", {})
    groups = [name for name, table in traffic.items() if table["kind"] != "udp"]
    groups += [f"{name}/{size}" for name in groups for size in measure.get("sizes", {})]
    tables = [f"{key}.{leaf}" for key, below in _TABLES.items() for leaf in below]
    in_jobs = {leaf for leaf in tables if leaf.startswith("time_s.")}
    of_group = dict.fromkeys(
        (*GROUPS, *(f"jobs.{leaf}" if leaf in in_jobs else leaf for leaf in tables))
    )
    of_groups = [f"{name}.{leaf}" for name in groups for leaf in of_group]
    return of_groups + [f"{PORT}.{leaf}" for leaf in PORTS]


def short(name: str) -> str:
    """A full name without units and a last `mean`: `mice.fct.p99`."""
    return _without_units(name).removesuffix(".mean")


def check(
    name: str, scenario: Mapping[str, Any], ports: Callable[[], Sequence[str]] | None = None
) -> None:
    """Refuses a name that none of a scenario's runs has, so that none is run for it.

    Args:
        name: as people write it.
        scenario: with its defaults.
        ports: those that are measured, if known; called where the name is that of a port.

    Raises:
        ScenarioError: the message names the nearest, or what is allowed.
    """
    owner, _, rest = name.partition(".")
    if owner in ("controller", "performance"):
        return
    if ports is not None and owner.partition("/")[0] not in scenario["traffic"]:
        known = ports()
        if any(name.startswith(f"{port}.") for port in known):
            return
        if "->" in owner or (owner == PORT and len(known) != 1):
            message = f"{name}: {_no_port(owner, known)}"
            raise ScenarioError(message)
    elif "->" in owner:
        return
    if owner == PORT and rest.startswith(("drops.", "drops_by_reason.")):
        return  # the reasons are the simulator's
    match(name, names(scenario))


def _no_port(owner: str, known: Sequence[str]) -> str:
    shown = ", ".join(known[:_FEW]) + (
        f" and {more} more" if (more := len(known) - _FEW) > 0 else ""
    )
    measured = f"measured ports: {shown}" if known else "no port is measured"
    if owner == PORT:
        return f"there is no single measured port; {measured}"
    return f"no such measured port; {suggestion(owner, known, measured, cutoff=0.8)}"


def text(name: str, value: float | None) -> str:
    """The number of a full name as people read it."""
    return _text(_unit(name), value)


def described(name: str) -> str:
    """A full name in words: `mice.fct_s.p99` is `FCT p99 of mice`."""
    path = _described_path(name)
    if path is None:
        return name
    return f"{_DESCRIBED[path].heading} of {name.removesuffix(path)[:-1]}"


def shown(name: str, value: float | None) -> str:
    """The number of a full name as the tables of a run show it: counts, shares, factors."""
    path = _described_path(name)
    return text(name, value) if path is None else _DESCRIBED[path].text(_unit(name), value)


def axis_unit(name: str) -> str | None:
    """The unit that prefixes go to on an axis of a full name's numbers; None for mere numbers."""
    return units.AXES.get(_unit(name))


def flat(result: Result) -> dict[str, float | None]:
    """Every number of a result by its full name, as `mice.fct_s.p99`; what is absent as None."""
    return {".".join(parts): number(result, path) for parts, path in _named(result)}


def number(table: Result, path: Iterable[str]) -> float | None:
    """The number at a path, or None where there is none (no flow finished: no FCT)."""
    value: Any = table
    for key in path:
        value = None if value is None else value.get(key)
    return None if value is None else float(value)


def quantity(path: Iterable[str]) -> str:
    """`s`, `bps` or `bytes`, by the ending of a key; empty for counts and ratios."""
    ends = (unit for key in path for unit in units.FORMS if key.endswith(f"_{unit}"))
    return next(ends, "")


def leaves(table: Mapping[str, Any]) -> Iterator[Path]:
    """The path to each number of a group or a port, those that are null included."""
    for key, value in table.items():
        if key == OF_SEEDS:
            continue
        below = dict.fromkeys(_TABLES[key]) if value is None and key in _TABLES else value
        if isinstance(below, Mapping):
            yield from ((key, *path) for path in leaves(below))
        else:
            yield (key,)


def _named(result: Result) -> Iterator[tuple[Path, Path]]:
    """The parts of each number's name, and the path to it."""
    for kind in ("groups", "ports"):
        for owner, table in result[kind].items():
            is_only = kind == "ports" and len(result[kind]) == 1 and PORT not in result["groups"]
            for path in leaves(table):
                yield (PORT if is_only else owner, *path), (kind, owner, *path)
    for kind in ("controller", "performance"):
        for path in leaves(result.get(kind, {})):
            yield (kind, *path), (kind, *path)


def _described_path(name: str) -> str | None:
    """The longest path of a described number that ends a name: `jobs.finished`, not `finished`."""
    parts = name.split(".")
    paths = (".".join(parts[place:]) for place in range(1, len(parts)))
    return next((path for path in paths if path in _DESCRIBED), None)


def _unit(name: str) -> str:
    """The quantity of a full name, whose first part is a traffic or a port."""
    return quantity(name.split(".")[1:])


def _text(unit: str, value: float | None) -> str:
    if form := units.FORMS.get(unit):
        return form(value)
    return units.NONE if value is None else f"{value:.4g}"


def _without_units(name: str) -> str:
    """A full name without units; a traffic, port or table of the first part keeps its name."""
    owner, *keys = name.split(".")
    return ".".join([owner, *map(_short, keys)])


def _short(key: str) -> str:
    ends = (suffix for suffix in _SUFFIXES if key.endswith(suffix))
    return key.removesuffix(next(ends, ""))
