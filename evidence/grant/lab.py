# SPDX-License-Identifier: Apache-2.0
"""Plays Grant's loads on real TCP, and judges it by its goals. Needs root.

The bound is first in, first out on a port that never idles or loses. It is measured (`fifo`,
drop-tail with room for all), as the program that plays the hosts also takes its time; or computed
(lab_loads.py) where a sender timed out in that, where answers are longer than a first flight and so
share the port, and next to elephants, which fill any room. In every repeat: no transfer that takes
above 190 ms where the bound does not imply it, no drop, no timeout, all done; mean and 99th
percentile within 1.1 of the bound's, 1.15 where Grant is on the receiving host; in closed loops the
link above 97 % used, or as `fifo` used it; the elephants' Jain index above 0.99, and in closed
loops their share within 10 % of what was set.

Each run is written to a journal at once, so that the work can be done in parts: `--for "9 min"`
ends it in time, and the next call of the same build goes on. The exit code is 1 where Grant does
not hold, 2 where a run fails or is left for the next call, or nothing is judged. DCTCP needs a
kernel that has it, and RED: evidence/kernels/run.
"""

import argparse
import contextlib
import os
import sys
import time
import tomllib
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from lab_loads import LOADS, LONG_SHARE, Load

import penstock
from penstock import scenario
from penstock.errors import PenstockError
from penstock.units import three, to_seconds

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "evidence"))

from recorded import LABORATORY, Entry, Recorded  # noqa: E402 (of all evidence)

FIFO, ROOM = "fifo", "16 MB"
SCHEMES = ("drop-tail", "fairq", "hscc", "grant", "grant-receiver")
ALL = (FIFO, *SCHEMES, "dctcp")
WITHIN = {"grant": 1.1, "grant-receiver": 1.15}
"""Of the bound: the goal, for the schemes that are judged."""
STALL_S = 0.190
EVENTS = ("missing", "stalled", "drops", "timeouts")
USED, JAIN, SHARE_WITHIN = 0.97, 0.99, 0.1

Numbers = dict[str, float]


def main() -> int:
    """Plays and judges what the command line asks for."""
    parser = argparse.ArgumentParser(description="Judge Grant on real TCP (needs root).")
    parser.add_argument("--repeats", type=int, default=5, help="of each load under Grant")
    parser.add_argument("--others", type=int, default=5, help="repeats under the other schemes")
    parser.add_argument("--only", default="", metavar="TEXT", help="loads with it in their name")
    parser.add_argument("--scheme", action="append", choices=ALL, help="default: all but dctcp")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, metavar="DIR", help="journal; default: runs/lab-grant")
    parser.add_argument("--for", dest="limit", metavar="TIME", help='begin no run after "9 min"')
    parser.add_argument("--recorded", action="store_true", help="judge what is in the journal only")
    arguments = parser.parse_args()
    folder = arguments.out or ROOT / "runs/lab-grant"
    chosen = [load for load in LOADS if arguments.only in load.name]
    schemes = arguments.scheme or (FIFO, *SCHEMES)
    only_read = arguments.recorded
    with contextlib.closing(Recorded(folder, () if only_read else (LABORATORY,))) as runs:
        try:
            is_complete = only_read or play_all(runs, chosen, schemes, arguments)
        except PenstockError as error:
            print(f"lab-grant: {error}", file=sys.stderr)
            return 2
        judged, held = show(runs, chosen, schemes, arguments.settings)
    if not is_complete:
        print("lab-grant: out of time before the last run; call it again to go on", file=sys.stderr)
    if not judged:
        print(f"lab-grant: nothing is judged: {folder} has no such run of Grant", file=sys.stderr)
    if held < judged:
        return 1
    return 0 if judged and is_complete else 2


