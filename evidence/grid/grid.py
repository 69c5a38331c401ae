# SPDX-License-Identifier: Apache-2.0
"""Plays the cells of a grid on real TCP and judges the schemes in each.

A cell lies within the goal where the buffer holds two segments of every flow. There a scheme holds
if the mean completion time is within 1.15 of the better of drop-tail's and an ideal fair port's, or
within 1.05 of this port's (0.1 ms count as noise); the 99th percentile is no worse than drop-tail's
(5 % and 0.5 ms count as noise); no larger share of the transfers takes more than 190 ms than load
alone explains, that is, than takes 1/1.15 of that at the ideal port; and of more than 38 ms no
larger share than 1.15 of that, plus 0.2 %. Prints the tables of README.md, and how many runs had
warnings, such as transfers that began late. The exit code is 2 where a run fails, the journal lacks
a run (`--recorded`) or a scheme is not judged in any cell; otherwise it is 1 where a scheme does
not hold.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import cells
import polars as pl
from cells import Cell

import penstock
from penstock.errors import PenstockError, ScenarioError
from penstock.units import three, to_seconds

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "evidence"))

from recorded import LABORATORY, Entry, Recorded  # noqa: E402 (of all evidence)

SETS = ("tuning", "verdict")
IDEAL = "ideal"
REFERENCES = ("drop-tail", IDEAL)
SCHEMES = ("fairq", "hscc")
WITHIN = 1.15
LATE_S, DELAYED_S = 0.190, 0.038
"""What a timeout of 200 ms and a delayed ACK of 40 ms add at least."""
NOISE, NOISE_S, NOISE_MEAN_S, NOISE_SHARE = 1.05, 0.5e-3, 0.1e-3, 0.002
"""What two runs of one cell may differ by and be equal."""

Numbers = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Judge the schemes on real TCP, over a grid of cells (needs root).",
        epilog="Example: grid.py tuning --sample 24 --set scheme.fairq.window.floor=1",
    )
    parser.add_argument("name", choices=SETS, metavar="SET", help=" or ".join(SETS))
    parser.add_argument("--sample", type=int, metavar="N", help="of the cells; default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each cell and scheme")
    parser.add_argument("--fits", action="store_true", help="only cells within the goal")
    parser.add_argument("--where", action="append", default=[], metavar="AXIS=VALUE")
    parser.add_argument("--scheme", action="append", metavar="NAME", help="default: fairq, hscc")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, metavar="DIR", help="journal; default: runs/grid")
    parser.add_argument("--recorded", action="store_true", help="judge what is in the journal only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    schemes = arguments.scheme or list(SCHEMES)
    folder = arguments.out or ROOT / "runs/grid"
    only_read = arguments.recorded
    with contextlib.closing(Recorded(folder, () if only_read else (LABORATORY,))) as runs:
        try:
            settings = settings_of(arguments.settings, ("drop-tail", *schemes))
            chosen = choose(arguments)
            grid = Grid(runs, settings, arguments.repeats, is_recorded=only_read)
            rows = [row for cell in grid.progress(chosen) for row in grid.rows(cell, schemes)]
        except PenstockError as error:
            print(f"grid: {error}", file=sys.stderr)
            return 2
    summary = [tally(rows, scheme) for scheme in schemes]
    if arguments.json:
        print(json.dumps({"set": arguments.name, "schemes": summary, "rows": rows}))
    else:
        show(rows, summary)
    print(f"grid: {grid.warned}", file=sys.stderr)
    if grid.missing:
        print(f"grid: {len(grid.missing)} runs are not in the journal {folder}", file=sys.stderr)
    if unjudged := [one["scheme"] for one in summary if not one["judged"]]:
        names = ", ".join(unjudged)
        print(f"grid: {names}: not judged, no cell within the goal has runs", file=sys.stderr)
    if unjudged or grid.missing:
        return 2
    return 0 if all(one["holds"] == one["judged"] for one in summary) else 1


def settings_of(texts: list[str], schemes: Iterable[str]) -> list[tuple[str, ...]]:
    """Keys and values of `--set`, which are of these schemes only: the rest is the cell's."""
    for text in texts:
        if "=" not in text or not text.startswith(tuple(f"scheme.{name}." for name in schemes)):
            names = ", ".join(schemes)
            raise ScenarioError(f"--set {text}: give scheme.NAME.KEY=VALUE; NAME is one of {names}")
    return [tuple(text.split("=", 1)) for text in texts]


