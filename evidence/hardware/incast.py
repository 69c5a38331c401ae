# SPDX-License-Identifier: Apache-2.0
"""An incast of real TCP through the Verilated switch of `rtl/`, with and without FairQ.

Four network namespaces are the hosts; their interfaces are TAP devices, between which the model
of the hardware carries frames with a slow clock (3.2 Mb/s a port). The host of port 0 opens all
connections at once and receives a block over each; the three others send. The rounds without and
with FairQ take turns. Needs root and the hardware's tools (`make rtl`).
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.show import style

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SWITCH = ROOT / "target" / "rtl" / "tap_switch"
PORTS, SERVICE = 4, 80
CLOCK_NS = 20000
RATE_BPS = 64 * 1e9 / CLOCK_NS
MTU = 576
"""Small, so that a segment is small against the buffer of 16 kB, as on a fast line."""
REGISTERS = {
    "fairq_buffer_bytes": 16384,
    "fairq_mss_bytes": MTU - 52,
    "fairq_interval_ns": 20_000_000,
    "fairq_longest_rtt_ns": 200_000_000,
    # Without shims: no connection gets a window scale.
    "window_wscale_source": 4,
    "window_idle_ns": 1_000_000_000,
    # The last: it prepares the port with what was written before.
    "port_scheme": 1,
}
SCHEMES = {"drop-tail": (), "fairq": tuple(f"0:{name}={v}" for name, v in REGISTERS.items())}
TIMEOUT_S = 60.0

Round = dict[str, Any]


async def serve(count: int) -> None:
    """A sender: a block of `count` bytes over each connection, then its end."""

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(bytes(count))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(send, "0.0.0.0", SERVICE, backlog=1024)
    print("ready", flush=True)
    await server.serve_forever()


async def fetch(hosts: list[str], flows: int) -> list[float]:
    """The receiver: all connections at once; the time until the last byte of each, s."""

    async def one(host: str) -> float:
        begin = time.monotonic()
        reader, writer = await asyncio.open_connection(host, SERVICE)
        writer.write(b"?")
        await reader.read(-1)
        writer.close()
        return time.monotonic() - begin

    work = (one(hosts[index % len(hosts)]) for index in range(flows))
    return await asyncio.wait_for(asyncio.gather(*work), TIMEOUT_S)


def ip(*words: str) -> None:
    """Runs `ip`."""
    subprocess.run(["ip", *words], check=True)


def inside(space: str, *command: str) -> list[str]:
    """A command in a namespace."""
    return ["ip", "netns", "exec", space, *command]


def own(space: str, *words: str) -> list[str]:
    """This script in a namespace."""
    return inside(space, sys.executable, __file__, *words)


@contextmanager
def hosts(devices: list[str]) -> Iterator[list[str]]:
    """A namespace for each device."""
    with ExitStack() as stack:
        spaces = []
        for number, device in enumerate(devices):
            space = f"{device}-host"
            ip("netns", "add", space)
            stack.callback(ip, "netns", "delete", space)
            ip("link", "set", device, "netns", space)
            for setting in ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.tcp_no_metrics_save=1"):
                subprocess.run(inside(space, "sysctl", "-q", "-w", setting), check=True)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", device, "mtu", str(MTU), "up")
            ip("-n", space, "address", "add", f"10.9.0.{number + 1}/24", "dev", device)
            spaces.append(space)
        yield spaces


@contextmanager
def ready(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A program that has printed "ready"."""
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        if program.stdout.readline() != "ready\n":
            raise SystemExit(f"{command[0]}: did not start")
        yield program
    finally:
        program.terminate()
        program.wait()


def fetched(space: str, flows: int, addresses: list[str]) -> list[float]:
    """The completion times of an incast from a namespace, s."""
    done = subprocess.run(
        own(space, "fetch", str(flows), *addresses), check=True, capture_output=True, text=True
    )
    return list(json.loads(done.stdout))


def counters(spaces: list[str]) -> dict[str, int]:
    """How many segments TCP sent again in these namespaces, and how many timers ran out."""
    total = {"retransmitted": 0, "timeouts": 0}
    for space in spaces:
        done = subprocess.run(
            inside(space, "nstat", "-asz"), check=True, capture_output=True, text=True
        )
        for name, key in (("TcpRetransSegs", "retransmitted"), ("TcpExtTCPTimeouts", "timeouts")):
            found = re.search(rf"^{name}\s+(\d+)", done.stdout, re.M)
            total[key] += int(found[1]) if found else 0
    return total


