# SPDX-License-Identifier: Apache-2.0
"""Two namespaces joined by an unshaped veth pair, with a port of penstockd at the sender."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import RunError
from penstock.execution.lab import system

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import netns

INTERFACE = "veth0"
ADDRESSES = {"sender": "10.99.0.1", "receiver": "10.99.0.2"}


@dataclass(frozen=True)
class VethPath:
    """The path; `name` begins its namespaces' names, `buffer` and `rate` are of its port."""

    name: str
    pins: Path
    penstockd: str
    buffer: str
    rate: str | None

    def namespace(self, side: str) -> str:
        return f"{self.name}-{side}"

    def inside(self, side: str, *command: str) -> str:
        """Runs a command there."""
        return system.call(system.inside(self.namespace(side), *command))

    def entered(self, side: str) -> contextlib.AbstractContextManager[None]:
        """Within, this thread is in the namespace: sockets made here stay there."""
        return netns.inside(self.namespace(side))

    def offload(self, is_on: bool) -> None:
        """Super-packets (TSO, GSO, GRO), or one packet for each segment."""
        word, segments = ("on", "65535") if is_on else ("off", "1")
        for side in ADDRESSES:
            flags = [f for name in ("tso", "gso", "gro") for f in (name, word)]
            self.inside(side, "ethtool", "-K", INTERFACE, *flags)
            # TCP makes them even so, and GSO splits them at the veth's door.
            self.inside(side, "ip", "link", "set", INTERFACE, "gso_max_segs", segments)

    @contextlib.contextmanager
    def attached(self, scheme: str | None) -> Iterator[int]:
        """Within, a scheme is on the port; None: nothing is. Yields the agent's process, or 0."""
        if scheme is None:
            yield 0
            return
        pins = ("--pins", str(self.pins))
        rate = ("--rate", self.rate) if self.rate and scheme == "grant" else ()
        settings = (
            "--scheme",
            scheme,
            "--buffer",
            self.buffer,
            *rate,
            "--stale",
            "600 s",
            "--stay",
        )
        command = (self.penstockd, "attach", INTERFACE, *settings, *pins)
        inside = system.inside(self.namespace("sender"), *command)
        with subprocess.Popen(inside, stdout=subprocess.PIPE) as agent:
            assert agent.stdout
            if not agent.stdout.readline():
                raise RunError(f"penstockd attach --scheme {scheme} has ended")
            try:
                yield agent.pid
            finally:
                agent.terminate()

    def counters(self) -> dict[str, int]:
        """The port's counters by name."""
        status = self.inside(
            "sender", self.penstockd, "status", INTERFACE, "--json", "--pins", str(self.pins)
        )
        port = json.loads(status)[0]
        return {name: int(value) for name, value in port["counters"].items()}


@contextlib.contextmanager
def laid(penstockd: str, buffer: str, rate: str | None) -> Iterator[VethPath]:
    """The path, and a bpffs of its own; all is gone afterwards."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-veth-")))
        path = VethPath(f"speed-{os.getpid()}", folder / "pins", penstockd, buffer, rate)
        system.call(["mount", "-t", "bpf", "bpf", str(folder)])
        stack.callback(system.call, ["umount", "--lazy", str(folder)])
        for side in ADDRESSES:
            system.call(["ip", "netns", "add", path.namespace(side)])
            stack.callback(system.call, ["ip", "netns", "del", path.namespace(side)])
        peer = ("peer", "name", INTERFACE, "netns", path.namespace("receiver"))
        path.inside("sender", "ip", "link", "add", INTERFACE, "type", "veth", *peer)
        for side, address in ADDRESSES.items():
            path.inside(side, "ip", "addr", "add", f"{address}/24", "dev", INTERFACE)
            path.inside(side, "ip", "link", "set", INTERFACE, "up")
        yield path
