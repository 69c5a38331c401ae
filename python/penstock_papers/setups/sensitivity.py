# SPDX-License-Identifier: Apache-2.0
"""Which open value decides a claim: PAWN's index, by SALib, on the samples that were run.

PAWN (Pianosi, Wagener 2018) compares the distribution of a result where one value is confined to a
slice of its range with that over all samples, by the Kolmogorov-Smirnov distance. It needs no
samples of its own, and neither a linear nor a smooth dependence. The result is the verdict: the
index is how far the share of set-ups in which the claim holds differs from slice to slice. With few
samples every index is above 0: values drawn at random, which nothing depends on, show how much of
it is chance.
"""

import statistics
from collections.abc import Sequence

import numpy as np
from SALib.analyze import pawn  # type: ignore[import-untyped]

from penstock_papers.setups.robustness import FEWEST_TO_RANK

SLICES = 4
"""Of each range."""
RANDOM = 200
"""Random values; that one of ten open values is above all of theirs by chance is 1 case in 20."""


Indices = tuple[list[float], list[float]]
"""Of the open values, and of the random ones."""


def indices(places: Sequence[Sequence[float]], verdicts: Sequence[bool]) -> Indices | None:
    """How far a claim depends on each open value.

    Args:
        places: of each set-up the place of each value in its range, in [0, 1).
        verdicts: of each set-up whether the claim holds.

    Returns:
        None with too few set-ups, or where the verdict is the same in all.
    """
    if len(verdicts) < FEWEST_TO_RANK or len(set(verdicts)) < 2:
        return None
    own = len(places[0])
    random = np.random.default_rng(0).random((len(verdicts), RANDOM))
    table = np.column_stack([np.array(places), random])
    names = [str(place) for place in range(table.shape[1])]
    problem = {"num_vars": len(names), "names": names, "bounds": [[0, 1]] * len(names)}
    found = pawn.analyze(problem, table, np.array(verdicts, dtype=float), S=SLICES)["mean"]
    return [float(index) for index in found[:own]], [float(index) for index in found[own:]]


def mean(every: Sequence[Indices]) -> Indices:
    """The mean over several claims, value by value."""
    own, random = (
        [statistics.fmean(each) for each in zip(*side, strict=True)]
        for side in zip(*every, strict=True)
    )
    return own, random
