# SPDX-License-Identifier: Apache-2.0
"""Compares Penstock with ns-2, metric by metric: drop-tail, FairQ and HSCC with NewReno.

Runs both simulators over the same number of seeds on each of `SCENARIOS` and
compares the means. Each scenario measures one port, the bottleneck. The exit
code is 1 when a required metric is outside its range of agreement, 2 when a
simulator cannot be run or the seeds are too few to decide about a required
metric, except for those in `UNDECIDED`.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from penstock import stats

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Json: TypeAlias = dict[str, Any]


class Unavailable(Exception):
    """A simulator that cannot be run; the message has the remedy."""


@dataclass(frozen=True)
class Metric:
    """One number that both simulators report, where each has it, and their range of agreement.

    The means agree if they differ by at most `tolerance` of ns-2's plus `slack`,
    which is for numbers near zero.
    """

    text: str
    ns2: str
    ours: Callable[[Json], "Estimate"]
    required: bool = False
    tolerance: float = 0.15
    slack: float = 0.0


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
        return f"{self.mean:.4g} ± {round(self.ci95, 12):.2g}"


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

    @property
    def agrees(self) -> bool | None:
        """Whether the means are in the metric's range of agreement.

        None if Penstock was not run, or if they are outside but by no more than
        chance: their difference is within its own confidence interval.
        """
        if self.ours is None:
            return None
        apart = abs(self.ours.mean - self.ns2.mean)
        if apart <= self.metric.tolerance * abs(self.ns2.mean) + self.metric.slack:
            return True
        return None if apart <= math.hypot(self.ours.ci95, self.ns2.ci95) else False


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
    """A number of the one measured port, at a dotted path."""

    def get(result: Json) -> Estimate:
        (measured,) = result["ports"]
        return estimate(result, "ports", measured, *name.split("."))

    return get


def group(name: str, path: str) -> Callable[[Json], Estimate]:
    """A number of the traffic group `name`."""
    return lambda result: estimate(result, "groups", name, *path.split("."))


def timeouts(*names: str) -> Callable[[Json], Estimate]:
    """All retransmission timeouts of the groups; those of SYNs are among ns-2's."""

    def get(result: Json) -> Estimate:
        total = Estimate(0.0)
        for name in names:
            for kind in ("timeouts", "syn_timeouts"):
                total += estimate(result, "groups", name, kind)
        return total

    return get


@dataclass(frozen=True)
class Scenario:
    """A network and its traffic in both simulators, and what is compared."""

    script: str
    """ns-2's."""
    file: str
    """Penstock's."""
    scheme: str
    """Of those in Penstock's file."""
    metrics: tuple[Metric, ...]
    options: dict[str, str] = field(default_factory=dict)
    """Arguments of ns-2's script."""


DUMBBELL = (
    Metric("bottleneck utilisation", "utilization", port("utilization"), True),
    Metric("packets dropped", "drops", port("drops"), True),
    Metric("timeouts", "timeouts", timeouts("elephants", "mice"), True),
    Metric("timeouts of mice", "timeouts_mice", timeouts("mice")),
    Metric("timeouts of elephants", "timeouts_elephants", timeouts("elephants")),
    Metric("elephants' goodput (b/s)", "goodput_bps.mean", group("elephants", "goodput_bps.mean")),
    Metric("elephants' Jain index", "jain", group("elephants", "jain")),
    Metric("mice finished", "mice_finished", group("mice", "finished")),
    Metric("mice's mean FCT (s)", "mice_fct_s.mean", group("mice", "fct_s.mean")),
    Metric("mice's median FCT (s)", "mice_fct_s.p50", group("mice", "fct_s.p50")),
    Metric("mice's p99 FCT (s)", "mice_fct_s.p99", group("mice", "fct_s.p99")),
)

STARVATION = (
    Metric("bottleneck utilisation", "utilization", port("utilization"), True),
    Metric("packets dropped", "drops", port("drops"), True),
    Metric("timeouts", "timeouts", timeouts("flows"), True),
    Metric("share of starved flows", "starved", group("flows", "starved"), True),
    Metric("variance of packets", "variance", group("flows", "packets_variance"), True),
)


def window_metrics(*groups: str) -> tuple[Metric, ...]:
    """What is compared of FairQ and HSCC with these groups of flows."""
    packet = 1500.0
    common = (
        Metric("utilisation", "utilization", port("utilization"), True, 0.05),
        Metric("queue mean (B)", "queue_mean", port("queue_bytes.mean"), True, 0.15, packet),
        Metric("queue max (B)", "queue_max", port("queue_bytes.max"), True, 0.15, packet),
        Metric("packets dropped", "drops", port("drops"), True, 0.2, 10.0),
        Metric("timeouts", "timeouts", timeouts(*groups), True, 0.2, 3.0),
    )
    of_group = {
        "elephants": (Metric("elephants' Jain index", "jain", group("elephants", "jain")),),
        "mice": (
            Metric("mice finished", "mice_finished", group("mice", "finished")),
            Metric("mean FCT (s)", "mice_fct_s.mean", group("mice", "fct_s.mean"), True, 0.15),
            Metric("median FCT (s)", "mice_fct_s.p50", group("mice", "fct_s.p50")),
            Metric("p99 FCT (s)", "mice_fct_s.p99", group("mice", "fct_s.p99"), True, 0.25),
        ),
    }
    return common + sum((of_group[name] for name in groups), ())


