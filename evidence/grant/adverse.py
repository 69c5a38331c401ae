# SPDX-License-Identifier: Apache-2.0
"""Plays what is hard for Grant on real TCP, next to drop-tail. Needs root.

Servers that answer late, cables that lose packets or ACKs or stand still, longer round trips, a
wrong rate, other hosts behind the same port. Two loads of lab.py: 126 clients at once, and 32
persistent ones.

Mean, median, p99 and maximum are of answers that ended. "stalls" also counts the unfinished ones
that began more than 190 ms before the end of the run. The last line counts the runs with warnings,
such as transfers that began late.

sudo .venv/bin/python evidence/grant/adverse.py [--repeats N] [--only TEXT] [--scheme NAME] [--list]
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
from lab import STALL_S
from path import PLAIN, Cable

import penstock
from penstock.errors import PenstockError
from penstock.execution.lab import executor
from penstock.units import three, to_seconds

SCHEMES = ("drop-tail", "grant", "grant-receiver")
ACCESS_US = 20
"""Of the round trip, what the scenarios' links to hosts take."""

Overrides = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """A scenario with what is hard in it."""

    name: str
    scenario: str
    overrides: Overrides = ()
    cable: Cable = PLAIN
    switch: str = "left"
    """Whose cables to hosts are so."""
    schemes: tuple[str, ...] = SCHEMES


def both(name: str, *overrides: tuple[str, str], cable: Cable = PLAIN) -> Iterator[Case]:
    """Under both loads."""
    yield Case(f"126 at once, {name}", "grant/at-once", overrides, cable)
    yield Case(f"32 persistent, {name}", "grant/persistent", overrides, cable)


def round_trip(time_us: int) -> tuple[str, str]:
    """The scenario's: Grant has its `rtt` from there."""
    return ("fabric.bottleneck.delay", f"{(time_us - ACCESS_US) // 2} us")


def quarter_late(think: str) -> Case:
    """Of 126 clients, which ask within 8 ms in any order, 31 are answered late."""
    late = (
        '{ kind = "incast", flows = 31, size = "11.5 kB", from = "senders", to = "receivers", '
        'mode = "pull", start = "100 ms", start_spread = "8 ms", epochs = 4, every = "700 ms", '
        f'server_think = "{think}" }}'
    )
    overrides = (
        ("traffic.answers.flows", "95"),
        ("traffic.answers.start_spread", "8 ms"),
        ("traffic.late", late),
    )
    return Case(f"126 within 8 ms, 31 of them {think} late", "grant/at-once", overrides)


def shared(name: str, **changes: str) -> Case:
    """Receivers behind a port that they do not control."""
    overrides = tuple((key.replace("__", "."), value) for key, value in changes.items())
    schemes = ("drop-tail", "grant-receiver")
    return Case(f"shared port, {name}", "grant/shared", overrides, schemes=schemes)


UDP = '{ kind = "udp", rate = "60 Mb/s", from = "leaf1[0]", to = "leaf2[0]" }'
CASES = [
    *both("nothing hard"),
    *(
        Case(f"32 persistent, servers think {think}", "grant/persistent", overrides)
        for think in ("0.1 ms", "1 ms", "5 ms")
        for overrides in [(("traffic.answers.server_think", think),)]
    ),
    quarter_late("0 s"),
    quarter_late("100 ms"),
    *both("0.1 % lost", cable=Cable(loss=0.001)),
    *both("0.5 % lost", cable=Cable(loss=0.005)),
    *both("1 ACK in 20 lost", cable=Cable(ack_loss=0.05)),
    *(
        case
        for time_us in (200, 1000, 5000)
        for case in both(
            f"round trip {time_us / 1000:g} ms",
            round_trip(time_us),
            cable=Cable(hold_s=time_us / 1e6),
        )
    ),
    *both(
        "5 ms of each 100 ms at a standstill",
        round_trip(200),
        cable=Cable(hold_s=0.0002, stall_s=0.005),
    ),
    *both("believed rate x 0.5", ("scheme.{scheme}.window.rate", "100 Mb/s")),
    *both("believed rate x 2", ("scheme.{scheme}.window.rate", "400 Mb/s")),
    shared("both receivers grant"),
    shared("one of two grants", traffic__others__to="leaf3[0]"),
    shared(
        "four grant, four do not",
        traffic__granted__to="leaf2",
        traffic__others__to="leaf3",
    ),
    shared("both grant, one has 60 Mb/s of UDP", traffic__udp=UDP),
]


