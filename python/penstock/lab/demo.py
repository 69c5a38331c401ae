# SPDX-License-Identifier: Apache-2.0
"""The laboratory's demonstration: what each scheme does to real TCP, and how far it carries.

Two mixes of traffic, several times under each scheme; then more and more clients, until each
scheme's windows no longer fit the port.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from penstock import _native, api, terminal, units
from penstock.compare import stalled
from penstock.errors import ScenarioError
from penstock.results import Run
from penstock.terminal import Progress
from penstock.traces import to_csv

MIXES = ("lab/incast", "lab/incast-elephants")
SWEEP = "lab/sweep"
CLIENTS = (16, 32, 48, 64, 96, 126, 252, 630)
_QUICK_CLIENTS = (16, 64, 252)

_SEGMENT = 1448  # bytes, beside timestamps
_RMEM = Path("/proc/sys/net/ipv4/tcp_rmem")


@dataclass(frozen=True)
class Row:
    """One scheme under one traffic, over all repeats."""

    scheme: str
    repeats: int
    flows: float
    """Requests begun, per repeat; so are the other counts."""
    stalls: tuple[int, ...]
    """Requests that took longer than 190 ms or never ended though begun so long before, in each
    repeat."""
    stalled: float
    """Their share."""
    drops: float
    """Packets lost at the bottleneck."""
    rtos: float
    syn_timeouts: float
    fct_s: dict[str, float] | None
    """Mean, p50, p99, max, sd over the requests of all repeats."""
    elephants_bps: float | None
    """Goodput of all elephants together."""
    jain: float | None
    """Of the elephants' goodputs."""


@dataclass(frozen=True)
class Point:
    """A scheme at a number of clients."""

    clients: int
    row: Row


@dataclass(frozen=True)
class Limit:
    """How many flows a port can hold that each keep one window in flight."""

    window_bytes: int
    """The smallest window of one segment that the scale can say."""
    first_bytes: int
    """The smallest of two segments, which the default schemes give to new flows."""
    room_bytes: int
    """Buffer and bandwidth-delay product."""

    @property
    def flows(self) -> int:
        """Beyond so many, windows of one segment together overflow the port."""
        return self.room_bytes // self.window_bytes

    @property
    def first_flows(self) -> int:
        """Beyond so many that begin at once, windows of two segments do."""
        return self.room_bytes // self.first_bytes


@dataclass(frozen=True)
class Demo:
    """What was found."""

    mixes: dict[str, list[Row]]
    """By the title of the scenario."""
    sweep: list[Point]
    limit: Limit
    kernel: str
    folders: tuple[Path, ...]
    busy: tuple[str, ...] = ()
    """Runs during which this machine was too busy to tell."""

    def as_json(self) -> dict[str, Any]:
        """What `penstock lab demo --json` prints."""
        return {
            "kernel": self.kernel,
            "mixes": {title: [asdict(row) for row in rows] for title, rows in self.mixes.items()},
            "sweep": [{"clients": one.clients, **asdict(one.row)} for one in self.sweep],
            "limit": {
                **asdict(self.limit),
                "flows": self.limit.flows,
                "first_flows": self.limit.first_flows,
            },
            "busy": list(self.busy),
            "runs": [str(folder) for folder in self.folders],
        }


