# SPDX-License-Identifier: Apache-2.0
"""The subject of a claim or figure: a number of a run's summary, of its flows, or of theory."""

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from penstock import metric_names, units
from penstock.errors import RunError
from penstock.runs import Run
from penstock_papers import values
from penstock_papers.values import Value


def _percentile(percent: int) -> Callable[[pl.Expr], pl.Expr]:
    return lambda column: column.quantile(percent / 100, "linear")


EACH: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "mean": pl.Expr.mean,
    "sd": pl.Expr.std,
    "min": pl.Expr.min,
    "max": pl.Expr.max,
    **{f"p{percent}": _percentile(percent) for percent in (50, 90, 95, 99)},
}
"""Statistics of each client's requests."""


@dataclass(frozen=True)
class Measure:
    """A number of a run; `papers/README.md` explains each key."""

    scheme: str = ""
    field: str = ""
    """Dotted path in the summary, as `fct_s.mean`; with `each` or `quantile` a column of flows."""
    group: str = ""
    port: str = ""
    per: str = ""
    minus: str = ""
    """A scheme whose same number is taken away."""
    each: Literal["", "mean", "sd", "min", "max", "p50", "p90", "p95", "p99"] = ""
    quantile: float | None = None
    across: Literal["", "max", "min", "mean", "spread"] = ""
    run: str = ""
    """Taken from this run, whatever the claim's are."""
    analysis: str = ""

    def of(self, run: Run) -> Value | None:
        """The number, or None where the run has none (no flow finished: no FCT).

        Raises:
            RunError: the run has no such scheme, traffic, port or field.
        """
        if self.minus:
            schemes = (self.scheme, self.minus)
            own, other = (replace(self, minus="", scheme=scheme).of(run) for scheme in schemes)
            return None if own is None or other is None else values.difference(own, other)
        if self.each or self.quantile is not None:
            return self._of_flows(run)
        value = self._of_summary(run, self.field)
        if not self.per or value is None:
            return value
        below = self._of_summary(run, self.per)
        return None if below is None else values.ratio(value, below)

    def _of_summary(self, run: Run, field: str) -> Value | None:
        results = {result["scheme"]: result for result in run.summary["results"]}
        kind, name = ("groups", self.group) if self.group else ("ports", self.port)
        path = (kind, name, *field.split("."))
        mean = self._walked(results, (self.scheme, *path))
        half: Any = results[self.scheme].get("ci95")
        for key in path:
            half = None if half is None else half.get(key)
        return None if mean is None else Value(float(mean), half)

    def _walked(self, value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 (JSON)
        for key in path:
            if value is None:
                return None
            if not isinstance(value, Mapping) or key not in value:
                has = list(value) if isinstance(value, Mapping) else []
                message = f"{self}: no '{key}'; {nearest(key, has, 'the run has')}"
                raise RunError(message)
            value = value[key]
        return value

    def _of_flows(self, run: Run) -> Value | None:
        """The quantile over clients (or flows), of each seed and then of all.

        Who has no value, as no request of it finished, counts as beyond every value; so does a seed
        whose quantile falls there.
        """
        by_seed = samples(run, self.scheme, self.group, self.field, self.each)
        at = 0.5 if self.quantile is None else self.quantile
        return values.of_seeds([_quantile(seed["value"], at) for seed in by_seed])

    def show(self, value: float | None) -> str:
        """The number as people read it."""
        if not self._is_plain:
            return metric_names.text(f"flows.{self.field}", value)
        return units.NONE if value is None else f"{value:.4g}"

    @property
    def _is_plain(self) -> bool:
        """Whether it is a ratio of what its field has."""
        return bool(self.per) or self.across == "spread"

    def show_with_half(self, value: Value | None) -> str:
        """The number with the half-width of its confidence interval, where it has one."""
        if value is None or not value.half:
            return self.show(None if value is None else value.mean)
        return f"{self.show(value.mean)} ± {self.show(value.half)}"

    def __str__(self) -> str:
        """Its path, for messages."""
        return self.analysis or f"{self.scheme}/{self.group or self.port}/{self.field}"


def samples(run: Run, scheme: str, group: str, field: str, each: str = "") -> list[pl.DataFrame]:
    """For each seed a table with the column `value`: the field of each flow of a group.

    With `each` the statistic of each client's requests instead (a client is a `flow` of the table).

    Raises:
        RunError: the run has no such group, or its flows no such column.
    """
    groups = list(run.summary["results"][0]["groups"])
    if group not in groups:
        hint = nearest(group, groups, "the run has")
        message = f"{scheme}/{group}/{field}: no group '{group}'; {hint}"
        raise RunError(message)
    rows = run.members(group).filter(pl.col("scheme") == scheme)
    if field not in rows.columns:
        hint = nearest(field, rows.columns, "flows have")
        message = f"{scheme}/{group}/{field}: no column '{field}'; {hint}"
        raise RunError(message)
    column = pl.col(field)
    if each:
        rows = rows.group_by("seed", "flow", maintain_order=True).agg(EACH[each](column))
    return rows.select("seed", column.alias("value")).partition_by("seed", maintain_order=True)


def _quantile(column: pl.Series, at: float) -> float | None:
    """Linear between neighbours, as a summary's percentiles, but nulls are beyond every value."""
    known = column.drop_nulls().sort()
    place = at * (len(column) - 1)
    low = int(place)
    high = min(low + 1, len(column) - 1) if place > low else low
    if not len(column) or high >= len(known):
        return None
    return float(known[low] + (known[high] - known[low]) * (place - low))


def analysed(name: str, runs: Mapping[str, Run]) -> Value | None:
    """What a function of `penstock_papers.analysis` makes of an experiment's runs.

    Raises:
        RunError: it gives no number.
    """
    value = analysis(name)(runs)
    if value is None or isinstance(value, bool | int | float):
        return None if value is None else Value(float(value))
    message = f"penstock_papers.analysis.{name}: gives no number but {type(value).__name__}"
    raise RunError(message)


def analysis(name: str) -> Callable[[Mapping[str, Run]], Any]:
    """A function of `penstock_papers.analysis` by its dotted name, as `hscc.phase`.

    Raises:
        ValueError: there is none of this name.
    """
    module, _, function = name.rpartition(".")
    try:
        found = importlib.import_module(f"penstock_papers.analysis.{module}" if module else "")
        made = getattr(found, function)
    except (ImportError, ValueError, AttributeError):
        message = f"no function '{name}' in penstock_papers.analysis (give module.function)"
        raise ValueError(message) from None
    if not callable(made):
        message = f"'{name}' of penstock_papers.analysis is no function"
        raise ValueError(message)
    called: Callable[[Mapping[str, Run]], Any] = made
    return called


def nearest(name: str, known: list[str], otherwise: str = "known:") -> str:
    """The remedy after an unknown name: the nearest known one, or all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"{otherwise} {', '.join(known)}"
