# SPDX-License-Identifier: Apache-2.0
"""Runs compared with a reference, number by number.

The first run is the reference: the kernel for the simulator, or the state before a change. A number
is judged twice: whether it is near the reference (its `tolerance`), and, where both runs have
several seeds, whether they differ by more than the seeds do.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from penstock import columns, folders, metric_names, metrics, missing, stats, tables, units
from penstock.errors import RunError, ScenarioError
from penstock.metrics import Metric
from penstock.runs import Run

METRICS = {"groups": metrics.GROUPS, "ports": metrics.PORTS}
_SETTINGS = ("seeds", "schemes", "title", "about")
"""Keys of a scenario that are no settings of what is simulated, or are compared apart."""

_LACKED = {
    "fct_s": "fct_s",
    "goodput_bps": "goodput_bps",
    "jain": "goodput_bps",
    "time_s": "time_s",
}
"""Numbers that a seed lacks where no flow, or no job, has a value in this column."""


class Number(NamedTuple):
    """A number of a run: the mean of its seeds, and how sure that is."""

    mean: float | None
    half: float | None
    """Half-width of its 95 % confidence interval; None with one seed."""
    seeds: int
    """How many have it."""
    is_unfinished: bool = False
    """Too many flows did not finish for there to be a mean."""


@dataclass(frozen=True)
class Line:
    """One number of one group or port under one scheme, in the reference and in another run."""

    run: str
    """The other run's name."""
    scheme: str
    group: str
    """The traffic, or the port."""
    measure: str
    first: float | None
    second: float | None
    ratio: float | None
    """The second over the first; None where one is missing or the first is zero."""
    tolerance: float
    agrees: bool | None
    """Whether they differ by no more than the tolerance; None where both are missing."""
    significant: bool | None
    """Whether they differ by more than the seeds do (Welch's t test, 95 %); None: unknown."""
    first_unfinished: bool = False
    """Too many flows did not finish for there to be a first (see `missing.is_cut_off`)."""
    second_unfinished: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to see."""
        return self.agrees is not None or self.first_unfinished or self.second_unfinished

    def shown(self) -> tuple[str, str, str, str]:
        """The two values, their ratio and the verdict as people read them."""
        path, metric = next(
            (path, metric)
            for table in METRICS.values()
            for path, metric in table.items()
            if metric.heading == self.measure
        )
        first, second = (
            missing.UNFINISHED
            if is_unfinished
            else metric.text(metric_names.quantity(path.split(".")), value)
            for value, is_unfinished in (
                (self.first, self.first_unfinished),
                (self.second, self.second_unfinished),
            )
        )
        ratio = units.NONE if self.ratio is None else f"{self.ratio:.2f}"
        if self.agrees is None:
            return first, second, ratio, ""
        verdict = f"within {100 * self.tolerance:.0f} %" if self.agrees else "apart"
        if self.significant is not None:
            verdict += ", significant" if self.significant else ", not significant"
        return first, second, ratio, verdict


class Setting(NamedTuple):
    """A setting that is not the same in all runs."""

    key: str
    values: tuple[str, ...]
    """Of each run."""


@dataclass(frozen=True)
class Comparison:
    """Runs and how they differ from the first."""

    title: str
    names: tuple[str, ...]
    """What each run is called: its substrate, or its folder where several have the same."""
    settings: tuple[Setting, ...]
    lines: tuple[Line, ...]
    flows: pl.DataFrame
    """The flows of all: `run`, `scheme`, `group`, `fct_s`; also those that never began."""
    left_out: tuple[str, ...] = ()
    """Sentences on what is not compared: schemes and traffic that not all runs have."""

    def as_json(self) -> dict[str, Any]:
        """What `penstock compare --json` prints."""
        judged = [line for line in self.lines if line.agrees is not None]
        tested = [line for line in judged if line.significant is not None]
        return {
            "title": self.title,
            "runs": list(self.names),
            "settings": [{"key": each.key, "values": list(each.values)} for each in self.settings],
            "agree": sum(bool(line.agrees) for line in judged),
            "of": len(judged),
            "significant": sum(bool(line.significant) for line in tested),
            "tested": len(tested),
            "lines": [asdict(line) for line in self.lines],
            "left_out": list(self.left_out),
        }

    def sentences(self) -> list[str]:
        """How much differs, of what can be judged."""
        counted = self.as_json()
        agree = (
            f"{counted['agree']} of {counted['of']} numbers agree: means, medians, queues and "
            "finished flows within 15 %; p99, maximum, timeouts, drops and unfinished flows within "
            "25 %."
        )
        about = [*self._about_unfinished(), *self.left_out]
        if not counted["tested"]:
            seeds = "Runs of one seed do not show what is chance; run more with --seeds."
            return [agree, seeds, *about]
        by_chance = round(0.05 * counted["tested"])
        return [
            agree,
            f"{counted['significant']} of {counted['tested']} differ by more than the seeds do "
            f"(Welch's t test, 95 %); by chance alone {by_chance} would.",
            *about,
        ]

    def _about_unfinished(self) -> Iterator[str]:
        """A warning where the runs' completion times are of different flows."""
        of_finished = ("finished", "unfinished")
        apart = [x for x in self.lines if x.measure in of_finished and x.agrees is False]
        for group in dict.fromkeys(line.group for line in apart):
            schemes = dict.fromkeys(line.scheme for line in apart if line.group == group)
            yield (
                f"{group}: not as many flows finished in one run as in another under "
                f"{', '.join(schemes)}; completion times are those of the finished ones."
            )

    @classmethod
    def load(cls, folder: Path) -> "Comparison":
        """Reads a comparison's folder.

        Raises:
            RunError: a file of it is missing or damaged.
        """
        try:
            document = json.loads((folder / folders.COMPARISON.file).read_text(encoding="utf-8"))
            settings = [Setting(one["key"], tuple(one["values"])) for one in document["settings"]]
            lines = tuple(Line(**line) for line in document["lines"])
            flows = tables.load(folder / "flows.parquet")
            left_out = tuple(document.get("left_out", ()))
            named = document["title"], tuple(document["runs"])
            return cls(*named, tuple(settings), lines, flows, left_out)
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
            reason = str(error).partition("\n")[0]
            message = f"{folder}: the comparison is damaged ({reason}); compare the runs again"
            raise RunError(message) from error


