# SPDX-License-Identifier: Apache-2.0
"""Compares the simulator's TCP profile `linux` with the kernel of this machine.

Plays 40 cells of the set `calibration` (evidence/grid/axes.toml), or the named scenarios of this
folder, in the laboratory and in the simulator, under drop-tail, FairQ and HSCC. A cell agrees under
a scheme if mean and median of the completion times (for endless flows, the goodput) are within 15 %
of the kernel's, the 99th percentile within 25 %, and drops, timeouts and delayed ACKs within 25 %
or 5 a run. Prints the tables of README.md; the exit code is 1 where fewer than 90 % agree, 2 where
a run fails.
"""

import argparse
import contextlib
import json
import os
import platform
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "evidence/linux"
sys.path.insert(0, str(ROOT / "evidence/grid"))

import cells  # noqa: E402 (next to the grid)

import penstock  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402
from penstock.sweep.journal import JOURNAL, Journal  # noqa: E402

CELLS, SEED = 40, 1
DURATION = "5 s"
"""Within 2 s the start of nginx and ab decides about the 99th percentile."""
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
        epilog="Example: calibrate.py --repeats 3, calibrate.py clients-32 large",
    )
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="default: the cells")
    parser.add_argument("--set-aside", action="store_true", help="the half for the verdict alone")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each")
    parser.add_argument("--on", action="append", choices=("lab", "sim"), help="default: both")
    parser.add_argument("--out", type=Path, metavar="DIR", help="journal; default: runs/calibrate")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    folder = arguments.out or ROOT / "runs/calibrate"
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / JOURNAL)
    try:
        chosen = [named(name) for name in arguments.names] or half(is_aside=arguments.set_aside)
        for on in arguments.on or ("lab", "sim"):
            with first_on_the_machine() if on == "lab" else contextlib.nullcontext():
                record(chosen, on, arguments.repeats, journal)
        rows = list(compare(chosen, journal))
    except (PenstockError, OSError) as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 2
    finally:
        journal.close()
    agree = sum(not row["apart"] for row in rows)
    if arguments.json:
        print(json.dumps({"agree": agree, "of": len(rows), "rows": rows}))
    else:
        show(rows)
        print(f"\n{agree} of {len(rows)} agree (Linux {platform.release()}).")
    return 0 if agree >= NEEDED * len(rows) else 1


def named(name: str) -> dict[str, Any]:
    """A scenario of this folder."""
    document = tomllib.loads((SCENARIOS / f"{name}.toml").read_text("utf-8"))
    return {"name": name, "document": document, "by_tools": False}


def half(*, is_aside: bool) -> list[dict[str, Any]]:
    """Every second cell is set aside, and looked at when the simulator has been changed."""
    sample = cells.sample(cells.cells("calibration"), CELLS, SEED)
    return [
        {
            "name": cells.name(cell),
            "document": cells.scenario(cell) | {"duration": DURATION},
            "by_tools": cells.is_by_tools(cell),
        }
        for cell in sample[int(is_aside) :: 2]
    ]


def record(chosen: list[dict[str, Any]], on: str, repeats: int, journal: Journal) -> None:
    """Runs what the journal lacks, with a line for each scenario on the terminal."""
    begun = time.monotonic()
    for number, one in enumerate(chosen, 1):
        passed = time.monotonic() - begun
        print(f"{on} {number}/{len(chosen)} {passed:.0f} s: {one['name']}", file=sys.stderr)
        for scheme in SCHEMES:
            for seed in range(1, repeats + 1):
                if (key := entry(one, scheme, on, seed)) not in journal.entries:
                    journal.add(key, play(one, scheme, on, seed))


def entry(one: dict[str, Any], scheme: str, on: str, seed: int) -> str:
    """The key of a run in the journal."""
    return json.dumps([one["name"], scheme, on, seed])


@contextlib.contextmanager
def first_on_the_machine() -> Iterator[None]:
    """Real-time priority, where permitted: what waits for a processor is not TCP."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def compare(chosen: list[dict[str, Any]], journal: Journal) -> Iterator[dict[str, Any]]:
    """The kernel's numbers and the simulator's, of each scenario under each scheme."""
    for one in chosen:
        for scheme in SCHEMES:
            sides = []
            for on in ("lab", "sim"):
                keys = [entry(one, scheme, on, seed) for seed in range(1, 100)]
                sides.append(
                    means([journal.entries[key] for key in keys if key in journal.entries])
                )
            kernel, simulator = sides
            if kernel and simulator:
                apart = [name for name in TOLERANCES if not agrees(name, kernel, simulator)]
                yield {
                    **{"scenario": one["name"], "scheme": scheme, "apart": apart},
                    **{"kernel": kernel, "simulator": simulator},
                }


def play(one: dict[str, Any], scheme: str, on: str, seed: int) -> Numbers:
    """One run."""
    run = penstock.run(
        one["document"],
        **{"schemes": [scheme], "seeds": [seed], "on": on},
        tools=on == "lab" and one["by_tools"],
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
    return {
        **{name: times.get(name) for name in ("mean", "p50", "p99")},
        "elephants": elephants.get("mean"),
        **{"drops": port["drops"], "timeouts": counted["timeouts"]},
        "delayed ACKs": counted["delayed_acks"],
    }


def means(runs: list[Numbers]) -> Numbers:
    """Means over the repeats; None for what one of them lacks."""
    of = {name: [run[name] for run in runs] for name in runs[0]} if runs else {}
    return {
        name: None if any(value is None for value in values) else mean(map(float, values))  # type: ignore[arg-type]
        for name, values in of.items()
    }


def agrees(name: str, kernel: Numbers, simulator: Numbers) -> bool:
    """Whether a number does, or neither side has it."""
    first, second = kernel[name], simulator[name]
    if first is None or second is None:
        return first is second
    few = FEW if name in EVENTS else 0.0
    return abs(second - first) <= max(TOLERANCES[name] * first, few)


UNITS = {
    **dict.fromkeys(("mean", "p50", "p99"), (1000.0, " ms")),
    "elephants": (1e-6, " Mb/s"),
}
"""Factor and unit of those numbers that are no counts."""


def show(rows: list[dict[str, Any]]) -> None:
    """Tables in Markdown: how often what is apart, and where, as kernel / simulator."""
    print("| scheme | agree | apart |\n|---|---|---|")
    for scheme in SCHEMES:
        of = [row for row in rows if row["scheme"] == scheme]
        counts = Counter(name for row in of for name in row["apart"])
        texts = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        print(f"| {scheme} | {sum(not row['apart'] for row in of)} of {len(of)} | {texts} |")
    print("\n| apart in | scheme | kernel / simulator |\n|---|---|---|")
    for row in rows:
        if row["apart"]:
            texts = ", ".join(text(name, row) for name in row["apart"])
            print(f"| {row['scenario']} | {row['scheme']} | {texts} |")


def text(name: str, row: dict[str, Any]) -> str:
    """A number of both sides."""
    factor, unit = UNITS.get(name, (1.0, ""))
    pair = (row[side][name] for side in ("kernel", "simulator"))
    shown = ("none" if value is None else f"{factor * value:.4g}" for value in pair)
    return f"{name} {' / '.join(shown)}{unit}"


if __name__ == "__main__":
    sys.exit(main())
