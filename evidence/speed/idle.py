# SPDX-License-Identifier: Apache-2.0
"""What the agent of an idle port costs: its share of a processor, and its wake-ups.

Needs root and a built penstockd.

sudo .venv/bin/python evidence/speed/idle.py [--seconds N]
"""

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path

from veth_path import laid

from penstock.errors import PenstockError
from penstock.execution import build

SCHEMES = ("observe", "fairq", "hscc", "grant")
SETTLED_S = 1.0


def main() -> int:
    """Prints a row for each scheme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each scheme")
    seconds = parser.parse_args().seconds
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the path is removed
    print("| attached | share of a processor | wake-ups per second |\n|---|---|---|")
    try:
        with laid(str(build.find(build.AGENT)), "1 MB", "1 Gb/s") as path:
            for scheme in SCHEMES:
                with path.attached(scheme) as agent:
                    time.sleep(SETTLED_S)
                    begun, before = time.monotonic(), scheduled(agent)
                    time.sleep(seconds)
                    cpu_s, turns = (
                        (now - was) / (time.monotonic() - begun)
                        for now, was in zip(scheduled(agent), before, strict=True)
                    )
                print(f"| {scheme} | {cpu_s:.2%} | {turns:.0f} |", flush=True)
    except PenstockError as error:
        print(f"idle: {error}", file=sys.stderr)
        return 2
    return 0


def scheduled(process: int) -> tuple[float, int]:
    """Seconds on a processor of all threads, and how often they were put on one."""
    seconds, turns = 0.0, 0
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            ran_ns, _, count = map(int, path.read_text("utf-8").split())
            seconds, turns = seconds + ran_ns / 1e9, turns + count
    return seconds, turns


if __name__ == "__main__":
    sys.exit(main())
