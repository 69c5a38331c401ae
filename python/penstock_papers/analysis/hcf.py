# SPDX-License-Identifier: Apache-2.0
"""HCF's memory and hashes as formulas, and in how many of its runs it starves shorter than FIFO."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock import _native

if TYPE_CHECKING:
    from penstock.runs import Run


def counter_bytes(bins: int, credit: int) -> float:
    """Memory of counters of up to `credit` credits: K * ceil(log2(c0 + 1)) bits (HCF §III-C)."""
    return bins * math.ceil(math.log2(credit + 1)) / 8


def ideal_hashes(bins: int, flows: int) -> float:
    """Hashes with the fewest false positives in a Bloom filter: K / N * ln 2 (HCF §IV-A)."""
    return bins / flows * math.log(2)


def printed_memory(_runs: Mapping[str, object]) -> float:
    """The paper's example, bytes: 32 counters of 8 bits, which hold up to 255 credits."""
    return counter_bytes(32, 255)


def core_memory(_runs: Mapping[str, object]) -> float:
    """What `struct hcf_state` of `core/hcf.h` takes for a port of up to 256 bins, bytes."""
    schemes = json.loads(_native.definitions())["schemes"]
    return next(float(scheme["state_bytes"]) for scheme in schemes if scheme["name"] == "hcf")


def printed_hashes(_runs: Mapping[str, object]) -> float:
    """The ideal number of hash functions in the paper's simulations: 20 bins, 400 flows."""
    return ideal_hashes(20, 400)


def shorter(runs: Mapping[str, "Run"]) -> float:
    """The share of the runs in which the longest gap under HCF is below that under FIFO."""
    return _share(runs, "hcf")


def shorter_printed(runs: Mapping[str, "Run"]) -> float:
    """The same of Algorithm 1 as printed, whose queues do not swap."""
    return _share(runs, "hcf-paper")


def _share(runs: Mapping[str, "Run"], scheme: str) -> float:
    gaps = [
        {
            result["scheme"]: result["groups"]["block"]["longest_silence_s"]["max"]
            for result in run.summary["results"]
        }
        for run in runs.values()
    ]
    return sum(bool(gap[scheme] < gap["drop-tail"]) for gap in gaps) / len(gaps)
