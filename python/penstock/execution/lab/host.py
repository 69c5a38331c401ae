# SPDX-License-Identifier: Apache-2.0
"""A scenario's `[tcp]` as routes and sysctls of a Linux host."""

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import units
from penstock.errors import RunError

_KERNEL = {"newreno": "reno", "cubic": "cubic", "dctcp": "dctcp", "bbr": "bbr"}
_BY_PROFILE = {"linux": "cubic", "linux-3.18": "cubic", "newreno-ns2": "newreno"}
_ROUTE = {"initial_window": "initcwnd {}"}
_SYSCTL = {"ecn": "tcp_ecn", "sack": "tcp_sack", "timestamps": "tcp_timestamps"}
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_RMEM_MAX = Path("/proc/sys/net/core/rmem_max")
_TCP_RTO_MIN_US = 45  # linux/tcp.h, from Linux 6.16 on


@dataclass(frozen=True)
class Tcp:
    """TCP of the lab's hosts."""

    congestion: str
    """As scenarios call it."""
    route: str
    """For `ip route`."""
    sysctls: dict[str, int | str]
    not_set: tuple[str, ...]
    """Keys that routes and sysctls lack."""

    def check(self) -> None:
        """Raises RunError unless this kernel has the congestion control."""
        if not is_available(self.congestion):
            message = (
                f"lab: this kernel has no congestion control {_KERNEL[self.congestion]} "
                f"(see {_AVAILABLE}); leave out the scheme that needs it"
            )
            raise RunError(message)


def is_available(congestion: str) -> bool:
    """Whether the kernel has this congestion control, named as in scenarios."""
    return _KERNEL[congestion] in _AVAILABLE.read_text(encoding="ascii").split()


def _has_rto_option() -> bool:
    """Whether the kernel has the socket option by which penstock-traffic sets `min_rto`."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.IPPROTO_TCP, _TCP_RTO_MIN_US, 200_000)
        return True
    return False


def of(table: dict[str, Any], *, with_tools: bool = False) -> Tcp:
    """The TCP of a resolved scenario's `[tcp]`, with the scheme's own keys merged in.

    penstock-traffic sets the congestion control and `min_rto` of each of its sockets, which routes
    would override. The papers' tools (`with_tools`) set neither.
    """
    profile = table.get("profile", "linux")
    congestion = table.get("congestion", _BY_PROFILE[profile])
    # By the route, as a namespace may not choose one by sysctl.
    route = [f"congctl {_KERNEL[congestion]}"] if with_tools else []
    if "min_rto" in table and (with_tools or not _has_rto_option()):
        # 0 would be no wait at all: routes take whole milliseconds.
        wait_ms = max(1, round(1e3 * units.to_seconds(table["min_rto"])))
        route.append(f"rto_min {wait_ms}ms")
    route += [text.format(table[key]) for key, text in _ROUTE.items() if key in table]
    sysctls: dict[str, int | str] = {
        f"net.ipv4.{name}": int(table[key]) for key, name in _SYSCTL.items() if key in table
    }
    scale = _window_scale(table["window_scale"]) if "window_scale" in table else {}
    known = {"congestion", "profile", "min_rto", *_ROUTE, *_SYSCTL}
    if scale:
        sysctls |= scale
        known.add("window_scale")
    rest = [key for key in table if key not in known]
    if profile != "linux":
        rest.append("profile")
    return Tcp(congestion, " ".join(route), sysctls, tuple(rest))


def _window_scale(scale: int) -> dict[str, int | str]:
    """Sysctls by which a host offers this scale; none where the machine's `rmem_max` forbids it.

    Linux offers the least scale by which a window covers the largest buffer that a socket may get,
    which is the larger of `tcp_rmem` and `rmem_max` (`tcp_select_initial_window`).
    """
    if scale == 0:
        return {"net.ipv4.tcp_window_scaling": 0}
    most = 1 << (scale + 15)
    if most << 1 <= int(_RMEM_MAX.read_text(encoding="ascii")):
        return {}
    return {"net.ipv4.tcp_rmem": f'"4096 131072 {most}"'}
