# SPDX-License-Identifier: Apache-2.0
"""What a figure shows, as numbers: taken from runs, small enough to be kept, drawn by `drawing`.

A figure's data are JSON: `schemes` with their places in the run, and by its kind

    line       panels of series [x, mean, half-width]; `ticks` where the x are names
    cdf        panels of series [some of the sorted values, how many there are, how many flows]
    bars       clusters, series [mean, half-width]; the mean is null where there is no number
    histogram  greatest value, series of flows in each bin
    heat       xs, ys, series [x, y, value] by place
    analysis   panels of lines, as a function of `analysis` gives them
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from penstock_papers import measures
from penstock_papers.claims import Runs
from penstock_papers.experiment import Experiment, Figure
from penstock_papers.values import Value

Data = dict[str, Any]

POINTS = 80
"""Most points of a distribution's curve."""
DIGITS = 4
"""Significant digits of a number."""


def collect(figure: Figure, made: Experiment, runs: Runs) -> Data | None:
    """The numbers of a figure; None where its runs or schemes were left out."""
    if figure.kind == "analysis":
        return _plain({"panels": measures.analysis(figure.draw)(runs)})
    wanted = {name: runs[name] for name in figure.runs or made.runs if name in runs}
    if not wanted:
        return None
    known = [result["scheme"] for result in next(iter(wanted.values())).summary["results"]]
    schemes = {s: known.index(s) for s in figure.schemes or known if s in known}
    if not schemes:
        return None
    source = _Source(figure, wanted, tuple(schemes), made.places)
    return _plain({"schemes": schemes, **_KINDS[figure.kind](source)})


@dataclass(frozen=True)
class _Source:
    """What a figure's numbers are taken from."""

    figure: Figure
    runs: Runs
    schemes: tuple[str, ...]
    places: Mapping[str, Mapping[str, object]]

    def series(self, run_names: Sequence[str]) -> dict[str, list[Value | None]]:
        """The figure's measure of each scheme in these runs."""
        one = self.figure.measure
        return {
            scheme: [replace(one, scheme=scheme).of(self.runs[name]) for name in run_names]
            for scheme in self.schemes
        }

    def members(self, run: str) -> dict[str, pl.Series]:
        """The figure's column of the flows' table, or its statistic of each client."""
        one, made = self.figure.measure, {}
        for scheme in self.schemes:
            frames = measures.samples(self.runs[run], scheme, one.group, one.field, one.each)
            made[scheme] = pl.concat(frames)["value"] if frames else pl.Series([], dtype=pl.Float64)
        return made


def _line(source: _Source) -> Data:
    """A panel for each combination of the values that are not along x."""
    x = source.figure.x
    places = {run: source.places[run] for run in source.runs}
    along = list(dict.fromkeys(place[x] for place in places.values()))
    numbers = _numbers(along)
    panels: dict[str, list[tuple[float, str]]] = {}
    for run, place in places.items():
        others = [f"{path.rpartition('.')[2]} {v}" for path, v in place.items() if path != x]
        index = along.index(place[x])
        at = numbers[index] if numbers else float(index)
        panels.setdefault(", ".join(others), []).append((at, run))
    made: Data = {"panels": [_line_panel(source, name, sorted(at)) for name, at in panels.items()]}
    return made if numbers else {**made, "ticks": [str(value) for value in along]}


def _line_panel(source: _Source, title: str, at: list[tuple[float, str]]) -> Data:
    found = source.series([run for _, run in at])
    series = {
        scheme: [
            [x, value.mean, value.half]
            for (x, _), value in zip(at, values, strict=True)
            if value is not None
        ]
        for scheme, values in found.items()
    }
    return {"title": title, "series": series}


def _numbers(values: list[object]) -> list[float]:
    """The numbers of values that all have one unit, as `20 packets`; empty if they have not."""
    words = [str(value).split(" ", 1) for value in values]
    if len({tuple(word[1:]) for word in words}) > 1:
        return []
    try:
        return [float(word[0]) for word in words]
    except ValueError:
        return []


def _cdf(source: _Source) -> Data:
    panels = []
    for run in source.runs:
        series = {scheme: _sorted(column) for scheme, column in source.members(run).items()}
        panels.append({"title": run, "series": series})
    return {"panels": panels}


def _sorted(column: pl.Series) -> tuple[list[float], int, int]:
    """The values at `places` of the sorted column; flows without a value are beyond all others."""
    known = column.drop_nulls().sort().to_numpy()
    return [known[place] for place in places(len(known))], len(known), len(column)


def places(number: int) -> list[int]:
    """Which of `number` sorted values are kept: evenly, the first and the last among them."""
    evenly = np.linspace(0, number - 1, POINTS if number else 0)
    return [int(place) for place in np.unique(evenly.astype(int))]


def _bars(source: _Source) -> Data:
    series = {
        scheme: [[None, None] if value is None else [value.mean, value.half] for value in values]
        for scheme, values in source.series(list(source.runs)).items()
    }
    return {"clusters": list(source.runs), "series": series}


def _histogram(source: _Source) -> Data:
    """How many flows of a seed have which value, in the mean over the seeds."""
    run = next(iter(source.runs))
    columns = {scheme: made.drop_nulls() for scheme, made in source.members(run).items()}
    greatest = max(
        (float(made.to_numpy().max(initial=0.0)) for made in columns.values()), default=0
    )
    edges = np.linspace(0, greatest or 1.0, source.figure.bins + 1)
    seeds = len(source.runs[run].summary["seeds"])
    series = {
        scheme: list(np.histogram(made.to_numpy(), edges)[0] / seeds)
        for scheme, made in columns.items()
    }
    return {"greatest": edges[-1], "series": series}


def _heat(source: _Source) -> Data:
    keys = (source.figure.x, source.figure.y)
    places = [tuple(source.places[run][key] for key in keys) for run in source.runs]
    xs, ys = (list(dict.fromkeys(values)) for values in zip(*places, strict=True))
    series = {
        scheme: [
            [xs.index(x), ys.index(y), value.mean]
            for (x, y), value in zip(places, values, strict=True)
            if value is not None
        ]
        for scheme, values in source.series(list(source.runs)).items()
    }
    return {"xs": [str(x) for x in xs], "ys": [str(y) for y in ys], "series": series}


_KINDS: dict[str, Callable[[_Source], Data]] = {
    "line": _line,
    "cdf": _cdf,
    "bars": _bars,
    "histogram": _histogram,
    "heat": _heat,
}


def _plain(data: Data) -> Data:
    return {key: _rounded(value) for key, value in data.items()}


def _rounded(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """The same of plain numbers with few digits."""
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_rounded(each) for each in value]
    if isinstance(value, float | np.floating):
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() else short
    return int(value) if isinstance(value, np.integer) else value
