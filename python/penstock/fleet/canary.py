# SPDX-License-Identifier: Apache-2.0
"""A canary: some flows or hosts under a scheme, the others as control, interval by interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import polars as pl

from penstock import stats
from penstock.fleet.readings import samples

CANARY, CONTROL = "canary", "control"
_SIDES = {"controlled": CANARY, "held_out": CONTROL}
_COUNTERS = ("egress_bytes", "repeated_bytes", "timeouts_seen")
_KEY = ["side", "host", "interface", "name", "le"]
_P99 = 0.99

FALSE_ALARMS = 0.05
"""The chance that a measure stops a canary that is not worse, however long it runs."""


@dataclass(frozen=True)
class Measure:
    """What both sides are compared by."""

    name: str
    meaning: str
    unit: str
    """As of a chart's axis."""
    more_is_better: bool
    least: float
    """A difference below this is none, however small the control's value is."""


MEASURES = (
    Measure("goodput", "new bytes a second of each flow, headers included", "b/s", True, 0),
    Measure("retransmits", "share of the bytes that were sent before", "%", False, 0.001),
    Measure("timeouts", "retransmission timeouts for each gigabyte sent", "", False, 1),
    Measure("queue p99", "99th percentile of each millisecond's longest queue", "B", False, 1514),
)


@dataclass(frozen=True)
class Interval:
    """What each side had in an interval, by the names of measures; absent where it had none."""

    end_s: float
    canary: dict[str, float]
    control: dict[str, float]


@dataclass(frozen=True)
class Judgement:
    """One measure of all intervals."""

    measure: Measure
    intervals: int
    """Those in which both sides had a value."""
    canary: float | None
    control: float | None
    """Means."""
    difference: float | None
    """Mean of canary less control."""
    half_width: float | None
    """Of the difference's 95 % interval of confidence; None of fewer than two intervals."""
    worse: int
    """Intervals in which the canary was worse by more than the margin."""
    is_stop: bool

    @property
    def sentence(self) -> str:
        """The judgement in a few words."""
        if self.is_stop:
            return f"stop: worse in {self.worse} of {self.intervals} intervals"
        if self.difference is None or self.half_width is None:
            return "no data yet"
        if abs(self.difference) <= self.half_width:
            return "no difference shown"
        return "better" if (self.difference > 0) == self.measure.more_is_better else "worse"


@dataclass
class Canary:
    """All intervals so far."""

    margin: float = 0.1
    """How much worse than the control is still good, as a share of the control's value."""
    intervals: list[Interval] = field(default_factory=list)

    def judgements(self) -> list[Judgement]:
        """Each measure that both sides had at least once."""
        judged = [self._judged(measure) for measure in MEASURES]
        return [one for one in judged if one.intervals]

    def compared(self) -> int:
        """How many intervals have a measure of both sides."""
        return sum(not one.canary.keys().isdisjoint(one.control) for one in self.intervals)

    def is_stop(self) -> bool:
        """Whether a measure shows that the canary is worse by more than the margin."""
        return any(one.is_stop for one in self.judgements())

    def _judged(self, measure: Measure) -> Judgement:
        pairs = [
            (one.canary[measure.name], one.control[measure.name])
            for one in self.intervals
            if measure.name in one.canary and measure.name in one.control
        ]
        count = len(pairs)
        sign = -1 if measure.more_is_better else 1
        differences = [canary - control for canary, control in pairs]
        worse = sum(
            sign * (canary - control) > max(self.margin * control, measure.least)
            for canary, control in pairs
        )

        def mean(values: Sequence[float]) -> float | None:
            return math.fsum(values) / count if count else None

        return Judgement(
            measure,
            count,
            mean([canary for canary, _ in pairs]),
            mean([control for _, control in pairs]),
            mean(differences),
            stats.ci95_of(differences),
            worse,
            is_shown(worse, count),
        )


