# SPDX-License-Identifier: Apache-2.0
"""How long it takes from a SYN at Open vSwitch to the clamp in the shim's eBPF map.

A host connects to another one, again and again, across two bridges. One SYN is incast here, as
`alpha2` is small. The time begins before `connect`, and ends when the kernel made the pair's entry
in `sicc_pairs`: the entry has the end of the clamp by the same clock, from which the clamp's length
is subtracted. So nothing polls, and the two processors are left to Open vSwitch, the controller and
penstockd. As root:

    .venv/bin/python evidence/sdn/clamp.py [--syns 1000] [--json FILE]
"""

import argparse
import ipaddress
import json
import random
import socket
import statistics
import time
from pathlib import Path

import bed
import bpf_maps

DURATION_NS = 10_000_000
PAUSE_S = 0.016  # longer than a clamp: each SYN finds none
CASES = {
    "T = 500 us (default)": {"interval": "500 us"},
    "T = 300 us": {"interval": "300 us"},
    "T = 1 ms": {"interval": "1 ms"},
    "at_once": {"interval": "500 us", "at_once": True},
}


def main() -> None:
    """Measures each case."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--syns", type=int, default=1000)
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    results = {}
    for name, settings in CASES.items():
        waits = measured(settings, options.syns)
        results[name] = summary(waits, options.syns)
        print(f"{name}: {results[name]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def summary(waits: list[int], syns: int) -> dict[str, float]:
    """Quantiles in milliseconds, and the SYNs without a clamp."""
    cuts = statistics.quantiles(waits, n=100)
    values = {"p50": cuts[49], "p90": cuts[89], "p99": cuts[98], "max": max(waits)}
    return {
        **{key: round(value / 1e6, 2) for key, value in values.items()},
        "missed": syns - len(waits),
    }


def measured(settings: dict[str, object], syns: int) -> list[int]:
    """Nanoseconds from each SYN to its clamp; those without one are left out."""
    controller = {
        **settings,
        "alpha1": 0.01,
        "alpha2": 0.05,
        "duration": f"{DURATION_NS} ns",
        # The queue is empty: otherwise the clamp would end at the next report.
        "off_needs_both": True,
    }
    overrides = {f"scheme.sicc.controller.{key}": value for key, value in controller.items()}
    with bed.running("lab/sicc", "sicc", overrides) as made:
        ends = made.address("sender1"), made.address("receiver1")
        with made.inside("receiver1"):
            server = socket.create_server((ends[1], 7000), backlog=64)
        server.settimeout(5)
        maps = bpf_maps.named("sicc_pairs")
        pair = b"".join(ipaddress.IPv6Address(f"::ffff:{address}").packed for address in ends)
        with made.inside("sender1"):
            waits = [one for _ in range(syns) if (one := wait(server, ends[1], maps, pair))]
        server.close()
    return waits


def wait(server: socket.socket, address: str, maps: list[bpf_maps.Map], pair: bytes) -> int | None:
    """Nanoseconds from a SYN to the clamp; None if there is none."""
    time.sleep(PAUSE_S + random.uniform(0, 0.002))
    client = socket.socket()
    begun = time.monotonic_ns()
    client.connect((address, 7000))
    accepted, _ = server.accept()
    time.sleep(0.007)
    ends = [
        int.from_bytes(value[:8], "little")
        for one in maps
        for key, value in one.items()
        if key[:32] == pair
    ]
    client.close()
    accepted.close()
    clamped = [end - DURATION_NS for end in ends if end - DURATION_NS > begun]
    return min(clamped) - begun if clamped else None


if __name__ == "__main__":
    main()
