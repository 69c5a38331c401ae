# SPDX-License-Identifier: Apache-2.0
"""What an attached scheme changes on a path that nothing slows: RTT and throughput over veth.

Nothing and four schemes take turns in short rounds; every number is the median of the
rounds, ratios are formed within each round. The RTT is that of a TCP ping-pong of 64 bytes, its
median in a round; the throughput that of one connection. Penstock is on the sender's interface:
data leaves by it, ACKs enter by it. Needs root, ethtool and a built penstockd.
"""

import argparse
import json
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import numbers, spread
from veth_path import ADDRESSES, VethPath, laid

from penstock.errors import RunError
from penstock.execution import build

SCHEMES: tuple[str | None, ...] = (None, "observe", "fairq", "hscc", "grant")
ECHO, SINK = 7, 9  # ports
MESSAGE = b"p" * 64
BLOCK = 1 << 20
TIMEOUT_S = 10.0


@dataclass
class Series:
    """A case's rounds."""

    rtt_s: list[float] = field(default_factory=list)
    bytes_per_s: list[float] = field(default_factory=list)
    rewritten: list[float] = field(default_factory=list)
    """Share of the ACKs whose window was lowered, over both measurements."""


Results = dict[tuple[bool, str | None], Series]


def serve(path: VethPath, core: int, is_ready: Any) -> None:
    """The receiver: echoes messages, or discards data and reports how much at the end."""
    os.sched_setaffinity(0, {core})
    with path.entered("receiver"):
        listening = {
            port: socket.create_server((ADDRESSES["receiver"], port)) for port in (ECHO, SINK)
        }
    is_ready.set()
    buffer = bytearray(BLOCK)
    while True:
        for port, work in ((ECHO, echo), (SINK, swallow)):
            connection, _ = listening[port].accept()
            with connection:
                work(connection, buffer)


def echo(connection: socket.socket, buffer: bytearray) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while got := connection.recv_into(buffer):
        connection.sendall(memoryview(buffer)[:got])


def swallow(connection: socket.socket, buffer: bytearray) -> None:
    total = 0
    while got := connection.recv_into(buffer):
        total += got
    connection.sendall(total.to_bytes(8, "big"))


def connected(path: VethPath, port: int) -> socket.socket:
    """A new connection, made through whatever is attached now."""
    with path.entered("sender"):
        return socket.create_connection((ADDRESSES["receiver"], port), timeout=TIMEOUT_S)


def rtt(path: VethPath, seconds: float) -> float:
    """The median round trip of a ping-pong."""
    times = []
    with connected(path, ECHO) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.perf_counter()
        now = begin
        while now < begin + seconds:
            connection.sendall(MESSAGE)
            left = len(MESSAGE)
            while left:
                left -= len(connection.recv(left))
            sent, now = now, time.perf_counter()
            times.append(now - sent)
    return statistics.median(times)


def throughput(path: VethPath, seconds: float) -> float:
    """Bytes per second that arrived over one connection."""
    block = bytes(BLOCK)
    with connected(path, SINK) as connection:
        begin = time.perf_counter()
        while time.perf_counter() < begin + seconds:
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)
        arrived = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
        return arrived / (time.perf_counter() - begin)


def measure(
    path: VethPath, rounds: int, seconds: float, report_round: Callable[[str], None]
) -> Results:
    """All cases in turns; the order turns too, so that no case always follows the same one."""
    results: Results = {(on, scheme): Series() for on in (True, False) for scheme in SCHEMES}
    for done in range(rounds):
        for is_on in (True, False):
            path.offload(is_on)
            shift = done % len(SCHEMES)
            for scheme in SCHEMES[shift:] + SCHEMES[:shift]:
                one = results[is_on, scheme]
                with path.attached(scheme):
                    one.rtt_s.append(rtt(path, seconds))
                    one.bytes_per_s.append(throughput(path, seconds))
                    one.rewritten.append(share(path) if scheme else 0.0)
        report_round(f"veth: round {done + 1} of {rounds}")
    return results


