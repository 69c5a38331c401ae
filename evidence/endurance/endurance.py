# SPDX-License-Identifier: Apache-2.0
"""A long run of the agent: connections over many veths while it is killed, upgraded and flooded.

Charts what it needs, and ends with an error if anything is lost or left, the agent ends by itself,
or what it needs grows or is not known. In the last part of the run it is not restarted, as only a
process that lasts shows growth. Ctrl-C ends the run early, in order.

    endurance.py --for "24 h" --ports 500 --connections 1e7
"""

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import page
import polars as pl
from built_host import HOST, PEERS, Host, host
from traffic import COUNTS

from penstock.execution.lab.system import inside, need_root
from penstock.units import to_seconds

PORT = 7
TRAFFIC = str(Path(__file__).with_name("traffic.py"))
PAUSE_S = (2, 8)
"""Time between two faults."""
DRAIN_S = 30
"""After the last connection, until no entry may be left."""
LASTING = 0.3
"""Share of the run, its last, in which the agent is not restarted."""
SAMPLES = 6
"""Of one process: fewer do not show whether it grows."""
MISSING = {"rss_kb": 0.1, "files": 0.1, "flows_tracked": 0.5}
"""The largest share of the samples that may lack a number: metrics, while the agent starts."""


@contextlib.contextmanager
def traffic(made: Host) -> Iterator[dict[str, int]]:
    """Servers and clients; their counts, kept up to date, and `ended` where the clients have."""
    counts = dict.fromkeys(COUNTS, 0)
    with contextlib.ExitStack() as stack:

        def start(namespace: str, *words: str) -> subprocess.Popen[str]:
            command = inside(namespace, sys.executable, TRAFFIC, *words)
            process = stack.enter_context(
                # Not in this session: Ctrl-C is for this program alone.
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
            )
            stack.callback(process.kill)
            return process

        start(PEERS, "serve", str(PORT))
        time.sleep(1)
        client = start(HOST, "fetch", str(PORT), *made.addresses)

        def follow() -> None:
            for line in client.stdout or ():
                counts.update(json.loads(line))
            counts["ended"] = 1

        threading.Thread(target=follow, daemon=True).start()
        yield counts


def run(
    seconds: float, most: float, ports: int, every: float, other: str | None, out: Path
) -> list[str]:
    """Runs for a time or `most` connections, writes samples and the page; returns what is wrong."""
    samples: list[dict[str, float | None]] = []
    happened: dict[str, int] = {}
    out.mkdir(parents=True, exist_ok=True)
    with host(ports) as made:
        made.other = other
        made.configure('scheme = "fairq"')
        made.start()
        try:
            _until(lambda: (made.sample()["ports"] or 0) >= ports, 60 + ports / 4)
            with traffic(made) as counts:
                begun, due, sampled = time.monotonic(), 0.0, 0.0
                is_asked = _until_asked()
                while (now := time.monotonic() - begun) < seconds:
                    if is_asked() or counts["connections"] >= most:
                        break
                    made.look()
                    if now >= sampled:
                        samples.append({"time_s": now, **counts, **made.sample()})
                        pl.DataFrame(samples, infer_schema_length=None).write_csv(
                            out / "samples.csv"
                        )
                        sampled = now + every
                    if now >= due and seconds - now > 10:
                        is_early = max(now / seconds, counts["connections"] / most) < 1 - LASTING
                        fault = made.generator.choice(made.faults(restarts=is_early))
                        fault()
                        happened[fault.__name__] = happened.get(fault.__name__, 0) + 1
                        due = time.monotonic() - begun + made.generator.uniform(*PAUSE_S)
                    time.sleep(0.2)
                last = dict(counts)
            drained = time.monotonic() + DRAIN_S
            while made.sample()["flows_tracked"] != 0 and time.monotonic() < drained:
                time.sleep(1)
            left = made.sample()
            samples.append({"time_s": time.monotonic() - begun, **last, **left})
            made.end()
            made.penstockd("detach", "--all")
            pinned = [str(path.relative_to(made.folder)) for path in made.pins.rglob("*")]
        finally:
            (out / "penstockd.log").write_bytes((made.folder / "penstockd.log").read_bytes())
            if made.daemon and made.daemon.poll() is None:
                made.daemon.kill()
    table = pl.DataFrame(samples, infer_schema_length=None)
    table.write_csv(out / "samples.csv")
    wrong = _wrong(table, last, left, pinned, made.deaths)
    page.write(table, happened, last, wrong, out)
    for line in page.sentences(table, happened, last):
        print(line)
    return wrong


