# SPDX-License-Identifier: Apache-2.0
"""The dumbbell of ns2_dumbbell.tcl in ns-3: python ns3_dumbbell.py [SECONDS]."""

import random
import sys

from ns import ns
from ns3_fabric import PACKET_BYTES, UNLIMITED_PACKETS, default_route, flow, link, run, use_newreno

ELEPHANTS, MICE, MOUSE_BYTES = 20, 60, 10_000
BUFFER_PACKETS = 83
GAP_S = PACKET_BYTES * 8 / 1e9


def main(duration_s: float) -> None:
    use_newreno()
    draw = random.Random(1)
    flows = ELEPHANTS + MICE
    routers, senders, receivers = (
        ns.NodeContainer(2),
        ns.NodeContainer(flows),
        ns.NodeContainer(flows),
    )
    stack = ns.InternetStackHelper()
    for nodes in (routers, senders, receivers):
        stack.Install(nodes)
    left, right = routers.Get(0), routers.Get(1)
    link(left, right, "1Gbps", "25us", BUFFER_PACKETS, "10.0.0.0")
    default_route(left)
    default_route(right)
    addresses = []
    for i in range(flows):
        block = f"{i // 64}.{i % 64 * 4}"
        link(senders.Get(i), left, "1Gbps", "12500ns", UNLIMITED_PACKETS, f"10.1.{block}")
        at_receiver, _ = link(
            receivers.Get(i), right, "1Gbps", "12500ns", UNLIMITED_PACKETS, f"10.2.{block}"
        )
        addresses.append(at_receiver.GetAddress(0))
        default_route(senders.Get(i))
        default_route(receivers.Get(i))

    at = 0.0
    for i in range(ELEPHANTS):
        at += draw.expovariate(1 / GAP_S)
        flow(senders.Get(i), receivers.Get(i), addresses[i], 1000, at, 0)
    for epoch in range(int(duration_s + 0.999)):
        at = float(epoch)
        for i in range(ELEPHANTS, flows):
            at += draw.expovariate(1 / GAP_S)
            flow(senders.Get(i), receivers.Get(i), addresses[i], 1000 + epoch, at, MOUSE_BYTES)
    run("dumbbell", duration_s)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
