# SPDX-License-Identifier: Apache-2.0
"""Compares Penstock's drop-tail NewReno with ns-2, metric by metric.

Runs both simulators over the same number of seeds on two scenarios and
compares the means:

- dumbbell: SICC §5.1 at 1:3 (dumbbell.tcl, evidence/ns2/dumbbell.toml),
  with the traffic groups `elephants` and `mice`;
- starvation: HCF §V-B with a FIFO (starvation.tcl,
  evidence/ns2/starvation.toml), with the group `flows`.

Each scenario measures one port, the bottleneck. The exit code is 1 when a
required metric is further from ns-2 than the tolerance, 2 when a simulator
cannot be run.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from penstock import stats

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOLERANCE = 0.15

Json: TypeAlias = dict[str, Any]


class Unavailable(Exception):
    """A simulator that cannot be run; the message has the remedy."""


@dataclass(frozen=True)
class Metric:
    """One number that both simulators report, and where each has it."""

    text: str
    ns2: str
    ours: Callable[[Json], "Estimate"]
    required: bool = False


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and the half width of its 95 % confidence interval."""

    mean: float
    ci95: float = 0.0

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.mean + other.mean, math.hypot(self.ci95, other.ci95))

    def __str__(self) -> str:
        if abs(self.mean) >= 1000:
            return f"{self.mean:,.0f} ± {self.ci95:,.0f}"
        return f"{self.mean:.4g} ± {self.ci95:.2g}"


@dataclass(frozen=True)
class Comparison:
    """A metric of a scenario in both simulators; `ours` is None if not run."""

    scenario: str
    metric: Metric
    ns2: Estimate
    ours: Estimate | None

    @property
    def ratio(self) -> float | None:
        """Ours over ns-2's; None where ns-2 has 0."""
        if self.ours is None or self.ns2.mean == 0:
            return None
        return self.ours.mean / self.ns2.mean

    def within(self, tolerance: float) -> bool | None:
        """Whether the means differ by at most `tolerance` of ns-2's."""
        if self.ours is None:
            return None
        return abs(self.ours.mean - self.ns2.mean) <= tolerance * abs(self.ns2.mean)


def at(record: Json, path: str) -> Any:
    """The value at a dotted path."""
    value: Any = record
    for key in path.split("."):
        value = value[key]
    return value


def over_seeds(values: list[float]) -> Estimate:
    """The mean of one value for each seed and its confidence interval."""
    return Estimate(stats.mean_of(values), stats.ci95_of(values) or 0.0)


def estimate(result: Json, *path: str) -> Estimate:
    """A number of `penstock run --json` and its confidence interval, which `ci95` mirrors."""
    mean: Any = result
    half: Any = result["ci95"]
    for key in path:
        mean = mean[key]
        half = half and half[key]
    return Estimate(float(mean), float(half or 0.0))


def port(name: str) -> Callable[[Json], Estimate]:
    """A number of the one measured port."""

    def get(result: Json) -> Estimate:
        (measured,) = result["ports"]
        return estimate(result, "ports", measured, name)

    return get


def group(name: str, path: str) -> Callable[[Json], Estimate]:
    """A number of the traffic group `name`."""
    return lambda result: estimate(result, "groups", name, *path.split("."))


def timeouts(*names: str) -> Callable[[Json], Estimate]:
    """All retransmission timeouts of the groups; those of SYNs are among ns-2's."""

    def get(result: Json) -> Estimate:
        total = Estimate(0.0)
        for name in names:
            for field in ("timeouts", "syn_timeouts"):
                total += estimate(result, "groups", name, field)
        return total

    return get


SCENARIOS: dict[str, tuple[Metric, ...]] = {
    "dumbbell": (
        Metric("bottleneck utilisation", "utilization", port("utilization"), True),
        Metric("packets dropped", "drops", port("drops"), True),
        Metric("timeouts", "timeouts", timeouts("elephants", "mice"), True),
        Metric("timeouts of mice", "timeouts_mice", timeouts("mice")),
        Metric("timeouts of elephants", "timeouts_elephants", timeouts("elephants")),
        Metric(
            "elephants' goodput (b/s)", "goodput_bps.mean", group("elephants", "goodput_bps.mean")
        ),
        Metric("elephants' Jain index", "jain", group("elephants", "jain")),
        Metric("mice finished", "mice_finished", group("mice", "finished")),
        Metric("mice's mean FCT (s)", "mice_fct_s.mean", group("mice", "fct_s.mean")),
        Metric("mice's median FCT (s)", "mice_fct_s.p50", group("mice", "fct_s.p50")),
        Metric("mice's p99 FCT (s)", "mice_fct_s.p99", group("mice", "fct_s.p99")),
    ),
    "starvation": (
        Metric("bottleneck utilisation", "utilization", port("utilization"), True),
        Metric("packets dropped", "drops", port("drops"), True),
        Metric("timeouts", "timeouts", timeouts("flows"), True),
        Metric("share of starved flows", "starved", group("flows", "starved"), True),
        Metric("variance of packets", "variance", group("flows", "packets_variance"), True),
    ),
}


