# SPDX-License-Identifier: Apache-2.0
"""Whether this machine can run the laboratory, part by part, with remedies."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.errors import RunError
from penstock.execution import build
from penstock.execution.lab import host, system
from penstock.execution.lab.schemes import DISCIPLINES


@dataclass(frozen=True)
class Finding:
    """One thing that the laboratory needs, or can use."""

    name: str
    holds: bool
    found: str
    remedy: str
    is_needed: bool = True

    def __str__(self) -> str:
        """A line for the terminal."""
        mark = "ok" if self.holds else "MISSING" if self.is_needed else "absent"
        what = self.found if self.holds else f"{self.found}; {self.remedy}"
        return f"{mark:<8} {self.name:<18} {what}"


_TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux"}
_TOOLS |= {"ethtool": "ethtool"}
_OPTIONAL_TOOLS = {"iperf3": "iperf3", "nginx": "nginx-light", "ab": "apache2-utils"}
_OPTIONAL_TOOLS |= {"wrk": "wrk"}

# A shell command in a network namespace of its own, and the kernel option that it needs.
_TRIALS = {
    "namespaces": ("true", "CONFIG_NET_NS"),
    "bpffs": ("unshare --mount mount -t bpf penstock /mnt", "CONFIG_BPF_SYSCALL"),
    "veth": ("ip link add name one type veth peer name two", "CONFIG_VETH"),
    "bridge": ("ip link add name bridge0 type bridge", "CONFIG_BRIDGE"),
    "TBF": (
        "ip link set dev lo up && tc qdisc add dev lo root tbf rate 1mbit burst 4000 limit 8000",
        "CONFIG_NET_SCH_TBF",
    ),
}
# Between a port of Open vSwitch and its queue.
_REDIRECTION = (
    "ip link add name port type veth peer name queue && tc qdisc add dev port clsact && "
    "tc filter add dev port ingress protocol all u32 match u32 0 0 "
    "action mirred egress redirect dev queue"
)
_LEAST = {"red": "limit 100000 avpkt 1500 burst 20 bandwidth 1mbit"}


def findings() -> list[Finding]:
    """All parts, in the order in which to fix them."""
    is_root = os.geteuid() == 0
    return list(_findings(is_root=is_root))


def can_run(findings: list[Finding]) -> bool:
    """Whether nothing is missing that the laboratory needs."""
    return all(finding.holds for finding in findings if finding.is_needed)


def as_json(findings: list[Finding]) -> dict[str, object]:
    """The object of `penstock lab check --json`."""
    return {
        "can_run": can_run(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _findings(*, is_root: bool) -> Iterator[Finding]:
    yield Finding("root", is_root, "yes" if is_root else "no", "run it with sudo")
    for name, package in _TOOLS.items():
        yield _program(name, package, is_needed=True)
    if is_root:
        for name, (command, option) in _TRIALS.items():
            yield _trial(name, command, f"the kernel needs {option}", is_needed=True)
    has_cubic = host.is_available("cubic")
    availability = "available" if has_cubic else "not available"
    yield Finding("CUBIC", has_cubic, availability, "the kernel needs CONFIG_TCP_CONG_CUBIC")
    for name in (build.TRAFFIC, build.AGENT):
        yield _built(name)
    yield from _ovs(is_root=is_root)
    if is_root:
        yield from _agent()
        for kind in sorted({*DISCIPLINES} - {"threshold"}):
            command = f"tc qdisc add dev lo root {kind} {_LEAST.get(kind, '')}"
            remedy = f"schemes with it need CONFIG_NET_SCH_{kind.upper()}"
            command = f"ip link set dev lo up && {command}"
            yield _trial(f"queue {kind}", command, remedy, is_needed=False)
    for name, package in _OPTIONAL_TOOLS.items():
        yield _program(name, package, is_needed=False)
    cores = len(os.sched_getaffinity(0))
    few = "with fewer, lower the bottleneck's rate"
    yield Finding("cores", cores >= 2, f"{cores}; 2 carry 200 Mb/s", few)
    is_busy = is_root and system.is_busy()
    rest = [] if is_busy else system.leftovers()
    state = "a run is under way" if is_busy else f"{len(rest)} namespaces" if rest else "none"
    yield Finding("left by dead runs", not rest, state, "`penstock lab clean`", is_needed=False)


def _ovs(*, is_root: bool) -> Iterator[Finding]:
    """What the laboratory on Open vSwitch needs, and no other run."""
    yield replace(_built(build.CONTROLLER), is_needed=False)
    yield _program("ovs-vswitchd", "openvswitch-switch", is_needed=False)
    if is_root:
        remedy = "--on ovs needs CONFIG_NET_CLS_U32, CONFIG_NET_ACT_MIRRED"
        yield _trial("redirection", _REDIRECTION, remedy, is_needed=False)


def _program(name: str, package: str, *, is_needed: bool) -> Finding:
    path = shutil.which(name)
    remedy = f"install the package {package}"
    return Finding(name, path is not None, path or "not installed", remedy, is_needed)


def _trial(name: str, command: str, remedy: str, *, is_needed: bool) -> Finding:
    """Runs a command in a network namespace, which ends with it."""
    line = ["unshare", "--net", "sh", "-c", command]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    failure = ((done.stderr or done.stdout).strip().splitlines() or ["failed"])[0]
    is_working = done.returncode == 0
    return Finding(name, is_working, "works" if is_working else failure, remedy, is_needed)


def _built(name: str) -> Finding:
    try:
        return Finding(name, True, build.find(name), "")
    except RunError:
        return Finding(name, False, "not built", "run `make lab`")


def _agent() -> list[Finding]:
    """The findings of penstockd, if it is built."""
    try:
        program = build.find(build.AGENT)
    except RunError:
        return []
    done = subprocess.run([program, "check", "--json"], capture_output=True, text=True, check=False)
    try:
        return read_agent(json.loads(done.stdout))
    except ValueError:
        failure = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return [Finding("eBPF", False, failure, "run `penstockd check`")]


def read_agent(report: list[dict[str, Any]]) -> list[Finding]:
    """What the laboratory needs of `penstockd check --json`; it mounts a bpffs of its own."""
    remedy = "run `penstockd check`"
    return [
        Finding(f"eBPF {part['name']}", part["has"], part["found"], remedy, part["required"])
        for part in report
        if part["name"] not in {"bpffs", "privileges"}
    ]
