# SPDX-License-Identifier: Apache-2.0
"""The controller of Open vSwitch's bridges, and for each switch a penstockd.

Under SICC this has the shims of the hosts below the switch, and reports the queues of its ports.
Under FairQ and HSCC it has the switch's ports, whose flows the controller may count. With no such
scheme the controller writes the same routes, and there is no penstockd.
"""

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from penstock.errors import RunError
from penstock.execution import build
from penstock.execution.lab import agent as agents_of_ports
from penstock.execution.lab import ovs, programs, system
from penstock.execution.lab.plan import Namespace, Plan, Port
from penstock.execution.lab.schemes import Scheme

KIND = "sicc"
_COUNTS = "flow-counts"

_AGENTS = "127.0.0.1:6654"
_ROOM = {"flows": 4096, "all_flows": 16384, "ports": 256}
_PATIENCE_S = 30.0
_ASK_S = 0.02


class Controlled:
    """The controller at work, with the agents."""

    def __init__(
        self, scheme: Scheme, plan: Plan, tag: str, folder: Path, agents: list[Path]
    ) -> None:
        """Of running programs; `agents` are the configurations of each penstockd."""
        self._scheme, self._plan, self._tag = scheme, plan, tag
        self._folder, self._agents = folder, agents

    @property
    def _namespace(self) -> str:
        return self._plan.name(self._plan.bridges[0].node, self._tag)

    def status(self) -> dict[str, Any]:
        """What the controller reports of itself."""
        program, file = build.find(build.CONTROLLER), str(self._folder / "controller.toml")
        command = system.inside(self._namespace, program, "status", file, "--json")
        status: dict[str, Any] = json.loads(system.call(command))
        return status

    def counters(self) -> dict[str, int]:
        """What controller and shims did, as a summary names it; empty without SICC."""
        if not self._scheme.controller:
            return {}
        status = self.status()
        return {
            "reports_received": status["copies"],
            "queue_reports": status["queues"],
            "incasts": sum(port["incasts"] for port in status["ports"].values()),
            "messages_sent": status["notices"],
            "frames_sent": status["frames"],
            "acks_rewritten": sum(map(self._rewritten, self._agents)),
        }

    def clamped_pairs(self) -> int:
        """The pairs of hosts whose windows the shims lower now."""
        return sum(port["clamped_pairs"] for config in self._agents for port in self._ports(config))

    def counters_at_ports(self) -> dict[str, dict[str, int]]:
        """What penstockd counted at each of the switches' ports; empty if it has none of them."""
        read = agents_of_ports.read_status
        return {
            port.name: read(json.dumps(self._ports(config)), port.interface)
            for config in self._agents
            for port in self._attached(config)
        }

    def _attached(self, config: Path) -> list[Port]:
        """The ports of the switch that an agent has."""
        if self._scheme.window is None:
            return []
        bridges = {space.node for space in self._plan.bridges if space.bridge == config.stem}
        return [port for port in self._plan.protected if port.node in bridges]

    def wait_for_ports(self, config: Path) -> None:
        """Waits until an agent has its shims, or its ports of the switch.

        Raises:
            RunError: it does not attach them.
        """
        wanted = {port.interface for port in self._attached(config)}
        if self._scheme.controller:
            (space,) = [one for one in self._plan.bridges if one.bridge == config.stem]
            wanted = set(_below(self._plan, space))
        begun = time.monotonic()
        while True:
            try:
                missing, reason = wanted - {port["interface"] for port in self._ports(config)}, ""
            except RunError as error:  # one of them is half attached
                missing, reason = wanted, f": {error}"
            if not missing:
                return
            if time.monotonic() - begun > _PATIENCE_S:
                message = f"lab: {build.AGENT} does not attach {', '.join(sorted(missing))}{reason}"
                raise RunError(message)
            time.sleep(_ASK_S)

    def _rewritten(self, config: Path) -> int:
        return sum(port["counters"]["acks_rewritten"] for port in self._ports(config))

    def _ports(self, config: Path) -> list[dict[str, Any]]:
        """What an agent reports of its ports."""
        command = ("status", "--json", "--for", "1 ms", "--pins", str(_pins(config)))
        inside = system.inside(self._namespace, build.find(build.AGENT), *command)
        ports: list[dict[str, Any]] = json.loads(system.call(inside))
        return ports

    def learn(self) -> None:
        """Waits until the controller knows all links, has each host send, and waits for the routes.

        A host may send only then: in a fabric with circles a broadcast would not end before.

        Raises:
            RunError: the controller does not learn the fabric.
        """
        spaces = [space for space in self._plan.namespaces.values() if not space.is_switch]
        inner = len(self._plan.cables) - len(spaces)
        switches = len(self._plan.bridges)

        def is_found(status: Mapping[str, Any]) -> bool:
            found = (len(status["switches"]), len(status["links"]))
            return found == (switches, inner) and bool(status["settled"])

        self._wait("links", is_found)

        def is_known(status: Mapping[str, Any]) -> bool:
            known = status["hosts"]
            for space, other in zip(spaces, spaces[1:] + spaces[:1], strict=True):
                if space.mac not in known:
                    _send(self._plan.name(space.node, self._tag), f"{other.subnet}.1")
            return len(known) == len(spaces) and bool(status["settled"])

        self._wait("hosts", is_known)

    def _wait(self, what: str, is_known: Callable[[Mapping[str, Any]], bool]) -> None:
        begun = time.monotonic()
        while not is_known(status := self.status()):
            if time.monotonic() - begun > _PATIENCE_S:
                message = (
                    f"lab: {build.CONTROLLER} does not learn all {what} within {_PATIENCE_S:g} s: "
                    f"it knows {len(status['switches'])} switches, {len(status['links'])} links "
                    f"and {len(status['hosts'])} hosts"
                )
                raise RunError(message)
            time.sleep(_ASK_S)


