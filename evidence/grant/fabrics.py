# SPDX-License-Identifier: Apache-2.0
"""Prints what Grant on the receiving hosts does in a fabric of 144 hosts, next to other schemes.

Transfers of published sizes between random hosts, and incast from 64 servers to one client.
`fabrics` compares schemes at 10 and 100 Gb/s, with and without oversubscription; `hosts` has Grant
on 0 to 9 of 9 racks; `knobs` changes one parameter of Grant at a time.

.venv/bin/python evidence/grant/fabrics.py [fabrics] [hosts] [knobs] [--only TEXT] [--seeds N]
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean
from typing import Any

import polars as pl
from loads import srpt, with_path

import penstock
from penstock.units import three

SCENARIO = "grant/fabric"
LEAVES, HOSTS, SPINES = 9, 16, 4
SCHEMES = (
    "drop-tail",
    "dctcp",
    "dctcp-10ms",
    "dctcp-1ms",
    "pie",
    "clamp",
    "fairq",
    "hscc",
    "hcf",
    "grant-receiver",
)
CLIENT = "leaf1->host1"
SHORT_BYTES, LONG_BYTES = 10_000, 1_000_000
KNOBS = {
    "target": ("0.1", "0.2", "0.4", "0.8"),
    "rtt": ("10 us", "20 us", "50 us", "100 us"),
    "grant": ("4", "10", "40"),
    "allowance": ("0", "2", "10"),
    "long_share": ("0", "0.125", "0.5"),
    "learns": ("false", "true"),
}

Overrides = list[tuple[str, str]]


@dataclass(frozen=True)
class Fabric:
    """Rates, and the transfers in the background."""

    gbps: int
    oversubscribed: int
    size: str = "hadoop"
    load: int = 50
    """Of the hosts' links, or of those between the switches if these are slower."""

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"{self.gbps} Gb/s, {self.oversubscribed}:1, {self.size} at {self.load} %"

    def overrides(self) -> Overrides:
        """What differs from the scenario: as many bytes at each rate."""
        between_racks = (LEAVES - 1) / LEAVES
        load = self.load / max(1.0, self.oversubscribed * between_racks)
        scale = 10 / self.gbps
        sets = {
            "fabric.host_link.rate": f"{self.gbps} Gb/s",
            "fabric.spine_link.rate": f"{self.gbps * HOSTS / SPINES / self.oversubscribed:g} Gb/s",
            "traffic.background.size": self.size,
            "traffic.background.load": f"{load:.4g} %",
            "traffic.background.stop": f"{30 * scale:g} ms",
            "traffic.incast.start": f"{5 * scale:g} ms",
            "traffic.incast.every": f"{5 * scale:g} ms",
        }
        return list(sets.items())

    def bound(self, flows: pl.DataFrame) -> float:
        """Mean slowdown if only the receivers' links take time, shortest remaining time first."""
        slowdowns: list[float] = []
        for _, here in flows.group_by("destination"):
            sizes, alone = here["bytes"].to_list(), here["ideal_s"].to_list()
            rate_bps = self.gbps * 1e9
            best = with_path(
                srpt(here["start_s"].to_list(), sizes, rate_bps), alone, sizes, rate_bps
            )
            slowdowns += [time / idle for time, idle in zip(best, alone, strict=True)]
        return mean(slowdowns)


FABRICS = [
    *(Fabric(gbps, over) for gbps in (10, 100) for over in (1, 3)),
    *(Fabric(10, 1, size) for size in ("websearch", "datamining")),
    Fabric(10, 1, load=80),
]


