# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch as the switches of a fabric: a database and a daemon of our own.

They have a folder of their own and run in the namespace of the switches, so that one of the system
is left alone. The datapath is the kernel's, which each namespace has for itself, or in user space.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from penstock.errors import RunError
from penstock.execution.lab import programs, system
from penstock.execution.lab.plan import Namespace, Plan

PROTOCOL = "OpenFlow13"
OPENFLOW = "127.0.0.1:6653"
"""Where the bridges look for their controller."""

_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_PACKAGE = "install the package openvswitch-switch"


_FIRST = ("chrt", "--rr", "40")
"""A switch does not wait for a processor."""

_RECEIVE_BUFFER = Path("/proc/sys/net/core/rmem_default")
_ROOM = 1 << 20
"""Bytes: 450 packets wait at each port for the datapath in user space, which has 92 by default."""


def check() -> None:
    """Raises RunError unless Open vSwitch is installed; one line with the remedy."""
    if not _SCHEMA.is_file():
        message = f"lab: Open vSwitch is not installed ({_SCHEMA} is missing); {_PACKAGE}"
        raise RunError(message)


@cache
def datapath_type() -> str:
    """`system`, the kernel's datapath, where the kernel has it; else `netdev`, in user space."""
    try:
        system.call(["ovs-dpctl", "dump-dps"])  # the kernel loads its module, if there is one
    except RunError:
        return "netdev"
    return "system"


@contextlib.contextmanager
def bridged(plan: Plan, tag: str) -> Iterator[None]:
    """All switches of a built plan as bridges, which ask a controller, while the block runs.

    Raises:
        RunError: a program is missing, refuses, or ended before the block did; one line.
    """
    if not plan.bridges:
        yield
        return
    folder = system.STATE / "ovs"
    folder.mkdir()
    system.call(["ovsdb-tool", "create", str(folder / "db"), str(_SCHEMA)])
    namespace = plan.name(plan.bridges[0].node, tag)
    with contextlib.ExitStack() as stack:

        def start(program: str, *arguments: str) -> programs.Process:
            log = folder / f"{program}.log"
            files = [f"--{kind}={folder / program}.{kind}" for kind in ("pidfile", "unixctl")]
            command = system.inside(
                namespace, *_FIRST, "env", f"OVS_RUNDIR={folder}", program, *files, *arguments
            )
            return stack.enter_context(programs.running(command, program, log))

        database = f"unix:{folder / 'db.sock'}"
        processes = [start("ovsdb-server", str(folder / "db"), f"--remote=p{database}")]
        configure = ["ovs-vsctl", f"--db={database}", "--timeout=60", "--retry"]
        system.call([*configure, "--no-wait", "init"])
        processes.append(start("ovs-vswitchd", database))
        words = [word for space in plan.bridges for word in ("--", *_bridge(plan, space))]
        with _roomy_sockets():
            system.call([*configure, *words[1:]])
        yield
        for process in processes:
            process.check_alive()


@contextlib.contextmanager
def _roomy_sockets() -> Iterator[None]:
    """Sockets opened while the block runs hold more; not so in a container that may not set it."""
    before = _RECEIVE_BUFFER.read_text()
    try:
        _RECEIVE_BUFFER.write_text(str(max(_ROOM, int(before))))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        _RECEIVE_BUFFER.write_text(before)


def unread(plan: Plan, tag: str) -> int:
    """The packets that came in and that the datapath in user space had no time to read."""
    if not plan.bridges:
        return 0
    namespace = plan.name(plan.bridges[0].node, tag)
    sockets = system.call(system.inside(namespace, "ss", "--packet", "--all", "--memory"))
    return sum(map(int, re.findall(r"skmem:\(.*,d(\d+)\)", sockets)))


def _bridge(plan: Plan, space: Namespace) -> Sequence[str]:
    """A bridge with its ports and its controller, as arguments of `ovs-vsctl`."""
    name = space.bridge
    words = ["add-br", name, "--", "set", "bridge", name, f"datapath_type={datapath_type()}"]
    # Without rules nothing is forwarded, and with the controller gone its rules stay.
    words += ["fail-mode=secure", f"protocols={PROTOCOL}"]
    words += [f"other-config:datapath-id={datapath(space)}", "other-config:disable-in-band=true"]
    for number, interface in enumerate(plan.switch_ports(space), 1):
        words += ["--", "add-port", name, interface]
        words += ["--", "set", "interface", interface, f"ofport_request={number}"]
        words += ["--", "set", "port", interface, f"qos=@{name}"]
    # Open vSwitch deletes the qdisc of a port without this.
    words += ["--", f"--id=@{name}", "create", "qos", "type=linux-noop"]
    return [*words, "--", "set-controller", name, f"tcp:{OPENFLOW}"]


def datapath(space: Namespace) -> str:
    """A bridge's number, as `ovs-vsctl get bridge BR datapath_id` prints it."""
    return f"{space.number:016x}"
