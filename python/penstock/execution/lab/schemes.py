# SPDX-License-Identifier: Apache-2.0
"""A scheme on this machine: queue disciplines of the kernel, and options of penstockd.

Window schemes and HCF are penstockd's. RED, CoDel and SFQ are the kernel's own, put under TBF
where the kernel has them. Sizes and times go to `tc` in its units.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock import _native
from penstock.errors import ScenarioError
from penstock.execution.lab.plan import Port
from penstock.units import to_bytes, to_seconds

_PACKET = 1500  # bytes


@dataclass(frozen=True)
class Scheme:
    """The scheme on each protected port."""

    name: str
    agent: tuple[str, ...] = ()
    """Options of `penstockd attach`, but for those of the port; with Open vSwitch the scheme's name
    alone; empty: nothing is attached."""
    queue: str = ""
    """The kernel's queue discipline under TBF; empty: a FIFO."""
    has_rate: bool = False
    """Whether the agent is given the port's rate, as HCF's queue and Grant need it."""
    is_behind: bool = False
    """Whether it is attached where a port's link ends, and not at the port."""
    controller: dict[str, Any] | None = None
    """Every parameter of the network's controller and its shims; None: it only writes routes."""
    window: dict[str, Any] | None = None
    """Every parameter of the window policy at Open vSwitch's ports; None: they have none."""
    is_counted: bool = False
    """Whether the controller counts the flows of those ports."""

    def place(self, port: Port) -> Port:
        """The end of a port's link at which penstockd is attached."""
        return port.far_end if self.is_behind else port

    def attach(self, port: Port, pins: str) -> list[str]:
        """The command that keeps the scheme on a port until it is ended."""
        rate = ("--rate", f"{port.rate_bps} b/s") if self.has_rate else ()
        return [
            *("attach", port.interface, *self.agent, "--pins", pins, "--stay"),
            *(*rate, "--buffer", f"{port.buffer_bytes} B"),
        ]

    def discipline(self, port: Port, table: dict[str, Any]) -> list[str]:
        """The queue discipline, as lines for `tc -batch` after the port's own."""
        if not self.queue:
            return []
        options = DISCIPLINES[self.queue](table, port)
        kind = "red" if self.queue == "threshold" else self.queue
        replaced = f"qdisc replace dev {port.interface} parent 1: handle 10:"
        return [f"{replaced} {kind} {' '.join(map(str, options))}"]

    def marks(self, table: dict[str, Any]) -> bool:
        """Whether a queue discipline of the kernel marks packets (ECN)."""
        return self.queue == "threshold" or (bool(self.queue) and table.get("ecn", False))


def of(name: str, table: dict[str, Any], rtt_s: float, *, with_ovs: bool = False) -> Scheme:
    """The scheme that a resolved scenario's table `[scheme.NAME]` describes, at an RTT.

    With Open vSwitch there is a controller, which may count the flows of a switch's ports.

    Raises:
        ScenarioError: the laboratory cannot hold it; one line that names what is missing.
    """
    window, queue = table["window"], table["queue"]
    has_controller = table["controller"]["kind"] != "none"
    if has_controller and not with_ovs:
        message = f"{name}: needs a controller, which the laboratory has with --on ovs only"
        raise ScenarioError(message)
    if "sampled" in table:
        message = f"{name}: sampled needs shims that hold windows, which the laboratory has not"
        raise ScenarioError(message)
    parts = {}
    if queue["kind"] != "drop-tail":
        parts["queue"] = queue
    if window["kind"] != "none":
        parts["window"] = window
    kinds = [part["kind"] for part in parts.values()]
    is_counted = table["controller"]["kind"] == "flow-counts"
    if has_controller and not is_counted and not kinds:
        return Scheme(name, controller=_values(table["controller"], rtt_s))
    agent = "-".join(kinds)
    if window.get("variant") == "paper" and f"{agent}-paper" in _native.deployable():
        agent += "-paper"
    if with_ovs and not {*kinds} <= {*DISCIPLINES}:
        # What has sides sends ACKs of its own, for which Open vSwitch has no place.
        is_at_port = [*parts] == ["window"] and "side" not in window
        if not is_at_port or has_controller != is_counted or agent not in _native.deployable():
            message = f"{name}: {' with '.join(kinds)} is not in the laboratory on Open vSwitch"
            raise ScenarioError(message)
        values = _values(window, rtt_s)
        return Scheme(name, (agent,), window=values, is_counted=is_counted)
    match kinds:
        case []:
            return Scheme(name)
        case [kind] if kind in DISCIPLINES:
            return Scheme(name, queue=kind)
        case ["threshold", kind] if "side" not in window:
            mark = f"mark={_text(_mark(queue))}"
            return Scheme(name, (*_agent(kind, {"window": window}, rtt_s), "--set", mark))
        case _ if agent in _native.deployable():
            is_behind = window.get("side", "port") != "port"
            # A port has one rate: its own, or that which Grant is to believe.
            has_rate = ("side" in window and "rate" not in window) or "queue" in parts
            words = _agent(agent, parts, rtt_s)
            return Scheme(name, words, has_rate=has_rate, is_behind=is_behind)
    message = f"{name}: queue {queue['kind']} with window {window['kind']} is not in the laboratory"
    raise ScenarioError(message)


