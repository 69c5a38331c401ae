# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary: its name, unit, heading, better end, tolerance and meaning.

A name ends with its unit: `fct_s`, `goodput_bps`, `queue_bytes`. `GROUPS` and `PORTS` describe the
numbers of a traffic and of a port by their dotted paths in `summary.json`, `FLOWS`, `JOBS`,
`QUEUES`, `WINDOWS`, `PACKETS` and `EVENTS` the columns of the tables. People write names without
units (`mice.fct.p99`); `find` and `match` look them up.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock import units
from penstock.errors import ScenarioError, suggestion

Result = Mapping[str, Any]
"""One scheme's part of a summary, of one seed or the mean of several."""
Path = tuple[str, ...]

UNFINISHED = "unfinished"
"""Instead of a completion time that does not bear as many unfinished flows (see `unfinished`)."""
OF_SEEDS = "of_seeds"
"""In a group's mean over several seeds: `cut_off`, completion times that a seed does not bear, and
`fewer`, how many seeds have a number that not all have."""
PORT = "bottleneck"
"""Another name of the measured port, where there is only one."""

CLOSE, NEAR = 0.15, 0.25
"""How far apart times and rates, and tails and counts, may be and still agree."""


@dataclass(frozen=True)
class Metric:
    """What there is to know of a number."""

    heading: str
    better: Literal["less", "more", "neither"]
    meaning: str
    tolerance: float | None = None
    """Most that two runs may differ, as a share of the first; None: it is not compared."""
    kind: Literal["", "share", "index", "factor"] = ""
    """Of a number without a unit that is no count."""

    def text(self, quantity: str, value: float | None) -> str:
        """The number as tables show it."""
        plain = {
            "": units.count,
            "share": units.percent,
            "index": units.ratio,
            "factor": units.factor,
        }
        return units.FORMS.get(quantity, plain[self.kind])(value)


@dataclass(frozen=True)
class Cause:
    """What the slow flows of a group spent their time on."""

    name: str
    """Its key below `slow` in `summary.json`."""
    words: str
    meaning: str
    column: str
    """Of the table of flows, in seconds; empty for the rest."""


CAUSES = (
    Cause("rto", "RTO", "before retransmission timeouts", "rto_wait_s"),
    Cause("syn_timeout", "SYN timeout", "before timeouts of the handshake", "syn_wait_s"),
    Cause("delayed_ack", "delayed ACK", "with an ACK delayed by the receiver", "ack_wait_s"),
    Cause("zero_window", "zero window", "with data to send, and no window", "window_wait_s"),
    Cause("queueing", "queueing", "in queues, at a share of the rate, below a window", ""),
    Cause("ideal", "ideal", "as long as on the empty network", "ideal_s"),
    Cause("server_think", "server's think time", "before the server answers", "server_wait_s"),
)
"""In the order of charts; their shares add up to 1."""

