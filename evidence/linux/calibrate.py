# SPDX-License-Identifier: Apache-2.0
"""Compares the simulator's TCP profile `linux` with the kernel of this machine.

Plays 40 cells of the set `calibration` and 8 of `calibration-wrk` (evidence/grid/axes.toml), or 24
others that are set aside, or the named scenarios of this folder, in the laboratory and in the
simulator, under drop-tail, FairQ and HSCC, and compares the means of the repeats. A cell agrees
under a scheme if mean and median of the completion times (for endless flows, the goodput) are
within 15 % of the kernel's, the 99th percentile within 25 %, and drops, timeouts and delayed ACKs
within 25 % or 5 a run. What is further apart counts only if Welch's t-test finds a difference at
the level of 5 %: what the kernel's own repeats span is no evidence. The tables of README.md have
both counts, and the same of the kernel's last two runs and its others. The exit code is 1
where fewer than 90 % agree, 2 where a run fails or nothing is compared. With `--on sim` the
kernel's runs are only read, whatever their build: those of the journal, otherwise those of
kernel.jsonl.
"""

import argparse
import contextlib
import copy
import json
import math
import os
import platform
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, variance
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "evidence/linux"
KERNEL = SCENARIOS / "kernel.jsonl"
"""Runs of a kernel, with which `--on sim` compares where there are no others."""
sys.path[:0] = [str(ROOT / "evidence"), str(ROOT / "evidence/grid")]

import cells  # noqa: E402 (next to the grid)
from recorded import LABORATORY, SIMULATOR, SUBSTRATES, Entry, Recorded  # noqa: E402 (of all)

import penstock  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402
from penstock.stats import student_t  # noqa: E402
from penstock.units import to_bytes  # noqa: E402

CELLS = {"calibration": 40, "calibration-wrk": 8}
"""How many of each set of cells."""
SEED, ASIDE_SEED = 1, 2
"""Of the sample that the simulator may be changed for, and of the one set aside."""
REPEATS = 6
LAST = 2
"""Of the kernel's runs, which are compared with its others: those of the last machine."""
DURATION_S, SETTLED_S = 5.0, 1.5
"""How long clients are measured, and after how long the tools' begin if there are long flows: by
then slow start is over, and iperf3's control connections have idled for the second after which
schemes no longer count them."""
START_GAP = {"penstock-traffic": "20 us", "wrk": "2 ms"}
"""Between the starts of two clients, also within a round. Of wrk each is a process, and most have
asked, and wait, before the next one begins."""
EVENT_LOOP = {
    "new": {"event_loop": {"exponential": "50 us"}},
    "persistent": {
        "event_loop": {"exponential": "25 us"},
        "event_loop_connect": {"exponential": "75 us"},
    },
}
"""One process connects, asks and answers for all of the laboratory. From one of these to the next
pass 48 us in the mean of its system calls where connections are new, and 17 to 22 where they last
(traced, pauses above 100 us left out). From one connect to the next pass 40 to 60; 75 agree no
worse with the kernel than 60."""
AB_START = "50 ms"
"""The laboratory starts one process of ab after another, 8 with several clients each, within this
time in captures."""
ROUND_PAUSE_US = 12.0
"""For each client, from the end of a round on new connections to the first SYN of the next one: the
packets that end the connections go first. Captured: 100 us with 8 clients, 520 with 48."""
HEADERS_BYTES = 240
"""Of an answer of nginx."""
PAUSES = {
    "think": {"lognormal": "38 us", "sigma": 0.45},
    "server_think": {"lognormal": "105 us", "sigma": 0.72},
}
"""From an answer to ab's next SYN, and from a request to nginx's answer: the medians in captures,
and the spread from the 10th to the 90th percentile, 30 to 96 and 45 to 284 us."""
WRK_DELAYS = {"access": "1.5 us", "bottleneck": "4 us"}
"""The laboratory has none of the scenario's delays. In a capture of 48 wrk 5 us pass in the median
from data at the receiver to its ACK, and 11 from there to the next data at the port; with links of
these delays, 16. Cells with wrk are all of the machine of this capture, others of other ones."""
REQUEST = {("ab", "new"): "85 B", ("ab", "persistent"): "109 B", ("wrk", "persistent"): "43 B"}
"""Of each client."""
SCHEMES = ("drop-tail", "fairq", "hscc")
NEEDED = 0.9
"""Share of the cells that must agree."""
FEW = 5.0
"""Events in a run that may be missing or in excess: so few come and go by chance."""
TOLERANCES = {
    **{"mean": 0.15, "p50": 0.15, "p99": 0.25, "elephants": 0.15},
    **{"drops": 0.25, "timeouts": 0.25, "delayed ACKs": 0.25},
}
EVENTS = ("drops", "timeouts", "delayed ACKs")

