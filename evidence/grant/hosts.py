# SPDX-License-Identifier: Apache-2.0
"""Eight servers and eight clients of the laboratory, in which any program may be started."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.api import prepare
from penstock.execution.lab import executor, fabric, programs, system

COUNT = 8


@dataclass(frozen=True)
class Hosts:
    """A laboratory under a scheme, while it stands."""

    setup: executor.Setup
    tag: str
    stack: ExitStack

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """A server and a client each."""
        return [(f"sender{number}", f"receiver{number}") for number in range(1, COUNT + 1)]

    def address(self, host: str) -> str:
        """Of a host."""
        return self.setup.plan.home[host].hosts[host]

    def call(self, host: str, *command: str) -> str:
        """Runs a command on a host, and returns what it printed."""
        return system.call(self._inside(host, *command))

    def start(self, host: str, *command: str) -> tuple[programs.Process, Path]:
        """Starts a program that ends with the laboratory, and the file of what it prints."""
        log = system.STATE / f"{command[0]}-{host}.log"
        started = programs.running(self._inside(host, *command), command[0], log)
        return self.stack.enter_context(started), log

    def harm(self) -> tuple[int, int]:
        """Packets that the port has dropped, and timeouts of the servers."""
        port = next(port for port in self.setup.plan.protected if port.name == "left->right")
        queue = self.call(port.node, "tc", "-s", "qdisc", "show", "dev", port.interface)
        dropped = int(queue.partition("dropped ")[2].partition(",")[0])
        counted = (
            self.call(server, "nstat", "-asz", "TcpExtTCPTimeouts") for server, _ in self.pairs
        )
        return dropped, sum(int(line.split()[-2]) for line in counted)

    def _inside(self, host: str, *command: str) -> list[str]:
        return system.inside(self.setup.plan.name(host, self.tag), *command)


@contextmanager
def laboratory(scheme: str) -> Iterator[Hosts]:
    """The laboratory of `grant/persistent` under a scheme."""
    (task,) = prepare("grant/persistent", schemes=[scheme], on="lab").tasks
    setup = executor.Setup.of(task)
    with system.locked(), fabric.built(setup.plan) as tag, ExitStack() as stack:
        executor._set_queues(setup, tag)
        stack.enter_context(executor._schemes(setup, tag))
        yield Hosts(setup, tag, stack)


def wait(processes: list[programs.Process]) -> None:
    """Until all have ended, and well."""
    while not all(process.has_ended() for process in processes):
        time.sleep(0.1)
    for process in processes:
        process.check_success()