def run_json(command: list[str]) -> Json:
    """The JSON object that a command prints as its last line or as a whole."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unavailable(f"{' '.join(command)}: {reason[-1] if reason else 'failed'}")
    parsed: Json = json.loads(done.stdout)
    return parsed


def ns2_command(scenario: str, seed: int) -> list[str]:
    return ["ns", f"evidence/ns2/{scenario}.tcl", f"seed={seed}"]


def run_ns2(scenario: str, seeds: int, jobs: int) -> list[Json]:
    """ns-2's report for each of the seeds 1 to `seeds`."""
    if shutil.which("ns") is None:
        raise Unavailable(
            "ns-2 is not installed: apt-get install ns2, or compare with --recorded results"
        )
    commands = [ns2_command(scenario, seed) for seed in range(1, seeds + 1)]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run_json, commands))


def recorded_file(scenario: str) -> Path:
    return HERE / f"ns2-{scenario}.json"


def read_recorded(scenario: str, seeds: int) -> list[Json]:
    """ns-2's recorded reports, at most `seeds` of them."""
    runs: list[Json] = json.loads(recorded_file(scenario).read_text())["runs"]
    return runs[:seeds]


def write_recorded(scenario: str, runs: list[Json]) -> None:
    """Records ns-2's reports without the numbers that differ from run to run."""
    volatile = ("wall_s", "packet_hops_per_s", "peak_rss_bytes")
    stable = [{k: v for k, v in run.items() if k not in volatile} for run in runs]
    head = {"simulator": "ns-2.35", "command": f"ns evidence/ns2/{scenario}.tcl seed=SEED"}
    lines = ",\n".join("  " + json.dumps(run) for run in stable)
    text = json.dumps(head)[:-1] + ', "runs": [\n' + lines + "\n]}\n"
    recorded_file(scenario).write_text(text)


def run_ours(penstock: str, scenario: str, seeds: int) -> Json:
    """Penstock's result for drop-tail on the same scenario."""
    if shutil.which(penstock) is None:
        raise Unavailable(f"{penstock} does not exist; build it: make build")
    file = f"evidence/ns2/{scenario}.toml"
    command = [penstock, "run", file, "--scheme", "drop-tail", "--seeds", str(seeds), "--json"]
    (result,) = run_json(command)["results"]
    return dict(result)


def compare(scenario: str, theirs: list[Json], ours: Json | None) -> list[Comparison]:
    """Every metric of a scenario."""
    return [
        Comparison(
            scenario,
            metric,
            over_seeds([float(at(run, metric.ns2)) for run in theirs]),
            None if ours is None else metric.ours(ours),
        )
        for metric in SCENARIOS[scenario]
    ]


def table(comparisons: list[Comparison], tolerance: float) -> str:
    """The comparisons as aligned text; `*` marks the required metrics."""
    rows = [("scenario", "metric", "ns-2", "penstock", "ratio", f"within {tolerance:.0%}")]
    for c in comparisons:
        within = c.within(tolerance)
        rows.append((
            c.scenario,
            c.metric.text + ("*" if c.metric.required else ""),
            str(c.ns2),
            "-" if c.ours is None else str(c.ours),
            "-" if c.ratio is None else f"{c.ratio:.3f}",
            "-" if within is None else "yes" if within else "no",
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def report(comparisons: list[Comparison], seeds: int, tolerance: float) -> Json:
    """The comparisons as one JSON object."""
    return {
        "seeds": seeds,
        "tolerance": tolerance,
        "metrics": [
            {
                "scenario": c.scenario,
                "metric": c.metric.text,
                "required": c.metric.required,
                "ns2": vars(c.ns2),
                "penstock": None if c.ours is None else vars(c.ours),
                "ratio": c.ratio,
                "within": c.within(tolerance),
            }
            for c in comparisons
        ],
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare Penstock's drop-tail NewReno with ns-2.",
        epilog="Example: python evidence/ns2/crosscheck.py --seeds 5 --scenario dumbbell",
    )
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="default: both")
    parser.add_argument("--seeds", type=int, default=10, help="default: 10")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="default: 0.15")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="ns-2 runs at a time")
    parser.add_argument("--penstock", default=".venv/bin/penstock", metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--recorded", action="store_true", help="use ns-2's recorded results")
    source.add_argument("--record", action="store_true", help="run ns-2 only and record it")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error("--seeds must be at least 1")
    return given


def main() -> int:
    given = arguments()
    comparisons: list[Comparison] = []
    for scenario in given.scenario or SCENARIOS:
        try:
            if given.recorded:
                theirs = read_recorded(scenario, given.seeds)
            else:
                theirs = run_ns2(scenario, given.seeds, given.jobs)
            if given.record:
                write_recorded(scenario, theirs)
            ours = None if given.record else run_ours(given.penstock, scenario, given.seeds)
        except Unavailable as reason:
            print(f"crosscheck: {reason}", file=sys.stderr)
            return 2
        comparisons += compare(scenario, theirs, ours)
    if given.json:
        print(json.dumps(report(comparisons, given.seeds, given.tolerance)))
    else:
        print(table(comparisons, given.tolerance))
    outside = [c for c in comparisons if c.metric.required and c.within(given.tolerance) is False]
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