@contextlib.contextmanager
def controlled(scheme: Scheme, plan: Plan, tag: str) -> Iterator[Controlled]:
    """Controller, routes and shims of a built plan with bridges, while the block runs.

    Raises:
        RunError: a program is missing, refuses, or ended before the block did; one line.
    """
    folder = system.STATE / "sdn"
    folder.mkdir()
    namespace = plan.name(plan.bridges[0].node, tag)
    spaces = plan.bridges if scheme.controller or scheme.window is not None else []
    agents = [folder / f"{space.bridge}.toml" for space in spaces]
    processes = []
    with contextlib.ExitStack() as stack:

        def start(program: str, log: str, *arguments: str) -> programs.Process:
            command = system.inside(namespace, build.find(program), *arguments)
            running = programs.running(command, program, folder / f"{log}.log")
            processes.append(stack.enter_context(running))
            return processes[-1]

        for space in plan.bridges:
            key = folder / f"{space.bridge}.key"
            key.write_bytes(secrets.token_bytes(32))
        file = folder / "controller.toml"
        file.write_text(tomli_w.dumps(_controller(scheme, plan, folder)), encoding="utf-8")
        start(build.CONTROLLER, "controller", "run", str(file)).wait_for("switches at")
        with ovs.bridged(plan, tag):
            made = Controlled(scheme, plan, tag, folder, agents)
            made.learn()
            for space, config in zip(spaces, agents, strict=True):
                config.write_text(
                    tomli_w.dumps(_agent(scheme, plan, space, config)), encoding="utf-8"
                )
                agent = start(build.AGENT, space.bridge, "run", "--config", str(config))
                if scheme.controller or scheme.is_counted:
                    agent.wait_for("it answers")
                made.wait_for_ports(config)
            yield made
            for process in processes:
                process.check_alive()


def _controller(scheme: Scheme, plan: Plan, folder: Path) -> dict[str, Any]:
    """The configuration of penstock-controller."""
    watched = [port for port in plan.ports if port.is_shaped and plan.namespaces[port.node].is_ovs]
    return {
        "openflow": ovs.OPENFLOW,
        "agents": _AGENTS,
        "status": str(folder / "controller.sock"),
        "controller": {"kind": _COUNTS if scheme.is_counted else KIND, **(scheme.controller or {})},
        "watch": {
            port.name: {
                "datapath": ovs.datapath(plan.namespaces[port.node]),
                "port": _number(port),
                "buffer": f"{port.buffer_bytes} B",
            }
            for port in watched
        },
        "agent": {
            space.bridge: {"number": space.number, "key": str(folder / f"{space.bridge}.key")}
            for space in plan.bridges
        },
    }


def _agent(scheme: Scheme, plan: Plan, space: Namespace, config: Path) -> dict[str, Any]:
    """The configuration of the penstockd of a switch and of the hosts below it."""
    if scheme.window is not None:
        return _agent_of_ports(scheme, plan, space, config)
    table = dict(scheme.controller or {})
    below = _below(plan, space)
    queues = [port for port in plan.ports if port.node == space.node and port.is_shaped]
    return {
        "agent": _folders(config),
        "port": {interface: {"scheme": KIND, "controller": table} for interface in below},
        "sdn": {
            **_sdn(space, config),
            "guests": {name: list(host.hosts.values()) for name, host in below.items()},
            "frames": table.get("messages") == "frames",
            "switch": {
                "datapath": ovs.datapath(space),
                "interval": table["interval"],
                "ports": {port.interface: _number(port) for port in queues},
            },
        },
    }


def _below(plan: Plan, space: Namespace) -> dict[str, Namespace]:
    """The hosts of a switch by its interfaces to them."""
    return {
        interface: plan.namespaces[far]
        for far, interface in space.interfaces.items()
        if not plan.namespaces[far].is_switch
    }


def _agent_of_ports(scheme: Scheme, plan: Plan, space: Namespace, config: Path) -> dict[str, Any]:
    """The configuration of the penstockd that has the ports of a switch."""
    ports = [port for port in plan.protected if port.node == space.node]
    counts = {"controller": {"kind": _COUNTS}} if scheme.is_counted else {}
    switch = {
        "datapath": ovs.datapath(space),
        "interval": "0 s",
        "ports": {port.interface: _number(port) for port in ports},
    }
    return {
        "agent": _folders(config),
        "port": {
            port.interface: {
                "scheme": scheme.agent[0],
                "buffer": f"{port.buffer_bytes} B",
                "window": scheme.window,
                **counts,
            }
            for port in ports
        },
        **({"sdn": {**_sdn(space, config), "switch": switch}} if scheme.is_counted else {}),
    }


def _folders(config: Path) -> dict[str, Any]:
    """The table `[agent]` of a configuration: folders of its own, and the room of its tables."""
    folder = _pins(config)
    folder.mkdir()
    return {"pins": str(folder), "locks": str(config.with_suffix(".locks")), **_ROOM}


def _sdn(space: Namespace, config: Path) -> dict[str, Any]:
    """Where the controller is, and who the agent is."""
    return {
        "controller": _AGENTS,
        "number": space.number,
        "key": str(config.with_suffix(".key")),
    }


def _number(port: Port) -> int:
    """The number of a port of Open vSwitch, which its interface has in its name."""
    return int(port.interface.rpartition("-")[2])


def _pins(config: Path) -> Path:
    """A folder for each agent."""
    return system.PINS / config.stem


def _send(namespace: str, address: str) -> None:
    """Has a host send a datagram, to no socket."""
    system.call(system.inside(namespace, "bash", "-c", f"echo > /dev/udp/{address}/9"))