def _agent(scheme: str, parts: dict[str, dict[str, Any]], rtt_s: float) -> tuple[str, ...]:
    """Options with every parameter, so that the deployed scheme is the simulated one."""
    words = ["--scheme", scheme]
    for part, table in parts.items():
        for key, value in _values(table, rtt_s).items():
            words += ["--set", f"{part}.{key}={_text(value)}"]
    return tuple(words)


def _values(table: dict[str, Any], rtt_s: float) -> dict[str, Any]:
    """Every parameter of a part."""
    values = {key: value for key, value in table.items() if key not in {"kind", "variant"}}
    for key, round_trips in _in_round_trips(table["kind"]).items():
        values.setdefault(key, f"{round_trips * rtt_s * 1e9:.0f} ns")
    return values


@cache
def _in_round_trips(scheme: str) -> dict[str, int]:
    """The parameters whose default follows from the network's round trip, and by how many."""
    params: list[dict[str, Any]] = [
        param
        for definition in json.loads(_native.definitions())["schemes"]
        if definition["name"] == scheme
        for param in definition["params"]
    ]
    return {param["key"]: param["default_rtts"] for param in params if param["default_rtts"]}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _red(table: dict[str, Any], port: Port) -> list[object]:
    quarter = port.buffer_bytes // 4
    least = _bytes(table["min"]) if "min" in table else quarter
    most = _bytes(table["max"]) if "max" in table else 3 * least
    most = min(most, port.buffer_bytes - 1)
    burst = (2 * least + most) // (3 * _PACKET) + 1
    options = ["limit", port.buffer_bytes, "min", least, "max", most, "avpkt", _PACKET]
    options += ["burst", burst, "bandwidth", f"{port.rate_bps}bit"]
    options += ["probability", table["probability"]]
    return options + (["adaptive"] if table["adaptive"] else []) + _ecn(table)


def _threshold(table: dict[str, Any], port: Port) -> list[object]:
    """RED that marks every packet above K, as the kernel's DCTCP is run."""
    level = _mark(table)
    mark = _bytes(level) if isinstance(level, str) else int(level * port.buffer_bytes)
    options = ["limit", port.buffer_bytes, "min", mark, "max", mark + 1, "avpkt", _PACKET]
    options += ["burst", mark // _PACKET + 1, "bandwidth", f"{port.rate_bps}bit"]
    return [*options, "probability", 1, "ecn"]


def _mark(table: dict[str, Any]) -> str | float:
    """The queue that is marked, or that share of the buffer."""
    # SICC §5: 15 packets up to 1 Gb/s, the fastest that the laboratory holds.
    level: str | float = table.get("mark_at", "15 packets")
    return level


def _codel(table: dict[str, Any], port: Port) -> list[object]:
    times = [f"{1e6 * to_seconds(table[key]):.0f}us" for key in ("target", "interval")]
    return ["limit", _packets(port), "target", times[0], "interval", times[1], *_ecn(table)]


def _sfq(table: dict[str, Any], port: Port) -> list[object]:
    options = ["limit", _packets(port), "quantum", _bytes(table["quantum"])]
    options += ["divisor", 1 << (table["bins"] - 1).bit_length()]
    if "perturb" not in table:
        return options
    seconds = to_seconds(table["perturb"])
    if seconds % 1:
        message = f"sfq: perturb is {table['perturb']}; allowed in the laboratory: whole seconds"
        raise ScenarioError(message)
    return [*options, "perturb", int(seconds)]


DISCIPLINES: dict[str, Callable[[dict[str, Any], Port], list[object]]] = {
    "red": _red,
    "threshold": _threshold,
    "codel": _codel,
    "sfq": _sfq,
}
"""The kernel's own queue disciplines that schemes can have, by the kind of `queue`."""


def _ecn(table: dict[str, Any]) -> list[object]:
    return ["ecn"] if table["ecn"] else []


def _packets(port: Port) -> int:
    return port.buffer_packets or max(port.buffer_bytes // _PACKET, 1)


def _bytes(size: str) -> int:
    number, unit = size.split()
    return int(number) * _PACKET if unit == "packets" else to_bytes(size)
