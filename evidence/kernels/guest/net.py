# SPDX-License-Identifier: Apache-2.0
"""A sender, a switch and a receiver: namespaces joined by cables.

Data goes from s0 by the switch's p0 to r0; schemes are put on p0. The sender is not the switch, as
TCP lets only two packets of a flow wait in its own machine's queue. Standard library only: the
emulated guest reads each file slowly, and the package `penstock` has many.
"""

import ctypes
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
SENDER, SWITCH, RECEIVER = "sender", "switch", "receiver"
ADDRESS = "10.9.0.2"
CLONE_NEWNET = 0x40000000
# linux/rtnetlink.h, linux/netlink.h, linux/gen_stats.h
RTM_GETQDISC, NLM_F_REQUEST, NLM_F_DUMP, NLMSG_DONE = 38, 0x1, 0x300, 3
TC_H_ROOT, TCA_STATS2, TCA_STATS_QUEUE, NLA_TYPE = 0xFFFFFFFF, 7, 3, 0x3FFF


class Failure(Exception):
    """A check that did not hold, or a command that failed: one line."""


def command(*words: str, namespace: str | None = None) -> str:
    """Run a command, in a namespace if one is named; its output."""
    # Not `ip netns exec`, which hides the bpffs.
    enter = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
    done = subprocess.run([*enter, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def build() -> None:
    """Make the namespaces and the cables, with packets of at most one MTU."""
    for namespace in (SENDER, SWITCH, RECEIVER):
        command("ip", "netns", "add", namespace)
        command("sysctl", "-qw", "net.ipv4.tcp_ecn=1", namespace=namespace)
    command("sysctl", "-qw", "net.ipv4.ip_forward=1", namespace=SWITCH)
    for (host, end), port, network in (
        ((SENDER, "s0"), "p1", "10.9.1"),
        ((RECEIVER, "r0"), "p0", "10.9.0"),
    ):
        add = f"ip -n {SWITCH} link add name {port} type veth peer name {end} netns {host}"
        command(*add.split())
        for namespace, name, number in ((SWITCH, port, 1), (host, end, 2)):
            # TCP makes GSO packets whatever ethtool shows, unless one segment is the most.
            command("ip", "-n", namespace, "link", "set", name, "gso_max_segs", "1", "up")
            command("ip", "-n", namespace, "addr", "add", f"{network}.{number}/24", "dev", name)
            off = ["tso", "off", "gso", "off", "gro", "off"]
            command("ethtool", "-K", name, *off, namespace=namespace)
        command("ip", "-n", host, "route", "add", "default", "via", f"{network}.1")


def remove() -> None:
    """Remove what `build` made."""
    for namespace in (SENDER, SWITCH, RECEIVER):
        subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def qdisc() -> dict[str, Any]:
    """The root qdisc of p0 with its statistics."""
    shown = json.loads(command("tc", "-s", "-j", "qdisc", "show", "dev", "p0", namespace=SWITCH))
    return next(one for one in shown if one.get("root"))


def enter(namespace: str) -> None:
    """Take this thread into a namespace; its sockets are made there from now on."""
    with Path(f"/run/netns/{namespace}").open("rb") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET):
            raise Failure(f"setns {namespace}: {os.strerror(ctypes.get_errno())}")


def attributes(block: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of a netlink message, by type."""
    while len(block) >= 4:
        length, kind = struct.unpack_from("=HH", block)
        yield kind & NLA_TYPE, block[4:length]
        block = block[(length + 3) & ~3 :]


class Backlog:
    """Bytes in the root qdisc of p0, for a thread in its namespace: cheaper than to start tc."""

    def __init__(self) -> None:
        """Open the socket."""
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.port = socket.if_nametoindex("p0")

    def read(self) -> int:
        """The bytes now."""
        tcmsg = struct.pack("=BxHiIII", 0, 0, self.port, 0, 0, 0)
        header = (16 + len(tcmsg), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
        self.netlink.send(struct.pack("=IHHII", *header) + tcmsg)
        found = 0
        while True:
            block = self.netlink.recv(1 << 16)
            while block:
                length, kind = struct.unpack_from("=IH", block)
                if kind == NLMSG_DONE:
                    return found
                port, _, parent = struct.unpack_from("=iII", block, 16 + 4)
                if (port, parent) == (self.port, TC_H_ROOT):
                    found = self.queued(block[16 + 20 : length])
                block = block[(length + 3) & ~3 :]

    @staticmethod
    def queued(block: bytes) -> int:
        """What the statistics of a qdisc hold."""
        statistics = dict(attributes(dict(attributes(block)).get(TCA_STATS2, b"")))
        queue = statistics.get(TCA_STATS_QUEUE, bytes(8))
        return int(struct.unpack_from("=II", queue)[1])
