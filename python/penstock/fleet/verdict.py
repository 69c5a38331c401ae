# SPDX-License-Identifier: Apache-2.0
"""What the timeouts at each port cost, and what each cure would have saved at most."""

from typing import Any

import polars as pl

from penstock.fleet.readings import CANDIDATES

TIMEOUT_S = 0.2
"""The least retransmission timeout of Linux: each timeout seen is at least such a wait."""
MOST = 0.8
"""Where to begin: the fewest ports that have this share of all waits."""


def judged(ports: pl.DataFrame) -> pl.DataFrame:
    """The ports, with columns for their waits and for what would have saved them; worst first.

    A timeout is charged to a port that drops; where none drops, its cause is on another port of
    the path. A scheme can save at most the share of the waits that it has of the ACKs: those whose
    window it would have lowered. Grant lowers those of all flows whose scale is known.
    """
    waits = pl.col("timeouts_seen") * TIMEOUT_S
    offered = pl.col("egress_packets") + pl.col("qdisc_drops")
    here = pl.col("qdisc_drops") > 0

    def reached(one: str) -> pl.Expr:
        share = pl.col(f"would_{one}") / pl.col("acks")
        return pl.when(pl.col("acks") > 0).then(share).otherwise(0.0).clip(0, 1)

    cures = [(pl.col("wait_s") * reached(one)).alias(f"saved_{one}_s") for one in CANDIDATES]
    is_observed = pl.col("scheme").is_in(["observe", "none"])
    return (
        ports.with_columns(
            pl.when(here).then(waits).otherwise(0.0).alias("wait_s"),
            pl.when(here).then(0.0).otherwise(waits).alias("elsewhere_s"),
            pl.when(offered > 0)
            .then(pl.col("qdisc_drops") / offered)
            .otherwise(0.0)
            .alias("drop_share"),
        )
        .with_columns(
            *(
                pl.when(is_observed).then(cure).otherwise(0.0).alias(cure.meta.output_name())
                for cure in cures
            ),
            pl.when(is_observed).then(pl.col("wait_s")).otherwise(0.0).alias("saved_grant_s"),
        )
        .sort(["wait_s", "qdisc_drops", "host", "interface"], descending=[True, True, False, False])
        .with_columns((pl.col("wait_s").cum_sum() / pl.col("wait_s").sum()).alias("of_all"))
    )


def summary(ports: pl.DataFrame) -> dict[str, Any]:
    """Numbers of the whole fleet, of what `judged` returns."""
    total = float(ports["wait_s"].sum())
    first = 0
    if total > 0:
        first = int((ports["of_all"].fill_nan(1.0) < MOST).sum()) + 1
    return {
        "hosts": ports["host"].n_unique(),
        "ports": ports.height,
        "suffering": int((ports["wait_s"] > 0).sum()),
        "begin_with": first,
        "wait_s": total,
        "elsewhere_s": float(ports["elsewhere_s"].sum()),
        "drops": int(ports["qdisc_drops"].sum()),
        "timeouts": int(ports["timeouts_seen"].sum()),
        "saved_s": {one: float(ports[f"saved_{one}_s"].sum()) for one in ("grant", *CANDIDATES)},
        "not_acting": int(
            (~ports["scheme"].is_in(["observe", "none"]) & (ports["acting"] == 0)).sum()
        ),
        "blind": int((ports["blind"] > 0).sum()),
    }