def choose(arguments: argparse.Namespace) -> list[Cell]:
    """The cells that the command line asks for."""
    chosen = cells.cells(arguments.name)
    if arguments.fits:
        chosen = list(filter(cells.fits, chosen))
    for condition in arguments.where:
        axis, _, value = condition.partition("=")
        chosen = [cell for cell in chosen if str(cell[axis]) == value]
    if arguments.sample is None:
        return chosen
    some = cells.sample(chosen, arguments.sample, arguments.seed)
    if missing := cells.missing_pairs(chosen, some):
        print(f"grid: {missing} pairs of values occur in no cell of this sample", file=sys.stderr)
    return some


class Grid:
    """Runs cells, each run once: what is recorded is taken from there."""

    def __init__(
        self, runs: Recorded, settings: list[Any], repeats: int, *, is_recorded: bool
    ) -> None:
        self.runs, self.settings, self.repeats = runs, settings, repeats
        self.is_recorded = is_recorded
        self.missing: set[str] = set()
        """Keys of runs that the journal lacks, if it is only read."""
        self.warnings: dict[str, float | None] = {}
        """How many each run had, by key; None in a journal from before they were recorded."""

    @property
    def warned(self) -> str:
        """How many runs had warnings."""
        known = [count for count in self.warnings.values() if count is not None]
        unknown = len(self.warnings) - len(known)
        others = f"; of {unknown} more it is not recorded" if unknown else ""
        return f"{sum(count > 0 for count in known)} of {len(known)} runs had warnings{others}"

    def progress(self, chosen: list[Cell]) -> Iterator[Cell]:
        """The cells, with a line for each on the terminal."""
        begun = time.monotonic()
        for number, cell in enumerate(chosen, 1):
            passed = time.monotonic() - begun
            print(f"{number}/{len(chosen)} {passed:.0f} s: {cells.name(cell)}", file=sys.stderr)
            yield cell

    def rows(self, cell: Cell, schemes: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The judgement of each scheme in a cell; none where all repeats of a side are missing."""
        tail, ideal = (self.numbers(cell, scheme) for scheme in REFERENCES)
        for scheme in schemes:
            numbers = self.numbers(cell, scheme)
            if tail and ideal and numbers:
                fails = judge(numbers, tail, ideal)
                is_strict = numbers["mean"] <= strict_mean(tail, ideal)
                yield {
                    **{"cell": cell, "scheme": scheme, "fits": cells.fits(cell), "fails": fails},
                    "holds_strictly": is_strict and not fails,
                    **{"numbers": numbers, "drop-tail": tail, IDEAL: ideal},
                }

    def numbers(self, cell: Cell, scheme: str) -> Numbers | None:
        """Means over the repeats; None where the journal has none and nothing is to be run."""
        runs = [self._one(cell, scheme, repeat + 1) for repeat in range(self.repeats)]
        known = [run for run in runs if run]
        return {key: mean(run[key] for run in known) for key in known[0]} if known else None

    def _one(self, cell: Cell, scheme: str, repeat: int) -> Numbers | None:
        settings = [s for s in self.settings if s[0].startswith(f"scheme.{scheme}.")]
        asked = cells.unloaded(cell) if scheme == IDEAL else cell
        document = cells.scenario(asked)
        entry = Entry([asked, scheme, settings, repeat], LABORATORY, document)
        numbers = self.runs.find(entry)
        if not numbers and not self.is_recorded:
            numbers = play(document, scheme, settings, repeat)
            self.runs.add(entry, numbers)
        if not numbers:
            self.missing.add(entry.key)
            return None
        self.warnings[entry.key] = numbers.get("warnings")
        numbers = {key: value for key, value in numbers.items() if key != "warnings"}
        return shared_fairly(cell, numbers) if scheme == IDEAL else numbers


def play(document: dict[str, Any], scheme: str, settings: list[Any], repeat: int) -> Numbers:
    """One run on the laboratory."""
    name = "drop-tail" if scheme == IDEAL else scheme
    run = penstock.run(document, schemes=[name], overrides=settings, seeds=[repeat], on=LABORATORY)
    (result,) = run.summary["results"]
    group, port = result["groups"]["web"], next(iter(result["ports"].values()))
    transfers = run.members("web")
    times = transfers["fct_s"].drop_nulls().sort()
    end = to_seconds(run.summary["scenario"]["duration"])
    lasted = transfers.select(pl.col("fct_s").fill_null(end - pl.col("start_s"))).to_series()
    elephants = result["groups"].get("elephants", {})
    return {
        **{"answers": len(times), "mean": times.mean() or 0.0, "p50": at(times, 0.5)},
        **{"p99": at(times, 0.99), "max": times.max() or 0.0},
        **{f"q{n}": at(times, n / 1000) for n in QUANTILES},
        # With those that were late already when the end of the run cut them off.
        "late": (lasted > LATE_S).sum() / max(len(times), 1),
        "delayed": float((times > DELAYED_S).mean() or 0.0),
        **{"timeouts": group["timeouts"], "syn_timeouts": group["syn_timeouts"]},
        **{"drops": port["drops"], "utilization": port["utilization"]},
        "delayed_acks": result.get("kernel", {}).get("delayed_acks", 0),
        "elephants_bps": elephants.get("goodput_bps", {}).get("mean") or 0.0,
        "jain": elephants.get("jain") or 0.0,
        "idle": result["performance"]["cpu_idle"],
        "warnings": len(run.info.get("warnings", ())),
    }


QUANTILES = (0, 10, *range(25, 1000, 25), 990, 995, 999, 1000)
"""Thousandths, enough for the share above any time."""


def at(times: Any, share: float) -> float:
    return float(times.quantile(share, "nearest") or 0.0)


def shared_fairly(cell: Cell, fifo: Numbers) -> Numbers:
    """The times of an ideal fair port, from those of a FIFO without drops and elephants.

    Packets take turns, and each elephant has one in every turn. Where all begin together they also
    end together, in the last turn, while a FIFO serves one after another.
    """
    turns, factor = cells.turns(cell), cells.elephants_factor(cell)
    start = fifo["p99"] * (turns - 1) / turns if cells.is_together(cell) else 0.0
    part = 1 / turns if cells.is_together(cell) else 1.0
    times = ("mean", "p50", "p99", "max", *(f"q{n}" for n in QUANTILES))
    fair = fifo | {key: factor * (start + part * fifo[key]) for key in times}
    fair["delayed"] = share_above(fair, DELAYED_S / WITHIN)
    fair["late"] = share_above(fair, LATE_S / WITHIN)
    return fair


def share_above(numbers: Numbers, seconds: float) -> float:
    """The share of the transfers above a time, by the quantiles: no less than it is."""
    below = [n for n in QUANTILES if numbers[f"q{n}"] <= seconds]
    return 1.0 - max(below, default=0) / 1000


def strict_mean(tail: Numbers, ideal: Numbers) -> float:
    """The longest mean that is within 1.15 of the better of the two."""
    return WITHIN * min(tail["mean"], ideal["mean"])


def judge(numbers: Numbers, tail: Numbers, ideal: Numbers) -> list[str]:
    """What does not hold: names of numbers."""
    # Drop-tail's mean is below a fair port's where it serves some at once and lets others wait.
    mean_limit = max(strict_mean(tail, ideal), NOISE * ideal["mean"])
    fails = {
        "mean": numbers["mean"] > mean_limit + NOISE_MEAN_S,
        "p99": numbers["p99"] > NOISE * tail["p99"] + NOISE_S,
        "stall": numbers["late"] > ideal["late"],
        "40 ms": numbers["delayed"] > WITHIN * ideal["delayed"] + NOISE_SHARE,
    }
    return [name for name, is_bad in fails.items() if is_bad]


def tally(rows: list[dict[str, Any]], scheme: str) -> dict[str, Any]:
    """How often a scheme holds, of the cells within the goal."""
    judged = [row for row in rows if row["scheme"] == scheme and row["fits"]]
    fails = [name for row in judged for name in row["fails"]]
    holds = sum(not row["fails"] for row in judged)
    strict = sum(row["holds_strictly"] for row in judged)
    counts = {name: fails.count(name) for name in ("mean", "p99", "stall", "40 ms")}
    return {
        **{"scheme": scheme, "judged": len(judged), "holds": holds, "holds_strictly": strict},
        "fails": counts,
    }


def show(rows: list[dict[str, Any]], summary: list[dict[str, Any]]) -> None:
    """Tables in Markdown: mean / p99 in ms, and drops, timeouts."""
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    head = ["cell", "ideal", "drop-tail", *schemes, "fails"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    by_cell: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_cell.setdefault(cells.name(row["cell"]), []).append(row)
    for name, of in by_cell.items():
        texts = [text(one) for one in (of[0][IDEAL], of[0]["drop-tail"])]
        texts += [text(row["numbers"]) for row in of]
        fails = "; ".join(
            f"{row['scheme']}: {', '.join(row['fails'])}" for row in of if row["fails"]
        )
        print(f"| {name} | {' | '.join(texts)} | {fails if of[0]['fits'] else f'({fails})'} |")
    print()
    for one in summary:
        fails = ", ".join(f"{name} {count}" for name, count in one["fails"].items())
        holds = (
            f"holds in {one['holds']} ({one['holds_strictly']} strictly) of {one['judged']} cells"
        )
        print(f"{one['scheme']}: {holds}; fails: {fails}")


def text(numbers: Numbers) -> str:
    times = " / ".join(three(1e3 * numbers[name]) for name in ("mean", "p99"))
    return f"{times}; {numbers['drops']:.0f}, {numbers['timeouts']:.0f}"


if __name__ == "__main__":
    # Before all else on the machine: what waits for a processor is not TCP.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    sys.exit(main())
