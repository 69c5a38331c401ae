# SPDX-License-Identifier: Apache-2.0
"""Compares Penstock's event loop with ns-2's and ns-3's, schemes with drop-tail; measures sweeps.

A hop is one packet, data or ACK, sent on one link. What is compared takes turns on one core, so
that a slow moment hits all; every number is the median of the rounds with the least and the
greatest. A peer that is not installed is left out; ns-3 simulates a shorter time, or it would take
minutes.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
from programs import ROOT, Program, Sample, penstock

# Aims: millions of packet-hops per second, and megabytes of memory.
SCENARIOS: dict[str, tuple[float | None, float]] = {
    "dumbbell": (50, 32),
    "leaf-spine": (35, 32),
    "fat-tree": (12, 128),
    "many-flows": (None, 1074),
    "one-port": (None, 1074),
    "tree": (None, 1074),
}
SCHEMES = ("hcf", "fairq", "hscc", "red")
PROFILES = {
    "SACK, RACK-TLP": ("tcp.sack=true", "tcp.recovery=rack-tlp"),
    "today's Linux": ("tcp.profile=linux",),
}
SWEEP = (".venv/bin/penstock", "run", "bench/dumbbell", "--set", "duration=100 s", "--seeds", "8")


@dataclass(frozen=True)
class Speed:
    """A simulator's runs of a scenario."""

    scenario: str
    program: Program
    samples: list[Sample]
    ours: list[Sample]

    def ratios(self) -> list[float]:
        """How many times faster Penstock's event loop was, round by round."""
        return [a.speed / b.speed for a, b in zip(self.ours, self.samples, strict=True)]

    def aim(self) -> str:
        """What Penstock should reach here."""
        speed, memory = SCENARIOS[self.scenario]
        wanted = [f"{speed:g} M"] if speed else []
        return ", ".join([*wanted, f"{memory:g} MB"]) if self.program.name == "penstock" else ""


@dataclass(frozen=True)
class Ratio:
    """Something relative to a base line, round by round, and the least it should be."""

    name: str
    values: list[float]
    aim: float


def in_turns(label: str, known: Sequence[Program], rounds: int) -> dict[str, list[Sample]]:
    """Runs the programs in turns, round by round."""
    samples: dict[str, list[Sample]] = {program.name: [] for program in known}
    for done in range(rounds):
        for program in known:
            samples[program.name].append(programs.run(program))
        print(f"bench: {label}: round {done + 1} of {rounds}", file=sys.stderr)
    return samples


def speeds(scenario: str, rounds: int, ns3_python: Path) -> list[Speed]:
    """A scenario under Penstock and the peers that are here."""
    known = [penstock(scenario), *programs.peers(scenario, ns3_python)]
    present = [program for program in known if program.command]
    samples = in_turns(scenario, present, rounds)
    ours = samples.get("penstock", [])
    return [Speed(scenario, p, samples[p.name], ours or samples[p.name]) for p in present]


def schemes(rounds: int) -> list[Ratio]:
    """Schemes, and other TCP, on the dumbbell, by drop-tail with NewReno."""
    base = penstock("dumbbell", name="drop-tail")
    known = [base, *(penstock("dumbbell", f'schemes=["{s}"]', name=s) for s in SCHEMES)]
    known += [penstock("dumbbell", *sets, name=name) for name, sets in PROFILES.items()]
    samples = in_turns("schemes", known, rounds)
    return [
        Ratio(
            f"{name} / drop-tail NewReno",
            [a.speed / b.speed for a, b in zip(own, samples[base.name], strict=True)],
            0.6 if name in PROFILES else 0.5,
        )
        for name, own in samples.items()
        if name != base.name
    ]


def sweep(rounds: int) -> Ratio:
    """The wall time of eight seeds on one thread by that on two."""
    values = []
    for done in range(rounds):
        one, two = (programs.timed([*SWEEP, "--json", "--jobs", jobs])[1] for jobs in ("1", "2"))
        values.append(one / two)
        print(f"bench: sweep: round {done + 1} of {rounds}", file=sys.stderr)
    return Ratio("sweep of 8 seeds: 1 thread / 2 threads", values, 1.9)