def compare(first: str | Path, *others: str | Path) -> Comparison:
    """Compares runs with the first, also of different settings, seeds and substrates.

    Raises:
        ScenarioError: a folder is no run's, or two runs have no scheme or no traffic in common.
        RunError: a run is damaged.
    """
    places = tuple(map(Path, (first, *others)))
    runs = [Run.load(place) for place in places]
    names = _names(runs, places)
    lines = [
        line
        for run, name in zip(runs[1:], names[1:], strict=True)
        for line in _lines(runs[0], run, name)
    ]
    flows = [
        run.planned(group).select(
            pl.lit(name).alias("run"), "scheme", pl.lit(group).alias("group"), "fct_s"
        )
        for run, name in zip(runs, names, strict=True)
        for group in run.summary["results"][0]["groups"]
    ]
    titles = dict.fromkeys(run.summary["scenario"]["title"] for run in runs)
    return Comparison(
        title=" · ".join(titles),
        names=names,
        settings=tuple(_settings(runs)),
        lines=tuple(lines),
        flows=pl.concat(flows),
        left_out=tuple(
            sentence
            for run, name in zip(runs[1:], names[1:], strict=True)
            for sentence in _left_out(runs[0], run, (names[0], name))
        ),
    )


def _left_out(first: Run, second: Run, names: tuple[str, str]) -> Iterator[str]:
    """What only one of two runs has, in a sentence for schemes and one for traffic."""
    if len(pairs := _pairs(first, second)) == 1 and not set(pairs) & set(_by_scheme(first)):
        both: tuple[list[str], list[str]] = ([], [])
    else:
        both = (list(_by_scheme(first)), list(_by_scheme(second)))
    groups = tuple(list(run.summary["results"][0]["groups"]) for run in (first, second))
    for noun, (mine, its) in (("schemes", both), ("traffic", groups)):
        parts = [
            f"{', '.join(only)} (only in {name})"
            for name, only in (
                (names[0], [each for each in mine if each not in its]),
                (names[1], [each for each in its if each not in mine]),
            )
            if only
        ]
        if parts:
            yield f"Not compared, of the {noun}: {'; '.join(parts)}."