def demonstrate(repeats: int, parent: Path, *, is_quick: bool = False) -> Demo:
    """Runs everything; writes the runs' folders, `demo.json` and `demo.html` into `parent`.

    Raises:
        ScenarioError: the folder holds something else.
        RunError: this machine cannot; one line.
    """
    if parent.exists() and any(parent.iterdir()) and not (parent / "demo.json").is_file():
        message = f"{parent}: exists and is not a demonstration's folder; give another --out"
        raise ScenarioError(message)
    quick: dict[str, object] = {"duration": "2 s"} if is_quick else {}
    runs, mixes, points = {}, {}, []
    for name in MIXES:
        folder = parent / name.rpartition("/")[2]
        run = runs[folder] = _run(name, quick, repeats, folder.name)
        mixes[run.summary["scenario"]["title"]] = rows(run)
    for clients in _QUICK_CLIENTS if is_quick else CLIENTS:
        folder = parent / f"sweep-{clients}"
        run = runs[folder] = _run(SWEEP, quick | {"traffic.web.flows": clients}, 1, folder.name)
        points += [Point(clients, row) for row in rows(run)]
    busy = (f"{folder.name}: {one}" for folder, run in runs.items() for one in run.info["busy"])
    kernel = run.info["kernel"]
    done = Demo(mixes, points, limit(run.scenario), kernel, tuple(runs), tuple(busy))
    for folder, run in runs.items():  # all or nothing: a demonstration cut short leaves no folder
        run.save(folder, report=True)
    _save(done, parent)
    return done


def _run(name: str, overrides: dict[str, object], repeats: int, prefix: str) -> Run:
    with Progress(prefix=f"{prefix}: ") as progress:
        return api.run(name, overrides=overrides, seeds=repeats, progress=progress, on="lab")


def rows(run: Run, group: str = "web", elephants: str = "elephants") -> list[Row]:
    """What is told of each scheme of a run."""
    return [_row(run, result, group, elephants) for result in run.summary["results"]]


def _row(run: Run, result: dict[str, Any], group: str, elephants: str) -> Row:
    scheme, found = result["scheme"], result["groups"][group]
    seeds = run.summary["seeds"]
    flows = run.flows.filter(pl.col("scheme") == scheme, pl.col("traffic") == group)
    slow = stalled(run).filter(pl.col("scheme") == scheme, pl.col("traffic") == group)
    times = flows["fct_s"].drop_nulls()
    large = result["groups"].get(elephants)
    return Row(
        scheme=scheme,
        repeats=len(seeds),
        flows=found["flows"],
        stalls=tuple(slow.filter(pl.col("seed") == seed).height for seed in seeds),
        stalled=slow.height / max(flows.height, 1),
        drops=sum(port["drops"] for port in result["ports"].values()),
        rtos=found["timeouts"],
        syn_timeouts=found["syn_timeouts"],
        fct_s=_times(times) if len(times) else None,
        elephants_bps=large["goodput_bps"]["mean"] * large["flows"] if large else None,
        jain=large["jain"] if large else None,
    )


def _times(times: pl.Series) -> dict[str, float]:
    quantiles = {name: times.quantile(q, "linear") for name, q in (("p50", 0.5), ("p99", 0.99))}
    values = {"mean": times.mean(), **quantiles, "max": times.max(), "sd": times.std(ddof=0)}
    return {name: float(value) for name, value in values.items()}  # type: ignore[arg-type]