Numbers = dict[str, float | None]


def main() -> int:
    """Compares what the command line asks for."""
    parser = argparse.ArgumentParser(
        description="Compare the simulator's Linux TCP with this kernel's (needs root).",
        epilog="Example: calibrate.py --on sim, calibrate.py elephants large --congestion bbr",
    )
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="default: the cells")
    parser.add_argument("--congestion", metavar="NAME", help="of the named scenarios' senders")
    parser.add_argument("--set-aside", action="store_true", help="the cells for the verdict alone")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="runs of each")
    parser.add_argument("--on", action="append", choices=SUBSTRATES, help="default: both")
    parser.add_argument("--out", type=Path, metavar="DIR", help="journal; default: runs/calibrate")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.congestion and not arguments.names:
        parser.error("--congestion is for named scenarios: the cells have theirs")
    folder = arguments.out or ROOT / "runs/calibrate"
    measured = arguments.on or SUBSTRATES
    with contextlib.closing(Recorded(folder, measured, KERNEL)) as runs:
        try:
            chosen = [named(name, arguments.congestion) for name in arguments.names]
            chosen = chosen or sample(is_aside=arguments.set_aside)
            for on in measured:
                with first_on_the_machine() if on == LABORATORY else contextlib.nullcontext():
                    record(chosen, on, arguments.repeats, runs)
            rows = list(compare(chosen, runs, arguments.repeats))
        except (PenstockError, OSError) as error:
            print(f"calibrate: {error}", file=sys.stderr)
            return 2
    if not rows:
        print(f"calibrate: nothing is compared: {folder} lacks the other side", file=sys.stderr)
        return 2
    agree = {rule: sum(not row[rule] for row in rows) for rule in RULES}
    if arguments.json:
        print(json.dumps({"agree": agree, "of": len(rows), "rows": rows}))
    else:
        show(rows)
        counts = ", ".join(f"{RULES[rule]}: {count}" for rule, count in agree.items())
        print(f"\nOf {len(rows)} (Linux {platform.release()}): {counts}.")
    return 0 if agree["apart"] >= NEEDED * len(rows) else 1


def named(name: str, congestion: str | None = None) -> dict[str, Any]:
    """A scenario of this folder, with this congestion control where one is given."""
    document = tomllib.loads((SCENARIOS / f"{name}.toml").read_text("utf-8"))
    if congestion:
        document["tcp"]["congestion"] = congestion
        name = f"{name}, {congestion}"
    return {"name": name, "document": document, "client": None}


def sample(*, is_aside: bool) -> list[dict[str, Any]]:
    """The cells that the simulator may be changed for, or half as many that are set aside."""
    seed, step = (ASIDE_SEED, 2) if is_aside else (SEED, 1)
    samples = [cells.sample(cells.cells(of), count, seed) for of, count in CELLS.items()]
    return [
        {
            "name": cells.name(cell),
            "document": scenario(cell),
            "client": cell["generator"] if cells.is_by_tools(cell) else None,
        }
        for chosen in samples
        for cell in chosen[step - 1 :: step]
    ]


def scenario(cell: cells.Cell) -> dict[str, Any]:
    """A cell, as the laboratory plays it."""
    document = cells.scenario(cell)
    web, by_tools = document["traffic"]["web"], cells.is_by_tools(cell)
    start_s = SETTLED_S if by_tools and cell["elephants"] else 0.0
    web["start"] = f"{start_s} s"
    if cell["generator"] in START_GAP:
        web["start_gap"] = START_GAP[cell["generator"]]
    return document | {"duration": f"{DURATION_S + start_s} s"}


