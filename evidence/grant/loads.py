# SPDX-License-Identifier: Apache-2.0
"""Prints Grant's times in the simulator, load by load, next to those of an ideal port.

.venv/bin/python evidence/grant/loads.py [--scheme NAME]... [--only TEXT] [--set KEY=VALUE]...
"""

import argparse
import heapq
import math
import sys
from collections.abc import Iterator

import polars as pl
from lab_loads import LONG_SHARE, Load
from lab_loads import RATE_BPS as PORT_BPS

import penstock
from penstock.units import to_bytes

MSS_BYTES, HEADER_BYTES = 1448, 66
HANDSHAKE_BYTES = 74 + 66 + 66  # SYN-ACK, ACK of the request, FIN
SCHEMES = ["drop-tail", "fairq", "hscc", "grant", "grant-receiver"]
SHORT_BYTES = 100_000
RATE_BPS = 1e9
"""Of the mixtures' port."""


def wire_bytes(size: int, handshake: int = HANDSHAKE_BYTES) -> int:
    """What an answer takes of the port."""
    return size + math.ceil(size / MSS_BYTES) * HEADER_BYTES + handshake


LOADS = [
    *(Load(f"{clients} at once", clients) for clients in (126, 252, 630)),
    Load("2000 at once", 2000, every_ms=2500),
    Load("126 of 1 kB", 126, "1 kB"),
    Load("126 of 4 kB", 126, "4 kB"),
    Load("126 of 64 kB", 126, "64 kB"),
    Load("126 of 256 kB", 126, "256 kB", every_ms=1600),
    Load("126 of 1 MB", 126, "1 MB", every_ms=6000),
    Load("126 at once, 21 elephants", 126, elephants=21),
    *(Load(f"{clients} persistent", clients, kind="persistent") for clients in (16, 32, 100)),
    Load("32 persistent, 8 elephants", 32, elephants=8, kind="persistent"),
]
MIXTURES = [
    (f"{size} at {load} %", size, load)
    for size in ("websearch", "datamining", "hadoop")
    for load in (50, 70, 90)
]


def ideal_s(load: Load) -> float:
    """Mean time first in, first out, without a loss; elephants take their eighth."""
    left_bps = PORT_BPS * (1 - LONG_SHARE if load.elephants else 1)
    size = to_bytes(load.size)
    if load.is_closed_loop:
        return load.clients * wire_bytes(size, 0) * 8 / left_bps
    return (load.clients + 1) / 2 * wire_bytes(size) * 8 / left_bps


def srpt(starts: list[float], sizes: list[int], rate_bps: float) -> list[float]:
    """Times at the port, shortest remaining time first: one answer at a time has all of it."""
    times, waiting, now = [0.0] * len(starts), list[tuple[float, int]](), 0.0
    arrivals = sorted(range(len(starts)), key=starts.__getitem__)
    for index, following in zip(arrivals, [*arrivals[1:], None], strict=True):
        now = max(now, starts[index])
        heapq.heappush(waiting, (wire_bytes(sizes[index]) * 8 / rate_bps, index))
        until = math.inf if following is None else starts[following]
        while waiting and now < until:
            left, first = heapq.heappop(waiting)
            done = min(left, until - now)
            now += done
            if done < left:
                heapq.heappush(waiting, (left - done, first))
            else:
                times[first] = now - starts[first]
    return times


def las(starts: list[float], sizes: list[int], rate_bps: float) -> list[float]:
    """Likewise of least attained service: ten segments of the answer that has had least."""
    times, waiting, now, turns = [0.0] * len(starts), list[tuple[int, int, int]](), 0.0, 0
    arrivals = sorted(range(len(starts)), key=starts.__getitem__, reverse=True)
    while arrivals or waiting:
        now = now if waiting else max(now, starts[arrivals[-1]])
        while arrivals and starts[arrivals[-1]] <= now:
            heapq.heappush(waiting, (0, turns, arrivals.pop()))
            turns += 1
        had, _, index = heapq.heappop(waiting)
        part = min(10 * MSS_BYTES, sizes[index] - had)
        now += wire_bytes(part, 0 if had else HANDSHAKE_BYTES) * 8 / rate_bps
        turns += 1
        if had + part < sizes[index]:
            heapq.heappush(waiting, (had + part, turns, index))
        else:
            times[index] = now - starts[index]
    return times