def _wrong(
    table: pl.DataFrame,
    counts: dict[str, int],
    left: dict[str, float | None],
    pinned: list[str],
    deaths: list[str],
) -> list[str]:
    wrong = []
    if deaths:
        wrong.append(f"unexpected ends of the agent: {len(deaths)}, the first {deaths[0]}")
    quarter = max(1, table.height // 4)
    if "ended" in counts:
        wrong.append("the clients ended before the run")
    if counts["connections"] <= table["connections"][-quarter - 1]:
        wrong.append("no connection was done in the last quarter of the run")
    if counts["failed"] or counts["kept_lost"]:
        wrong.append(
            f"{counts['failed']} connections failed, {counts['kept_lost']} lasting ones broke"
        )
    if entries := left["flows_tracked"]:
        wrong.append(f"{entries:.0f} entries of flows stay after all have ended")
    if pinned:
        wrong.append(f"{len(pinned)} pins stay after the ports are detached: {pinned[:3]}")
    for name, share in MISSING.items():
        if left[name] is None:
            wrong.append(f"{name} is not known at the end")
        if (count := table[name].null_count()) > share * table.height:
            wrong.append(f"{count} of {table.height} samples lack {name}")
    return wrong + _grown(table)


def _grown(table: pl.DataFrame) -> list[str]:
    """What grew in the process of the agent that was sampled most often.

    Its first third is left out: all that starts grows.
    """
    most = table["process"].value_counts(sort=True)["process"][0]
    process = table.filter(pl.col("process") == most)
    if process.height < SAMPLES:
        return [f"no process of the agent was seen in {SAMPLES} samples, so growth is not known"]
    third = process.height // 3
    wrong = []
    for name, least in (("rss_kb", 1024), ("files", 4)):
        early, late = (part[name].median() for part in (process[third:-third], process[-third:]))
        if early is None or late is None:
            wrong.append(f"it is not known whether {name} grows")
        elif late > 1.2 * early + least:
            wrong.append(f"{name} of one process grew from {early:.0f} to {late:.0f}")
    return wrong


def _until_asked() -> Callable[[], bool]:
    """Whether the run was asked to end by a signal, in order; a second one ends it at once."""
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, signal.default_int_handler)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    return lambda: bool(asked)


def _until(condition, seconds: float) -> None:  # noqa: ANN001 (a function)
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            message = f"the ports were not attached within {seconds:.0f} s"
            raise TimeoutError(message)
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--for", dest="seconds", type=to_seconds, default="1 min", metavar="TIME")
    parser.add_argument(
        "--connections", type=float, default=float("inf"), help="end when so many are done: 1e7"
    )
    parser.add_argument("--ports", type=int, default=50, help="veths of the host")
    parser.add_argument(
        "--every", type=to_seconds, help="between samples; default: a 60th of --for, at most 5 s"
    )
    parser.add_argument("--other", help="another version of penstockd for half of the upgrades")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/endurance"), help="folder of the page"
    )
    options = parser.parse_args()
    need_root()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it leaves nothing then, too
    wrong = run(
        options.seconds,
        options.connections,
        options.ports,
        options.every or min(5.0, options.seconds / 60),
        options.other,
        options.out,
    )
    print(f"page: {options.out / 'endurance.html'}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
