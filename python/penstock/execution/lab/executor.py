# SPDX-License-Identifier: Apache-2.0
"""Runs tasks on real TCP, one after another: each scheme on a fabric of its own."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError, RunError
from penstock.execution import build
from penstock.execution.lab import (
    agent,
    fabric,
    generator,
    host,
    ovs,
    plan,
    schemes,
    sicc,
    substrate,
    system,
    tools,
)
from penstock.execution.task import OVS, TOOLS, Finished, Progress, Row, Task, counted
from penstock.scenario import layout, parsed


@dataclass(frozen=True)
class Setup:
    """All that is needed to run one task."""

    task: Task
    scheme: schemes.Scheme
    tcp: host.Tcp
    layout: dict[str, Any]
    plan: plan.Plan

    @property
    def document(self) -> dict[str, Any]:
        """The resolved scenario."""
        return parsed(self.task.scenario)

    @property
    def queue(self) -> dict[str, Any]:
        """The table of the scheme's queue policy."""
        table: dict[str, Any] = self.document["scheme"][self.scheme.name]["queue"]
        return table

    @classmethod
    def of(cls, task: Task) -> "Setup":
        """What a task takes; nothing is built yet.

        Raises:
            ScenarioError: the laboratory cannot hold the scenario or the scheme; one line.
        """
        document = parsed(task.scenario)
        table = document["scheme"][task.scheme]
        described = layout(task.scenario, task.origin)
        with_tools = task.on in TOOLS.values()
        keys = {**document.get("tcp", {}), **table.get("tcp", {})}
        tcp = host.of(keys, with_tools=with_tools)
        with_ovs = task.on == OVS
        scheme = schemes.of(task.scheme, table, described["rtt_s"], with_ovs=with_ovs)
        planned = plan.of(described, tcp.route, tcp.sysctls, with_ovs=with_ovs)
        return cls(task, scheme, tcp, described, planned)


def run(tasks: Sequence[Task], progress: Progress | None) -> Finished:
    """Runs the tasks one after another: real TCP needs the machine for itself.

    Raises:
        ScenarioError: the laboratory cannot hold a scenario; one line, before anything runs.
        RunError: a part of the machine is missing; one line.
    """
    setups = [Setup.of(task) for task in tasks]
    system.need_root()
    for program in _programs(setups):
        build.find(program)
    if any(setup.plan.bridges for setup in setups):
        ovs.check()
    with system.locked():
        for setup in setups:
            setup.tcp.check()
        for number, setup in enumerate(setups):

            def listen(fraction: float, number: int = number) -> None:
                if progress is not None:
                    progress((number + fraction) / len(tasks), counted(number, len(tasks)))

            listen(0.0)
            yield number, _result(setup, listen)


def _programs(setups: Iterable[Setup]) -> Iterator[str]:
    """The programs of this repository that the runs need: a missing one is an error up front."""
    yield build.TRAFFIC
    if any(setup.scheme.agent or setup.scheme.controller for setup in setups):
        yield build.AGENT
    if any(setup.plan.bridges for setup in setups):
        yield build.CONTROLLER


def _result(setup: Setup, listen: Callable[[float], object]) -> Row | PenstockError:
    try:
        return _run(setup, listen)
    except PenstockError as error:
        return error


def _run(setup: Setup, listen: Callable[[float], object]) -> Row:
    """One task, on a fabric of its own: nothing is left of the run before."""
    begun = time.monotonic()
    with fabric.built(setup.plan) as tag:
        _set_queues(setup, tag)
        with _schemes(setup, tag) as counters:
            cpus = system.cpu_times()
            played = _play(setup, tag, listen)
            shares = system.cpu_shares(cpus)
            counted_at_ports, counted_by_controller = counters()
            unread = ovs.unread(setup.plan, tag)
    summary = played.summary
    for name, values in counted_at_ports.items():
        if name in summary["ports"]:
            summary["ports"][name] |= values
    if setup.scheme.marks(setup.queue):
        for port in setup.plan.protected:
            if port.name in summary["ports"]:
                summary["ports"][port.name]["ecn_marks"] = None  # those of the kernel are not read
    if counted_by_controller:
        summary["controller"] = counted_by_controller
    if unread:
        warning = f"Open vSwitch was too late for {unread} packets, which are lost and not counted"
        summary.setdefault("warnings", []).append(warning)
    wall = time.monotonic() - begun
    performance = {"wall_s": wall, "cpu_idle": shares.idle, "cpu_stolen": shares.stolen}
    summary["performance"] = performance
    summary["substrate"] = substrate.described(
        setup.task, summary, setup.layout, setup.plan, setup.tcp
    )
    text = json.dumps(summary)
    return Row(setup.scheme.name, setup.task.seed, text, *played[1:])


Counters = Callable[[], tuple[dict[str, dict[str, int]], dict[str, int]]]
"""Reads what is counted at each port, and by the controller."""


@contextlib.contextmanager
def _schemes(setup: Setup, tag: str) -> Iterator[Counters]:
    """Holds the scheme while the block runs."""
    if setup.plan.bridges:
        with sicc.controlled(setup.scheme, setup.plan, tag) as running:
            yield lambda: (running.counters_at_ports(), running.counters())
    else:
        with agent.attached(setup.scheme, setup.plan, tag):
            yield lambda: (agent.counters(setup.scheme, setup.plan, tag), {})


def _play(setup: Setup, tag: str, listen: Callable[[float], object]) -> generator.Played:
    """Plays the scenario's traffic on the built fabric."""
    task, plan = setup.task, setup.plan
    if task.on in TOOLS.values():
        return tools.play(task, setup.layout["ends"], plan, tag, listen)
    with generator.playing(task, plan, tag) as playing:
        while not playing.is_over(listen):
            pass
        return playing.results()


def _set_queues(setup: Setup, tag: str) -> None:
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
                f"{setup.scheme.name}: this kernel lacks its queue discipline "
                f"(CONFIG_NET_SCH_{kind.upper()}); leave the scheme out ({error})"
            )
            raise RunError(message) from None