def with_path(
    times: list[float], alone: list[float], sizes: list[int], rate_bps: float = RATE_BPS
) -> list[float]:
    """Times from the beginning to the end: of the handshake and the path, too."""
    return [
        time + idle - wire_bytes(size) * 8 / rate_bps
        for time, idle, size in zip(times, alone, sizes, strict=True)
    ]


def loads(options: argparse.Namespace) -> Iterator[str]:
    """Rows of the table of equal answers."""
    yield (
        "| load | scheme | mean | of ideal | p99 | max | unfinished | drops | timeouts | Jain of"
        " elephants |"
    )
    yield "|" + "---|" * 10
    for load in LOADS:
        if options.only not in load.name:
            continue
        overrides = [*load.overrides(), *options.set]
        run = penstock.run(load.scenario, schemes=options.scheme, overrides=overrides)
        for result in run.summary["results"]:
            answers = result["groups"]["answers"]
            port = result["ports"]["left->right"]
            fct, others = answers["fct_s"], result["groups"].get("elephants")
            cells = [load.name, result["scheme"], f"{1e3 * fct['mean']:.1f} ms"]
            cells += [f"{fct['mean'] / ideal_s(load):.2f}"]
            cells += [f"{1e3 * fct[key]:.1f} ms" for key in ("p99", "max")]
            # The end of the run cuts closed loops off.
            unfinished = answers["flows"] - answers["finished"]
            cells += ["" if load.is_closed_loop else str(unfinished)]
            cells += [f"{port['drops']:.0f}", f"{answers['timeouts']:.0f}"]
            cells += [f"{others['jain']:.3f}" if others else ""]
            yield f"| {' | '.join(cells)} |"


def mixtures(options: argparse.Namespace) -> Iterator[str]:
    """Rows of the table of mixtures: times over those of an idle port."""
    yield "| sizes | scheme | mean slowdown | of SRPT | short: mean | p99 | unfinished | drops |"
    yield "|" + "---|" * 8
    for name, size, percent in MIXTURES:
        if options.only not in name:
            continue
        overrides = [
            ("traffic.answers.size", size),
            ("traffic.answers.load", f"{percent} %"),
            *options.set,
        ]
        run = penstock.run("grant/mixture", schemes=options.scheme, overrides=overrides)
        for scheme in options.scheme:
            flows = run.flows.filter(pl.col("scheme") == scheme)
            starts, sizes = flows["start_s"].to_list(), flows["bytes"].to_list()
            ends = flows["end_s"].to_list()
            alone = flows["ideal_s"].to_list()
            times = [
                math.inf if end is None else end - start
                for start, end in zip(starts, ends, strict=True)
            ]
            if scheme == options.scheme[0]:
                best = with_path(srpt(starts, sizes, RATE_BPS), alone, sizes)
                blind = with_path(las(starts, sizes, RATE_BPS), alone, sizes)
                yield f"| {name} | {' | '.join(slowdowns('SRPT', best, best, alone, sizes, 0))} |"
                yield f"| {name} | {' | '.join(slowdowns('LAS', blind, best, alone, sizes, 0))} |"
            drops = run.ports.filter(pl.col("scheme") == scheme)["drops"].sum()
            yield f"| {name} | {' | '.join(slowdowns(scheme, times, best, alone, sizes, drops))} |"


def slowdowns(
    scheme: str,
    times: list[float],
    best: list[float],
    alone: list[float],
    sizes: list[int],
    drops: int,
) -> list[str]:
    """Cells of a row."""
    rows = list(zip(times, best, alone, sizes, strict=True))
    done = [row for row in rows if row[0] < math.inf]
    mean = sum(time / idle for time, _, idle, _ in done) / len(done)
    least = sum(time / idle for _, time, idle, _ in done) / len(done)
    short = sorted(time / idle for time, _, idle, size in done if size <= SHORT_BYTES)
    return [
        scheme,
        f"{mean:.2f}",
        f"{mean / least:.2f}",
        f"{sum(short) / len(short):.2f}",
        f"{short[int(0.99 * len(short))]:.2f}",
        str(len(rows) - len(done)),
        f"{drops:.0f}",
    ]


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", action="append", help="compare these only")
    parser.add_argument("--only", default="", help="loads with this text in their name")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE, as of penstock run")
    options = parser.parse_args()
    options.scheme = options.scheme or SCHEMES
    options.set = [tuple(each.split("=", 1)) for each in options.set]
    if any(key == "seeds" and "," in value for key, value in options.set):
        parser.error("one seed at a time: SRPT and LAS are of one queue")
    for table in (loads, mixtures):
        for line in table(options):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