def _names(runs: Sequence[Run], places: Sequence[Path]) -> tuple[str, ...]:
    """Short ones that differ: substrates, else names of folders, else their paths."""
    choices = (
        [str(run.info.get("substrate", "sim")) for run in runs],
        [place.resolve().name for place in places],
        [str(place) for place in places],
    )
    fitting = (names for names in choices if len(set(names)) == len(names))
    return tuple(next(fitting, [f"{n}: {place}" for n, place in enumerate(places, 1)]))


def _settings(runs: Sequence[Run]) -> Iterator[Setting]:
    """What differs: on what the runs ran, then their settings by dotted path.

    Those of a scheme count only in the runs that have it, or one more scheme would hide the rest.
    """
    documents = [run.summary["scenario"] for run in runs]
    schemes = [set(_by_scheme(run)) for run in runs]
    has_common = bool(set.intersection(*schemes))  # otherwise two schemes are compared
    of_scheme = {
        f"scheme.{name}.{key}": name
        for document in documents
        for name, table in document.get("scheme", {}).items()
        for key in _flat(table)
    }
    tables = [
        {
            "substrate": run.info.get("substrate", "sim"),
            "penstock": run.info.get("penstock", ""),
            "commit": run.info.get("commit") or units.NONE,
            **{key: str(value) for key, value in (run.info.get("machine") or {}).items()},
            "seeds": len(run.summary["seeds"]),
            "schemes": ", ".join(_by_scheme(run)),
            **_flat({k: v for k, v in document.items() if k not in _SETTINGS}),
            **_files(run, documents),
        }
        for run, document in zip(runs, documents, strict=True)
    ]
    for key in dict.fromkeys(key for table in tables for key in table):
        values = tuple(_value(table.get(key, units.NONE)) for table in tables)
        owner = of_scheme.get(key) if has_common else None
        counted = {
            value
            for value, known in zip(values, schemes, strict=True)
            if owner is None or owner in known
        }
        if len(counted) > 1:
            yield Setting(key, values)


def _value(value: object) -> str:
    """A setting as a scenario has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _files(run: Run, documents: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The contents of the files that a run read, by the keys that name them in all runs."""
    digests: dict[str, str] = run.info.get("files", {})
    keys = [_flat(document.get("traffic", {}), "traffic.") for document in documents]
    own = _flat(run.summary["scenario"].get("traffic", {}), "traffic.")
    return {
        f"contents of {key}": digests[str(path)].removeprefix("sha256 ")[:16]
        for key, path in own.items()
        if str(path) in digests and all(key in each for each in keys)
    }


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        is_table = isinstance(value, dict)  # an empty one sets nothing
        flat |= _flat(value, f"{prefix}{key}.") if is_table else {f"{prefix}{key}": value}
    return flat


def _by_scheme(run: Run) -> dict[str, dict[str, Any]]:
    return {result["scheme"]: result for result in run.summary["results"]}


