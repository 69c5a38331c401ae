# SPDX-License-Identifier: Apache-2.0
"""The papers' own tools in place of penstock-traffic: iperf3, and nginx with ApacheBench.

`bulk` is iperf3, one server and one client for each flow. A closed-loop `incast` by pull is nginx
at the hosts that send and `ab` at those that ask, one `ab` for each pair of hosts with as many
connections as the pair has flows. They report less than penstock-traffic: `ab` has completion
times in whole milliseconds and starts in whole seconds, and neither has timeouts. Meanwhile
penstock-traffic samples the ports, and `_native.summarize` sums the transfers up as the simulator
does its own.

wrk in place of `ab` plays persistent connections, one process for each, which begin `start_gap`
apart in the mean, and whose script reports each request in microseconds. All of them load before
the run, because while one loads, others wait for its processor. Its own statistics add requests
that it did not send, to make up for those that it would have sent at a constant rate.
"""

import fcntl
import io
import json
import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO

from penstock import _native
from penstock.errors import RunError, ScenarioError
from penstock.execution.lab import programs, system
from penstock.execution.lab.generator import Listener, Played, playing
from penstock.execution.lab.plan import Plan
from penstock.execution.task import TOOLS, Task
from penstock.scenario import parsed
from penstock.units import to_bytes, to_seconds

_PATIENCE_S = 10.0  # beyond the scenario's duration, for the tools to end and report
_LOOK_S = 0.1  # from one look at the tools to the next
_FIRST_PORT = 5201
_INTERVAL = "0.1"  # seconds between iperf3's counts
_MOST_REQUESTS = 200_000  # `ab` allocates them all at once

NGINX = """daemon off; master_process off; pid {folder}/{host}.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 1000000000; root {folder}/www;
  server {{ listen {address}:{port} backlog=4096; }}
}}
"""
"""Of a server for what is in `folder`/www; its pid is in `folder`/`host`.pid."""

# The hooks of a thread of wrk; `done` would see its statistics only.
_WRK = """local ffi = require("ffi")
ffi.cdef("typedef struct {{ long s, ns; }} moment; int clock_gettime(int, moment *);")
ffi.cdef("int open(const char *, int); int flock(int, int);")
local moment, report, begun = ffi.new("moment"), nil, nil
local function now() -- CLOCK_MONOTONIC
  ffi.C.clock_gettime(1, moment)
  return tonumber(moment.s) + tonumber(moment.ns) * 1e-9
end
function init()
  report = io.open("{report}", "w")
  ffi.C.flock(ffi.C.open("{gate}", 0), 1) -- LOCK_SH: waits until the run releases its own
end
function request()
  begun = now()
  return wrk.request()
end
function response() report:write(string.format("%.6f\\t%.6f\\n", begun, now())) end
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


class Begun(NamedTuple):
    """Seconds of the monotonic clock at which the clients' time, and one of them, began."""

    all_s: float
    client_s: float

    @property
    def start_s(self) -> float:
        """When the client was started, from the start of the run."""
        return self.client_s - self.all_s


class Held(NamedTuple):
    """How a client that has loaded waits for its time."""

    loaded: Path
    """The file that it writes then."""
    gate: Path
    """The file that it waits to lock."""


class Program(NamedTuple):
    """A server, or a client whose report becomes transfers."""

    host: str
    command: tuple[str, ...]
    log: Path
    """The file for its output."""
    start_s: float | None = None
    """None: a server, up before all clients."""
    stop_s: float | None = None
    """When it is interrupted if it has not ended by then."""
    read: Callable[[Begun], list[Transfer]] = lambda _: []
    listens: str = ""
    """Address and port of a server."""
    held: Held | None = None
    """A client that loads before the run."""