def is_shown(worse: int, count: int) -> bool:
    """Whether so many of `count` intervals are more than chance, by the sign test.

    A canary that is not worse by more than the margin is so in an interval with a chance of a half
    at most. As one looks after each interval, the test after interval n gets the share 1/n(n+1) of
    `FALSE_ALARMS`; all shares sum to 1. The earliest stop is after 12 intervals, all worse.
    """
    if count == 0:
        return False
    chance = sum(math.comb(count, more) for more in range(worse, count + 1)) / (1 << count)
    return chance <= FALSE_ALARMS / (count * (count + 1))


def of_flows(texts: Mapping[str, str], interface: str = "*") -> pl.DataFrame:
    """The counters of both sides of each port that controls a share of its flows."""
    names = [f"canary_{name}_total" for name in (*_COUNTERS, "flow_ms")]
    read = samples(texts, names).with_columns(
        pl.col("side").replace_strict(_SIDES, default=None),
        pl.col("name").str.strip_prefix("canary_").str.strip_suffix("_total"),
    )
    return _of(read, interface)


def of_hosts(
    canary: Mapping[str, str], control: Mapping[str, str], interface: str = "*"
) -> pl.DataFrame:
    """The counters of the ports of both groups of hosts."""
    names = [*(f"{name}_total" for name in _COUNTERS), "flows", "queue_peak_bytes_bucket"]
    groups = [
        samples(texts, names).with_columns(
            pl.lit(side).alias("side"), pl.col("name").str.strip_suffix("_total")
        )
        for side, texts in ((CANARY, canary), (CONTROL, control))
    ]
    return _of(pl.concat(groups), interface)


def _of(read: pl.DataFrame, interface: str) -> pl.DataFrame:
    names = read["interface"].unique().to_list()
    wanted = [name for name in names if name and fnmatchcase(name, interface)]
    return read.filter(pl.col("interface").is_in(wanted)).select(*_KEY, "value")


def between(before: pl.DataFrame, after: pl.DataFrame, seconds: float, end_s: float) -> Interval:
    """What both sides had between two readings; a port in one of them alone does not count."""
    both = after.join(before, on=_KEY, how="inner", suffix="_before", nulls_equal=True)
    grown = pl.col("value") >= pl.col("value_before")
    counted = pl.when(grown).then(pl.col("value") - pl.col("value_before")).otherwise("value")
    # A gauge: flows counted at the moment.
    flow_ms = (pl.col("value") + pl.col("value_before")) / 2 * seconds * 1000
    is_gauge = pl.col("name") == "flows"
    summed = (
        both.with_columns(pl.when(is_gauge).then(flow_ms).otherwise(counted).alias("value"))
        .with_columns(pl.col("name").replace("flows", "flow_ms"))
        .group_by("side", "name", "le")
        .agg(pl.col("value").sum())
    )
    return Interval(end_s, _side(summed, CANARY), _side(summed, CONTROL))


def _side(summed: pl.DataFrame, side: str) -> dict[str, float]:
    rows = summed.filter(pl.col("side") == side)
    buckets = [
        (math.inf if row["le"] == "+Inf" else float(row["le"]), row["value"])
        for row in rows.filter(pl.col("name") == "queue_peak_bytes_bucket").iter_rows(named=True)
    ]
    total = {row["name"]: row["value"] for row in rows.iter_rows(named=True) if row["le"] is None}
    sent, new = total.get("egress_bytes", 0.0), 0.0
    measured = {}
    if sent > 0:
        new = max(sent - total.get("repeated_bytes", 0.0), 0.0)
        measured["retransmits"] = (sent - new) / sent
        measured["timeouts"] = total.get("timeouts_seen", 0.0) / (sent / 1e9)
    if total.get("flow_ms", 0.0) > 0:
        measured["goodput"] = 8 * new / (total["flow_ms"] / 1000)
    if (p99 := _quantile(sorted(buckets), _P99)) is not None:
        measured["queue p99"] = p99
    return measured


def _quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """A quantile of a histogram's cumulative buckets, linear within one, as Prometheus' is."""
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank, lower, below = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if math.isinf(bound):
                return lower
            part = (rank - below) / (count - below) if count > below else 1.0
            return lower + (bound - lower) * part
        lower, below = bound, count
    return lower
