# SPDX-License-Identifier: Apache-2.0
"""Compares `penstockd limit` with a shaper on an IFB and a policer, on real TCP. Needs root.

A host receives 8 long flows (iperf3) and answers of 10 kB, one after another on a connection of
their own, over a cable that nothing slows, with offloads on. Its ingress is limited to 10, 100 and
500 Mb/s: by Grant, by redirection to an IFB with a token bucket filter of 50 ms, as tc's manual has
it, or by a policer with a burst of 50 ms.

"carried" is the payload that all connections received while answers were requested, whatever
limits them. Of an Ethernet frame of 1,514 bytes 1,448 are payload, so a limit that counts frames
carries at most 95.6 % of its rate. (The kernel's counters of bytes do not serve here: they count
one header where offloads join segments.)

.venv/bin/python evidence/grant/limit.py [--by KIND]... [--rate MBPS]... [--seconds N]
evidence/kernels/run .venv/bin/python evidence/grant/limit.py --by policer   # this kernel has none
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.errors import RunError
from penstock.execution import build
from penstock.execution.lab import system

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import netns

NAMES = {side: f"grant-limit-{side}-{os.getpid()}" for side in ("sender", "receiver")}
SENDER, RECEIVER = "10.79.0.1", "10.79.0.2"
ANSWER = 10_000
PORT = 7
RATES_MBPS = (10, 100, 500)
GRANT, SHAPER, POLICER = KINDS = ("penstockd limit", "IFB and TBF", "policer")
BURST_S = 0.050
"""Of the policer: what TCP needs at these rates."""


def inside(side: str, line: str) -> list[str]:
    """A command in a namespace."""
    return ["nsenter", f"--net=/run/netns/{NAMES[side]}", *line.split()]


def call(side: str, line: str) -> str:
    """Runs it."""
    return system.call(inside(side, line))


@contextlib.contextmanager
def network() -> Iterator[Path]:
    """The two hosts; yields a folder for pins."""
    with tempfile.TemporaryDirectory() as folder:
        system.call(["mount", "-t", "bpf", "penstock", folder])
        try:
            for name in NAMES.values():
                system.call(["ip", "netns", "add", name])
            near, far = NAMES["receiver"], NAMES["sender"]
            ends = f"eth0 netns {near} type veth peer name eth0 netns {far}"
            system.call(f"ip link add {ends}".split())
            for side, address in (("sender", SENDER), ("receiver", RECEIVER)):
                call(side, f"ip address add {address}/24 dev eth0")
                call(side, "ip link set eth0 up")
                call(side, "ip link set lo up")
            yield Path(folder)
        finally:
            for name in NAMES.values():
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
            system.call(["umount", "--lazy", folder])


@contextlib.contextmanager
def limited(kind: str, rate: int, pins: Path) -> Iterator[None]:
    """Limits what comes in while the block runs."""
    if kind == GRANT:
        words = f"{build.find(build.AGENT)} limit eth0 --ingress {rate}mbit --stay --pins {pins}/p"
        agent = subprocess.Popen(inside("receiver", words), stdout=subprocess.PIPE)
        assert agent.stdout
        try:
            if not agent.stdout.readline():
                raise RunError("penstockd limit does not start")
            yield
        finally:
            agent.send_signal(signal.SIGTERM)
            agent.wait()
        return
    call("receiver", "ip link add ifb0 type ifb")
    call("receiver", "ip link set ifb0 up")
    shaped = max(4000, rate * 125)
    call("receiver", f"tc qdisc add dev ifb0 root tbf rate {rate}mbit burst {shaped} latency 50ms")
    policed = int(rate * 1e6 / 8 * BURST_S)
    action = {
        SHAPER: "mirred egress redirect dev ifb0",
        POLICER: f"police rate {rate}mbit burst {policed} conform-exceed drop",
    }[kind]
    call("receiver", "tc qdisc add dev eth0 handle ffff: ingress")
    try:
        matched = f"protocol all u32 match u32 0 0 action {action}"
        call("receiver", f"tc filter add dev eth0 parent ffff: {matched}")
        yield
    finally:
        call("receiver", "tc qdisc del dev eth0 ingress")
        call("receiver", "ip link del ifb0")


@contextlib.contextmanager
def iperf3(side: str, options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs iperf3, at the latest until the block ends."""
    process = subprocess.Popen(inside(side, f"iperf3 {options}"), stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def serve() -> None:
    """Answers each request of a byte."""
    with socket.create_server((SENDER, PORT)) as listening:
        while True:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while connection.recv(1):
                    connection.sendall(bytes(ANSWER))


def ask(seconds: float, results: Any) -> None:
    """Times of answers, one after another."""
    times = []
    with socket.create_connection((SENDER, PORT), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until = time.monotonic() + seconds
        while (begun := time.monotonic()) < until:
            connection.sendall(b"?")
            left = ANSWER
            while left:
                left -= len(connection.recv(left))
            times.append(time.monotonic() - begun)
            time.sleep(0.001)
    results.put(sorted(times))


def entered(side: str, work: Any, *arguments: Any) -> multiprocessing.Process:
    """A process in a namespace."""

    def run() -> None:
        netns.enter(NAMES[side])
        work(*arguments)

    process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    process.start()
    return process


def row(kind: str, rate: int, seconds: float, pins: Path) -> str:
    """Measures one limit."""
    results = multiprocessing.get_context("fork").Queue()
    flows = f"-c {SENDER} -R -C cubic -P 8 -t {seconds + 2:.0f} -O 1 -J"
    with limited(kind, rate, pins), iperf3("receiver", flows) as long:
        time.sleep(1.5)
        before, cpus = dropped(kind), system.cpu_times()
        begun, passed = time.monotonic(), received_bytes()
        asking = entered("receiver", ask, seconds, results)
        times = results.get(timeout=seconds + 60)
        received = received_bytes()
        if gone := passed.keys() - received.keys():
            raise RunError(f"{len(gone)} of the {len(passed)} long connections ended too early")
        payload = len(times) * ANSWER + sum(received[name] - passed[name] for name in passed)
        carried = payload * 8 / (time.monotonic() - begun)
        asking.join()
        busy = 1 - system.cpu_shares(cpus).idle
        drops = dropped(kind) - before
        report = json.loads(long.communicate()[0])
    end = report["end"]
    goodput = end["sum_received"]["bits_per_second"] / 1e6
    retransmits = end["sum_sent"].get("retransmits", 0)
    rates = [stream["receiver"]["bits_per_second"] for stream in end["streams"]]
    jain = sum(rates) ** 2 / (len(rates) * sum(each**2 for each in rates))
    cells = [f"{rate} Mb/s", kind, f"{carried / 1e6:.1f} Mb/s", f"{goodput:.1f} Mb/s"]
    cells += [f"{jain:.3f}", str(drops)]
    cells += [str(retransmits), str(len(times))]
    cells += [f"{1e3 * times[int(part * (len(times) - 1))]:.1f} ms" for part in (0.5, 0.99)]
    return f"| {' | '.join([*cells, f'{busy:.0%}'])} |"


def received_bytes() -> dict[str, int]:
    """Payload that each open connection of the receiver has received so far, by its port."""
    shown = call("receiver", f"ss -tinHO state established dst {SENDER}")
    return {
        line.split()[2]: sum(map(int, re.findall(r"bytes_received:(\d+)", line)))
        for line in shown.splitlines()
    }


def dropped(kind: str) -> int:
    """Packets that the shaper or the policer has dropped."""
    if kind == GRANT:
        return 0
    if kind == SHAPER:
        return int(json.loads(call("receiver", "tc -s -j qdisc show dev ifb0"))[0]["drops"])
    shown = call("receiver", "tc -s filter show dev eth0 parent ffff:")
    return sum(int(number) for number in re.findall(r"\(dropped (\d+),", shown))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each row")
    parser.add_argument("--by", action="append", choices=KINDS, help="default: the first two")
    parser.add_argument("--rate", type=int, action="append", metavar="MBPS", help="of the limit")
    options = parser.parse_args()
    head = "limit | by | carried | goodput of 8 flows | Jain | dropped | retransmits | answers"
    sys.stdout.write(f"| {head} | p50 | p99 | CPUs busy |\n|{'---|' * 11}\n")
    with network() as pins, iperf3("sender", "-s --logfile /dev/null"):
        server = entered("sender", serve)
        time.sleep(0.3)
        try:
            for rate in options.rate or RATES_MBPS:
                for kind in options.by or KINDS[:2]:
                    sys.stdout.write(f"{row(kind, rate, options.seconds, pins)}\n")
                    sys.stdout.flush()
        except RunError as error:
            sys.exit(f"limit: {error}")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
