# SPDX-License-Identifier: Apache-2.0
"""The papers' own tools in place of penstock-traffic: iperf3, and nginx with ApacheBench.

`bulk` is iperf3, one server and one client for each flow. A closed-loop `incast` by pull is nginx
at the hosts that send and `ab` at those that ask, one `ab` for each pair of hosts with as many
connections as the pair has flows. They tell less than penstock-traffic: `ab` gives completion
times in whole milliseconds and starts in whole seconds, and none of them tells of timeouts.
"""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import RunError, ScenarioError
from penstock.execution.lab import programs, system
from penstock.execution.lab.generator import Played, Told
from penstock.execution.lab.plan import Plan
from penstock.execution.lab.records import Flow, summed
from penstock.execution.lab.sampler import sampled
from penstock.units import to_bytes, to_seconds

_SETTLE_S = 0.3  # for servers to listen
_PATIENCE_S = 10.0  # beyond the scenario's duration, for the tools to give up and report
_TICK_S = 0.1
_IPERF_PORT, _HTTP_PORT = 5201, 8080
_MOST_REQUESTS = 200_000  # `ab` allocates them all at once

_NGINX = """daemon off; master_process off; pid {folder}/{host}.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 1000000000; root {folder}/www;
  server {{ listen {address}:{port} backlog=4096; }}
}}
"""


@dataclass(frozen=True)
class Client:
    """A program that asks, and how its report becomes flows."""

    host: str
    command: tuple[str, ...]
    start_s: float
    report: Path
    """What it writes: its output where `is_output`, else a file that the command names."""
    read: Callable[[str], list[Flow]]
    is_output: bool = True


@dataclass
class _Traffic:
    """One traffic and where it is played."""

    name: str
    table: dict[str, Any]
    pairs: list[tuple[str, str]]
    plan: Plan
    folder: Path
    duration_s: float
    servers: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)

    def address(self, host: str) -> str:
        return self.plan.home[host].hosts[host]


def play(
    document: dict[str, Any], ends: dict[str, Any], plan: Plan, tag: str, told: Told
) -> Played:
    """Plays a resolved scenario's traffic on the fabric that stands.

    Raises:
        ScenarioError: it has traffic that these tools cannot play.
        RunError: a tool is missing, failed, or did not end.
    """
    folder = system.STATE / "tools"
    (folder / "www").mkdir(parents=True)
    folder.chmod(0o755)
    duration = to_seconds(document["duration"])
    with contextlib.ExitStack() as stack:
        clients = []
        for place, (name, table) in enumerate(document["traffic"].items()):
            begun = _Traffic(name, table, _pairs(table, ends.get(name)), plan, folder, duration)
            _prepare(begun, 100 * place)
            for number, (host, command) in enumerate(begun.servers):
                log = folder / f"{name}-server{number}.log"
                stack.enter_context(programs.running(_inside(plan, tag, host, command), log))
            clients += begun.clients
        time.sleep(_SETTLE_S)
        every = to_seconds(document["measure"]["queue_every"])
        with sampled(plan, tag, max(every, 1e-3)) as samples:
            _run(clients, plan, tag, duration, told)
        flows = [flow for one in clients for flow in one.read(one.report.read_text("utf-8"))]
    return summed(list(document["traffic"]), flows, samples, duration)


