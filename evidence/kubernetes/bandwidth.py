# SPDX-License-Identifier: Apache-2.0
"""The limit of what a pod receives: penstock-cni next to the standard bandwidth plugin.

Clients in a limited pod request answers from a server in another pod, each on a new connection,
over and over; cnitool adds and deletes the pods. Per case: goodput, drops of the token bucket, what
the server sent again, timeouts, requests without a whole answer, p50 and p99 of the others, CPU of
the whole machine. Needs root; `make bench-cni`.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pods import NODE, PLUGINS, PODS, node, run

from penstock.execution.lab.system import inside

PORT = 7001
BLOCK = b"a" * (1 << 18)
LOADS = {"incast": (126, 11_500, 0), "mixed": (32, 11_500, 8)}
"""Clients at a time, bytes of an answer, long flows next to them."""


async def serve() -> None:
    """Answers each request, which is a length, by so many bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            left = int.from_bytes(await reader.readexactly(8), "big")
            while left > 0 and not writer.is_closing():
                writer.write(BLOCK[:left])
                left -= len(BLOCK)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", PORT, backlog=1024)
    print("up", flush=True)
    async with server:
        await server.serve_forever()


async def request(address: str, size: int) -> float:
    """Seconds of one request on a connection of its own, until the server has closed it."""
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection(address, PORT)
    try:
        writer.write(size.to_bytes(8, "big"))
        await reader.readexactly(size)
        await reader.read()
    finally:
        writer.close()
    return time.monotonic() - begun


async def load(address: str, clients: int, size: int, elephants: int, seconds: float) -> None:
    """The clients' requests until the time is over; prints their times and all bytes."""
    end = time.monotonic() + seconds
    times: list[float] = []
    total = broken = 0

    async def client() -> None:
        nonlocal total, broken
        while time.monotonic() < end:
            try:
                times.append(await request(address, size))
            except (ConnectionResetError, asyncio.IncompleteReadError):
                broken += 1
                continue
            total += size

    async def elephant() -> None:
        nonlocal total
        reader, writer = await asyncio.open_connection(address, PORT)
        writer.write((1 << 34).to_bytes(8, "big"))
        while time.monotonic() < end and (data := await reader.read(1 << 18)):
            total += len(data)
        writer.transport.abort()

    begun = time.monotonic()
    await asyncio.gather(
        *(elephant() for _ in range(elephants)), *(client() for _ in range(clients))
    )
    seconds = time.monotonic() - begun
    print(json.dumps({"times": times, "bytes": total, "broken": broken, "seconds": seconds}))


def counters() -> dict[str, int]:
    """The server's TCP counters."""
    text = run(*inside(PODS[1], "cat", "/proc/net/netstat", "/proc/net/snmp"))
    lines = [line.split() for line in text.splitlines()]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return {
        name: int(value)
        for names, values in pairs
        for name, value in zip(names[1:], values[1:], strict=True)
    }


def drops(interface: str) -> int:
    """What the root qdisc of an interface of the node has dropped."""
    shown = json.loads(
        run(*inside(NODE, "tc", "-s", "-j", "qdisc", "show", "dev", interface, "root"))
    )
    return sum(one.get("drops", 0) for one in shown)


def busy() -> float:
    """CPU seconds that all cores have worked."""
    fields = [
        int(word) for word in Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:]
    ]
    return (sum(fields[:8]) - fields[3] - fields[4]) / 100


def measure(load_name: str, interface: str, address: str, seconds: float) -> dict[str, float]:
    """One load at the pods."""
    this = [sys.executable, __file__, "--inside"]
    words = [str(word) for word in LOADS[load_name]]
    with subprocess.Popen(inside(PODS[1], *this, "serve"), stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        before, dropped, worked = counters(), drops(interface), busy()
        out = json.loads(run(*inside(PODS[0], *this, "load", address, *words, str(seconds))))
        after = counters()
        result = {
            "goodput_mbps": out["bytes"] * 8 / out["seconds"] / 1e6,
            "drops": drops(interface) - dropped,
            "resent": after["RetransSegs"] - before["RetransSegs"],
            "timeouts": after["TCPTimeouts"] - before["TCPTimeouts"],
            "broken": out["broken"],
            "p50_ms": statistics.median(out["times"]) * 1e3,
            "p99_ms": statistics.quantiles(out["times"], n=100)[98] * 1e3,
            "requests": len(out["times"]),
            "cpu_s_per_gb": (busy() - worked) / (out["bytes"] / 1e9),
        }
        server.terminate()
    return result


def main() -> None:
    """Measures all cases in turn, round by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=int, default=200_000_000, help="bits per second")
    parser.add_argument("--burst", type=int, default=256_000, help="bits")
    parser.add_argument("--json", type=Path, help="write all rounds to this file")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        verb, *words = options.inside
        if verb == "serve":
            asyncio.run(serve())
        else:
            address, clients, size, elephants, seconds = words
            asyncio.run(load(address, int(clients), int(size), int(elephants), float(seconds)))
        return
    limits = {"ingressRate": options.rate, "ingressBurst": options.burst}
    rows: list[dict[str, Any]] = []
    with node() as made:
        for number in range(options.rounds):
            for name, plugins in PLUGINS.items():
                with made.pods(plugins, limits) as (interface, address):
                    for load_name in LOADS:
                        if plugins or load_name == "incast":
                            row = measure(load_name, interface, address, options.seconds)
                            rows.append({"round": number, "case": name, "load": load_name, **row})
                print(f"round {number + 1}: {name}", file=sys.stderr)
        left = [path.name for path in made.pins.glob("v*/*/link_*")]
        assert not left, f"left behind: {left}"
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    report(rows)


def report(rows: list[dict[str, Any]]) -> None:
    """The medians of the rounds, and their extremes, as a table."""
    measures = [key for key in rows[0] if key not in {"round", "case", "load"}]
    print("| load | plugin | " + " | ".join(measures) + " |")
    print("|---" * (len(measures) + 2) + "|")
    for load_name in LOADS:
        for case in PLUGINS:
            held = [row for row in rows if (row["load"], row["case"]) == (load_name, case)]
            if held:
                cells = [cell([row[key] for row in held]) for key in measures]
                print(f"| {load_name} | {case} | " + " | ".join(cells) + " |")


def cell(values: list[float]) -> str:
    """A median with its range."""
    if min(values) == max(values):
        return f"{values[0]:,.0f}"
    digits = 1 if statistics.median(values) < 100 else 0
    low, middle, high = (
        f"{v:,.{digits}f}" for v in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


if __name__ == "__main__":
    main()