def play_all(runs: Recorded, chosen: list[Load], schemes: Any, options: Any) -> bool:
    """Runs what is not recorded, one repeat of all loads before the next; whether time was left."""
    until = time.monotonic() + (to_seconds(options.limit) if options.limit else 1e9)
    for repeat in range(1, options.repeats + 1):
        for load in chosen:
            for scheme in schemes:
                one = entry(load, scheme, repeat, options.settings)
                if repeat > options.others and scheme not in WITHIN:
                    continue
                if scheme == FIFO and load.elephants:
                    continue
                if runs.find(one):
                    continue
                if time.monotonic() > until:
                    return False
                print(f"{load.name}, {scheme}, repeat {repeat}", file=sys.stderr)
                runs.add(one, play(load, scheme, repeat, options.settings))
    return True


def entry(load: Load, scheme: str, repeat: int, settings: list[str]) -> Entry:
    """A run in the journal."""
    made = {**document(load.scenario), "overrides": overrides(load, scheme, settings)}
    return Entry([load.name, scheme, repeat, settings], LABORATORY, made)


@cache
def document(name: str) -> dict[str, Any]:
    """A shipped scenario."""
    return tomllib.loads(scenario.load(name).text)


def overrides(load: Load, scheme: str, settings: list[str]) -> list[tuple[str, ...]]:
    """What differs from the load's scenario."""
    room = [("fabric.bottleneck.buffer", ROOM)] if scheme == FIFO else []
    return [*load.overrides(), *(tuple(each.split("=", 1)) for each in settings), *room]


def play(load: Load, scheme: str, repeat: int, settings: list[str]) -> Numbers:
    """One run."""
    run = penstock.run(
        load.scenario,
        schemes=["drop-tail" if scheme == FIFO else scheme],
        overrides=overrides(load, scheme, settings),
        **{"seeds": [repeat], "on": LABORATORY},
    )
    (result,) = run.summary["results"]
    group, port = result["groups"]["answers"], result["ports"]["left->right"]
    played = run.summary["scenario"]
    since, end = to_seconds(played["measure"].get("from", "0 s")), to_seconds(played["duration"])
    start, fct = pl.col("start_s"), pl.col("fct_s")
    # What has not ended is under way in what is measured, whenever it began.
    transfers = run.members("answers").filter((start >= since) | fct.is_null())
    times = transfers["fct_s"].drop_nulls()
    mean_s, most_s = load.bound_s(transfers["start_s"].to_list(), transfers["bytes"].to_list())
    kernel, elephants = result.get("kernel", {}), result["groups"].get("elephants", {})
    lasted = transfers.select(fct.fill_null(end - start)).to_series()
    stalled = (lasted > max(STALL_S, 1.15 * most_s)).sum()
    # In a closed loop the end of the run cuts off what is under way.
    missing = 0 if load.is_closed_loop else transfers.height - len(times)
    return {
        **{"answers": len(times), "missing": missing, "stalled": stalled},
        **{"mean_s": times.mean() or 0.0, "max_s": times.max() or 0.0},
        "p99_s": times.quantile(0.99, "nearest") or 0.0,
        **{"bound_s": mean_s, "bound_p99_s": most_s * (1 if load.is_closed_loop else 0.99)},
        **{"drops": port["drops"], "used": port["utilization"]},
        "timeouts": max(group["timeouts"] + group["syn_timeouts"], kernel.get("timeouts", 0)),
        "jain": elephants.get("jain") or 0.0,
        "elephants_bps": load.elephants * (elephants.get("goodput_bps", {}).get("mean") or 0.0),
        "idle": result["performance"]["cpu_idle"],
        "stolen": result["performance"]["cpu_stolen"],
    }


