# SPDX-License-Identifier: Apache-2.0
"""A scenario's fabric as network namespaces: who has which interface, address and queue.

Nothing here touches the machine. Every node of the fabric becomes a namespace; a switch is a
bridge; a cable is a veth pair whose ends are called after the node at the far end; a port is TBF at
the port's rate, over a FIFO of the port's buffer. Where there are more hosts than namespaces can be
had cheaply, neighbours under one switch share a namespace and its cable.

With Open vSwitch all switches are in one namespace, as one daemon runs all bridges. The cables of
ports with a TBF are joined to its ports (`joint`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from penstock.errors import ScenarioError
from penstock.execution.lab import joint

PREFIX = "penstock-"
"""The beginning of every namespace's name; the process that made it follows."""

HOST_NAMESPACES = 64
"""Most namespaces for hosts: a build costs about 10 ms for each, an idle one some memory."""

FASTEST_BPS = 1_000_000_000
"""The fastest shaped port; on two cores the CPU is the limit from 500 Mb/s on."""

_MOST_SHARED = 250  # hosts of a namespace: its subnet is a /24
_MOST_SWITCHES = 150
_ETHERNET = 14  # bytes of a frame that a scenario's sizes, of IP packets, do not count
_MOST_NAMESPACES = 255  # their numbers are a byte of addresses
_MOST_LIMIT = (1 << 32) - 1  # bytes of a FIFO, as the kernel counts them
_LEAST_BURST = 4000  # bytes: two packets, as a switch port has no credit to speak of
_BURST_S = 100e-6  # of credit at high rates, as timers wake up so late

OVS_NAMESPACE = "switches"
"""The node in whose namespace Open vSwitch's bridges are."""

_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": 1,  # no router solicitations between the samples
    "net.ipv6.conf.default.disable_ipv6": 1,
    "net.ipv4.tcp_no_metrics_save": 1,  # a connection learns nothing from the one before
    "net.ipv4.tcp_tw_reuse": 1,  # closed loops open thousands of connections a second
    "net.ipv4.ip_local_port_range": '"10000 65535"',
    "net.core.somaxconn": 4096,
    "net.ipv4.tcp_max_syn_backlog": 4096,
}

# What a host sends is processed on its CPU up to the receiver's socket unless each cable passes it
# on by flow (RPS): one program would keep one CPU busy and leave the others idle. sysfs shows the
# network namespace of whichever process mounts it.
_SPREAD = """\
unshare --mount sh -es <<'END'
mount -t sysfs sysfs /mnt
cpus=$(sed -n 's/^Cpus_allowed:[[:space:]]*//p' /proc/self/status)
for cable in /mnt/class/net/*/queues/rx-*/rps_cpus; do
    [ ! -e "$cable" ] || echo "$cpus" > "$cable"
done
END"""


@dataclass(frozen=True)
class Port:
    """An output port of the fabric, as a queue on an interface."""

    name: str
    """As scenarios call it: `left->right`."""
    node: str
    """The node that sends."""
    interface: str
    """The one with the queue."""
    rate_bps: int
    buffer_bytes: int
    buffer_packets: int | None
    is_protected: bool
    is_measured: bool
    far_node: str = ""
    """The node at the other end of its link."""
    far_interface: str = ""

    @property
    def far_end(self) -> "Port":
        """The same port as it is named where its link ends."""
        return replace(self, node=self.far_node, interface=self.far_interface)

    @property
    def is_shaped(self) -> bool:
        """Whether the lab holds its rate; a faster one goes as fast as the machine does."""
        return self.rate_bps < FASTEST_BPS or self.is_protected

    def queue(self) -> list[str]:
        """Its queue, as lines for `tc -batch`: rate and buffer count IP packets, not frames.

        A measured port that is not shaped has a FIFO, for the counters: a veth has none.
        """
        root = (
            f"qdisc replace dev {self.interface} root handle 1: stab overhead -{_ETHERNET} "
            "linklayer ethernet"
        )
        if not self.is_shaped:
            return [f"{root} {self._fifo}"] if self.is_measured else []
        burst = max(_LEAST_BURST, int(self.rate_bps / 8 * _BURST_S))
        lines = [f"{root} tbf rate {self.rate_bps}bit burst {burst} limit {self.buffer_bytes}"]
        if self.buffer_packets is not None:
            lines.append(f"qdisc add dev {self.interface} parent 1: handle 10: {self._fifo}")
        return lines

    @property
    def _fifo(self) -> str:
        """A FIFO of the port's buffer."""
        if self.buffer_packets is not None:
            return f"pfifo limit {self.buffer_packets}"
        return f"bfifo limit {min(self.buffer_bytes, _MOST_LIMIT)}"


