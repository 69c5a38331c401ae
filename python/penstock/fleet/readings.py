# SPDX-License-Identifier: Apache-2.0
"""A table with a row for each port, out of metrics in OpenMetrics' text format."""

import json
from collections.abc import Mapping, Sequence

import polars as pl

from penstock import _native

COUNTERS = (
    "egress_bytes",
    "egress_packets",
    "qdisc_drops",
    "timeouts_seen",
    "flows_begun",
    "acks",
    "acks_rewritten",
)
"""Counted since the port was attached; absent ones are 0."""
GAUGES = ("acting", "blind", "buffer_bytes")
CANDIDATES = tuple(
    scheme["name"] for scheme in json.loads(_native.definitions())["schemes"] if scheme["is_window"]
)
"""Schemes of which a port counts what they would have rewritten."""
PORT = ["host", "interface"]
_LABEL = r'{}="((?:[^"\\]|\\.)*)"'


def samples(texts: Mapping[str, str], names: Sequence[str]) -> pl.DataFrame:
    """The finite samples of some metrics, without their prefix `penstock_`, with their labels."""
    lines = (
        pl.DataFrame(
            {"host": list(texts), "line": list(texts.values())},
            schema_overrides={"host": pl.String, "line": pl.String},
        )
        .with_columns(pl.col("line").str.split("\n"))
        .explode("line")
    )
    line = pl.col("line")
    labels = ("interface", "scheme", "candidate", "side", "le")
    read = lines.filter(line.str.starts_with("penstock_")).select(
        "host",
        line.str.extract(r"^penstock_([a-z_]+)\{").alias("name"),
        *(line.str.extract(_LABEL.format(label)).alias(label) for label in labels),
        line.str.extract(r"\} ([^ ]+)").cast(pl.Float64, strict=False).alias("value"),
    )
    return read.filter(
        pl.col("name").is_in(names),
        pl.col("interface").is_not_null(),
        pl.col("value").is_finite(),
        pl.col("value") >= 0,
    )


def ports(texts: Mapping[str, str]) -> pl.DataFrame:
    """The ports of all hosts; columns are those of `PORT`, the scheme, counters and gauges."""
    names = [*(f"{name}_total" for name in COUNTERS), "acks_would_rewrite_total", *GAUGES]

    def of(name: str, candidate: str | None = None) -> pl.Expr:
        wanted = pl.col("name") == name
        if candidate:
            wanted &= pl.col("candidate") == candidate
        return pl.col("value").filter(wanted).sum()

    return (
        samples(texts, names)
        .group_by([*PORT, "scheme"])
        .agg(
            *(of(f"{name}_total").alias(name) for name in COUNTERS),
            *(of(name).alias(name) for name in GAUGES),
            *(of("acks_would_rewrite_total", one).alias(f"would_{one}") for one in CANDIDATES),
        )
        .sort(PORT)
    )


def between(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """What was counted between two readings; a port that was attached again counts from 0."""
    counted = [*COUNTERS, *(f"would_{one}" for one in CANDIDATES)]
    both = after.join(before, on=[*PORT, "scheme"], how="left", suffix="_before", nulls_equal=True)
    differences = []
    for name in counted:
        earlier = pl.col(f"{name}_before").fill_null(0)
        grown = pl.col(name) >= earlier
        differences.append(pl.when(grown).then(pl.col(name) - earlier).otherwise(pl.col(name)))
    return both.with_columns(
        one.alias(name) for name, one in zip(counted, differences, strict=True)
    ).select(after.columns)