def main() -> int:
    """Prints a row for each case, scheme and group of flows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="cases with this text in their name")
    parser.add_argument("--scheme", action="append", choices=SCHEMES, help="default: all")
    parser.add_argument("--list", action="store_true", help="print the cases' names only")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    if options.list:
        sys.stdout.writelines(f"{case.name}\n" for case in cases)
        return 0
    heads = ("case", "scheme", "flows", "mean", "median", "p99", "max", "stalls", "unfinished")
    heads += ("timeouts", "drops", "link used")
    sys.stdout.write(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
    try:
        warned = [
            play(case, scheme, options.repeats)
            for case in cases
            for scheme in case.schemes
            if is_played(case, scheme) and (not options.scheme or scheme in options.scheme)
        ]
    except PenstockError as error:
        sys.stderr.write(f"adverse: {error}\n")
        return 2
    sys.stdout.write(f"\n{sum(warned)} of {len(warned) * options.repeats} runs had warnings.\n")
    return 0


OF_SCHEME = "{scheme}"


def is_played(case: Case, scheme: str) -> bool:
    """Drop-tail has none of the settings that some cases change."""
    return scheme != "drop-tail" or not any(OF_SCHEME in key for key, _ in case.overrides)


def play(case: Case, scheme: str, repeats: int) -> int:
    """Prints the rows of a case under a scheme; returns how many of its runs had warnings."""
    overrides = [(key.replace(OF_SCHEME, scheme), value) for key, value in case.overrides]
    with laid(case):
        run = penstock.run(
            case.scenario, schemes=[scheme], seeds=repeats, overrides=overrides, on="lab"
        )
    (result,) = run.summary["results"]
    (port, *_) = result["ports"].values()
    played = run.summary["scenario"]
    end_s = to_seconds(played["duration"])
    for name, group in result["groups"].items():
        has_answers = played["traffic"][name]["kind"] == "incast"
        cells = [case.name, scheme, name]
        cells += times(run.members(name), group, end_s) if has_answers else [""] * 7
        is_closed_loop = case.scenario == "grant/persistent"
        cells += [three(port["drops"]), f"{port['utilization']:.1%}" if is_closed_loop else ""]
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()
    return warned_runs(run.info)


def warned_runs(info: dict[str, Any]) -> int:
    """How many repeats have warnings, each of which begins with `SCHEME, repeat N: `."""
    warnings = info.get("warnings", ())
    sys.stderr.writelines(f"adverse: {warning}\n" for warning in warnings)
    return len({warning.partition(": ")[0] for warning in warnings})


@contextlib.contextmanager
def laid(case: Case) -> Iterator[None]:
    """Has the laboratory lay the case's cables when its fabric stands."""
    plain = executor._set_queues

    def with_cables(setup: Any, tag: str) -> None:
        plain(setup, tag)
        case.cable.lay(setup.plan, tag, case.switch)

    if case.cable != PLAIN:
        executor._set_queues = with_cables
    try:
        yield
    finally:
        executor._set_queues = plain


def times(flows: pl.DataFrame, group: dict[str, Any], end_s: float) -> list[str]:
    """Of all repeats, each of which ends at `end_s`."""
    done = flows["fct_s"].drop_nulls()
    lasted = flows.select(pl.col("fct_s").fill_null(end_s - pl.col("start_s"))).to_series()
    numbers = [done.mean(), done.median(), done.quantile(0.99, "nearest"), done.max()]
    return [
        *("" if number is None else f"{three(1e3 * number)} ms" for number in numbers),
        str((lasted > STALL_S).sum()),
        str(flows.height - len(done)),
        three(group["timeouts"] + group["syn_timeouts"]),
    ]


if __name__ == "__main__":
    # Before all else on the machine: what waits for a processor is not TCP.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    sys.exit(main())
