# SPDX-License-Identifier: Apache-2.0
"""The leaf-spine of ns2_leafspine.tcl in ns-3: python ns3_leafspine.py [SECONDS]."""

import random
import sys

from ns import ns
from ns3_fabric import UNLIMITED_PACKETS, default_route, flow, link, network_route, run, use_newreno

RACKS, SPINES, HOSTS_PER_RACK = 3, 2, 48
BUFFER_PACKETS = 83


def main(duration_s: float) -> None:
    use_newreno()
    draw = random.Random(1)
    leaves, spines = ns.NodeContainer(RACKS), ns.NodeContainer(SPINES)
    hosts = ns.NodeContainer(RACKS * HOSTS_PER_RACK)
    stack = ns.InternetStackHelper()
    for nodes in (leaves, spines, hosts):
        stack.Install(nodes)

    # A leaf's interfaces 1 and 2 lead to the spines, a spine's 1 to 3 to the
    # leaves (0 is the loopback). The hosts of rack r that are reached by way
    # of spine s are in the network 10.r.s.0/24.
    for r in range(RACKS):
        for s in range(SPINES):
            subnet = f"10.100.{r}.{s * 4}"
            link(leaves.Get(r), spines.Get(s), "10Gbps", "5us", BUFFER_PACKETS, subnet)
            for other in range(RACKS):
                if other != r:
                    network_route(leaves.Get(r), f"10.{other}.{s}.0", "255.255.255.0", s + 1)
    for s in range(SPINES):
        for r in range(RACKS):
            network_route(spines.Get(s), f"10.{r}.{s}.0", "255.255.255.0", r + 1)

    addresses = []
    for h in range(RACKS * HOSTS_PER_RACK):
        r, place = divmod(h, HOSTS_PER_RACK)
        subnet = f"10.{r}.{place % SPINES}.{place // SPINES * 4}"
        at_host, _ = link(hosts.Get(h), leaves.Get(r), "1Gbps", "5us", UNLIMITED_PACKETS, subnet)
        addresses.append(at_host.GetAddress(0))
        default_route(hosts.Get(h))

    for h in range(len(addresses)):
        peer = (h + HOSTS_PER_RACK) % len(addresses)
        flow(hosts.Get(h), hosts.Get(peer), addresses[peer], 1000, draw.uniform(0, 1e-3), 0)
    run("leafspine", duration_s)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
