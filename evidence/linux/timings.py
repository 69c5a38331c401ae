# SPDX-License-Identifier: Apache-2.0
"""Shows which differences between simulator and kernel are a matter of microseconds.

Plays each cell that `calibrate.py --on sim` finds apart once more in the simulator, with other
times of the laboratory's programs and links: one process that takes 25 to 110 us from one event to
the next (in calibrate.py 25 or 50 in the mean; connects on persistent connections keep their 75);
nginx with ab or wrk that take half or twice as long, times that do not vary, or vary more; a jitter
of 10 or 25 us on the hosts' links. A number is explained if with one of these it is within the
tolerance of the kernel's, or if the kernel's is between two of them. Takes half a minute and needs
no privileges.
"""

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import calibrate
from calibrate import PAUSES, ROOT, SIMULATOR, Numbers, means, play

from penstock.units import to_seconds

PROCESS = ["25 us", "35 us", "50 us", "80 us", "110 us"]
"""Means between two events of the laboratory's traffic program. Traced: 28 to 114 us by cell, but
17 to 22 on persistent connections under FairQ."""
MEANS = {"think": "70 us", "server_think": "140 us"}
"""Of exponential times of nginx and ab: the means in captures."""
JITTER = ["10 us", "25 us"]
"""Of the hosts' links."""


def main() -> None:
    """Prints what the command line asks for."""
    parser = argparse.ArgumentParser(description="Play what is apart with other times of programs.")
    parser.add_argument("--set-aside", action="store_true", help="the cells for the verdict alone")
    parser.add_argument("--out", type=Path, default=ROOT / "runs/calibrate", help="journal")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    chosen = calibrate.sample(is_aside=arguments.set_aside)
    journal = calibrate.Recorded(arguments.out, [SIMULATOR], calibrate.KERNEL)
    with contextlib.closing(journal) as runs:
        calibrate.record(chosen, SIMULATOR, calibrate.REPEATS, runs)
        rows = list(calibrate.compare(chosen, runs, calibrate.REPEATS))
    by_name = {one["name"]: one for one in chosen}
    found = [number for row in rows if row["apart"] for number in with_others(row, by_name)]
    if arguments.json:
        print(json.dumps(found))
        return
    print("| apart in | scheme | number | kernel | simulator | with other times | explained |")
    print("|---|---|---|---|---|---|---|")
    for one in found:
        kernel, simulator, low, high = (
            calibrate.shown(one["number"], one[side])
            for side in ("kernel", "simulator", "least", "most")
        )
        explained = "yes" if one["explained"] else ""
        names = f"{one['scenario']} | {one['scheme']} | {one['number']}"
        print(f"| {names} | {kernel} | {simulator} | {low} to {high} | {explained} |")
    print(f"\nOf {len(found)} numbers {sum(one['explained'] for one in found)} are explained.")


def with_others(row: dict[str, Any], chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The numbers of a row that are apart, and what they are with other times."""
    one = chosen[row["scenario"]]
    others = [played(one | change, row["scheme"]) for change in changes(one["client"])]
    for number in row["apart"]:
        kernel, simulator = row["kernel"][number], row["simulator"][number]
        known = [value for other in others if (value := other[number]) is not None]
        if kernel is None or simulator is None or not known:
            continue
        least, most = min(known), max(known)
        is_near = any(calibrate.is_near(number, [kernel], [value]) for value in known)
        yield {
            **{"scenario": row["scenario"], "scheme": row["scheme"], "number": number},
            **{"kernel": kernel, "simulator": simulator, "least": least, "most": most},
            "explained": is_near or least <= kernel <= most,
        }


def changes(client: str | None) -> Iterator[dict[str, Any]]:
    """Other times of the programs that generate a cell's traffic, then of its links."""
    if client is None:
        yield from ({"times": {"event_loop": took}} for took in PROCESS)
    else:
        for factor in (0.5, 2.0):
            yield {"times": {key: took | slower(took, factor) for key, took in PAUSES.items()}}
        yield {"times": {key: took["lognormal"] for key, took in PAUSES.items()}}
        yield {"times": {key: {"exponential": took} for key, took in MEANS.items()}}
    yield from ({"links": {"jitter": jitter}} for jitter in JITTER)


def slower(took: dict[str, Any], factor: float) -> dict[str, Any]:
    """The median of a time, so much longer."""
    return {"lognormal": f"{1e9 * factor * to_seconds(took['lognormal']):.0f} ns"}


def played(one: dict[str, Any], scheme: str) -> Numbers:
    """Means over the seeds."""
    seeds = range(1, calibrate.REPEATS + 1)
    return means([play(one, scheme, SIMULATOR, seed) for seed in seeds])


if __name__ == "__main__":
    main()