def share(path: VethPath) -> float:
    """The share of ACKs rewritten; none at all would mean that the port saw nothing."""
    counters = path.counters()
    if not counters["acks"]:
        raise RunError("the port saw no ACK: the programs are not on the path")
    return counters["acks_rewritten"] / counters["acks"]


def ratios(results: Results, is_on: bool, scheme: str | None, what: str) -> list[float]:
    """A case by nothing attached, round by round."""
    ours, base = (getattr(results[is_on, s], what) for s in (scheme, None))
    return [a / b for a, b in zip(ours, base, strict=True)]


def table(results: Results) -> str:
    """The results as aligned text."""
    lines = [
        f"{'offloads':<9} {'attached':<9} {'RTT us (min-max)':<20} {'/ nothing':<20} "
        f"{'Gb/s (min-max)':<20} {'/ nothing':<20} ACKs rewritten"
    ]
    for (is_on, scheme), one in results.items():
        cells = [
            spread(one.rtt_s, 1e-6),
            spread(ratios(results, is_on, scheme, "rtt_s")) if scheme else "",
            spread([rate * 8 for rate in one.bytes_per_s], 1e9),
            spread(ratios(results, is_on, scheme, "bytes_per_s")) if scheme else "",
        ]
        rewritten = f"{statistics.median(one.rewritten):.0%}" if scheme else ""
        head = f"{'on' if is_on else 'off':<9} {scheme or 'nothing':<9} "
        lines.append((head + " ".join(f"{cell:<20}" for cell in cells) + f" {rewritten}").rstrip())
    return "\n".join(lines)


def report(results: Results) -> list[dict[str, Any]]:
    """The results for JSON."""
    return [
        {
            "offloads": is_on,
            "attached": scheme,
            "rtt_s": numbers(one.rtt_s),
            "rtt_ratio": numbers(ratios(results, is_on, scheme, "rtt_s")),
            "bytes_per_s": numbers(one.bytes_per_s),
            "throughput_ratio": numbers(ratios(results, is_on, scheme, "bytes_per_s")),
            "rewritten": numbers(one.rewritten),
        }
        for (is_on, scheme), one in results.items()
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure what schemes change of RTT and throughput over an unshaped veth pair.",
        epilog="Example: sudo python evidence/speed/veth.py --rounds 5 --json",
    )
    parser.add_argument("--rounds", type=int, default=12, help="default: 12")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a measurement; default: 0.3")
    parser.add_argument(
        "--rate", help="of the port, as --rate of penstockd attach, for grant; default: its own"
    )
    parser.add_argument("--buffer", default="128 kB", help="likewise; default: 128 kB")
    parser.add_argument("--penstockd", metavar="FILE", help="default: as built or installed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    if given.rounds < 1 or given.seconds <= 0:
        parser.error("--rounds must be at least 1, --seconds positive")
    if os.geteuid():
        parser.error("needs root (network namespaces, eBPF): run it with sudo")
    return given


def main() -> int:
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the path is removed
    cores = sorted(os.sched_getaffinity(0))
    penstockd = given.penstockd or build.find(build.AGENT)
    with laid(penstockd, given.buffer, given.rate) as path:
        is_ready = multiprocessing.Event()
        receiver = multiprocessing.Process(
            target=serve, args=(path, cores[-1], is_ready), daemon=True
        )
        receiver.start()
        is_ready.wait(TIMEOUT_S)
        os.sched_setaffinity(0, {cores[0]})
        results = measure(
            path, given.rounds, given.seconds, lambda line: print(line, file=sys.stderr)
        )
        receiver.terminate()
        receiver.join()
    if given.json:
        print(json.dumps({"rounds": given.rounds, "cases": report(results)}, indent=2))
    else:
        print(table(results))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RunError as error:
        sys.exit(f"veth: {error}")
