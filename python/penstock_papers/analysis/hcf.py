# SPDX-License-Identifier: Apache-2.0
"""In how many of its runs HCF starves shorter than FIFO (HCF §V-A, 4: "in most cases")."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runs import Run


def shorter(runs: Mapping[str, "Run"]) -> float:
    """The share of the runs in which the longest gap under HCF is below that under FIFO."""
    return _share(runs, "hcf")


def shorter_printed(runs: Mapping[str, "Run"]) -> float:
    """The same of Algorithm 1 as printed, whose queues do not swap."""
    return _share(runs, "hcf-printed")


def _share(runs: Mapping[str, "Run"], scheme: str) -> float:
    gaps = [
        {
            result["scheme"]: result["groups"]["block"]["longest_silence_s"]["max"]
            for result in run.summary["results"]
        }
        for run in runs.values()
    ]
    return sum(bool(gap[scheme] < gap["drop-tail"]) for gap in gaps) / len(gaps)
