# SPDX-License-Identifier: Apache-2.0
"""What a fault of the agent does to answers under way, on real TCP. Needs root.

Two seconds into a load Grant's agent is killed by SIGKILL, is stopped by SIGSTOP, which is how one
hangs, or is replaced by another that attaches over it. Prints the longest of the answers that ended
before the fault, from then until its heartbeat is stale, and later, when windows are open. Ends
with an error where a fault met no agent.

.venv/bin/python evidence/grant/killed.py [--only TEXT] [--stale TIME]
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab_loads import Load

import penstock
from penstock.errors import PenstockError, RunError
from penstock.execution import build
from penstock.execution.lab import programs, schemes
from penstock.units import to_seconds

AFTER_S = 2.0
DURATION = (("duration", "6 s"),)
# As much credit as with 128 kB, but a queue that holds all answers: nothing is lost without Grant.
DEEP = (
    *DURATION,
    ("fabric.bottleneck.buffer", "2 MB"),
    *(
        (f"scheme.{scheme}.window.{key}", share)
        for scheme in ("grant", "grant-receiver")
        for key, share in (("target", "0.0128"), ("long_target", "0.0064"))
    ),
)
LOADS = [
    Load("32 persistent", 32, kind="persistent", settings=DURATION),
    Load("100 persistent", 100, kind="persistent", settings=DURATION),
    Load("100 persistent, 2 MB", 100, kind="persistent", settings=DEEP),
    Load("8 persistent of 256 kB", 8, "256 kB", kind="persistent", settings=DURATION),
    Load("32 persistent, 8 elephants", 32, elephants=8, kind="persistent", settings=DURATION),
    Load("32 new, closed loop", 32, kind="new", settings=DURATION),
]


def children(name: str) -> list[int]:
    """Processes that this one has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, comm, _, parent = stat.read_text().split()[:4]
            if comm == f"({name[:15]})" and int(parent) == os.getpid():
                found.append(int(pid))
    return found


def replace(agents: list[int]) -> None:
    """Another agent attaches the same scheme, then the first is gone."""
    demand(agents, "no agent runs")
    for pid in agents:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        inside = ["nsenter", f"--net=/proc/{pid}/ns/net", *command]
        other = subprocess.Popen(inside, stdout=subprocess.PIPE, start_new_session=True)
        assert other.stdout
        demand(other.stdout.readline(), "the other agent ended before it had attached")
        os.kill(pid, signal.SIGKILL)


def sending(number: int) -> Callable[[list[int]], None]:
    """A fault that is a signal."""

    def send(agents: list[int]) -> None:
        demand(agents, "no agent runs")
        for pid in agents:
            os.kill(pid, number)

    return send


def demand(holds: object, otherwise: str) -> None:
    """Raises a RunError unless something holds."""
    if not holds:
        raise RunError(otherwise)


FAULTS: dict[str, Callable[[list[int]], None]] = {
    "none": lambda _: None,
    "SIGKILL": sending(signal.SIGKILL),
    "SIGSTOP": sending(signal.SIGSTOP),
    "upgrade": replace,
}


@contextlib.contextmanager
def happening(fault: Callable[[list[int]], None]) -> Iterator[None]:
    """Has a fault happen to the agents two seconds into the load of the block.

    Raises:
        RunError: It did not happen while the block ran, or met no agent.
    """
    is_over = threading.Event()

    def act() -> None:
        while not children(build.TRAFFIC):
            demand(not is_over.wait(0.01), "the run ended before its load began")
        demand(not is_over.wait(AFTER_S), "the run ended before the fault")
        fault(children(build.AGENT))

    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(act)
        try:
            yield
        finally:
            is_over.set()
    outcome.result()


def row(load: Load, scheme: str, fault: str, stale: str) -> str:
    """Plays one load with one fault."""
    with happening(FAULTS[fault]):
        run = penstock.run(load.scenario, schemes=[scheme], overrides=load.overrides(), on="lab")
    for pid in children(build.AGENT):  # that replaced the first
        os.kill(pid, signal.SIGKILL)
    (result,) = run.summary["results"]
    answers = run.members("answers")
    until = AFTER_S + to_seconds(stale)
    begun, took = answers["start_s"], answers["fct_s"]
    ended = begun + took
    spans = [ended < AFTER_S, (ended >= AFTER_S) & (ended < until), ended >= until]
    longest = [f"{1e3 * (took.filter(span).max() or 0.0):.0f} ms" for span in spans]
    open_for = (answers.filter(took.is_null())["start_s"] < until - 1).sum()
    kernel = result.get("kernel", {})
    cells = [load.name, scheme, fault, *longest, str(open_for)]
    cells += [str(result["ports"]["left->right"]["drops"]), str(kernel.get("timeouts", ""))]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="loads with this text in their name")
    parser.add_argument("--stale", default="2 s", help="of the heartbeat; the default is attach's")
    options = parser.parse_args()
    # Agents end before their run does, on purpose.
    programs.Process.check_alive = lambda _: None  # type: ignore[method-assign]
    plain = schemes.Scheme.attach
    schemes.Scheme.attach = (  # type: ignore[method-assign]
        lambda self, port, pins: [*plain(self, port, pins), "--stale", options.stale]
    )
    head = "load | scheme | fault | before | until stale | later | never ended | drops | timeouts"
    sys.stdout.write(f"| {head} |\n|{'---|' * 9}\n")
    for load in LOADS:
        if options.only not in load.name:
            continue
        for scheme in ("grant", "grant-receiver"):
            for fault in FAULTS:
                try:
                    line = row(load, scheme, fault, options.stale)
                except PenstockError as error:
                    sys.stderr.write(f"killed: {load.name}, {scheme}, {fault}: {error}\n")
                    return 2
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