# A flow's own drops are not compared: a kernel does not report whose packet a queue has lost.
GROUPS = {
    "flows": Metric("flows", "neither", "flows that began", CLOSE),
    "finished": Metric("finished", "more", "flows that ended, of all that were to", CLOSE),
    "unfinished": Metric(
        "unfinished",
        "less",
        "flows with an end that did not reach it, those not begun included",
        NEAR,
    ),
    "fct_s.mean": Metric("FCT mean", "less", "completion time of the finished flows", CLOSE),
    "fct_s.sd": Metric("FCT SD", "less", "standard deviation of the completion times"),
    "fct_s.p50": Metric("FCT p50", "less", "half of the flows took less", CLOSE),
    "fct_s.p90": Metric("FCT p90", "less", "90 % of the flows took less"),
    "fct_s.p95": Metric("FCT p95", "less", "95 % of the flows took less"),
    "fct_s.p99": Metric("FCT p99", "less", "99 % of the flows that finished took less", NEAR),
    "fct_s.p999": Metric("FCT p99.9", "less", "99.9 % of the flows that finished took less"),
    "fct_s.max": Metric("FCT max", "less", "the slowest finished flow", NEAR),
    "slowdown.mean": Metric(
        "slowdown",
        "less",
        "completion time over the least possible on the empty network",
        kind="factor",
    ),
    "slowdown.p50": Metric("slowdown p50", "less", "half of the flows had less", kind="factor"),
    "slowdown.p99": Metric("slowdown p99", "less", "99 % of the flows had less", kind="factor"),
    "slowdown.p999": Metric(
        "slowdown p99.9", "less", "99.9 % of the flows had less", kind="factor"
    ),
    "slowdown.max": Metric("slowdown max", "less", "the largest slowdown", kind="factor"),
    "flows_per_second": Metric("flows/s", "more", "flows (requests) finished by the second", NEAR),
    **{
        f"slow.{name}": Metric(f"slow: {words}", "neither", meaning, kind="share")
        for name, words, meaning in (
            (cause.name, cause.words, f"the slow flows' time: {cause.meaning}") for cause in CAUSES
        )
    },
    "slow.lasted_s": Metric("slow: time", "less", "mean time that the slow flows were under way"),
    "missed_deadlines": Metric("missed deadlines", "less", "flows that took too long"),
    "stalled": Metric("stalled", "less", "flows with at least one retransmission timeout"),
    "late": Metric("late", "less", "flows of more than 190 ms: a timeout of Linux", NEAR),
    "timeouts": Metric("timeouts", "less", "retransmission timeouts", NEAR),
    "syn_timeouts": Metric("SYN timeouts", "less", "timeouts of handshakes", NEAR),
    "retransmits": Metric("retransmits", "less", "segments sent again"),
    "resent": Metric("resent", "less", "flows with at least one segment sent again"),
    "drops": Metric("drops", "less", "packets lost, in either direction"),
    "goodput_bps.mean": Metric("goodput", "more", "what arrived, mean of the flows", CLOSE),
    "goodput_bps.min": Metric("goodput min", "more", "the slowest flow"),
    "goodput_bps.max": Metric("goodput max", "neither", "the fastest flow"),
    "jain": Metric(
        "Jain", "more", "fairness of the goodputs: 1 is equal shares", CLOSE, kind="index"
    ),
    "starved": Metric("starved", "less", "share of the flows without a packet", kind="share"),
    "packets_variance": Metric("variance", "less", "variance of the flows' packets"),
    "flows_in_lowest_decile": Metric(
        "lowest decile", "less", "flows with less than a tenth of the packets of the largest"
    ),
    "longest_silence_s.mean": Metric("silence", "less", "longest time between two packets"),
    "loss_cycle_s": Metric("loss cycle", "more", "time between two losses of a sampled flow"),
    "share.flows": Metric("flows of all", "neither", "share of a class in the flows", kind="share"),
    "share.bytes": Metric("bytes of all", "neither", "share of a class in the bytes", kind="share"),
    "jobs.begun": Metric("jobs begun", "neither", "jobs that began"),
    "jobs.finished": Metric("jobs", "more", "jobs that were over before the end of the run", CLOSE),
    "jobs.unfinished": Metric(
        "jobs unfinished", "less", "jobs that were not, or never began", NEAR
    ),
    "jobs.time_s.mean": Metric("JCT mean", "less", "completion time of the finished jobs", CLOSE),
    "jobs.time_s.sd": Metric("JCT SD", "less", "standard deviation of these times"),
    "jobs.time_s.p50": Metric("JCT p50", "less", "half of the jobs took less", CLOSE),
    "jobs.time_s.p90": Metric("JCT p90", "less", "90 % of the jobs took less"),
    "jobs.time_s.p95": Metric("JCT p95", "less", "95 % of the jobs took less"),
    "jobs.time_s.p99": Metric("JCT p99", "less", "99 % of the jobs took less", NEAR),
    "jobs.time_s.max": Metric("JCT max", "less", "the slowest finished job", NEAR),
    "jobs.missed_deadlines": Metric("late jobs", "less", "jobs that took too long"),
    "jobs.per_second": Metric("jobs/s", "more", "jobs finished in a second", CLOSE),
    "block_goodput_bps": Metric("block goodput", "more", "bytes of an epoch over its time"),
}
PORTS = {
    "drops": Metric("drops", "less", "packets lost at this port", NEAR),
    "utilization": Metric(
        "utilization", "more", "share of the link's time in use", CLOSE, kind="share"
    ),
    "queue_bytes.mean": Metric("queue mean", "less", "mean of the queue over time", CLOSE),
    "queue_bytes.p99": Metric("queue p99", "less", "the queue was shorter 99 % of the time", CLOSE),
    "queue_bytes.max": Metric("queue max", "less", "the longest queue seen"),
    "egress_packets": Metric("packets", "neither", "packets that left by the port"),
    "egress_bytes": Metric("bytes", "neither", "bytes that left by the port"),
    "ecn_marks": Metric("ECN marks", "neither", "packets marked with ECN CE"),
    "pauses": Metric("pauses", "less", "times that the port paused for the next switch (PFC)"),
    "paused_s": Metric("paused", "less", "time that the port paused for the next switch (PFC)"),
    "acks": Metric("ACKs", "neither", "ACKs that a window scheme has seen"),
    "acks_rewritten": Metric("ACKs rewritten", "neither", "ACKs whose window was lowered"),
    "acks_floored": Metric("ACKs floored", "neither", "ACKs held at the floor"),
    "acks_first_rewritten": Metric("first ACKs", "neither", "rewritten first ACKs of a flow"),
    "acks_edge_kept": Metric("edges kept", "neither", "ACKs left higher than the scheme's window"),
    "clamps": Metric("clamps", "neither", "times that the scheme began to clamp all flows"),
    "grants": Metric("grants", "neither", "grants of credit"),
    "grants_resent": Metric("grants resent", "neither", "reminders of grants without effect"),
    "grants_lapsed": Metric("grants lapsed", "neither", "grants given up after all reminders"),
}

