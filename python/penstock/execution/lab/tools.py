# SPDX-License-Identifier: Apache-2.0
"""The papers' own tools in place of penstock-traffic: iperf3, and nginx with ApacheBench.

`bulk` is iperf3, one server and one client for each flow. A closed-loop `incast` by pull is nginx
at the hosts that send and `ab` at those that ask, one `ab` for each pair of hosts with as many
connections as the pair has flows. They report less than penstock-traffic: `ab` has completion
times in whole milliseconds and starts in whole seconds, and neither has timeouts. Meanwhile
penstock-traffic samples the ports, without traffic of its own, and `_native.summarize` sums the
transfers up as the simulator does its own.
"""

import io
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import polars as pl

from penstock import _native
from penstock.errors import RunError, ScenarioError
from penstock.execution.lab import programs, system
from penstock.execution.lab.generator import Listener, Played, playing
from penstock.execution.lab.plan import Plan
from penstock.execution.task import Task
from penstock.scenario import parsed
from penstock.units import to_bytes, to_seconds

_SETTLE_S = 0.3  # for servers to listen
_PATIENCE_S = 10.0  # beyond the scenario's duration, for the tools to end and report
_IPERF_PORT, _HTTP_PORT = 5201, 8080
_MOST_REQUESTS = 200_000  # `ab` allocates them all at once

_NGINX = """daemon off; master_process off; pid {folder}/{host}.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 1000000000; root {folder}/www;
  server {{ listen {address}:{port} backlog=4096; }}
}}
"""

UNKNOWN = {
    *("timeouts", "syn_timeouts", "stalled", "starved", "packets_variance"),
    *("flows_in_lowest_decile", "longest_silence_s", "block_goodput_bps"),
}
"""Numbers of a summary that these tools do not have."""


class Transfer(NamedTuple):
    """A transfer that a tool reports, as `_native.summarize` takes it."""

    traffic: str
    flow: int
    source: str
    destination: str
    start_s: float
    end_s: float | None
    """None: it has no end."""
    stopped_s: float | None
    bytes: int | None
    """None: endless."""
    delivered_bytes: int
    retransmits: int = 0


@dataclass(frozen=True)
class Client:
    """A program that requests data, and how its report becomes transfers."""

    host: str
    command: tuple[str, ...]
    start_s: float
    report: Path
    """The file with its report: its output where `is_output`, else one that the command names."""
    read: Callable[[str], list[Transfer]]
    is_output: bool = True