@dataclass
class Namespace:
    """One namespace: a switch, or some hosts under one switch."""

    node: str
    """The switch, or the first of the hosts; its name ends so."""
    number: int
    is_switch: bool
    is_ovs: bool = False
    """Whether it is a bridge of Open vSwitch, among others in one namespace."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Addresses by host."""
    interfaces: dict[str, str] = field(default_factory=dict)
    """By the node at the far end; those of Open vSwitch in the order of their ports' numbers."""

    def join(self, far: str) -> None:
        """Adds the end of a cable to another node."""
        number = len(self.interfaces) + 1
        self.interfaces[far] = f"{self.bridge}-{number}" if self.is_ovs else far

    @property
    def bridge(self) -> str:
        """Of Open vSwitch, the bridge's name."""
        return f"s{self.number}"

    @property
    def mac(self) -> str:
        """Of a host's interface."""
        return f"02:70:73:00:00:{self.number:02x}"

    @property
    def subnet(self) -> str:
        """The addresses of its hosts, without the last number."""
        return f"10.77.{self.number}"


@dataclass(frozen=True)
class Plan:
    """What is to be built for one scenario."""

    namespaces: dict[str, Namespace]
    """By node."""
    cables: list[tuple[str, str]]
    """The nodes that each joins."""
    ports: list[Port]
    rtt_s: float
    """The longest round trip by propagation, which the lab does not add."""
    routes: str = ""
    """TCP options of every route, as `rto_min 10ms initcwnd 2`."""
    sysctls: dict[str, int | str] = field(default_factory=dict)
    """In addition to those that every namespace gets."""

    @cached_property
    def home(self) -> dict[str, Namespace]:
        """The namespace of each host."""
        return {host: space for space in self.namespaces.values() for host in space.hosts}

    @property
    def protected(self) -> list[Port]:
        """The ports with the scheme."""
        return [port for port in self.ports if port.is_protected]

    def name(self, node: str, tag: str) -> str:
        """The namespace's name on the machine, in the run `tag`."""
        return f"{PREFIX}{tag}-{OVS_NAMESPACE if self.namespaces[node].is_ovs else node}"

    @property
    def bridges(self) -> list[Namespace]:
        """The switches that are Open vSwitch's."""
        return [space for space in self.namespaces.values() if space.is_ovs]

    def creation(self, tag: str) -> list[str]:
        """Namespaces and cables, as lines for `ip -batch`."""
        names = dict.fromkeys(self.name(node, tag) for node in self.namespaces)
        lines = [f"netns add {name}" for name in names]
        for near, far in self.cables:
            ends = (self._end(near, far, tag), f"peer {self._end(far, near, tag)}")
            lines.append(f"link add {' type veth '.join(ends)}")
        return lines

    def script(self, node: str) -> str:
        """What a shell inside the namespace of `node` runs to set it up."""
        here = self.namespaces[node]
        sysctls = " ".join(f"{key}={value}" for key, value in {**_SYSCTLS, **self.sysctls}.items())
        # Open vSwitch sends packets as they are, so their checksums have to be complete.
        offloads = f"gso off tso off gro off{' tx off' if self.bridges else ''}"
        queues = [line for port in self.ports if port.node == here.node for line in port.queue()]
        if here.is_ovs:
            shaped = self._shaped(here)
            queues += [line for port in shaped for line in joint.redirections(port.interface)]
            links = self._ports(here)
        else:
            links = self._bridge(here) if here.is_switch else self._host(here)
        return "\n".join(
            (
                f"sysctl -qw {sysctls}",
                *(f"ethtool -K {interface} {offloads}" for interface in here.interfaces.values()),
                "ip -batch - <<'END'",
                "link set lo up",
                *links,
                "END",
                *(() if self.bridges else (_SPREAD,)),
                *(("tc -batch - <<'END'", *queues, "END") if queues else ()),
            )
        )

    def hosts_json(self, tag: str) -> str:
        """The file that the load generator reads: where its hosts and ports are."""
        hosts = {
            host: {"netns": f"/run/netns/{self.name(one.node, tag)}", "address": one.hosts[host]}
            for host, one in self.home.items()
        }
        ports = {
            port.name: {
                "netns": f"/run/netns/{self.name(port.node, tag)}",
                "interface": port.interface,
            }
            for port in self.ports
            if port.is_measured
        }
        return json.dumps({"hosts": hosts, "ports": ports}, indent=1)

    def _end(self, node: str, far: str, tag: str) -> str:
        here = self.namespaces[node]
        address = "" if here.is_switch else f" address {here.mac}"
        return f"name {here.interfaces[far]} netns {self.name(node, tag)}{address}"

    def _shaped(self, here: Namespace) -> list[Port]:
        return [port for port in self.ports if port.node == here.node and port.is_shaped]

    def switch_ports(self, here: Namespace) -> list[str]:
        """The interfaces that are the ports of a bridge of Open vSwitch, in their order."""
        joined = {port.interface for port in self._shaped(here)}
        cables = here.interfaces.values()
        return [joint.plugged(cable) if cable in joined else cable for cable in cables]

    def _ports(self, here: Namespace) -> Iterator[str]:
        for port in self._shaped(here):
            yield from joint.pair(port.interface)
        for interface in dict.fromkeys((*here.interfaces.values(), *self.switch_ports(here))):
            yield f"link set dev {interface} up"

    def _bridge(self, here: Namespace) -> Iterator[str]:
        yield "link add name bridge0 type bridge stp_state 0 mcast_snooping 0"
        for interface in here.interfaces.values():
            yield f"link set dev {interface} master bridge0 up"
        yield "link set dev bridge0 up"

    def _host(self, here: Namespace) -> Iterator[str]:
        (link,) = here.interfaces.values()
        yield f"link set dev {link} up"
        for address in here.hosts.values():
            yield f"address add {address}/32 dev {link}"
        options = f" {self.routes}" if self.routes else ""
        for other in self.namespaces.values():
            if other is not here and not other.is_switch:
                gate = f"{other.subnet}.1"
                yield f"neighbour add {gate} lladdr {other.mac} nud permanent dev {link}"
                yield f"route add {other.subnet}.0/24 via {gate} dev {link} onlink{options}"


