# SPDX-License-Identifier: Apache-2.0
"""The laboratory: a scenario on real TCP, in network namespaces of this machine.

executor    start here: runs tasks one after another, each on a fabric of its own
plan        namespaces, addresses and commands of a scenario's fabric, without touching anything
fabric      builds and removes them; `system` has commands, lock and clean-up
host        a scenario's TCP as routes and sysctls
schemes     a scheme as queue disciplines and options of penstockd; `agent` runs that
ovs         Open vSwitch as the switches; `joint` joins cables with queues to its ports, `sicc` runs
            controller and shims there
generator   penstock-traffic, the scenario's own traffic; `programs` starts and ends programs
tools       iperf3, nginx, and ApacheBench or wrk instead
substrate   what a run reports of itself: TCP, what is not emulated, warnings
check       whether this machine can run it
"""
