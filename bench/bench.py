# SPDX-License-Identifier: Apache-2.0
"""Measures packet-hops per second of Penstock beside ns-2 and ns-3.

A hop is one packet, data or ACK, sent on one link. The simulators take turns
on one core, several rounds; the table gives the median of the event loop's
speed with the least and the greatest, the median with start and set-up, the
peak memory, and how many times faster Penstock is. A peer that is not installed
is left out. ns-3 simulates a shorter time, or it would take minutes.
"""

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOPS_PROGRAM = ROOT / "target/release/examples/hops"
NS3_PYTHON = ROOT / "target/ns3/bin/python"

# Simulated seconds of ns-3 in each scenario: a few seconds of wall time.
NS3_DURATION_S = {"dumbbell": 0.5, "leafspine": 0.02}


@dataclass(frozen=True)
class Simulator:
    """A simulator under test: its command, or what to do to have one."""

    name: str
    remedy: str
    command: list[str] | None
    note: str = ""


@dataclass(frozen=True)
class Sample:
    """One run of a simulator."""

    packet_hops: int
    loop_s: float
    process_s: float
    peak_rss_bytes: int


@dataclass(frozen=True)
class Result:
    """A simulator's runs of a scenario."""

    scenario: str
    simulator: Simulator
    samples: list[Sample]

    def loop(self) -> list[float]:
        """Hops per second of the event loop, sorted."""
        return sorted(s.packet_hops / s.loop_s for s in self.samples)

    def process(self) -> float:
        """Median hops per second, start and set-up of the program included."""
        return statistics.median(s.packet_hops / s.process_s for s in self.samples)

    def peak_rss(self) -> int:
        """The greatest peak of resident memory, in bytes."""
        return max(s.peak_rss_bytes for s in self.samples)


def simulators(scenario: str, ns3_python: Path) -> list[Simulator]:
    """Penstock first, then the peers."""
    ours = [str(HOPS_PROGRAM), f"scenarios/bench/{scenario}.toml", "--json"]
    ns2 = ["ns", f"bench/ns2_{scenario}.tcl"]
    duration = NS3_DURATION_S[scenario]
    ns3 = [str(ns3_python), f"bench/ns3_{scenario}.py", str(duration)]
    return [
        Simulator(
            "penstock",
            "cargo build --release --example hops",
            ours if HOPS_PROGRAM.exists() else None,
        ),
        Simulator("ns-2", "apt-get install ns2", ns2 if shutil.which("ns") else None),
        Simulator(
            "ns-3",
            "python3 -m venv target/ns3 && target/ns3/bin/pip install ns3==3.44.post0",
            ns3 if has_ns3(ns3_python) else None,
            f"{duration:g} s simulated",
        ),
    ]


def has_ns3(python: Path) -> bool:
    """Whether the interpreter has ns-3's bindings, without loading them."""
    if python == Path(sys.executable):
        return importlib.util.find_spec("ns") is not None
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ns') is None)"
    return python.exists() and subprocess.run([python, "-c", probe], check=False).returncode == 0


def run(simulator: Simulator) -> Sample:
    """Runs a simulator once; its report is the last line of its output."""
    assert simulator.command is not None
    started = time.perf_counter()
    process = subprocess.Popen(
        simulator.command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    output, _ = process.communicate()
    process_s = time.perf_counter() - started
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(simulator.command)} failed: {process.returncode}")
    report: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return Sample(
        packet_hops=int(report["packet_hops"]),
        loop_s=float(report["wall_s"]),
        process_s=process_s,
        peak_rss_bytes=int(report["peak_rss_bytes"]),
    )


def measure(scenario: str, present: list[Simulator], rounds: int) -> list[Result]:
    """Lets the simulators take turns, so that a slow moment hits all of them."""
    samples: dict[str, list[Sample]] = {s.name: [] for s in present}
    for done in range(rounds):
        for simulator in present:
            samples[simulator.name].append(run(simulator))
        print(f"bench: {scenario}: round {done + 1} of {rounds}", file=sys.stderr)
    return [Result(scenario, s, samples[s.name]) for s in present]


def ratio(result: Result, results: list[Result]) -> float | None:
    """How many times faster Penstock's event loop is than that of `result`."""
    for other in results:
        if other.scenario == result.scenario and other.simulator.name == "penstock":
            return statistics.median(other.loop()) / statistics.median(result.loop())
    return None


def table(results: list[Result]) -> str:
    """The results as aligned text; speeds in millions of packet-hops per second."""
    rows = [("scenario", "simulator", "Mhops/s (min-max)", "with set-up", "MB", "penstock is", "")]
    for result in results:
        loop = [speed / 1e6 for speed in result.loop()]
        times = ratio(result, results)
        rows.append((
            result.scenario,
            result.simulator.name,
            f"{statistics.median(loop):.3g} ({loop[0]:.3g}-{loop[-1]:.3g})",
            f"{result.process() / 1e6:.3g}",
            f"{result.peak_rss() / 1e6:.0f}",
            "-" if times is None else f"{times:.3g}x",
            result.simulator.note,
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def report(results: list[Result], rounds: int) -> dict[str, Any]:
    """The results as one JSON object."""
    return {
        "rounds": rounds,
        "results": [
            {
                "scenario": result.scenario,
                "simulator": result.simulator.name,
                "note": result.simulator.note,
                "packet_hops": result.samples[0].packet_hops,
                "packet_hops_per_s": {
                    "median": statistics.median(result.loop()),
                    "min": result.loop()[0],
                    "max": result.loop()[-1],
                    "with_set_up": result.process(),
                },
                "peak_rss_bytes": result.peak_rss(),
                "penstock_ratio": ratio(result, results),
            }
            for result in results
        ],
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure Penstock's event loop beside ns-2's and ns-3's.",
        epilog="Example: python bench/bench.py --scenario dumbbell --rounds 3",
    )
    parser.add_argument("--scenario", action="append", choices=NS3_DURATION_S, help="default: all")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--core", type=int, help="the core to run on; default: the last one")
    parser.add_argument("--ns3-python", type=Path, default=NS3_PYTHON, metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    if given.core is not None and given.core not in os.sched_getaffinity(0):
        parser.error(f"--core must be one of {sorted(os.sched_getaffinity(0))}")
    return given


def main() -> int:
    given = arguments()
    core = max(os.sched_getaffinity(0)) if given.core is None else given.core
    os.sched_setaffinity(0, {core})  # the simulators inherit it
    scenarios: list[str] = given.scenario or list(NS3_DURATION_S)
    plan = {scenario: simulators(scenario, given.ns3_python) for scenario in scenarios}
    for absent in (s for s in plan[scenarios[0]] if s.command is None):
        print(f"bench: without {absent.name}; to have it: {absent.remedy}", file=sys.stderr)
    results: list[Result] = []
    for scenario, known in plan.items():
        results += measure(scenario, [s for s in known if s.command], given.rounds)
    print(json.dumps(report(results, given.rounds)) if given.json else table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