PORT_COUNTERS = (
    "ecn_marks",
    "acks",
    "acks_rewritten",
    "acks_floored",
    "acks_first_rewritten",
    "acks_edge_kept",
    "clamps",
)
"""Numbers of a port that penstockd counts, by the names of `core/counters.h`."""

CREDIT_COUNTERS = ("grants", "grants_resent", "grants_lapsed")
"""Likewise, of a port that grants credit."""

FLOWS: dict[str, type] = {
    "traffic": str,  # the name of its [traffic.*] table
    "flow": int,
    "source": str,
    "destination": str,
    "start_s": float,
    "end_s": float,  # null: unfinished
    "bytes": int,  # null: endless
    "delivered_bytes": int,
    "fct_s": float,
    "goodput_bps": float,  # in the measured time; null: not under way in it
    "packets": int,  # data packets that arrived in the measured time
    "retransmits": int,
    "timeouts": int,
    "syn_timeouts": int,
    "drops": int,  # either direction
    "longest_silence_s": float,
    "missed_deadline": bool,  # null: no deadline
    "ideal_s": float,  # alone on the empty network; null: endless, or unknown
    "rto_wait_s": float,  # before retransmission timeouts; null: unknown, as the next four
    "syn_wait_s": float,  # before timeouts of the handshake
    "ack_wait_s": float,  # an ACK was delayed while its receiver waited for more
    "window_wait_s": float,  # with data to send, none in flight, and no window
    "server_wait_s": float,  # before the server answered a request
    "busy_s": float,  # with data in flight, as the kernel counts it, and of that:
    "rwnd_limited_s": float,  # limited by the receiver's window
    "sndbuf_limited_s": float,  # limited by the send buffer
}
JOBS: dict[str, type] = {
    "traffic": str,
    "job": int,  # the `flow` of its transfers
    "client": str,  # null: jobs without one
    "start_s": float,
    "end_s": float,  # null: unfinished
    "time_s": float,
    "transfers": int,
    "bytes": int,
    "missed_deadline": bool,  # null: no deadline
}
QUEUES: dict[str, type] = {"port": str, "time_s": float, "bytes": int, "packets": int}
WINDOWS: dict[str, type] = {
    "traffic": str,
    "flow": int,
    "time_s": float,
    "cwnd_bytes": int,
    "rwnd_bytes": int,  # what the receiver offers, as the network has left it
    "swnd_bytes": int,  # the lesser of both
    "recovering": bool,  # a loss is being repaired
}

