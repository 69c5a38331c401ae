# SPDX-License-Identifier: Apache-2.0
"""SICC on Open vSwitch: its controller, and for each switch a penstockd.

This has the shims of the hosts below the switch, and reports the queues of its ports. Without SICC
the controller writes the same routes, and there are no shims.
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
from penstock.execution.lab import ovs, programs, system
from penstock.execution.lab.plan import Namespace, Plan, Port
from penstock.execution.lab.schemes import Scheme

KIND = "sicc"

_AGENTS = "127.0.0.1:6654"
_ROOM = {"flows": 4096, "all_flows": 16384, "ports": 256}
_PATIENCE_S = 30.0
_ASK_S = 0.02


class Controlled:
    """The controller at work, with the agents."""

    def __init__(self, plan: Plan, tag: str, folder: Path, agents: list[Path]) -> None:
        """Of running programs; `agents` are the configurations of those with shims."""
        self._plan, self._tag, self._folder, self._agents = plan, tag, folder, agents

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
        if not self._agents:
            return {}
        status = self.status()
        return {
            "reports_received": status["copies"],
            "queue_reports": status["queues"],
            "incasts": sum(port["incasts"] for port in status["ports"].values()),
            "messages_sent": status["notices"],
            "acks_rewritten": sum(map(self._rewritten, self._agents)),
        }

    def _rewritten(self, config: Path) -> int:
        command = ("status", "--json", "--for", "1 ms", "--pins", str(_pins(config)))
        ports = json.loads(
            system.call(system.inside(self._namespace, build.find(build.AGENT), *command))
        )
        return sum(port["counters"]["acks_rewritten"] for port in ports)

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
    spaces = plan.bridges if scheme.controller else []
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
            made = Controlled(plan, tag, folder, agents)
            made.learn()
            for space, config in zip(spaces, agents, strict=True):
                config.write_text(
                    tomli_w.dumps(_agent(scheme, plan, space, config)), encoding="utf-8"
                )
                agent = start(build.AGENT, space.bridge, "run", "--config", str(config))
                agent.wait_for("it answers")
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
        "controller": {"kind": KIND, **(scheme.controller or {})},
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
    table = dict(scheme.controller or {})
    below = {
        interface: plan.namespaces[far]
        for far, interface in space.interfaces.items()
        if not plan.namespaces[far].is_switch
    }
    folder = _pins(config)
    folder.mkdir()
    queues = [port for port in plan.ports if port.node == space.node and port.is_shaped]
    return {
        "agent": {"pins": str(folder), "locks": str(config.with_suffix(".locks")), **_ROOM},
        "port": {interface: {"scheme": KIND, "controller": table} for interface in below},
        "sdn": {
            "controller": _AGENTS,
            "number": space.number,
            "key": str(config.with_suffix(".key")),
            "guests": {name: list(host.hosts.values()) for name, host in below.items()},
            "switch": {
                "datapath": ovs.datapath(space),
                "interval": table["interval"],
                "ports": {port.interface: _number(port) for port in queues},
            },
        },
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