@dataclass
class Traffic:
    """One traffic of a scenario with the programs that play it."""

    name: str
    table: dict[str, Any]
    pairs: list[tuple[str, str]]
    plan: Plan
    folder: Path
    duration_s: float
    servers: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)

    def address(self, host: str) -> str:
        """The address of a host."""
        return self.plan.home[host].hosts[host]

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raises ScenarioError for a key, with its dot, that only penstock-traffic plays."""
        message = f"traffic.{self.name}{key}: {reason}; run it without --tools"
        raise ScenarioError(message)


def play(task: Task, ends: dict[str, Any], plan: Plan, tag: str, listen: Listener) -> Played:
    """Plays a task's traffic on the built fabric.

    Raises:
        ScenarioError: it has traffic that these tools cannot play.
        RunError: a tool is missing, failed, or did not end.
    """
    folder = system.STATE / "tools"
    (folder / "www").mkdir(parents=True)
    folder.chmod(0o755)
    document = parsed(task.scenario)
    duration = to_seconds(document["duration"])
    traffics = [
        Traffic(name, table, _pairs(table, ends.get(name)), plan, folder, duration)
        for name, table in document["traffic"].items()
    ]
    for place, traffic in enumerate(traffics):
        prepare(traffic, 100 * place)
    with ExitStack() as stack:
        for traffic in traffics:
            for number, (host, command) in enumerate(traffic.servers):
                log = folder / f"{traffic.name}-server{number}.log"
                inside = _inside(plan, tag, host, command)
                stack.enter_context(programs.running(inside, command[0], log))
        time.sleep(_SETTLE_S)
        clients = [client for traffic in traffics for client in traffic.clients]
        with playing(task, plan, tag, is_silent=True) as sampling:
            _run(clients, plan, tag, duration, listen)
            while not sampling.is_over(listen):
                pass
            sampled = sampling.results()
        transfers = [one for c in clients for one in c.read(c.report.read_text("utf-8"))]
    return summed(task.scenario, transfers, sampled)


def summed(scenario: str, transfers: list[Transfer], sampled: Played) -> Played:
    """The transfers summed up as the simulator sums up its own; unknown numbers are left out."""
    groups, flows = _native.summarize(scenario, "scenario.toml", transfers)
    known = {
        name: {key: None if key in UNKNOWN else value for key, value in group.items()}
        for name, group in json.loads(groups).items()
    }
    table = pl.read_csv(io.BytesIO(flows), infer_schema_length=None)
    absent = [name for name in table.columns if name in UNKNOWN]
    table = table.with_columns(pl.lit(None).alias(name) for name in absent)
    text = table.write_csv().encode()
    return Played({**sampled.summary, "groups": known}, text, sampled.queues)


def _pairs(table: dict[str, Any], ends: dict[str, list[str]] | None) -> list[tuple[str, str]]:
    """Source and destination of each flow."""
    if ends is None or table.get("pairs", "cyclic") != "cyclic":
        message = f"--tools: kind {table['kind']} with these pairs is for penstock-traffic alone"
        raise ScenarioError(message)
    senders, receivers = ends["from"], ends["to"]
    count = table.get("flows") or max(len(senders), len(receivers))
    return [(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(count)]


_DEFAULTS = {"epochs": 1, "start_spread": "0 s", "start_gap": "0 s", "think": "0 s", "tcp": {}}
"""Keys that only penstock-traffic plays, with the values that have no effect."""


def prepare(traffic: Traffic, offset: int) -> None:
    """Adds the servers and clients that play a traffic, on ports from `offset` on.

    Raises:
        ScenarioError: these tools cannot play it.
    """
    for key, default in _DEFAULTS.items():
        if traffic.table.get(key, default) != default:
            traffic.refuse(f".{key}", "is for penstock-traffic")
    is_pull = traffic.table["kind"] == "incast" and traffic.table.get("mode") == "pull"
    if traffic.table["kind"] == "bulk":
        _iperf(traffic, _IPERF_PORT + offset)
    elif is_pull and "requests" in traffic.table:
        _web(traffic, _HTTP_PORT + offset)
    else:
        reason = "these tools play bulk, and incast with mode = 'pull' and requests"
        traffic.refuse("", reason)


def _iperf(of: Traffic, port: int) -> None:
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


def _size(of: Traffic) -> int:
    """Bytes of each transfer."""
    try:
        return to_bytes(str(of.table["size"]))
    except (KeyError, ValueError):
        of.refuse(".size", "is not fixed")


def _web(of: Traffic, port: int) -> None:
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
        options = ("-q", "-r", *keep, "-t", limit, "-n", requests, "-c", str(flows))
        url = f"http://{of.address(source)}:{port}/{of.name}"
        command = ("ab", *options, "-g", str(report), "-B", of.address(destination), url)
        read = partial(read_ab, of.name, number, (source, destination), size)
        of.clients.append(Client(destination, command, start, report, read, is_output=False))


def _inside(plan: Plan, tag: str, host: str, command: tuple[str, ...]) -> list[str]:
    return system.inside(plan.name(plan.home[host].node, tag), *command)


def _run(clients: list[Client], plan: Plan, tag: str, duration_s: float, listen: Listener) -> None:
    """Starts each client at its time, and waits for all."""
    waiting = sorted(clients, key=lambda client: client.start_s)
    begun = time.monotonic()
    with ExitStack() as stack:
        started: list[programs.Process] = []
        while waiting or not all(process.has_ended() for process in started):
            passed = time.monotonic() - begun
            while waiting and waiting[0].start_s <= passed:
                client = waiting.pop(0)
                log = client.report if client.is_output else client.report.with_suffix(".log")
                inside = _inside(plan, tag, client.host, client.command)
                running = programs.running(inside, client.command[0], log)
                started.append(stack.enter_context(running))
            if passed > duration_s + _PATIENCE_S:
                message = "lab: the tools did not end in time; the network may be broken"
                raise RunError(message)
            listen(min(passed / duration_s, 0.99))
            time.sleep(0.1)
        for process in started:
            process.check_success()


def read_iperf(
    traffic: str,
    flow: int,
    pair: tuple[str, str],
    start_s: float,
    text: str,
    *,
    is_endless: bool,
) -> list[Transfer]:
    """The transfer that `iperf3 -J` reports.

    Raises:
        RunError: it reports an error.
    """
    report = json.loads(text)
    if "error" in report:
        message = f"lab: iperf3: {report['error']}"
        raise RunError(message)
    received, sent = report["end"]["sum_received"], report["end"]["sum_sent"]
    over_s = start_s + received["seconds"]
    return [
        Transfer(
            traffic,
            flow,
            *pair,
            start_s=start_s,
            end_s=None if is_endless else over_s,
            stopped_s=over_s if is_endless else None,
            bytes=None if is_endless else sent["bytes"],
            delivered_bytes=received["bytes"],
            retransmits=sent["retransmits"],
        )
    ]


def read_ab(traffic: str, flow: int, pair: tuple[str, str], size: int, text: str) -> list[Transfer]:
    """The requests of `ab -g`: one a line, start in seconds of the clock, total in milliseconds."""
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    first = min((int(row[1]) for row in rows), default=0)
    starts_and_times = ((float(int(row[1]) - first), int(row[4]) / 1e3) for row in rows)
    return [
        Transfer(traffic, flow, *pair, start, start + took, None, size, size)
        for start, took in starts_and_times
    ]