def of(
    layout: dict[str, Any],
    routes: str = "",
    sysctls: dict[str, int | str] | None = None,
    *,
    with_ovs: bool = False,
) -> Plan:
    """Plans the fabric that `penstock._native.layout` describes, of bridges or of Open vSwitch.

    Raises:
        ScenarioError: this laboratory cannot hold it; one line.
    """
    switches = set(layout["switches"])
    between = [p for p in layout["ports"] if {p["from"], p["to"]} <= switches]
    if not with_ovs:
        _check_paths(layout, len(between) // 2)
    _check(layout)
    attached = {p["from"]: p["to"] for p in layout["ports"] if p["from"] not in switches}
    spaces = _namespaces(layout, attached, with_ovs=with_ovs)
    if len(spaces) > _MOST_NAMESPACES:
        raise _too_many(layout)
    _check_ends(layout["ends"], spaces)
    lead = {host: space.node for space in spaces.values() for host in space.hosts}
    lead |= {switch: switch for switch in switches}
    cables = [
        (lead[port["from"]], lead[port["to"]])
        for port in layout["ports"][::2]
        if port["from"] in spaces and port["to"] in spaces
    ]
    for near, far in cables:
        spaces[near].join(far)
        spaces[far].join(near)
    ports = [
        _port(port, spaces[lead[port["from"]]], spaces[lead[port["to"]]])
        for port in layout["ports"]
        if port["from"] in spaces and port["to"] in spaces
    ]
    return Plan(spaces, cables, ports, layout["rtt_s"], routes, sysctls or {})


_PORT_KEYS = ("rate_bps", "buffer_bytes", "buffer_packets", "is_protected", "is_measured")


def _port(port: dict[str, Any], here: Namespace, there: Namespace) -> Port:
    """The port of the layout that leads from a namespace to another."""
    interface = here.interfaces[there.node]
    values = {key: port[key] for key in _PORT_KEYS}
    values |= {"far_node": there.node, "far_interface": there.interfaces[here.node]}
    return Port(f"{port['from']}->{port['to']}", here.node, interface, **values)


def _namespaces(
    layout: dict[str, Any], attached: dict[str, str], *, with_ovs: bool
) -> dict[str, Namespace]:
    """A namespace for each switch, and one for each host or for several under one switch."""
    spaces = {
        name: Namespace(name, number, is_switch=True, is_ovs=with_ovs)
        for number, name in enumerate(layout["switches"], 1)
    }
    size = -(-len(layout["hosts"]) // HOST_NAMESPACES)
    last: dict[str, Namespace] = {}
    for host in layout["hosts"]:
        space = last.get(attached[host])
        if space is None or len(space.hosts) == size:
            space = Namespace(host, len(spaces) + 1, is_switch=False)
            spaces[host] = last[attached[host]] = space
        space.hosts[host] = f"{space.subnet}.{len(space.hosts) + 1}"
    return spaces


def _check_ends(ends: dict[str, Any], spaces: dict[str, Namespace]) -> None:
    """Refuses traffic between hosts of one namespace: it would never leave it."""
    for traffic, joined in ends.items():
        for space in spaces.values():
            hosts = {*space.hosts}
            senders, receivers = hosts & {*joined["from"]}, hosts & {*joined["to"]}
            if len(hosts) > 1 and any(s != r for s in senders for r in receivers):
                message = (
                    f"traffic.{traffic}: may join hosts under one switch, which share a namespace "
                    f"when there are more than {HOST_NAMESPACES} hosts; take fewer"
                )
                raise ScenarioError(message)


def _check_paths(layout: dict[str, Any], cables: int) -> None:
    """Refuses several paths: bridges without spanning tree would send packets in circles."""
    if cables >= len(layout["switches"]):
        message = (
            "fabric: has several paths between hosts; the laboratory's switches are bridges, "
            "so give one core, one aggregation switch or one spine, or --on ovs"
        )
        raise ScenarioError(message)


def _too_many(layout: dict[str, Any]) -> ScenarioError:
    hosts, switches = len(layout["hosts"]), len(layout["switches"])
    return ScenarioError(f"fabric: {hosts} hosts and {switches} switches are too many; take fewer")


def _check(layout: dict[str, Any]) -> None:
    """Refuses what cannot be held."""
    hosts, switches = set(layout["hosts"]), len(layout["switches"])
    if switches > _MOST_SWITCHES or len(hosts) > _MOST_SHARED * HOST_NAMESPACES:
        raise _too_many(layout)
    for port in layout["ports"]:
        name = f"{port['from']}->{port['to']}"
        if port["loses"]:
            message = (
                f"fabric: {name} fails at times, shares a buffer, pauses, has an MTU, or packets "
                "choose their paths, which the laboratory's ports cannot; leave out loss, down, "
                "shared_at, pfc_at, mtu and ecmp, or run it in the simulator"
            )
            raise ScenarioError(message)
        if port["is_protected"] and port["rate_bps"] > FASTEST_BPS:
            message = (
                f"fabric: {name} is faster than 1 Gb/s, which the laboratory cannot hold; "
                "make it slower, as --set fabric.bottleneck.rate='200 Mb/s'"
            )
            raise ScenarioError(message)
        if port["is_protected"] and port["to"] in hosts and len(hosts) > HOST_NAMESPACES:
            message = (
                f"fabric: the scheme is on {name}, so each host needs its own cable, which "
                f"the laboratory has for {HOST_NAMESPACES} hosts; take fewer"
            )
            raise ScenarioError(message)
