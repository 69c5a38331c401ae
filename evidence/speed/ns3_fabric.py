# SPDX-License-Identifier: Apache-2.0
"""What the ns-3 scripts share: NewReno as ns-2 has it, links, a hop counter.

The bindings of ns-3 are generated at run time and have no types, hence `Any`.
"""

import json
import resource
import time
from typing import Any

from ns import ns

# Compiled by the bindings: a Python callback for each packet would be the
# slowest part of the simulation.
ns.cppyy.cppdef("""
namespace penstock_bench {
    uint64_t hops = 0;
    void CountHop(ns3::Ptr<const ns3::Packet>) { ++hops; }
    void CountHops() {
        ns3::Config::ConnectWithoutContextFailSafe(
            "/NodeList/*/DeviceList/*/$ns3::PointToPointNetDevice/PhyTxEnd",
            ns3::MakeCallback(&CountHop));
    }
}
""")

PACKET_BYTES = 1500
PAYLOAD_BYTES = 1460
UNLIMITED_PACKETS = 1_000_000


def use_newreno() -> None:
    """NewReno without SACK, one ACK per packet, minimum RTO 200 ms."""
    tcp = "ns3::TcpSocket::"
    ns.Config.SetDefault(
        "ns3::TcpL4Protocol::SocketType",
        ns.TypeIdValue(ns.TypeId.LookupByName("ns3::TcpNewReno")),
    )
    ns.Config.SetDefault("ns3::TcpSocketBase::Sack", ns.BooleanValue(False))
    ns.Config.SetDefault("ns3::TcpSocketBase::Timestamp", ns.BooleanValue(False))
    ns.Config.SetDefault("ns3::TcpSocketBase::MinRto", ns.TimeValue(ns.MilliSeconds(200)))
    ns.Config.SetDefault(tcp + "SegmentSize", ns.UintegerValue(PAYLOAD_BYTES))
    ns.Config.SetDefault(tcp + "DelAckCount", ns.UintegerValue(1))
    ns.Config.SetDefault(tcp + "InitialCwnd", ns.UintegerValue(2))
    for side in ("SndBufSize", "RcvBufSize"):
        ns.Config.SetDefault(tcp + side, ns.UintegerValue(PACKET_BYTES * 1000))


def link(a: Any, b: Any, rate: str, delay: str, packets: int, subnet: str) -> tuple[Any, Any]:
    """Connects two nodes; returns their interfaces' (container, devices).

    `packets` is the queue of both ports; `subnet` a /30 network address.
    The queueing discipline that ns-3 puts above each device is taken off.
    """
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    helper.SetChannelAttribute("Delay", ns.StringValue(delay))
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue(f"{packets}p"))
    devices = helper.Install(a, b)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address(subnet), ns.Ipv4Mask("255.255.255.252"))
    interfaces = addresses.Assign(devices)
    ns.TrafficControlHelper().Uninstall(devices)
    return interfaces, devices


def default_route(node: Any, interface: int = 1) -> None:
    """All that `node` does not know leaves by `interface`."""
    static_routing(node).SetDefaultRoute(ns.Ipv4Address("0.0.0.0"), interface)


def network_route(node: Any, network: str, mask: str, interface: int) -> None:
    """What is for `network` leaves `node` by `interface`."""
    static_routing(node).AddNetworkRouteTo(ns.Ipv4Address(network), ns.Ipv4Mask(mask), interface)


def static_routing(node: Any) -> Any:
    ipv4 = node.GetObject[ns.Ipv4]()
    return ns.Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)


def flow(source: Any, sink: Any, address: Any, port: int, start_s: float, size: int) -> None:
    """A TCP connection that sends `size` bytes (0: without end) from `start_s`."""
    remote = ns.InetSocketAddress(address, port).ConvertTo()
    sender = ns.BulkSendHelper("ns3::TcpSocketFactory", remote)
    sender.SetAttribute("MaxBytes", ns.UintegerValue(size))
    sender.Install(source).Start(ns.Seconds(start_s))
    local = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
    ns.PacketSinkHelper("ns3::TcpSocketFactory", local).Install(sink)


def run(scenario: str, duration_s: float) -> None:
    """Runs the event loop for `duration_s` and prints its speed as JSON."""
    bench = ns.cppyy.gbl.penstock_bench
    bench.CountHops()
    ns.Simulator.Stop(ns.Seconds(duration_s))
    started = time.perf_counter()
    ns.Simulator.Run()
    wall_s = time.perf_counter() - started
    hops = int(bench.hops)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    report = {
        "simulator": "ns-3",
        "scenario": scenario,
        "duration_s": duration_s,
        "packet_hops": hops,
        "wall_s": wall_s,
        "packet_hops_per_s": hops / wall_s,
        "peak_rss_bytes": peak,
    }
    print(json.dumps(report))