def _pairs(first: Run, second: Run) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The results to compare, by a name: of schemes in common, or of the only one of each run.

    Raises:
        ScenarioError: there are none.
    """
    one, other = _by_scheme(first), _by_scheme(second)
    pairs = {scheme: (one[scheme], other[scheme]) for scheme in one if scheme in other}
    if not pairs and len(one) == len(other) == 1:
        (mine, first_result), (its, second_result) = *one.items(), *other.items()
        pairs = {f"{mine} and {its}": (first_result, second_result)}
    if not pairs:
        names = f"{', '.join(one)}; {', '.join(other)}"
        message = f"compare: the runs have no scheme in common: {names}"
        raise ScenarioError(message)
    return pairs


def _lines(first: Run, second: Run, name: str) -> Iterator[Line]:
    is_any, pairs = False, _pairs(first, second)
    for scheme, results in pairs.items():
        for kind, table in METRICS.items():
            for owner in results[0][kind]:
                if owner not in results[1][kind]:
                    continue
                is_any = is_any or kind == "groups"
                for path, metric in table.items():
                    if metric.tolerance is not None:
                        numbers = [
                            _number(run, result, (kind, owner, *path.split(".")))
                            for run, result in zip((first, second), results, strict=True)
                        ]
                        if not _is_endless(path, *(result[kind][owner] for result in results)):
                            yield _line(name, scheme, owner, metric, *numbers)
    if not is_any:
        names = "; ".join(", ".join(result["groups"]) for result in next(iter(pairs.values())))
        message = f"compare: the runs have no traffic in common: {names}"
        raise ScenarioError(message)


def _is_endless(path: str, *groups: dict[str, Any]) -> bool:
    """Whether a number counts the ends of flows that have none."""
    return path in ("finished", "unfinished") and not any(
        group.get(key) for group in groups for key in ("finished", "unfinished")
    )


def _number(run: Run, result: dict[str, Any], path: tuple[str, ...]) -> Number:
    kind, owner, *keys = path
    if kind == "groups" and missing.is_cut_off(".".join(keys), result[kind][owner]):
        return Number(None, None, 0, is_unfinished=True)
    half = metric_names.number(result["ci95"], path) if result["ci95"] else None
    return Number(metric_names.number(result, path), half, _seeds_with(run, result["scheme"], path))


def _seeds_with(run: Run, scheme: str, path: tuple[str, ...]) -> int:
    """How many seeds have a number: one where no flow finished has no completion time."""
    column = next((_LACKED[key] for key in path[2:] if key in _LACKED), None)
    if column is None:
        return len(run.summary["seeds"])
    group = path[1]
    rows = run.jobs.filter(traffic=group) if column in columns.JOBS else run.members(group)
    return rows.filter(pl.col(column).is_not_null(), scheme=scheme)["seed"].n_unique()


def _line(run: str, scheme: str, group: str, metric: Metric, first: Number, second: Number) -> Line:
    tolerance = metric.tolerance or 0.0
    ratio = second.mean / first.mean if first.mean and second.mean is not None else None
    agrees = None
    if first.mean is not None and second.mean is not None:
        margin = tolerance * abs(first.mean)
        agrees = math.isclose(first.mean, second.mean, rel_tol=0.0, abs_tol=margin)
    elif (first.mean is None) != (second.mean is None):
        agrees = False  # where both are unfinished there is nothing to judge
    return Line(
        *(run, scheme, group, metric.heading, first.mean, second.mean, ratio, tolerance, agrees),
        significant=_is_significant(first, second),
        first_unfinished=first.is_unfinished,
        second_unfinished=second.is_unfinished,
    )


def _is_significant(first: Number, second: Number) -> bool | None:
    """Welch's t test at 95 %; None where fewer than two seeds of a run have the number."""
    if None in (*first[:3], *second[:3]) or min(first.seeds, second.seeds) < 2:
        return None
    errors = [
        (number.half or 0.0) / stats.student_t(number.seeds - 1) for number in (first, second)
    ]
    return stats.welch(
        (first.mean or 0.0, errors[0], first.seeds), (second.mean or 0.0, errors[1], second.seeds)
    )