PACKETS: dict[str, type] = {
    "time_s": float,  # when it came to the port
    "left_s": float,  # when its last bit had left; null: lost, or still there
    "lost": str,  # why; null: it was not
    "traffic": str,  # null: datagrams
    "flow": int,
    "connection": int,
    "source": str,
    "destination": str,
    "forward": bool,  # leaves by the port; else it came in next to it
    "opener": bool,  # sent by the side that opened the connection
    "seq": int,
    "ack": int,
    "payload": int,
    "header": int,
    "flags": int,  # of TCP in the low eight bits, then ECT, CE, UDP, timestamps
    "window": int,  # the field as it came, unscaled
    "window_after": int,  # as it went on
    "ts_val": int,
    "ts_ecr": int,
    "syn_options": int,
    "sack": str,
    "queue_bytes": int,  # that it met
    "marked": bool,  # with ECN CE, here
    "own": bool,  # the port made it
}
EVENTS: dict[str, type] = {
    "time_s": float,
    "connection": int,
    "host": str,
    "event": str,  # window, rto, syn_timeout, probe, window_probe, delayed_ack, retransmit
    "cwnd_bytes": int,
    "window_bytes": int,  # that the peer offers, as the network has left it
    "in_flight_bytes": int,
}

_SUFFIXES = ("_by_reason", *(f"_{quantity}" for quantity in units.FORMS))  # may be left out
_OF_TIMES = ("mean", "sd", "p50", "p90", "p95", "p99", "p999", "max")
# Where no flow has such a number the simulator gives null instead of a table.
_TABLES = {
    "fct_s": _OF_TIMES,
    "time_s": _OF_TIMES,
    "slowdown": _OF_TIMES,
    "slow": ("flows", "lasted_s", *(cause.name for cause in CAUSES)),
    "longest_silence_s": _OF_TIMES,
    "goodput_bps": ("mean", "min", "max"),
}


def number(table: Result, path: Iterable[str]) -> float | None:
    """The number at a path, or None where there is none (no flow finished: no FCT)."""
    value: Any = table
    for key in path:
        value = None if value is None else value.get(key)
    return None if value is None else float(value)


def quantity(path: Iterable[str]) -> str:
    """`s`, `bps` or `bytes`, by the ending of a key; empty for counts and ratios."""
    ends = (unit for key in path for unit in units.FORMS if key.endswith(f"_{unit}"))
    return next(ends, "")


def planned(counts: Result) -> float:
    """How many flows of a group, or how many jobs of its `jobs`, there were to be.

    Those that did not begin count, as the last requests of a closed loop.
    """
    begun = counts.get("flows", counts.get("begun", 0))
    return float(max(begun, counts["finished"] + counts.get("unfinished", 0)))


def unfinished(path: str, group: Result) -> float:
    """Share of unfinished flows or jobs beyond what a completion time bears; 0 for other numbers.

    A percentile bears as many as lie above it; mean, SD and maximum bear none.
    """
    name, _, statistic = path.removeprefix("jobs.").partition(".")
    if name not in ("fct_s", "slowdown", "time_s"):
        return 0.0
    counts = group.get("jobs") if path.startswith("jobs.") else group
    if counts is None:
        return 0.0
    share = 1 - counts["finished"] / planned(counts) if planned(counts) else 0.0
    percentile = re.fullmatch(r"p(\d\d)(\d*)", statistic)
    borne = 1 - float(".".join(percentile.groups())) / 100 if percentile else 0.0
    return max(0.0, round(share - borne, 9))  # p999 bears 1 of 1000, which floats make 1e-16 more


def is_cut_off(path: str, group: Result) -> bool:
    """Whether a percentile of completion times lies among the flows that did not finish.

    Of several seeds: whether it does in one of them. Means are shown all the same: the last
    requests of a closed loop never finish.
    """
    if not re.search(r"\.p\d+$", path):
        return False
    return path in group.get(OF_SEEDS, {}).get("cut_off", ()) or unfinished(path, group) > 0


