# SPDX-License-Identifier: Apache-2.0
"""The numbers that a sweep shows: means over the seeds at each point."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from penstock import metric_names, missing, stats, units
from penstock.errors import ScenarioError
from penstock.sweeps.store import KEY


@dataclass(frozen=True)
class Cell:
    """A number at one point under one scheme: mean over the seeds, half-width of its CI."""

    mean: float | None
    half: float | None
    unfinished: bool
    """It is a percentile, and in a seed more flows did not end than lie above it."""
    seeds: tuple[float, ...] = ()
    """The number of each seed that has it."""
    lacking: int = 0
    """Seeds that do not have it."""

    @classmethod
    def none(cls) -> "Cell":
        """Of a point that was not run."""
        return cls(None, None, unfinished=False)

    @property
    def value(self) -> float | None:
        """The mean, but None if it is unfinished: it would be that of the lucky seeds."""
        return None if self.unfinished else self.mean

    @property
    def spread(self) -> float | None:
        """Half-width of the interval of `value`."""
        return None if self.unfinished else self.half

    def text(self, name: str) -> str:
        """As the table shows it."""
        if self.unfinished:
            return missing.UNFINISHED
        text = metric_names.shown(name, self.mean)
        if self.mean and self.half is not None:
            text += f" ±{100 * self.half / abs(self.mean):.0f} %"
        return missing.with_seeds(text, len(self.seeds) if self.seeds and self.lacking else None)


@dataclass(frozen=True)
class Shown:
    """One number of a sweep at all its points."""

    name: str
    """In full: `mice.fct_s.p99`."""
    swept: dict[str, str]
    """Column of each swept key, with the key."""
    points: list[tuple[Any, ...]]
    schemes: list[str]
    cells: dict[tuple[tuple[Any, ...], str], Cell]
    seeds: int
    """The most that a point has."""
    least_seeds: int = 0
    """The fewest, where a sweep is not complete; 0: unknown."""

    @property
    def seeds_text(self) -> str:
        """How many seeds the means are of: `4 seeds`, or `2 to 4 seeds`."""
        least = f"{self.least_seeds} to " if 0 < self.least_seeds < self.seeds else ""
        return f"{least}{self.seeds} seeds"

    def known(self) -> list[float]:
        """All values that there are."""
        return [cell.value for cell in self.cells.values() if cell.value is not None]

    def point_text(self, point: tuple[Any, ...]) -> list[str]:
        """The values of a point as people read them."""
        return [value_text(c, value) for c, value in zip(self.swept, point, strict=True)]


def key_text(key: str) -> str:
    """A swept key in words: `traffic.mice.flows` is `flows of mice`."""
    table, *parts = key.split(".")
    if table in ("traffic", "scheme") and len(parts) > 1:
        return f"{parts[-1].replace('_', ' ')} of {parts[0]}"
    return " ".join(parts or [table]).replace("_", " ")


def value_text(column: str, value: Any) -> str:  # noqa: ANN401 (of a typed column)
    """A swept value as people read it."""
    form = units.FORMS.get(column.rpartition("_")[2])
    if form is None or isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return form(value)


def names_of(request: dict[str, Any], table: pl.DataFrame) -> list[str]:
    """The full names of all numbers of a table."""
    keys = {column for column, _ in request["columns"].values()} | {"scheme", "seed", KEY}
    return [name for name in table.columns if name not in keys]


def default(names: Sequence[str], table: pl.DataFrame) -> str:
    """The p99 FCT of the first traffic that finishes flows, or its goodput, or the port's drops.

    Raises:
        ScenarioError: there is none of these.
    """
    tails = [name for name in names if name.endswith(".fct_s.p99")]
    # A tail may be null although flows finished: too few did.
    ended = [name for name in tails if table[f"{name[:-3]}mean"].null_count() < table.height]
    goodputs = [name for name in names if name.endswith(".goodput_bps.mean")]
    drops = [name for name in names if name.endswith(".drops")]
    if not (ended or goodputs or drops):
        message = "the scenario has neither traffic with flows nor a measured port; give a number"
        raise ScenarioError(message)
    return (ended or goodputs or drops)[0]


def shown(request: dict[str, Any], table: pl.DataFrame, number: str) -> Shown:
    """Means and confidence intervals of a number; of the default one if it is empty.

    Raises:
        ScenarioError: there is no such number.
    """
    names = names_of(request, table)
    try:
        name = metric_names.match(number, names) if number else default(names, table)
    except ScenarioError as error:
        message = f"--show {error}"
        raise ScenarioError(message) from None
    swept = {column: key for key, (column, _) in request["columns"].items()}
    owner, _, path = name.partition(".")
    parts = table.partition_by([*swept, "scheme"], maintain_order=True, as_dict=True)
    cells = {}
    for key, part in parts.items():
        values = part[name].drop_nulls().to_list()
        cells[key[:-1], str(key[-1])] = Cell(
            mean=math.fsum(values) / len(values) if values else None,
            half=stats.ci95_of(values),
            unfinished=any(
                missing.is_cut_off(path, counts) for counts in _counts(part, owner, path)
            ),
            seeds=tuple(values),
            lacking=part.height - len(values),
        )
    return Shown(
        name=name,
        swept=swept,
        points=list(dict.fromkeys(point for point, _ in cells)),
        schemes=[name for name in request["scheme"] if name in table["scheme"]],
        cells=cells,
        seeds=max((part.height for part in parts.values()), default=0),
        least_seeds=min((part.height for part in parts.values()), default=0),
    )


def _counts(rows: pl.DataFrame, owner: str, path: str) -> Iterator[dict[str, Any]]:
    """Of each seed how many flows of a traffic, or jobs, there were, by the keys of a summary."""
    prefix = f"{owner}.jobs" if path.startswith("jobs.") else owner
    keys = ("flows", "begun", "finished", "unfinished")
    names = {f"{prefix}.{key}": key for key in keys if f"{prefix}.{key}" in rows.columns}
    for row in rows.select(list(names)).iter_rows(named=True):
        counts = {names[name]: value or 0 for name, value in row.items()}
        yield {"jobs": counts} if prefix != owner else counts


def as_json(results: Sequence[Shown]) -> list[dict[str, Any]]:
    """The same for `--json`: a table for each number."""
    return [
        {
            "show": result.name,
            "points": [
                {
                    "over": dict(zip(result.swept, point, strict=True)),
                    "scheme": scheme,
                    "mean": cell.value,
                    "ci95": cell.spread,
                    "unfinished": cell.unfinished,
                    "seeds": len(cell.seeds),
                }
                for (point, scheme), cell in result.cells.items()
            ],
        }
        for result in results
    ]