def simulated(one: dict[str, Any]) -> dict[str, Any]:
    """The document as the simulator plays it: with bytes, start, pauses and links of the tools.

    `times` and `links`, where there are any, take the place of what is assumed (timings.py).
    """
    document: dict[str, Any] = copy.deepcopy(one["document"])
    document["scheme"] = {"hscc": {"window": {"sigma": 1}}}  # a port of Linux drops nothing early
    if one["client"] == "wrk":
        for link, delay in WRK_DELAYS.items():
            document["fabric"][link]["delay"] = delay
    document["fabric"]["access"] |= one.get("links", {})
    web = document["traffic"].get("web")
    if web is None:
        return document
    if not one["client"]:
        web |= EVENT_LOOP[web["connection"]]
        if web.get("barrier") and web["connection"] == "new":
            web["think"] = f"{ROUND_PAUSE_US * web['flows']} us"
    else:
        web["size"] = f"{to_bytes(web['size']) + HEADERS_BYTES} B"
        web["request"] = REQUEST[one["client"], web["connection"]]
        web |= PAUSES | ({"start_spread": AB_START} if one["client"] == "ab" else {})
    web |= one.get("times", {})
    return document


def record(chosen: list[dict[str, Any]], on: str, repeats: int, runs: Recorded) -> None:
    """Runs what is not recorded, with a line for each scenario on the terminal."""
    begun = time.monotonic()
    for number, one in enumerate(chosen, 1):
        passed = time.monotonic() - begun
        print(f"{on} {number}/{len(chosen)} {passed:.0f} s: {one['name']}", file=sys.stderr)
        for scheme in SCHEMES:
            for seed in range(1, repeats + 1):
                if not runs.find(run := entry(one, scheme, on, seed)):
                    runs.add(run, play(one, scheme, on, seed))


def entry(one: dict[str, Any], scheme: str, on: str, seed: int) -> Entry:
    """A run in the journal."""
    return Entry([one["name"], scheme, on, seed], on, played(one, on))


def played(one: dict[str, Any], on: str) -> dict[str, Any]:
    """The document as a substrate plays it."""
    document: dict[str, Any] = one["document"] if on == LABORATORY else simulated(one)
    return document