@dataclass(frozen=True)
class Traffic:
    """One traffic of a scenario, played from `port` on."""

    name: str
    table: dict[str, Any]
    pairs: list[tuple[str, str]]
    """Source and destination of each flow."""
    plan: Plan
    folder: Path
    duration_s: float
    port: int
    is_wrk: bool = False
    """wrk in place of `ab`."""
    seed: int = 1
    """Of the run."""

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
    duration, is_wrk = to_seconds(document["duration"]), task.on == TOOLS["wrk"]
    tools: list[Program] = []
    port = _FIRST_PORT
    for name, table in document["traffic"].items():
        pairs = pairs_of(table, ends.get(name))
        of = Traffic(name, table, pairs, plan, folder, duration, port, is_wrk, task.seed)
        tools += programs_of(of)
        port += len(pairs)
    with ExitStack() as stack:

        def launch(program: Program) -> programs.Process:
            space = plan.name(plan.home[program.host].node, tag)
            inside = system.inside(space, *program.command)
            return stack.enter_context(programs.running(inside, program.command[0], program.log))

        servers = [(program, launch(program)) for program in tools if program.start_s is None]
        for server, process in servers:
            space = plan.name(plan.home[server.host].node, tag)
            is_ready = partial(_listens, space, server.listens)
            process.wait_until(is_ready, f"nothing listens on {server.listens}")
        clients = [program for program in tools if program.start_s is not None]
        held = {client: client.held for client in clients if client.held}
        gates = {gate: stack.enter_context(_locked(gate)) for _, gate in held.values()}
        loading = {client: launch(client) for client in held}
        for client, process in loading.items():
            process.wait_until(held[client].loaded.exists, "it has not loaded")

        def start(client: Program) -> programs.Process:
            if client not in held:
                return launch(client)
            fcntl.flock(gates[held[client].gate], fcntl.LOCK_UN)
            return loading[client]

        with playing(task, plan, tag, is_silent=True) as sampling:
            begun = _run(clients, start, duration, listen)
            while not sampling.is_over(listen):
                pass
            sampled = sampling.results()
    # Servers have ended, so their reports are whole.
    transfers = [one for client, at in begun for one in client.read(at)]
    return summed(task.scenario, transfers, sampled)