def numbers(run: Any, scheme: str, fabric: Fabric) -> dict[str, float]:
    """Of all seeds: slowdowns of the background by size, and the times of the incast."""
    of_scheme = pl.col("scheme") == scheme
    flows, ports = run.flows.filter(of_scheme), run.ports.filter(of_scheme)
    flows = flows.with_columns(slowdown=pl.col("fct_s") / pl.col("ideal_s"))
    others = flows.filter(pl.col("traffic") == "background")
    incast = flows.filter(pl.col("traffic") == "incast")
    size = pl.col("bytes")
    short = others.filter(size <= SHORT_BYTES)["slowdown"]
    middle = others.filter((size > SHORT_BYTES) & (size <= LONG_BYTES))["slowdown"]
    long = others.filter(size > LONG_BYTES)["slowdown"]
    epochs = incast.group_by("seed", pl.col("start_s").round(6)).agg(
        pl.col("bytes").sum(),
        pl.when(pl.col("fct_s").null_count() == 0).then(pl.col("fct_s").max()),
    )
    used = 8 * epochs["bytes"] / (epochs["fct_s"] * fabric.gbps * 1e9)
    client = ports.filter(pl.col("port") == CLIENT)
    grants = ports["grants"].sum()
    return {
        "mean": others["slowdown"].mean(),
        "short: p50": short.quantile(0.5),
        "short: p99": short.quantile(0.99),
        "middle: p50": middle.quantile(0.5),
        "middle: p99": middle.quantile(0.99),
        "long: p50": long.quantile(0.5),
        "long: p99": long.quantile(0.99),
        "incast: p50 ms": 1e3 * incast["fct_s"].quantile(0.5),
        "incast: p99 ms": 1e3 * incast["fct_s"].quantile(0.99),
        "incast: max ms": 1e3 * incast["fct_s"].max(),
        "incast: goodput of link %": 100 * used.mean(),
        "queue: p99 kB": client["queue_bytes_p99"].mean() / 1e3,
        "drops": ports["drops"].sum(),
        "timeouts": flows["timeouts"].sum() + flows["syn_timeouts"].sum(),
        "unfinished": flows["fct_s"].null_count(),
        "grants lapsed": ports["grants_lapsed"].sum() / grants if grants else math.nan,
    }


def row(cells: Iterable[object]) -> str:
    """Of a table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def shown(value: float) -> str:
    """Three digits, nothing for what there is not."""
    return "" if value is None or math.isnan(value) else three(value)


def played(name: str, fabric: Fabric, schemes: Iterable[str], options: Any, more: Overrides) -> Any:
    """Prints the rows of one setting; returns its run."""
    overrides = [*fabric.overrides(), *more]
    run = penstock.run(SCENARIO, schemes=list(schemes), seeds=options.seeds, overrides=overrides)
    for scheme in schemes:
        of_scheme = numbers(run, scheme, fabric)
        if not options.headed:
            sys.stdout.write(f"{row(['setting', 'scheme', *of_scheme])}\n")
            sys.stdout.write(f"|{'---|' * (len(of_scheme) + 2)}\n")
            options.headed = True
        sys.stdout.write(f"{row([name, scheme, *map(shown, of_scheme.values())])}\n")
        sys.stdout.flush()
    return run


def fabrics(options: Any) -> None:
    """Schemes next to each other, and the bound."""
    for fabric in FABRICS:
        if options.only not in fabric.name:
            continue
        run = played(fabric.name, fabric, SCHEMES, options, [])
        one = run.flows.filter((pl.col("scheme") == SCHEMES[0]) & (pl.col("seed") == 1))
        best = fabric.bound(one.filter(pl.col("traffic") == "background"))
        others = [""] * (len(numbers(run, SCHEMES[0], fabric)) - 1)
        sys.stdout.write(f"{row([fabric.name, 'bound', shown(best), *others])}\n")


def hosts(options: Any) -> None:
    """Grant on the hosts of some racks."""
    for racks in range(LEAVES + 1):
        name = f"{racks} of {LEAVES} racks"
        leaves = json.dumps([f"leaf{rack}" for rack in range(1, racks + 1)])
        scheme = "grant-receiver" if racks else "drop-tail"
        more = [("fabric.scheme_at", leaves)] if racks else []
        if options.only in name:
            played(name, FABRICS[0], [scheme], options, more)


def knobs(options: Any) -> None:
    """One parameter at a time."""
    for knob, values in KNOBS.items():
        for value in values:
            name = f"{knob} = {value}"
            if options.only in name:
                more = [(f"scheme.grant-receiver.window.{knob}", value)]
                played(name, FABRICS[0], ["grant-receiver"], options, more)


def main() -> None:
    """Prints the tables that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = {"fabrics": fabrics, "hosts": hosts, "knobs": knobs}
    parser.add_argument("tables", nargs="*", choices=[*tables, []], help="default: all")
    parser.add_argument("--only", default="", help="settings with this text in their name")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    for name in options.tables or tables:
        options.headed = False
        tables[name](options)
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