@contextlib.contextmanager
def first_on_the_machine() -> Iterator[None]:
    """Real-time priority, where permitted: what waits for a processor is not TCP."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def compare(chosen: list[dict[str, Any]], runs: Recorded, repeats: int) -> Iterator[dict[str, Any]]:
    """Kernel and simulator in each scenario under each scheme, and what is apart by each rule."""
    for one in chosen:
        for scheme in SCHEMES:
            kernel, simulator = (
                [
                    run
                    for seed in range(1, repeats + 1)
                    if (run := runs.find(entry(one, scheme, on, seed)))
                ]
                for on in SUBSTRATES
            )
            if kernel and simulator:
                others, last = kernel[:-LAST], kernel[-LAST:]
                yield {
                    **{"scenario": one["name"], "scheme": scheme},
                    **{"kernel": means(kernel), "simulator": means(simulator)},
                    "apart": apart(kernel, simulator, is_tested=True),
                    "kernel from itself": apart(others, last, is_tested=True) if others else [],
                    "apart by means": apart(kernel, simulator),
                    "kernel from itself by means": apart(others, last) if others else [],
                }


def play(one: dict[str, Any], scheme: str, on: str, seed: int) -> Numbers:
    """One run."""
    run = penstock.run(
        played(one, on),
        **{"schemes": [scheme], "seeds": [seed], "on": on},
        tools=one["client"] if on == LABORATORY else None,
    )
    (result,) = run.summary["results"]
    groups, (port, *_) = result["groups"], result["ports"].values()
    times = (groups.get("web") or {}).get("fct_s") or {}
    elephants = (groups.get("elephants") or {}).get("goodput_bps") or {}
    # The kernel's own counters, which tools have too.
    counted = result.get("kernel") or {
        "timeouts": sum(group["timeouts"] + group["syn_timeouts"] for group in groups.values()),
        "delayed_acks": result.get("delayed_acks"),
    }
    if on == SIMULATOR and one["client"] and elephants:
        # Each iperf3 delays an ACK on its control connection, which the simulator does not have.
        counted["delayed_acks"] += groups["elephants"]["flows"]
    return {
        **{name: times.get(name) for name in ("mean", "p50", "p99")},
        "elephants": elephants.get("mean"),
        **{"drops": port["drops"], "timeouts": counted["timeouts"]},
        "delayed ACKs": counted["delayed_acks"],
    }


def means(runs: list[Numbers]) -> Numbers:
    """Means over the repeats; None for what one of them lacks."""
    return {name: mean(known) if (known := values(runs, name)) else None for name in TOLERANCES}


def values(runs: list[Numbers], name: str) -> list[float]:
    """A number of each run; none where one of them lacks it."""
    of = [run[name] for run in runs]
    return [] if None in of else [float(value) for value in of if value is not None]


def apart(first: list[Numbers], second: list[Numbers], *, is_tested: bool = False) -> list[str]:
    """Numbers whose means are apart by more than the tolerance and, if tested, than chance."""
    return [
        name
        for name in TOLERANCES
        if (pair := (values(first, name), values(second, name))) != ([], [])
        and not (all(pair) and is_near(name, *pair))
        and not (all(pair) and is_tested and may_be_chance(*pair))
    ]


def is_near(name: str, kernel: list[float], simulator: list[float]) -> bool:
    """Whether the means differ by no more than the tolerance."""
    few = FEW if name in EVENTS else 0.0
    return abs(mean(simulator) - mean(kernel)) <= max(TOLERANCES[name] * mean(kernel), few)


def may_be_chance(first: list[float], second: list[float]) -> bool:
    """Whether the means differ by less than Welch's t-test finds at the level of 5 %."""
    if min(len(first), len(second)) < 2:
        return False
    parts = [(variance(of) / len(of), len(of) - 1) for of in (first, second)]
    error = sum(part for part, _ in parts)
    if error == 0.0:
        return mean(first) == mean(second)
    freedom = error**2 / sum(part**2 / degrees for part, degrees in parts)
    least = student_t(max(1, math.floor(freedom))) * math.sqrt(error)
    return abs(mean(first) - mean(second)) < least


UNITS = {
    **dict.fromkeys(("mean", "p50", "p99"), (1000.0, " ms")),
    "elephants": (1e-6, " Mb/s"),
}
"""Factor and unit of those numbers that are no counts."""


RULES = {
    "apart": "agree",
    "kernel from itself": "kernel with itself",
    "apart by means": "agree by means alone",
    "kernel from itself by means": "kernel with itself by means",
}
"""The columns of the table."""


def show(rows: list[dict[str, Any]]) -> None:
    """Tables in Markdown: how often what is apart, and where, as kernel / simulator."""
    print(f"| scheme | {' | '.join(RULES.values())} | apart |\n{'|---' * (len(RULES) + 2)}|")
    for scheme in SCHEMES:
        of = [row for row in rows if row["scheme"] == scheme]
        agree = " | ".join(f"{sum(not row[rule] for row in of)} of {len(of)}" for rule in RULES)
        counts = Counter(name for row in of for name in row["apart"])
        texts = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        print(f"| {scheme} | {agree} | {texts} |")
    print("\n| apart in | scheme | kernel / simulator |\n|---|---|---|")
    for row in rows:
        if row["apart"]:
            texts = ", ".join(text(name, row) for name in row["apart"])
            print(f"| {row['scenario']} | {row['scheme']} | {texts} |")


def text(name: str, row: dict[str, Any]) -> str:
    """A number of both sides."""
    kernel, simulator = (shown(name, row[side][name]) for side in ("kernel", "simulator"))
    return f"{name} {kernel} / {simulator}"


def shown(name: str, value: float | None) -> str:
    """A number with its unit."""
    factor, unit = UNITS.get(name, (1.0, ""))
    return "none" if value is None else f"{factor * value:.4g}{unit}"


if __name__ == "__main__":
    sys.exit(main())
