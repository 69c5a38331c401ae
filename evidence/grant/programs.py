# SPDX-License-Identifier: Apache-2.0
"""Plays nginx with ab or wrk, next to iperf3, under Grant and other schemes. Needs root.

The port has 200 Mb/s and 128 kB, as in lab.py; the programs are those of the distribution.

sudo .venv/bin/python evidence/grant/programs.py [--repeats N] [--only TEXT]
"""

import argparse
import sys
from statistics import mean
from typing import Any

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
}
"""Program, clients, connections, and long flows of iperf3."""
SETTLED = "1500 ms"


def main() -> int:
    """Prints a row for each load and scheme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="loads with this text in their name")
    options = parser.parse_args()
    heads = ("load", "scheme", "answers/s", "mean", "p50", "p99", "drops", "timeouts", "iperf3")
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
    scenario = "grant/persistent-elephants" if elephants else "grant/persistent"
    overrides = [
        ("traffic.answers.flows", str(clients)),
        ("traffic.answers.connection", connection),
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
        each = [result for result in run.summary["results"] if "seed" in result]
        cells = [name, scheme, *numbers(each or run.summary["results"])]
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        sys.stdout.flush()


def numbers(results: list[dict[str, Any]]) -> list[str]:
    """Means over the repeats, as a row shows them."""
    answers = [result["groups"]["answers"] for result in results]
    ports = [next(iter(result["ports"].values())) for result in results]
    kernels = [result["kernel"] for result in results]
    long = [result["groups"].get("elephants") for result in results]
    times = {key: mean(one["fct_s"][key] for one in answers) for key in ("mean", "p50", "p99")}
    return [
        three(mean(one["flows_per_second"] for one in answers)),
        *(f"{three(1e3 * value)} ms" for value in times.values()),
        three(mean(port["drops"] for port in ports)),
        three(mean(kernel["timeouts"] for kernel in kernels)),
        "".join(f"{three(one['goodput_bps']['mean'] / 1e6)} Mb/s" for one in long[:1] if one),
    ]


if __name__ == "__main__":
    sys.exit(main())