def limit(scenario: str) -> Limit:
    """The limit of the bottleneck of a resolved scenario, on this machine."""
    layout = json.loads(_native.layout(scenario, "scenario.toml", to_csv))
    port = next(port for port in layout["ports"] if port["is_measured"])
    in_flight = int(port["rate_bps"] / 8 * layout["rtt_s"])
    unit = 1 << window_scale(int(_RMEM.read_text(encoding="ascii").split()[2]))
    one, two = (-(-segments * _SEGMENT // unit) * unit for segments in (1, 2))
    return Limit(one, two, port["buffer_bytes"] + in_flight)


def window_scale(most: int) -> int:
    """The scale that Linux offers where a socket may take `most` bytes (tcp_rmem, the third)."""
    return max(0, min(most.bit_length() - 16, 14))


def _save(done: Demo, parent: Path) -> None:
    from penstock.lab import demo_page

    text = json.dumps(done.as_json(), indent=2, ensure_ascii=False)
    demo_page.write(done, parent)
    (parent / "demo.json").write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Column:
    """A column of the demonstration's tables."""

    heading: str
    text: Callable[[Row], str]


def _time(name: str) -> Callable[[Row], str]:
    return lambda row: units.seconds(row.fct_s[name] if row.fct_s else None)


COLUMNS = (
    Column("requests", lambda row: units.count(row.flows)),
    Column("stalls > 190 ms", lambda row: " / ".join(map(units.count, row.stalls))),
    Column("drops", lambda row: units.count(row.drops)),
    Column("RTOs", lambda row: units.count(row.rtos)),
    Column("SYN RTOs", lambda row: units.count(row.syn_timeouts)),
    Column("FCT mean", _time("mean")),
    Column("p50", _time("p50")),
    Column("p99", _time("p99")),
    Column("max", _time("max")),
    Column("SD", _time("sd")),
)
ELEPHANTS = (
    Column("elephants", lambda row: units.rate(row.elephants_bps)),
    Column("Jain", lambda row: units.ratio(row.jain)),
)


def columns(rows_: Sequence[Row]) -> tuple[Column, ...]:
    """The columns that these rows have something to say in."""
    return (*COLUMNS, *ELEPHANTS) if any(row.jain is not None for row in rows_) else COLUMNS


def sweep_table(done: Demo) -> tuple[list[str], list[list[str]]]:
    """Schemes, and for each number of clients the share of requests that stalled."""
    schemes = list(dict.fromkeys(point.row.scheme for point in done.sweep))
    lines = []
    for clients in dict.fromkeys(point.clients for point in done.sweep):
        by_scheme = {p.row.scheme: p.row for p in done.sweep if p.clients == clients}
        shares = (units.percent(by_scheme[scheme].stalled) for scheme in schemes)
        lines.append([str(clients), *shares])
    return schemes, lines


def reach(done: Demo) -> dict[str, int]:
    """For each scheme the most clients before the first that made requests stall; 0 for none."""
    reached: dict[str, int] = {}
    for point in sorted(done.sweep, key=lambda one: one.clients):
        best = reached.setdefault(point.row.scheme, 0)
        is_next = best == max((c for c in _clients(done) if c < point.clients), default=0)
        if is_next and not sum(point.row.stalls):
            reached[point.row.scheme] = point.clients
    return reached


def _clients(done: Demo) -> list[int]:
    return sorted({point.clients for point in done.sweep})


def say_limit(done: Demo) -> str:
    """The limit in words."""
    room, one, two = map(
        units.size, (done.limit.room_bytes, done.limit.window_bytes, done.limit.first_bytes)
    )
    return (
        f"Buffer and path hold {room}. The smallest window of a segment that Linux's scale can "
        f"say is {one}: beyond {done.limit.flows} flows at once every window-based scheme "
        f"overflows; the default ones, which give new flows two segments or {two}, do beyond "
        f"{done.limit.first_flows} that begin together."
    )


def show(done: Demo) -> None:
    """Prints the tables."""
    console = terminal.console(150)

    def table(title: str, first: str, headings: list[str], lines: list[list[str]]) -> None:
        names = [first, *(name for name, *_ in lines)]
        shown = terminal.fitting(names, headings, [cells for _, *cells in lines], console.width)
        console.print(f"[bold]{title}[/]")
        made = terminal.table()
        made.add_column(first, style="cyan", no_wrap=True)
        for heading in headings[:shown]:
            made.add_column(heading, justify="right", no_wrap=True)
        for line in lines:
            made.add_row(*line[: shown + 1])
        console.print(made)
        if left_out := headings[shown:]:
            console.print(f"[dim]no room for: {', '.join(left_out)}[/]")
        console.print()

    for title, found in done.mixes.items():
        told = columns(found)
        lines = [[row.scheme, *(column.text(row) for column in told)] for row in found]
        table(title, "scheme", [column.heading for column in told], lines)
    table("Requests that stall, by the number of clients", "clients", *sweep_table(done))
    carried = (f"{scheme} {clients}" for scheme, clients in reach(done).items())
    console.print(f"{say_limit(done)}\nClients without a stall: {', '.join(carried)}.")
    if done.busy:
        console.print(
            f"This machine was busy, so it may be what was measured: {'; '.join(done.busy)}."
        )
