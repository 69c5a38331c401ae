# SPDX-License-Identifier: Apache-2.0
"""Plays real programs under Grant and other schemes: nginx, ab, wrk, curl, iperf3, Redis. As root.

The port has 200 Mb/s and 128 kB, as in lab.py; the programs are those of the distribution (for
Redis: redis-server, redis-tools). Each redis-benchmark prints the percentiles of its own requests
alone: their p50 and p99 are means over the 8 of them.

sudo .venv/bin/python evidence/grant/programs.py [--repeats N] [--only TEXT]
"""

import argparse
import sys
from statistics import mean
from typing import Any

import redis_load
import striped_read
from lab import SCHEMES

import penstock
from penstock.errors import PenstockError
from penstock.units import three

LOADS = {
    "ab -k, 32 clients": ("ab", 32, "persistent", 0),
    "ab -k, 126 clients": ("ab", 126, "persistent", 0),
    "ab, 63 clients, new connections": ("ab", 63, "new", 0),
    "wrk, 32 clients": ("wrk", 32, "persistent", 0),
    "wrk, 126 clients": ("wrk", 126, "persistent", 0),
    "wrk, 32 clients, 8 iperf3": ("wrk", 32, "persistent", 8),
    "redis-benchmark, 32 clients": ("redis", 32, "persistent", 0),
    "redis-benchmark, 128 clients": ("redis", 128, "persistent", 0),
    "striped read by curl, 8 of 16 kB": ("curl", 8, "new", 0),
    "striped read by curl, 64 of 16 kB": ("curl", 64, "new", 0),
}
PLAYS = {"redis": redis_load.play, "curl": striped_read.play}
"""Program, clients, connections, and long flows of iperf3."""
SETTLED = "1500 ms"


def main() -> int:
    """Prints a row for each load and scheme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="loads with this text in their name")
    options = parser.parse_args()
    heads = ("load", "scheme", "mean", "p50", "p99", "drops", "timeouts", "iperf3")
    sys.stdout.write(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
    try:
        for name in LOADS:
            if options.only in name:
                rows(name, options.repeats)
    except PenstockError as error:
        sys.stderr.write(f"programs: {error}\n")
        return 2
    return 0


def rows(name: str, repeats: int) -> None:
    """Plays a load under each scheme."""
    tool, clients, connection, elephants = LOADS[name]
    if tool in PLAYS:
        for scheme in SCHEMES:
            played = [PLAYS[tool](scheme, clients) for _ in range(repeats)]
            cells = map(three, map(mean, zip(*played, strict=True)))
            *times, drops, timeouts = cells
            row = [name, scheme, *(f"{time} ms" for time in times), drops, timeouts, ""]
            sys.stdout.write(f"| {' | '.join(row)} |\n")
            sys.stdout.flush()
        return
    scenario = "grant/persistent-elephants" if elephants else "grant/persistent"
    overrides = [
        ("traffic.answers.flows", str(clients)),
        ("traffic.answers.connection", connection),
        ("traffic.answers.start_spread", "0 s"),
        *([("traffic.answers.start", SETTLED)] if elephants else []),
    ]
    for scheme in SCHEMES:
        run = penstock.run(
            scenario,
            schemes=[scheme],
            seeds=repeats,
            overrides=overrides,
            on="lab",
            tools=tool,
        )
        (result,) = run.summary["results"]
        sys.stdout.write(f"| {' | '.join([name, scheme, *numbers(result)])} |\n")
        sys.stdout.flush()


def numbers(result: dict[str, Any]) -> list[str]:
    """Means over the repeats, as a row shows them."""
    groups, (port, *_) = result["groups"], result["ports"].values()
    answers, long = groups["answers"], groups.get("elephants")
    return [
        *(f"{three(1e3 * answers['fct_s'][key])} ms" for key in ("mean", "p50", "p99")),
        three(port["drops"]),
        three(result["kernel"]["timeouts"]),
        f"{three(long['goodput_bps']['mean'] / 1e6)} Mb/s" if long else "",
    ]


if __name__ == "__main__":
    sys.exit(main())