def of_seeds(groups: Sequence[Result]) -> dict[str, Any]:
    """What the mean of a group over several seeds does not show: see `OF_SEEDS`; empty if nothing.

    Args:
        groups: the group in each seed.
    """
    paths = list(dict.fromkeys(".".join(path) for group in groups for path in _leaves(group)))
    having = {
        path: sum(number(group, path.split(".")) is not None for group in groups) for path in paths
    }
    made = {
        "cut_off": [path for path in paths if any(is_cut_off(path, group) for group in groups)],
        "fewer": {path: seeds for path, seeds in having.items() if 0 < seeds < len(groups)},
    }
    return {key: value for key, value in made.items() if value}


def seeds_with(path: str, group: Result) -> int | None:
    """How many seeds have a number, if not all: its mean is that of these."""
    seeds: int | None = group.get(OF_SEEDS, {}).get("fewer", {}).get(path)
    return seeds


def with_seeds(text: str, seeds: int | None) -> str:
    """A number as text, with how many seeds have it if not all do."""
    return text if seeds is None else f"{text} ({seeds} seed{'' if seeds == 1 else 's'})"


@dataclass(frozen=True)
class Field:
    """A number of a result."""

    name: str
    """As it was written."""
    path: Path
    """The keys that lead to it in a result: `("groups", "mice", "fct_s", "p99")`."""

    def of(self, result: Result) -> float | None:
        """The number, or None where the result has none (no flow finished: no FCT).

        The same path leads to the half-width of its confidence interval in a result's `ci95`.
        """
        return number(result, self.path)

    @property
    def unit(self) -> str:
        """`s`, `bps` or `bytes`; empty for counts and ratios."""
        has_owner = self.path[0] in ("groups", "ports")  # whose name may end like a unit
        return quantity(self.path[2 if has_owner else 1 :])

    def text(self, value: float | None) -> str:
        """The number as people read it."""
        return _text(self.unit, value)


def find(name: str, result: Result) -> Field:
    """The field that a name means.

    A name is that of a traffic or a port, then the keys below it in `summary.json`, joined by
    dots. Units (`fct_s`) and a last `mean` may be left out; `bottleneck` is the measured port where
    there is only one; `controller.messages_sent` is a count of SICC's controller, and
    `performance.wall` is how long the simulation took.

    Raises:
        ScenarioError: there is no such number; the message names the nearest.
    """
    if not {"groups", "ports"} <= set(result):
        message = "result: has no groups and ports; allowed: one of the `results` of a summary"
        raise ScenarioError(message)
    known = {".".join(parts): path for parts, path in _named(result)}
    ports = {".".join(path[1:]): path for path in known.values() if path[0] == "ports"}
    known = ports | known if name.startswith(tuple(result["ports"])) else known
    return Field(name, known[match(name, known)])


def match(name: str, known: Iterable[str]) -> str:
    """The full name, as `mice.fct_s.mean`, that a name means.

    Raises:
        ScenarioError: there is no such number; the message names the nearest.
    """
    names = list(known)
    full: dict[str, str] = {}
    for full_name in names:
        full.setdefault(_without_units(full_name), full_name)
    full |= {full_name: full_name for full_name in names}
    name = name.replace("p99.9", "p999")
    for alias in (name, f"{name}.mean"):
        if alias in full:
            return full[alias]
    message = f"{name}: no such number; {suggestion(name, full, _allowed(name, full), cutoff=0.8)}"
    raise ScenarioError(message)


def _allowed(name: str, known: Iterable[str]) -> str:
    """What may follow the part of a name that is right."""
    parts = name.split(".")
    for depth in range(len(parts), -1, -1):
        right = "".join(f"{part}." for part in parts[:depth])
        next_parts = dict.fromkeys(
            each.removeprefix(right).partition(".")[0] for each in known if each.startswith(right)
        )
        short = list(dict.fromkeys(map(_short, next_parts) if right else next_parts))
        if short:
            break
    after = f" after '{right}'" if right else ""
    return f"allowed{after}: {', '.join(short)}"


