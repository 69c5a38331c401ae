# SPDX-License-Identifier: Apache-2.0
"""Cables of the laboratory that lose packets and take time, without netem.

eBPF programs at the ports of a switch to its hosts lose packets at random (path.bpf.c). What is for
a host they redirect to a TAP device. There this file, run as a program, holds it and sends it back:

python path.py SECONDS STALL_SECONDS    # in the switch's namespace; prints the TAP device's index
"""

import contextlib
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from penstock.execution.lab import system
from penstock.execution.lab.plan import Plan

HERE = Path(__file__).parent
TAP = "hold0"
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
LONGEST_FRAME = 2048
PERIOD_S = 0.1
"""From one stall to the next."""


@dataclass(frozen=True)
class Cable:
    """What happens to packets between a switch and each of its hosts."""

    loss: float = 0.0
    """Share of all packets that is lost, in either direction."""
    ack_loss: float = 0.0
    """Share of the ACKs without payload for the host that is lost, Grant's own among them."""
    hold_s: float = 0.0
    """For how long packets for the host are held."""
    stall_s: float = 0.0
    """For how long, in each tenth of a second, none of these go on."""

    def lay(self, plan: Plan, tag: str, switch: str) -> None:
        """Has the cables of a switch's hosts do so, until the run's namespaces are removed."""
        namespace, space = plan.name(switch, tag), plan.namespaces[switch]
        index = _start_holder(namespace, self.hold_s, self.stall_s) if self.hold_s else 0
        numbers = {
            "LOSS": int(self.loss * 2**32),
            "ACK_LOSS": int(self.ack_loss * 2**32),
            "HOLD": index,
        }
        program = str(system.STATE / "path.o")
        headers = f"/usr/include/{platform.machine()}-linux-gnu"
        defines = [f"-D{name}={number}u" for name, number in numbers.items()]
        source = str(HERE / "path.bpf.c")
        compiler = ["clang", "-O2", "-target", "bpf", "-I", headers, *defines]
        system.call([*compiler, "-c", source, "-o", program])
        for far, interface in space.interfaces.items():
            host = plan.namespaces[far]
            if host.is_switch:
                continue
            lines = [f"qdisc add dev {interface} clsact"]
            for side, section in (("ingress", "tc/from_host"), ("egress", "tc/to_host")):
                run = f"bpf direct-action object-file {program} section {section}"
                lines.append(f"filter add dev {interface} {side} {run}")
            for line in lines:
                system.call(system.inside(namespace, "tc", *line.split()))
            # What is unknown would be flooded, and held once for each port.
            entry = f"fdb replace {host.mac} dev {interface} master static"
            system.call(system.inside(namespace, "bridge", *entry.split()))


PLAIN = Cable()
"""Loses nothing, and takes no time."""


def _start_holder(namespace: str, hold_s: float, stall_s: float) -> int:
    """Starts this file as a program in a namespace; returns its TAP device's index."""
    command = system.inside(namespace, sys.executable, __file__, str(hold_s), str(stall_s))
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    return int(holder.stdout.readline())


def hold(hold_s: float, stall_s: float) -> None:
    """Holds each frame for that long, in their order, and longer while all stand still."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", TAP.encode(), IFF_TAP | IFF_NO_PI))
    system.call(["ip", "link", "set", TAP, "master", "bridge0", "up"])
    # Those whose frames it writes are elsewhere.
    system.call(["bridge", "link", "set", "dev", TAP, "learning", "off", "flood", "off"])
    print(socket.if_nametoindex(TAP), flush=True)
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        select.select([tap], [], [], pause)
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = os.read(tap, LONGEST_FRAME)
                leaves = time.monotonic() + hold_s
                waiting.append((leaves + max(0.0, stall_s - leaves % PERIOD_S), frame))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(tap, waiting.popleft()[1])


if __name__ == "__main__":
    hold(*map(float, sys.argv[1:]))
