# SPDX-License-Identifier: Apache-2.0
"""How many runs of a sweep's last command its folder has: the others were interrupted or failed."""

import itertools
from typing import Any

import polars as pl

from penstock.sweeps.points import Plan


def planned(plan: Plan) -> dict[str, Any]:
    """The values, schemes and seeds of a command, as `sweep.json` has them."""
    first = next(iter(plan.points.values()))
    return {
        "over": {key.column: [key.typed(value) for value in key.values] for key in plan.keys},
        "schemes": plan.schemes,
        "seeds": list(dict.fromkeys(task.seed for task in first)),
    }


def note(request: dict[str, Any], table: pl.DataFrame) -> str:
    """`3 of 12 runs: ...`; empty where the table has all of them."""
    command = request.get("planned")
    if command is None:  # a folder of 0.1.0
        return ""
    runs = set(itertools.product(*command["over"].values(), command["schemes"], command["seeds"]))
    done = len(runs.intersection(table.select(*command["over"], "scheme", "seed").iter_rows()))
    if done == len(runs):
        return ""
    missing = "the others were interrupted or failed"
    return f"{done} of {len(runs)} runs: {missing}; give the same command again to compute them."
