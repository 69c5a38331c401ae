# SPDX-License-Identifier: Apache-2.0
"""What a number leaves out: flows and jobs that did not finish, and seeds that have none."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock import units
from penstock.metric_names import leaves, number
from penstock.metrics import OF_SEEDS, Result

UNFINISHED = "unfinished"
"""Instead of a completion time that does not bear as many unfinished flows (see `unfinished`)."""


_UNTIL_THE_END = 0.01
"""A closed loop of which less than this share began was to last as long as the run."""


def planned(counts: Result) -> float:
    """How many flows of a group, or how many jobs of its `jobs`, there were to be.

    Those that did not begin count, as a client that is slow, or stalls, keeps back its next
    requests. Of a loop until the end (`requests = 1000000`) only those that began were to be.
    """
    begun = float(counts.get("flows", counts.get("begun", 0)))
    most = float(max(begun, counts["finished"] + counts.get("unfinished", 0)))
    return begun if 0 < begun < _UNTIL_THE_END * most else most


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


def without_cut_off(numbers: Mapping[str, float | None], run: Result) -> dict[str, float | None]:
    """The numbers of a run by full names, null where a percentile is unfinished.

    Args:
        numbers: of the run, as `metric_names.flat` has them.
        run: one scheme's part of a summary, of one seed.
    """
    cut_off = {
        f"{name}.{'.'.join(path)}"
        for name, group in run["groups"].items()
        for path in leaves(group)
        if is_cut_off(".".join(path), group)
    }
    return {name: None if name in cut_off else value for name, value in numbers.items()}


def of_seeds(groups: Sequence[Result]) -> dict[str, Any]:
    """What the mean of a group over several seeds does not show: see `OF_SEEDS`; empty if nothing.

    Args:
        groups: the group in each seed.
    """
    paths = list(dict.fromkeys(".".join(path) for group in groups for path in leaves(group)))
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
    return text if seeds is None else f"{text} ({units.counted(seeds, 'seed')})"
