# SPDX-License-Identifier: Apache-2.0
"""What the analysis takes from runs: their quantities, which are texts with units, and queues."""

from typing import TYPE_CHECKING

from penstock.analysis.delay import Array

if TYPE_CHECKING:
    from penstock.results import Run

_UNITS = {
    **{"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12},
    **{"b/s": 1.0, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12},
    **{"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
}


def value(text: str) -> float:
    """A quantity in s, b/s or bytes.

    Raises:
        ValueError: it is none.
    """
    number, _, unit = text.strip().partition(" ")
    if unit not in _UNITS:
        message = f"'{text}': not a time, rate or size"
        raise ValueError(message)
    return float(number) * _UNITS[unit]


def queue(run: "Run") -> tuple[Array, Array]:
    """Time, s, and length, bytes, of the only measured queue under the first seed."""
    samples = run.queues.filter(run.queues["seed"] == run.queues["seed"].min())
    return samples["time_s"].to_numpy(), samples["bytes"].to_numpy().astype(float)