@contextmanager
def _locked(path: Path) -> Iterator[TextIO]:
    """A file that nothing else can lock."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def summed(scenario: str, transfers: list[Transfer], sampled: Played) -> Played:
    """The transfers summed up as the simulator sums up its own; unknown numbers are left out."""
    import polars as pl  # start-up: a third of a second

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


def _listens(space: str, address: str) -> bool:
    """Whether a server listens on an address and port in a namespace."""
    sockets = system.inside(space, "ss", "--no-header", "--listening", "--tcp", "--numeric")
    return address in system.call(sockets).split()


def _run(
    clients: list[Program],
    start: Callable[[Program], programs.Process],
    duration_s: float,
    listen: Listener,
) -> list[tuple[Program, Begun]]:
    """Starts and interrupts each client at its times, and waits for all; when each was started."""
    waiting = deque(sorted(clients, key=lambda client: client.start_s or 0.0))
    begun = time.monotonic()
    started: list[tuple[Program, Begun, programs.Process]] = []
    while waiting or not all(process.has_ended() for *_, process in started):
        passed = time.monotonic() - begun
        while waiting and (waiting[0].start_s or 0.0) <= passed:
            client, at = waiting.popleft(), Begun(begun, time.monotonic())
            started.append((client, at, start(client)))
        for client, _, process in started:
            if client.stop_s is not None and client.stop_s <= passed:
                process.interrupt()
        if passed > duration_s + _PATIENCE_S:
            message = "lab: the tools did not end in time; the network may be broken"
            raise RunError(message)
        listen(min(passed / duration_s, 0.99))
        until = passed + _LOOK_S
        if waiting:
            until = min(until, waiting[0].start_s or 0.0)
        time.sleep(max(0.0, begun + until - time.monotonic()))
    for *_, process in started:
        process.check_success()
    return [(client, at) for client, at, _ in started]


def pairs_of(table: dict[str, Any], ends: dict[str, list[str]] | None) -> list[tuple[str, str]]:
    """Source and destination of each flow of a traffic.

    Raises:
        ScenarioError: only penstock-traffic knows them.
    """
    if ends is None or table.get("pairs", "cyclic") != "cyclic":
        message = f"--tools: kind {table['kind']} with these pairs is for penstock-traffic alone"
        raise ScenarioError(message)
    senders, receivers = ends["from"], ends["to"]
    count = table.get("flows") or max(len(senders), len(receivers))
    return [(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(count)]


_GAP = "start_gap"
_NO_TIME = dict.fromkeys(("start_spread", _GAP, "think", "server_think"), "0 s")
_DEFAULTS = {"epochs": 1, "tcp": {}, "barrier": False} | _NO_TIME
"""Keys that only penstock-traffic plays, with values that have no effect; wrk has a gap, too."""


def programs_of(traffic: Traffic) -> list[Program]:
    """The servers and clients that play a traffic.

    Raises:
        ScenarioError: these tools cannot play it.
    """
    kind, mode = traffic.table["kind"], traffic.table.get("mode")
    is_web = (kind, mode) == ("incast", "pull") and "requests" in traffic.table
    for key, default in _DEFAULTS.items():
        is_played = is_web and traffic.is_wrk and key == _GAP
        if traffic.table.get(key, default) != default and not is_played:
            traffic.refuse(f".{key}", "is for penstock-traffic")
    if kind != "bulk" and not is_web:
        traffic.refuse("", "these tools play bulk, and incast with mode = 'pull' and requests")
    return list(_web(traffic) if is_web else _iperf(traffic))


def _iperf(of: Traffic) -> Iterator[Program]:
    size = _size(of) if "size" in of.table else None
    start = to_seconds(of.table["start"])
    stop = to_seconds(of.table["stop"]) if "stop" in of.table else of.duration_s
    # iperf3 takes whole seconds and cuts off fractions: it lasts as long as all else, or longer.
    length = ("-n", str(size)) if size else ("-t", str(math.ceil(stop - start)), "-i", _INTERVAL)
    lasts_s = None if size else stop - start
    for flow, (source, destination) in enumerate(of.pairs):
        at = ("-p", str(of.port + flow))
        log = of.folder / f"{of.name}-{flow}.log"
        listens = f"{of.address(destination)}:{of.port + flow}"
        report_format = ("-J",) if size else ()  # of a size that may be cut
        listening = ("iperf3", *report_format, "-s", "-1", "-B", of.address(destination), *at)
        yield Program(destination, listening, log, listens=listens)
        to = ("-c", of.address(destination), "-B", of.address(source), *at)
        report = log.with_suffix(".json")
        pair = (source, destination)
        read = partial(read_iperf, report, of.name, flow, pair, lasts_s=lasts_s)
        client = Program(source, ("iperf3", "-J", *to, *length), report, start, read=read)
        if size:
            cut = Transfer(of.name, flow, *pair, start, None, stop, size, 0)
            client = client._replace(stop_s=stop, read=partial(read_sized, read, report, log, cut))
        yield client


def _size(of: Traffic) -> int:
    """Bytes of each transfer."""
    try:
        return to_bytes(str(of.table["size"]))
    except (KeyError, ValueError):
        of.refuse(".size", "is not fixed")


def _web(of: Traffic) -> Iterator[Program]:
    size = _size(of)
    (of.folder / "www" / of.name).write_bytes(bytes(size))
    for source in dict.fromkeys(source for source, _ in of.pairs):
        config = of.folder / f"{of.name}-{source}.conf"
        server = {"folder": of.folder, "host": source, "address": of.address(source)}
        config.write_text(NGINX.format(**server, port=of.port), encoding="utf-8")
        command = ("nginx", "-e", "stderr", "-p", str(of.folder), "-c", str(config))
        listens = f"{of.address(source)}:{of.port}"
        yield Program(source, command, config.with_suffix(".log"), listens=listens)
    start = to_seconds(of.table["start"])
    if of.is_wrk:
        yield from _wrk(of, size)
        return
    keep = ("-k",) if of.table["connection"] == "persistent" else ()
    limit = f"{max(1, round(of.duration_s - start))}"
    for number, (pair, flows) in enumerate(Counter(of.pairs).items()):
        report = of.folder / f"{of.name}-{number}.tsv"
        requests = str(min(of.table["requests"] * flows, _MOST_REQUESTS))
        options = ("-q", "-r", *keep, "-t", limit, "-n", requests, "-c", str(flows))
        url = f"http://{of.address(pair[0])}:{of.port}/{of.name}"
        command = ("ab", *options, "-g", str(report), "-B", of.address(pair[1]), url)
        read = partial(read_ab, report, of.name, number, pair, size)
        yield Program(pair[1], command, report.with_suffix(".log"), start, read=read)


def _wrk(of: Traffic, size: int) -> Iterator[Program]:
    if of.table["connection"] == "new":
        of.refuse(".connection", "wrk does not count the time of handshakes")
    for flow, ((source, destination), at) in enumerate(zip(of.pairs, _starts(of), strict=False)):
        if at >= of.duration_s:
            return
        if len(of.plan.home[destination].hosts) > 1:
            of.refuse(".to", "wrk does not choose its address, and hosts share their namespace")
        report = of.folder / f"{of.name}-{flow}.tsv"
        script = report.with_suffix(".lua")
        held = Held(report, report.with_suffix(".gate"))
        script.write_text(_WRK.format(report=report, gate=held.gate), encoding="utf-8")
        limit = math.ceil(of.duration_s - at)  # whole seconds: it is interrupted at the end
        # What takes longer than the timeout is counted only.
        options = ("-t", "1", "-c", "1", "-d", f"{limit}s", "--timeout", f"{limit + 1}s")
        url = f"http://{of.address(source)}:{of.port}/{of.name}"
        command = ("wrk", *options, "-s", str(script), url)
        pair = (source, destination)
        read = partial(read_wrk, report, of.name, flow, pair, size, until_s=of.duration_s)
        log = report.with_suffix(".log")
        yield Program(destination, command, log, at, of.duration_s, read, held=held)


def _starts(of: Traffic) -> Iterator[float]:
    """When the flows begin: a Poisson process with the mean gap, as in the simulator."""
    try:
        mean = to_seconds(of.table.get(_GAP, _NO_TIME[_GAP]))
    except (AttributeError, TypeError, ValueError):
        of.refuse(f".{_GAP}", "is a distribution")
    at, draws = to_seconds(of.table["start"]), random.Random(f"{of.seed} {of.name}")
    while True:
        at += draws.expovariate(1.0) * mean
        yield at


def read_iperf(
    report: Path,
    traffic: str,
    flow: int,
    pair: tuple[str, str],
    begun: Begun,
    *,
    lasts_s: float | None,
) -> list[Transfer]:
    """The transfer that `iperf3 -J` reports; of an endless one the first `lasts_s` seconds.

    What was delivered in them is as large a part of all as what was sent in them.

    Raises:
        RunError: it reports an error.
    """
    document = json.loads(report.read_text("utf-8"))
    if "error" in document:
        message = f"lab: iperf3: {document['error']}"
        raise RunError(message)
    received, sent = document["end"]["sum_received"], document["end"]["sum_sent"]
    start_s = begun.start_s
    if lasts_s is None:
        over_s = start_s + received["seconds"]
        counts = received["bytes"], sent["retransmits"]
        return [Transfer(traffic, flow, *pair, start_s, over_s, None, sent["bytes"], *counts)]
    spans = [interval["sum"] for interval in document["intervals"]]
    within = [span for span in spans if span["start"] + span["end"] < 2 * lasts_s]
    share = sum(span["bytes"] for span in within) / max(sum(span["bytes"] for span in spans), 1)
    counts = round(share * received["bytes"]), sum(span["retransmits"] for span in within)
    stopped_s = start_s + min(lasts_s, received["seconds"])
    return [Transfer(traffic, flow, *pair, start_s, None, stopped_s, None, *counts)]


def read_sized(
    read: Callable[[Begun], list[Transfer]],
    report: Path,
    served: Path,
    cut: Transfer,
    begun: Begun,
) -> list[Transfer]:
    """A transfer of some size: what `read` returns, or `cut` if its `iperf3` was interrupted.

    The server's report, `served`, has what was delivered until then.
    """
    document = _report(report)
    if document and not document.get("error", "").startswith("interrupt"):
        return read(begun)
    sent = document.get("end", {}).get("sum_sent", {})
    received = _report(served).get("end", {}).get("sum_received", {})
    delivered = min(received.get("bytes", 0), cut.bytes or 0)
    return [cut._replace(delivered_bytes=delivered, retransmits=sent.get("retransmits", 0))]


def _report(path: Path) -> dict[str, Any]:
    """What `iperf3 -J` printed; nothing if it was ended before it began."""
    text = path.read_text("utf-8").strip()
    document: dict[str, Any] = json.loads(text) if text else {}
    return document


def read_ab(
    report: Path, traffic: str, flow: int, pair: tuple[str, str], size: int, begun: Begun
) -> list[Transfer]:
    """The requests of `ab -g`: one a line, start in seconds of the clock, total in milliseconds.

    The first is taken to begin when `ab` was started.
    `ab` writes no file if it has completed none.
    """
    if not report.exists():
        return []
    rows = [line.split("\t") for line in report.read_text("utf-8").splitlines()[1:]]
    first = min((int(row[1]) for row in rows), default=0)
    spans = ((begun.start_s + int(row[1]) - first, int(row[4]) / 1e3) for row in rows)
    return [
        Transfer(traffic, flow, *pair, start, start + took, None, size, size)
        for start, took in spans
    ]


def read_wrk(
    report: Path,
    traffic: str,
    flow: int,
    pair: tuple[str, str],
    size: int,
    begun: Begun,
    *,
    until_s: float,
) -> list[Transfer]:
    """The requests of a connection of wrk that were answered by then.

    One a line, its start and end on the monotonic clock.
    """
    rows = [line.split("\t") for line in report.read_text("utf-8").splitlines()]
    spans = [(float(start) - begun.all_s, float(end) - begun.all_s) for start, end in rows]
    return [
        Transfer(traffic, flow, *pair, *span, None, size, size)
        for span in spans
        if span[1] <= until_s
    ]