def threads(rounds: int) -> Ratio:
    """The event loop's wall time of the tree on one thread by that on two: the same outcome."""
    values = []
    for done in range(rounds):
        one, two = (programs.run(penstock("tree", threads=n)).loop_s for n in (1, 2))
        values.append(one / two)
        print(f"bench: threads: round {done + 1} of {rounds}", file=sys.stderr)
    return Ratio("one run of the tree: 1 thread / 2 threads", values, 1.8)


def spread(values: Sequence[float], scale: float = 1.0) -> str:
    """Median (least-greatest)."""
    least, middle, most = (f(values) / scale for f in (min, statistics.median, max))
    return f"{middle:.3g} ({least:.3g}-{most:.3g})"


def table(measured: list[Speed], ratios: list[Ratio]) -> str:
    """The results as aligned text."""
    rows = [
        ("scenario", "simulator", "Mhops/s (min-max)", "with set-up", "MB", "penstock is", "aim")
    ]
    for one in measured:
        process = statistics.median(s.packet_hops / s.process_s for s in one.samples)
        own = one.program.name == "penstock"
        rows.append((
            one.scenario,
            one.program.name,
            spread([s.speed for s in one.samples], 1e6),
            f"{process / 1e6:.3g}",
            f"{max(s.peak_rss_bytes for s in one.samples) / 1e6:.0f}",
            "" if own else f"{spread(one.ratios())} x",
            one.aim() or one.program.note,
        ))  # fmt: skip
    parts = [_aligned(rows)] if measured else []
    if ratios:
        below = [("ratio", "median (min-max)", "aim")]
        below += [(ratio.name, spread(ratio.values), f"{ratio.aim:g}") for ratio in ratios]
        parts.append(_aligned(below))
    return "\n\n".join(parts)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def report(measured: list[Speed], ratios: list[Ratio], rounds: int) -> dict[str, Any]:
    """The results as one JSON object."""
    return {
        "rounds": rounds,
        "speeds": [
            {
                "scenario": one.scenario,
                "simulator": one.program.name,
                "packet_hops": one.samples[0].packet_hops,
                "packet_hops_per_s": numbers([s.speed for s in one.samples]),
                "with_set_up": numbers([s.packet_hops / s.process_s for s in one.samples]),
                "peak_rss_bytes": max(s.peak_rss_bytes for s in one.samples),
                "penstock_ratio": numbers(one.ratios()),
            }
            for one in measured
        ],
        "ratios": [{"name": r.name, "aim": r.aim, **numbers(r.values)} for r in ratios],
    }


def numbers(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def arguments() -> argparse.Namespace:
    here = [name for name in SCENARIOS if (ROOT / f"evidence/speed/{name}.toml").exists()]
    parser = argparse.ArgumentParser(
        description="Compare Penstock with its peers, schemes with drop-tail; measure sweeps.",
        epilog="Example: python evidence/speed/bench.py dumbbell schemes --rounds 3",
    )
    parts = [*here, "schemes", "sweep", "threads"]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; or all")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--core", type=int, help="the core to run on; default: the last one")
    parser.add_argument("--ns3-python", type=Path, default=programs.NS3_PYTHON, metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    given.parts = given.parts or parts
    if unknown := [part for part in given.parts if part not in parts]:
        parser.error(f"{unknown[0]}: give parts of {', '.join(parts)}")
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    if given.core is not None and given.core not in os.sched_getaffinity(0):
        parser.error(f"--core must be one of {sorted(os.sched_getaffinity(0))}")
    if penstock("dumbbell").command is None:
        parser.error(f"first: {penstock('dumbbell').remedy}")
    return given


def main() -> int:
    given = arguments()
    for absent in (p for p in programs.peers("dumbbell", given.ns3_python) if p.command is None):
        print(f"bench: without {absent.name}; to have it: {absent.remedy}", file=sys.stderr)
    cores = os.sched_getaffinity(0)
    core = max(cores) if given.core is None else given.core
    os.sched_setaffinity(0, {core})  # the programs inherit it
    measured = [
        speed
        for name in SCENARIOS
        if name in given.parts
        for speed in speeds(name, given.rounds, given.ns3_python)
    ]
    ratios = schemes(given.rounds) if "schemes" in given.parts else []
    os.sched_setaffinity(0, cores)
    if "sweep" in given.parts:
        ratios.append(sweep(given.rounds))
    if "threads" in given.parts:
        ratios.append(threads(given.rounds))
    done = (measured, ratios)
    print(json.dumps(report(*done, given.rounds), indent=2) if given.json else table(*done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
