# SPDX-License-Identifier: Apache-2.0
"""Whether this machine can hold the laboratory, part by part, and what to do where it cannot."""

import json
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
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
    """What to do where it does not hold."""
    is_needed: bool = True

    def __str__(self) -> str:
        """A line for the terminal."""
        mark = "ok" if self.holds else "MISSING" if self.is_needed else "absent"
        what = self.found if self.holds else f"{self.found}; {self.remedy}"
        return f"{mark:<8} {self.name:<18} {what}"


_TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "ethtool": "ethtool",
}
_PAPERS = {"iperf3": "iperf3", "nginx": "nginx-light", "ab": "apache2-utils"}

# A cable between two namespaces, a bridge and a shaped port, all gone when the shell ends.
_TRIAL = {
    "namespaces": "true",
    "bpffs": "unshare --mount mount -t bpf penstock /mnt",
    "veth": "ip link add name one type veth peer name two",
    "bridge": "ip link add name bridge0 type bridge",
    "TBF": "ip link set dev lo up && tc qdisc add dev lo root tbf rate 1mbit burst 4000 limit 8000",
}
_CONFIG = {
    "namespaces": "CONFIG_NET_NS",
    "bpffs": "CONFIG_BPF_SYSCALL",
    "veth": "CONFIG_VETH",
    "bridge": "CONFIG_BRIDGE",
    "TBF": "CONFIG_NET_SCH_TBF",
}


def findings() -> list[Finding]:
    """Everything that was looked at, in the order in which to mend it."""
    is_root = os.geteuid() == 0
    found = [Finding("root", is_root, "yes" if is_root else "no", "run it with sudo")]
    found += [_program(name, package, is_needed=True) for name, package in _TOOLS.items()]
    if is_root:
        found += [_trial(name, command) for name, command in _TRIAL.items()]
    found.append(_congestion())
    found += [_built(name) for name in (build.TRAFFIC, build.AGENT)]
    if is_root:
        found += _agent()
        found += [_discipline(kind) for kind in sorted({*DISCIPLINES} - {"threshold"})]
    found += [_program(name, package, is_needed=False) for name, package in _PAPERS.items()]
    cores = len(os.sched_getaffinity(0))
    few = "fewer hold less: lower the bottleneck's rate"
    found.append(Finding("cores", cores >= 2, f"{cores}; 2 carry 200 Mb/s", few))
    rest = [] if (is_busy := is_root and system.is_busy()) else system.leftovers()
    told = "a run is under way" if is_busy else f"{len(rest)} namespaces" if rest else "none"
    found.append(
        Finding("left by dead runs", not rest, told, "`penstock lab clean`", is_needed=False)
    )
    return found


def can_run(findings: list[Finding]) -> bool:
    """Whether nothing is missing that the laboratory needs."""
    return all(finding.holds for finding in findings if finding.is_needed)


def as_json(findings: list[Finding]) -> dict[str, object]:
    """The object of `penstock lab check --json`."""
    return {
        "can_run": can_run(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _program(name: str, package: str, *, is_needed: bool) -> Finding:
    path = shutil.which(name)
    remedy = f"install the package {package}"
    return Finding(name, path is not None, path or "not installed", remedy, is_needed)


def _trial(name: str, command: str) -> Finding:
    done = _said(["unshare", "--net", "sh", "-c", command])
    config = f"the kernel needs {_CONFIG[name]}"
    return Finding(name, done is None, done or "works", config)


def _congestion() -> Finding:
    holds = host.is_available("cubic")
    remedy = "the kernel needs CONFIG_TCP_CONG_CUBIC"
    return Finding("CUBIC", holds, "available" if holds else "not available", remedy)


def _built(name: str) -> Finding:
    try:
        return Finding(name, True, build.find(name), "")
    except RunError:
        return Finding(name, False, "not built", "run `make lab`")


def _agent() -> list[Finding]:
    """What penstockd itself finds, where it is there to ask."""
    try:
        program = build.find(build.AGENT)
    except RunError:
        return []
    done = subprocess.run([program, "check", "--json"], capture_output=True, text=True, check=False)
    try:
        return read_agent(json.loads(done.stdout))
    except ValueError:
        said = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return [Finding("eBPF", False, said, "run `penstockd check`")]


def read_agent(found: list[dict[str, Any]]) -> list[Finding]:
    """What of `penstockd check --json` the laboratory needs; it mounts a bpffs of its own."""
    remedy = "run `penstockd check`"
    return [
        Finding(f"eBPF {one['name']}", one["has"], one["found"], remedy, one["required"])
        for one in found
        if one["name"] not in {"bpffs", "privileges"}
    ]


def _discipline(kind: str) -> Finding:
    command = f"ip link set dev lo up && tc qdisc add dev lo root {kind} {_LEAST.get(kind, '')}"
    done = _said(["unshare", "--net", "sh", "-c", command])
    config = f"schemes with it need CONFIG_NET_SCH_{kind.upper()}"
    return Finding(f"queue {kind}", done is None, done or "works", config, is_needed=False)


_LEAST = {"red": "limit 100000 avpkt 1500 burst 20 bandwidth 1mbit"}


def _said(command: list[str]) -> str | None:
    """What a command said when it failed; None where it works."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return ((done.stderr or done.stdout).strip().splitlines() or ["failed"])[0]