def names(scenario: Mapping[str, Any]) -> list[str]:
    """The full names of what a scenario's runs may have, before there is one.

    Left out are what no list here has: ports by their own names, the controller's counts, and
    those of the simulator's performance.

    Args:
        scenario: with its defaults.
    """
    traffic, measure = scenario["traffic"], scenario.get("measure", {})
    groups = [name for name, table in traffic.items() if table["kind"] != "udp"]
    groups += [f"{name}/{size}" for name in groups for size in measure.get("sizes", {})]
    tables = [f"{key}.{leaf}" for key, leaves in _TABLES.items() for leaf in leaves]
    in_jobs = {leaf for leaf in tables if leaf.startswith("time_s.")}
    leaves = dict.fromkeys(
        (*GROUPS, *(f"jobs.{leaf}" if leaf in in_jobs else leaf for leaf in tables))
    )
    of_groups = [f"{name}.{leaf}" for name in groups for leaf in leaves]
    return of_groups + [f"{PORT}.{leaf}" for leaf in PORTS]


def short(name: str) -> str:
    """A full name without units and a last `mean`: `mice.fct.p99`."""
    return _without_units(name).removesuffix(".mean")


def check(name: str, scenario: Mapping[str, Any]) -> None:
    """Refuses a name that none of a scenario's runs has, so that none is run for it.

    Raises:
        ScenarioError: the message names the nearest, or what is allowed.
    """
    owner, _, rest = name.partition(".")
    if owner in ("controller", "performance") or "->" in owner:
        return
    if owner == PORT and rest.startswith("drops"):
        return  # the reasons are the simulator's
    match(name, names(scenario))


def text(name: str, value: float | None) -> str:
    """The number of a full name as people read it."""
    return _text(_unit(name), value)


def described(name: str) -> str:
    """A full name in words: `mice.fct_s.p99` is `FCT p99 of mice`."""
    for path, metric in (GROUPS | PORTS).items():
        if name.endswith(f".{path}"):
            return f"{metric.heading} of {name.removesuffix(path)[:-1]}"
    return name


def axis_unit(name: str) -> str | None:
    """The unit that prefixes go to on an axis of a full name's numbers; None for mere numbers."""
    return units.AXES.get(_unit(name))


def flat(result: Result) -> dict[str, float | None]:
    """Every number of a result by its full name, as `mice.fct_s.p99`; what is absent as None."""
    return {".".join(parts): number(result, path) for parts, path in _named(result)}


def _named(result: Result) -> Iterator[tuple[Path, Path]]:
    """The parts of each number's name, and the path to it."""
    for kind in ("groups", "ports"):
        for owner, table in result[kind].items():
            is_only = kind == "ports" and len(result[kind]) == 1 and PORT not in result["groups"]
            for path in _leaves(table):
                yield (PORT if is_only else owner, *path), (kind, owner, *path)
    for kind in ("controller", "performance"):
        for path in _leaves(result.get(kind, {})):
            yield (kind, *path), (kind, *path)


def _leaves(table: Mapping[str, Any]) -> Iterator[Path]:
    for key, value in table.items():
        if key == OF_SEEDS:
            continue
        below = dict.fromkeys(_TABLES[key]) if value is None and key in _TABLES else value
        if isinstance(below, Mapping):
            yield from ((key, *path) for path in _leaves(below))
        else:
            yield (key,)


def _unit(name: str) -> str:
    """The quantity of a full name, whose first part is a traffic or a port."""
    return quantity(name.split(".")[1:])


def _text(unit: str, value: float | None) -> str:
    if form := units.FORMS.get(unit):
        return form(value)
    return units.NONE if value is None else f"{value:.4g}"


def _without_units(name: str) -> str:
    """A full name without units; a traffic, port or table of the first part keeps its name."""
    owner, *keys = name.split(".")
    return ".".join([owner, *map(_short, keys)])


def _short(key: str) -> str:
    ends = (suffix for suffix in _SUFFIXES if key.endswith(suffix))
    return key.removesuffix(next(ends, ""))