def play(scheme: str, flows: int, block: int) -> Round:
    """One incast through a new switch."""
    devices = [f"pk{os.getpid() % 100000}p{number}" for number in range(PORTS)]
    with ExitStack() as stack:
        switch = stack.enter_context(
            # Before the hosts, which start and send while its clock runs.
            ready(
                ["chrt", "--rr", "20", str(SWITCH), str(CLOCK_NS), *devices, "--", *SCHEMES[scheme]]
            )
        )
        receiver, *senders = stack.enter_context(hosts(devices))
        for space in senders:
            stack.enter_context(ready(own(space, "serve", str(block))))
        addresses = [f"10.9.0.{number + 2}" for number in range(len(senders))]
        # One after the other: the hosts learn each other's addresses, the switch theirs.
        for address in addresses:
            fetched(receiver, 1, [address])
        before = counters(senders)
        times = fetched(receiver, flows, addresses)
        after = counters(senders)
        report, _ = switch.communicate()
    return {
        "fct_s": sorted(times),
        **{name: after[name] - before[name] for name in after},
        "switch": json.loads(report),
    }


def table(results: dict[str, list[Round]]) -> str:
    """The results as a table in Markdown."""
    rows = [
        "| port 0 | mean FCT | p99 | last | retransmitted | timeouts | ACKs lowered |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for scheme, rounds in results.items():
        times = sorted(time_s for one in rounds for time_s in one["fct_s"])
        ports = [one["switch"]["ports"][0] for one in rounds]
        lowered = sum(port["acks_rewritten"] for port in ports) / sum(
            port["acks"] for port in ports
        )
        cells = [
            f"{statistics.mean(times):.2f} s",
            f"{times[int(len(times) * 0.99)]:.2f} s",
            f"{statistics.mean(one['fct_s'][-1] for one in rounds):.2f} s",
            *(
                f"{statistics.mean(one[what] for one in rounds):.0f}"
                for what in ("retransmitted", "timeouts")
            ),
            f"{lowered:.0%}",
        ]
        rows.append(f"| {scheme} | {' | '.join(cells)} |")
    return "\n".join(rows)


def draw(results: dict[str, list[Round]], path: Path) -> None:
    """The distribution of the flows' completion times."""
    with mpl.rc_context(style.MATPLOTLIB):
        canvas = Figure(figsize=(6, 2.6), layout="constrained")
        axes = canvas.subplots()
        for scheme, rounds in results.items():
            times = sorted(time_s for one in rounds for time_s in one["fct_s"])
            share = [(place + 1) / len(times) for place in range(len(times))]
            axes.step(times, share, where="post", label=scheme)
        axes.set(xlabel="completion time (s)", ylabel="share of flows", ylim=(0, 1), xlim=(0, None))
        axes.legend(loc="lower right")
        canvas.savefig(path, metadata={"Date": None})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Run an incast of real TCP through the Verilated switch.",
        epilog="Example: make rtl-incast",
    )
    commands = parser.add_subparsers(dest="command")
    server = commands.add_parser("serve")
    server.add_argument("bytes", type=int)
    client = commands.add_parser("fetch")
    client.add_argument("flows", type=int)
    client.add_argument("hosts", nargs="+")
    parser.add_argument("--flows", type=int, default=24, help="connections; default: 24")
    parser.add_argument("--block", type=int, default=10000, help="bytes of each; default: 10000")
    parser.add_argument("--rounds", type=int, default=5, help="of each; default: 5")
    parser.add_argument("--record", action="store_true", help="write the results and the picture")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if given.command == "serve":
        asyncio.run(serve(given.bytes))
        return 0
    if given.command == "fetch":
        print(json.dumps(asyncio.run(fetch(given.hosts, given.flows))))
        return 0
    if os.geteuid():
        raise SystemExit("needs root (network namespaces, TAP devices): run it with sudo")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results: dict[str, list[Round]] = {scheme: [] for scheme in SCHEMES}
    for number in range(given.rounds):
        for scheme, rounds in results.items():
            rounds.append(play(scheme, given.flows, given.block))
            last, late = rounds[-1]["fct_s"][-1], rounds[-1]["switch"]["late_s"]
            print(f"round {number + 1}, {scheme}: last {last:.2f} s; the clock was {late} s late")
    print(table(results))
    if given.record:
        (HERE / "incast.json").write_text(json.dumps(results, indent=1) + "\n")
        draw(results, HERE / "incast.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