def _pairs(table: dict[str, Any], ends: dict[str, list[str]] | None) -> list[tuple[str, str]]:
    """Source and destination of each flow."""
    if ends is None or table.get("pairs", "cyclic") != "cyclic":
        message = f"--tools: kind {table['kind']} with these pairs is for penstock-traffic alone"
        raise ScenarioError(message)
    senders, receivers = ends["from"], ends["to"]
    count = table.get("flows") or max(len(senders), len(receivers))
    return [(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(count)]


_ALONE = {"epochs": 1, "start_spread": "0 s", "start_gap": "0 s", "think": "0 s", "tcp": {}}
"""Keys that only penstock-traffic plays, with the values that ask for nothing."""


def _prepare(of: _Traffic, offset: int) -> None:
    if asked := [key for key, none in _ALONE.items() if of.table.get(key, none) != none]:
        message = f"traffic.{of.name}.{asked[0]}: is for penstock-traffic; run it without --tools"
        raise ScenarioError(message)
    is_pull = of.table["kind"] == "incast" and of.table.get("mode") == "pull"
    if of.table["kind"] == "bulk":
        _iperf(of, _IPERF_PORT + offset)
    elif is_pull and "requests" in of.table:
        _web(of, _HTTP_PORT + offset)
    else:
        message = (
            f"traffic.{of.name}: these tools play bulk, and incast with mode = 'pull' and "
            "requests; run it without --tools"
        )
        raise ScenarioError(message)


def _iperf(of: _Traffic, port: int) -> None:
    size = _size(of) if "size" in of.table else None
    start = to_seconds(of.table["start"])
    stop = to_seconds(of.table["stop"]) if "stop" in of.table else of.duration_s
    length = ("-n", str(size)) if size else ("-t", f"{stop - start:g}")
    for flow, (source, destination) in enumerate(of.pairs):
        at = ("-p", str(port + flow))
        of.servers.append((destination, ("iperf3", "-s", "-1", "-B", of.address(destination), *at)))
        to = ("-c", of.address(destination), "-B", of.address(source), *at)
        read = partial(read_iperf, of.name, flow, (source, destination), start, is_endless=not size)
        report = of.folder / f"{of.name}-{flow}.json"
        of.clients.append(Client(source, ("iperf3", "-J", *to, *length), start, report, read))


def _size(of: _Traffic) -> int:
    """Bytes of each transfer."""
    try:
        return to_bytes(str(of.table["size"]))
    except (KeyError, ValueError):
        message = f"traffic.{of.name}.size: is not fixed; run it without --tools"
        raise ScenarioError(message) from None


def _web(of: _Traffic, port: int) -> None:
    size = _size(of)
    (of.folder / "www" / of.name).write_bytes(bytes(size))
    for source in dict.fromkeys(source for source, _ in of.pairs):
        config = of.folder / f"{of.name}-{source}.conf"
        address = of.address(source)
        text = _NGINX.format(folder=of.folder, host=source, address=address, port=port)
        config.write_text(text, encoding="utf-8")
        server = ("nginx", "-e", "stderr", "-p", str(of.folder), "-c", str(config))
        of.servers.append((source, server))
    start = to_seconds(of.table["start"])
    keep = ("-k",) if of.table["connection"] == "persistent" else ()
    limit = f"{max(1, round(of.duration_s - start))}"
    for number, ((source, destination), flows) in enumerate(Counter(of.pairs).items()):
        report = of.folder / f"{of.name}-{number}.tsv"
        requests = str(min(of.table["requests"] * flows, _MOST_REQUESTS))
        asks = ("-q", "-r", *keep, "-t", limit, "-n", requests, "-c", str(flows))
        url = f"http://{of.address(source)}:{port}/{of.name}"
        command = ("ab", *asks, "-g", str(report), "-B", of.address(destination), url)
        read = partial(read_ab, of.name, number, (source, destination), size)
        of.clients.append(Client(destination, command, start, report, read, is_output=False))


def _inside(plan: Plan, tag: str, host: str, command: tuple[str, ...]) -> list[str]:
    return system.inside(plan.name(plan.home[host].node, tag), *command)


def _run(clients: list[Client], plan: Plan, tag: str, duration_s: float, told: Told) -> None:
    """Starts each client at its time, and waits for all."""
    waiting = sorted(clients, key=lambda one: one.start_s)
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        started = []
        while True:
            passed = time.monotonic() - begun
            while waiting and waiting[0].start_s <= passed:
                one = waiting.pop(0)
                log = one.report if one.is_output else one.report.with_suffix(".log")
                inside = _inside(plan, tag, one.host, one.command)
                started.append((one, log, stack.enter_context(programs.running(inside, log))))
            if not waiting and all(process.poll() is not None for _, _, process in started):
                break
            if passed > duration_s + _PATIENCE_S:
                message = "lab: the tools did not end in time; the network may be broken"
                raise RunError(message)
            told(min(passed / duration_s, 0.99))
            time.sleep(_TICK_S)
        for one, log, process in started:
            if process.returncode or not one.report.is_file():
                raise programs.failure(one.command[0], log)


def read_iperf(
    traffic: str,
    flow: int,
    pair: tuple[str, str],
    start_s: float,
    text: str,
    *,
    is_endless: bool,
) -> list[Flow]:
    """The flow of which `iperf3 -J` reports.

    Raises:
        RunError: it reports an error.
    """
    told = json.loads(text)
    if "error" in told:
        message = f"lab: iperf3: {told['error']}"
        raise RunError(message)
    received, sent = told["end"]["sum_received"], told["end"]["sum_sent"]
    took = received["seconds"]
    return [
        Flow(
            traffic,
            flow,
            *pair,
            start_s=start_s,
            end_s=None if is_endless else start_s + took,
            bytes=None if is_endless else sent["bytes"],
            delivered_bytes=received["bytes"],
            fct_s=None if is_endless else took,
            goodput_bps=received["bits_per_second"],
            retransmits=sent["retransmits"],
        )
    ]


def read_ab(traffic: str, flow: int, pair: tuple[str, str], size: int, text: str) -> list[Flow]:
    """The requests of `ab -g`: one a line, start in seconds of the clock, total in milliseconds."""
    return list(_requests(traffic, flow, pair, size, text.splitlines()[1:]))


def _requests(
    traffic: str, flow: int, pair: tuple[str, str], size: int, lines: list[str]
) -> Iterator[Flow]:
    rows = [line.split("\t") for line in lines]
    first = min((int(row[1]) for row in rows), default=0)
    for row in rows:
        start, took = float(int(row[1]) - first), int(row[4]) / 1e3
        rate = 8 * size / took if took else None
        yield Flow(
            *(traffic, flow, *pair, start, start + took, size, size, took, rate, None),
        )
