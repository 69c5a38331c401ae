# SPDX-License-Identifier: Apache-2.0
"""A fabric as people see it: rows of switches by their distance from the nearest host.

Hosts with equal links at one switch count as one. `topology_drawing` draws it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import scenario, units
from penstock.errors import ScenarioError

MOST_HOSTS = 20_000
"""Of larger fabrics there is no picture: to lay one out takes seconds."""
_SHOWN = 4  # names of ports, in a line


@dataclass(frozen=True)
class Cable:
    """A cable between two switches."""

    ends: tuple[str, str]
    text: str
    """Its rate and delay."""


@dataclass(frozen=True)
class Fabric:
    """Switches, hosts and cables."""

    rows: list[list[str]]
    """Switches by their distance from the nearest host, the nearest first."""
    hosts: Mapping[str, Mapping[str, list[str]]]
    """Of each switch its hosts, by their links' rate and delay."""
    cables: list[Cable]
    """Those between switches."""
    measured: list[str]
    """Ports whose queue is measured, as `left->right`."""

    @property
    def size(self) -> str:
        """`144 hosts, 13 switches`."""
        hosts = sum(len(names) for groups in self.hosts.values() for names in groups.values())
        return f"{_count(hosts, 'host')}, {_count(sum(map(len, self.rows)), 'switch')}"

    def between(self, upper: int, lower: int) -> list[Cable]:
        """The cables between two rows, or within one."""
        ends = {name: number for number, row in enumerate(self.rows) for name in row}
        wanted = {(upper, lower), (lower, upper)}
        return [each for each in self.cables if (ends[each.ends[0]], ends[each.ends[1]]) in wanted]


def fabric(text: str, origin: str = "scenario.toml") -> Fabric | None:
    """The fabric of a resolved scenario; None if it is too large, or a file is gone."""
    described = scenario.parsed(text).get("fabric")
    if described is None or _hosts(described) > MOST_HOSTS:
        return None
    try:
        return _of_layout(scenario.layout(text, origin))
    except ScenarioError:
        return None


def _hosts(fabric: Mapping[str, Any]) -> int:
    match fabric["kind"]:
        case "dumbbell":
            return int(fabric["senders"] + fabric["receivers"])
        case "tree":
            return int(fabric["racks"] * fabric["hosts_per_rack"])
        case "leaf-spine":
            return int(fabric["leaves"] * fabric["hosts_per_leaf"])
        case "fat-tree":
            return int(fabric["k"] ** 3 // 4)
        case _:
            return len(fabric["edges"]) * (1 + int(fabric.get("hosts_per_switch", 0)))


def _of_layout(layout: Mapping[str, Any]) -> Fabric:
    switches = set(layout["switches"])
    neighbours: dict[str, list[str]] = defaultdict(list)
    hosts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    cables = []
    ports = layout["ports"]
    for there, back in zip(ports[::2], ports[1::2], strict=True):  # the two of a cable
        one, other, text = there["from"], there["to"], _of_cable(there, back)
        if {one, other} <= switches:
            neighbours[one].append(other)
            neighbours[other].append(one)
            cables.append(Cable((one, other), text))
        else:
            switch, host = (one, other) if one in switches else (other, one)
            hosts[switch][text].append(host)
    measured = [f"{port['from']}->{port['to']}" for port in ports if port["is_measured"]]
    return Fabric(_rows(layout["switches"], neighbours, hosts), hosts, cables, measured)


def _rows(
    switches: Sequence[str], neighbours: Mapping[str, Sequence[str]], hosts: Iterable[str]
) -> list[list[str]]:
    distance = dict.fromkeys(hosts, 0)
    reached = list(distance)
    for switch in reached:  # grows meanwhile
        for other in neighbours[switch]:
            if other not in distance:
                distance[other] = distance[switch] + 1
                reached.append(other)
    rows: list[list[str]] = [[] for _ in range(1 + max(distance.values(), default=0))]
    for switch in switches:
        rows[distance.get(switch, 0)].append(switch)
    return rows


def _of_cable(there: Mapping[str, Any], back: Mapping[str, Any]) -> str:
    """`10 Gb/s, 2 µs`; where the directions differ, both."""
    rates = dict.fromkeys(_plain(units.rate(port["rate_bps"])) for port in (there, back))
    delays = dict.fromkeys(_plain(units.seconds(port["delay_s"])) for port in (there, back))
    return f"{' and '.join(rates)}, {' and '.join(delays)}"


def _plain(text: str) -> str:
    """Without zeros that mean nothing: `10.0 Gb/s` is `10 Gb/s`."""
    number, _, unit = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def counted(texts: Iterable[str]) -> list[str]:
    """As 36 times 40 Gb/s: how many links there are of each kind, of the two most common."""
    counts = Counter(texts).most_common()
    shown = [f"{units.count(count)} × {text}" if count > 1 else text for text, count in counts[:2]]
    return [*shown, *(["and others"] if len(counts) > len(shown) else [])]


def span(names: Sequence[str]) -> str:
    """`host1 to host16`."""
    return " and ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"


def listed(names: Sequence[str]) -> str:
    """Names, the first few of many."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {units.count(more)} more" if more > 0 else "")


def _count(number: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{units.count(number)} {what}{'' if number == 1 else plural}"


def lines(fabric: Fabric) -> Iterator[str]:
    """The fabric for a terminal: rows of switches from the top, and the cables below each."""
    yield fabric.size
    for number in reversed(range(len(fabric.rows))):
        row = fabric.rows[number]
        yield f"  {span(row)}" + (f" ({_count(len(row), 'switch')})" if len(row) > 2 else "")
        if level := fabric.between(number, number):
            yield f"    among them: {'; '.join(counted(cable.text for cable in level))}"
        if number and (below := fabric.between(number, number - 1)):
            yield f"    | {'; '.join(counted(cable.text for cable in below))}"
    groups: dict[tuple[str, int], list[str]] = defaultdict(list)
    for switch, by_link in fabric.hosts.items():
        for text, names in by_link.items():
            groups[text, len(names)].append(switch)
    for (text, size), places in groups.items():
        where = places[0] if len(places) == 1 else f"each of {span(places)}"
        yield f"    | {text}"
        yield f"  {_count(size, 'host')} at {where}"
    if fabric.measured:
        yield f"The queue is measured at {listed(fabric.measured)}."
