# SPDX-License-Identifier: Apache-2.0
"""What the analysis takes from runs."""

from typing import TYPE_CHECKING

from penstock_papers.analysis.delay import Array

if TYPE_CHECKING:
    from penstock.runs import Run


def queue(run: "Run") -> tuple[Array, Array]:
    """Time, s, and length, bytes, of the only measured queue under the first seed."""
    samples = run.queues.filter(run.queues["seed"] == run.queues["seed"].min())
    return samples["time_s"].to_numpy(), samples["bytes"].to_numpy().astype(float)
