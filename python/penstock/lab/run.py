# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario in the laboratory: the simulator's rows, from real TCP."""

import json
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import _native, units
from penstock.errors import RunError
from penstock.lab import (
    agent,
    fabric,
    generator,
    host,
    plan,
    programs,
    schemes,
    substrate,
    system,
    tools,
)
from penstock.lab.substrate import Row
from penstock.traces import to_csv

Progress = Callable[[float, str], object]


@dataclass(frozen=True)
class Setup:
    """All that is needed to run one scheme."""

    scheme: schemes.Scheme
    queue: dict[str, Any]
    tcp: host.Tcp
    plan: plan.Plan


def run(
    scenario: str,
    origin: Path,
    tasks: Sequence[tuple[str, int]],
    progress: Progress | None = None,
    *,
    with_tools: bool = False,
) -> tuple[list[Row], dict[str, Any]]:
    """Runs every (scheme, seed) of a resolved scenario, one after another.

    Gives the rows, and what `run.json` says of the substrate. The traffic is penstock-traffic's,
    or `with_tools` that of iperf3, nginx and ab.

    Raises:
        ScenarioError: the laboratory cannot hold the scenario; one line.
        RunError: a part of the machine is missing or failed; one line.
    """
    document = tomllib.loads(scenario)
    layout = json.loads(_native.layout(scenario, str(origin), to_csv))
    setups = {name: _setup(name, document, layout) for name in document["schemes"]}
    duration = units.to_seconds(document["duration"])

    def play(setup: Setup, seed: int, tag: str, told: generator.Told) -> generator.Played:
        if with_tools:
            return tools.play(document, layout["ends"], setup.plan, tag, told)
        name = setup.scheme.name
        return generator.play(scenario, name, seed, setup.plan, tag, duration, told)

    system.need_root()
    for program in _programs(setups.values(), with_tools=with_tools):
        programs.find(program)
    rows = []
    with system.locked():
        for setup in setups.values():
            setup.tcp.check()
        for done, (name, seed) in enumerate(tasks):

            def told(fraction: float, done: int = done, name: str = name) -> None:
                if progress is not None:
                    progress((done + fraction) / len(tasks), name)

            told(0.0)
            rows.append(_one(setups[name], seed, play, told))
    plans = [setup.plan for setup in setups.values()]
    tcps = {name: setup.tcp for name, setup in setups.items()}
    return rows, substrate.of(rows, layout, plans, tcps, document, with_tools=with_tools)


def _setup(name: str, document: dict[str, Any], layout: dict[str, Any]) -> Setup:
    table = document["scheme"][name]
    tcp = host.of({**document.get("tcp", {}), **table.get("tcp", {})})
    return Setup(
        schemes.of(name, table, layout["rtt_s"]),
        table["queue"],
        tcp,
        plan.of(layout, tcp.route, tcp.sysctls),
    )


def _programs(setups: Iterable[Setup], *, with_tools: bool) -> Iterator[str]:
    """What of this repository is needed: better told now than after the first scheme."""
    if not with_tools:
        yield generator.PROGRAM
    if any(setup.scheme.agent for setup in setups):
        yield agent.PROGRAM


Play = Callable[[Setup, int, str, generator.Told], generator.Played]


def _one(setup: Setup, seed: int, play: Play, told: generator.Told) -> Row:
    """One scheme once, on a fabric of its own: nothing is left of the run before."""
    begun = time.monotonic()
    with fabric.built(setup.plan) as tag:
        _queues(setup, tag)
        with agent.attached(setup.scheme, setup.plan, tag):
            cpus = system.cpu_times()
            summary, flows, queues = play(setup, seed, tag, told)
            idle = system.idle_since(cpus)
            counted = agent.counters(setup.scheme, setup.plan, tag)
    for port, values in counted.items():
        if port in summary["ports"]:
            summary["ports"][port] |= values
    wall = time.monotonic() - begun
    summary |= {"tcp": setup.tcp.congestion, "performance": {"wall_s": wall, "cpu_idle": idle}}
    return setup.scheme.name, seed, json.dumps(summary), flows, queues


def _queues(setup: Setup, tag: str) -> None:
    """Puts the scheme's queue discipline, if the kernel's, on the protected ports."""
    for port in setup.plan.protected:
        lines = setup.scheme.discipline(port, setup.queue)
        if not lines:
            return
        batch = system.inside(setup.plan.name(port.node, tag), "tc", "-batch", "-")
        try:
            system.call(batch, "\n".join(lines) + "\n")
        except RunError as error:
            kind = "red" if setup.scheme.queue == "threshold" else setup.scheme.queue
            message = (
                f"{setup.scheme.name}: this kernel does not hold its queue "
                f"(CONFIG_NET_SCH_{kind.upper()}); leave the scheme out ({error})"
            )
            raise RunError(message) from None