def judge(load: Load, scheme: str, run: Numbers, bound: Numbers) -> list[str]:
    """Goals that a run misses, by the measured bound or its own."""
    within = WITHIN[scheme]
    share = run["elephants_bps"] * 1500 / 1448 / load.rate_bps
    closed = load.is_closed_loop
    fails = {
        "stall": run["stalled"] > 0,
        "missing": run["missing"] > 0,
        "drop": run["drops"] > 0,
        "timeout": run["timeouts"] > 0,
        "mean": run["mean_s"] > within * (bound or run)["bound_s"],
        "p99": run["p99_s"] > within * (bound or run)["bound_p99_s"],
        "link": closed and run["used"] < min(USED, bound.get("used", 1)),
        "Jain": load.elephants > 0 and run["jain"] < JAIN,
        "share": closed
        and load.elephants > 0
        and abs(share - LONG_SHARE) > SHARE_WITHIN * LONG_SHARE,
    }
    return [name for name, is_bad in fails.items() if is_bad]


def show(runs: Recorded, chosen: list[Load], schemes: Any, settings: list[str]) -> tuple[int, int]:
    """Prints the table and the verdict: how many runs are judged, and in how many Grant holds."""
    head = [
        "load",
        "scheme",
        "runs",
        "mean",
        "bound",
        "of bound",
        "p99",
        "max",
        "unfinished",
        "stalls",
    ]
    head += ["drops", "timeouts", "link used", "Jain", "elephants", "misses"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    judged = held = 0
    for load in chosen:
        bound = measured(runs, load, settings)
        for scheme in schemes:
            of = list(repeats(runs, load, scheme, settings))
            if not of:
                continue
            fails = [judge(load, scheme, run, bound) for run in of] if scheme in WITHIN else []
            judged, held = judged + len(fails), held + sum(not each for each in fails)
            print(f"| {' | '.join(cells(load, scheme, of, fails, bound))} |")
    print(f"\nGrant holds in {held} of {judged} runs.")
    return judged, held


def repeats(runs: Recorded, load: Load, scheme: str, settings: list[str]) -> Iterator[Numbers]:
    """The repeats of a load that are recorded."""
    repeat = 1
    while run := runs.find(entry(load, scheme, repeat, settings)):
        yield run
        repeat += 1


def measured(recorded: Recorded, load: Load, settings: list[str]) -> Numbers:
    """What a FIFO took that lost nothing, on average, and the least that it used of the link.

    Empty where it is no bound.
    """
    runs = list(repeats(recorded, load, FIFO, settings))
    if not runs or not load.is_one_flight or any(run["drops"] or run["timeouts"] for run in runs):
        return {}
    return {
        "bound_s": average(runs, "mean_s"),
        "bound_p99_s": average(runs, "p99_s"),
        "used": min(run["used"] for run in runs),
    }


def average(runs: list[Numbers], name: str) -> float:
    """The mean of a number over runs."""
    return fmean(run[name] for run in runs)


def cells(
    load: Load, scheme: str, runs: list[Numbers], fails: list[list[str]], bound: Numbers
) -> list[str]:
    """A row: means over the repeats, of what has finished, the largest maximum, sums of events."""
    mean = partial(average, runs)
    times = [1e3 * mean("mean_s"), 1e3 * bound.get("bound_s", mean("bound_s"))]
    missed = sorted({name for each in fails for name in each})
    return [
        *(load.name, scheme, str(len(runs)), *(f"{three(time)} ms" for time in times)),
        f"{times[0] / times[1]:.2f}",
        *(f"{three(1e3 * mean('p99_s'))} ms", f"{1e3 * max(r['max_s'] for r in runs):.0f} ms"),
        *(f"{sum(run[name] for run in runs):.0f}" for name in EVENTS),
        f"{mean('used'):.1%}" if load.is_closed_loop else "",
        f"{mean('jain'):.3f}" if load.elephants else "",
        f"{mean('elephants_bps') / 1e6:.1f} Mb/s" if load.elephants else "",
        ", ".join(f"{name} ({sum(name in each for each in fails)})" for name in missed),
    ]


if __name__ == "__main__":
    # Before all else on the machine: what waits for a processor is not TCP.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    sys.exit(main())