def window_scenarios() -> dict[str, Scenario]:
    """FairQ and HSCC, each with three kinds of traffic."""
    traffic = {
        "incast": (
            window_metrics("mice"),
            {"elephants": "0", "mice": "120", "epochs": "5", "every": "0.4", "duration": "2"},
        ),
        "mixed": (
            window_metrics("elephants", "mice"),
            {"epochs": "3", "every": "0.2", "duration": "0.6"},
        ),
        "elephants": (window_metrics("elephants"), {"mice": "0", "duration": "0.3"}),
    }
    return {
        f"{scheme}-{name}": Scenario(
            "dumbbell.tcl", f"window-{name}.toml", f"{scheme}-ns2", metrics,
            {"scheme": scheme, **options},
        )
        for scheme in ("fairq", "hscc")
        for name, (metrics, options) in traffic.items()
    }  # fmt: skip


SCENARIOS = {
    "dumbbell": Scenario("dumbbell.tcl", "dumbbell.toml", "drop-tail", DUMBBELL),
    "starvation": Scenario("starvation.tcl", "starvation.toml", "drop-tail", STARVATION),
    **window_scenarios(),
}


UNDECIDED = {("hscc-mixed", "mean FCT (s)")}
"""Required metrics that may be open: a few timeouts decide them, with 10 seeds, too (README.md)."""


def run_json(command: list[str]) -> Json:
    """The JSON object that a command prints as its last line or as a whole."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unavailable(f"{' '.join(command)}: {reason[-1] if reason else 'failed'}")
    parsed: Json = json.loads(done.stdout)
    return parsed


def ns2_command(scenario: str, seed: int | str) -> list[str]:
    run = SCENARIOS[scenario]
    options = [f"{key}={value}" for key, value in run.options.items()]
    return ["ns", f"evidence/ns2/{run.script}", f"seed={seed}", *options]


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
    head = {"simulator": "ns-2.35", "command": " ".join(ns2_command(scenario, "SEED"))}
    lines = ",\n".join("  " + json.dumps(run) for run in stable)
    text = json.dumps(head)[:-1] + ', "runs": [\n' + lines + "\n]}\n"
    recorded_file(scenario).write_text(text)


def run_ours(penstock: str, scenario: str, seeds: int) -> Json:
    """Penstock's result on the same scenario."""
    if shutil.which(penstock) is None:
        raise Unavailable(f"{penstock} does not exist; build it: make build")
    run = SCENARIOS[scenario]
    file = f"evidence/ns2/{run.file}"
    command = [penstock, "run", file, "--scheme", run.scheme, "--seeds", str(seeds), "--json"]
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
        for metric in SCENARIOS[scenario].metrics
    ]


def allowed(metric: Metric) -> str:
    """The range of agreement in words."""
    slack = f" or {metric.slack:g}" if metric.slack else ""
    return f"{metric.tolerance:.0%}{slack}"


def table(comparisons: list[Comparison]) -> str:
    """The comparisons as the rows of README.md's table; `*` marks the required metrics."""
    rows = [
        ("scenario", "metric", "ns-2", "Penstock", "ratio", "allowed", "agrees"),
        ("---",) * 7,
    ]
    rows += [
        (
            c.scenario,
            c.metric.text + ("*" if c.metric.required else ""),
            str(c.ns2),
            "-" if c.ours is None else str(c.ours),
            "-" if c.ratio is None else f"{c.ratio:.3f}",
            allowed(c.metric),
            "-" if c.ours is None else {True: "yes", False: "no", None: "open"}[c.agrees],
        )
        for c in comparisons
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def report(comparisons: list[Comparison], seeds: int) -> Json:
    """The comparisons as one JSON object."""
    return {
        "seeds": seeds,
        "metrics": [
            {
                "scenario": c.scenario,
                "metric": c.metric.text,
                "required": c.metric.required,
                "ns2": vars(c.ns2),
                "penstock": None if c.ours is None else vars(c.ours),
                "ratio": c.ratio,
                "tolerance": c.metric.tolerance,
                "slack": c.metric.slack,
                "agrees": c.agrees,
            }
            for c in comparisons
        ],
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare Penstock's drop-tail, FairQ and HSCC with ns-2.",
        epilog="Example: python evidence/ns2/crosscheck.py --seeds 5 --scenario dumbbell",
    )
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="default: all")
    parser.add_argument("--seeds", type=int, default=10, help="default: 10")
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
        print(json.dumps(report(comparisons, given.seeds)))
    else:
        print(table(comparisons))
    return verdict(comparisons)


def verdict(comparisons: list[Comparison]) -> int:
    """The exit code; prints a line for each required metric that is open."""
    judged = [c for c in comparisons if c.metric.required and c.ours is not None]
    undecided = [(c.scenario, c.metric.text) for c in judged if c.agrees is None]
    for metric in undecided:
        remedy = "as in the README" if metric in UNDECIDED else "run more with --seeds"
        line = f"{': '.join(metric)}: open, the seeds are too few to decide; {remedy}"
        print(f"crosscheck: {line}", file=sys.stderr)
    if any(c.agrees is False for c in judged):
        return 1
    return 2 if set(undecided) - UNDECIDED else 0


if __name__ == "__main__":
    sys.exit(main())
