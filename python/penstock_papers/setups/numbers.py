# SPDX-License-Identifier: Apache-2.0
"""The numbers that `papers/*/open.json` keeps: shares, what decides, and the nearest set-up."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from penstock_papers import open_space
from penstock_papers.experiment import Experiment
from penstock_papers.open_space import SetUp
from penstock_papers.setups import outcome, sensitivity
from penstock_papers.setups.sensitivity import Indices

Entry = Mapping[str, Any]
"""Of a set-up: `computed_s`, and `claims`, by id: whether it holds, and how far it is from a
printed number; None where it is not judged."""
Judged = Sequence[tuple[SetUp, Entry]]
"""The set-ups in the order of the samples, each with what it gave."""


def of(made: Experiment, judged: Judged) -> dict[str, Any]:
    """All numbers of an experiment."""
    ids = [outcome.short(claim.id, made) for claim in made.claims]
    found = {name: _indices(name, judged) for name in ids}
    known = [one for one in found.values() if one is not None]
    return {
        "set_ups": len(judged),
        "shortened": made.shortened,
        "computed_s": round(sum(entry["computed_s"] for _, entry in judged), 1),
        "open": list(made.open),
        "over_claims": _kept(sensitivity.mean(known)) if known else None,
        "nearest": _nearest(made, judged) if judged else None,
        "claims": {name: _claim(made, name, judged, found[name]) for name in ids},
    }


def _known(name: str, judged: Judged) -> list[tuple[SetUp, Any]]:
    """The set-ups in which a claim was judged, each with its verdict."""
    pairs = ((set_up, entry["claims"][name]) for set_up, entry in judged)
    return [(set_up, verdict) for set_up, verdict in pairs if verdict is not None]


def _indices(name: str, judged: Judged) -> Indices | None:
    known = _known(name, judged)
    places = [set_up.places for set_up, _ in known]
    return sensitivity.indices(places, [verdict[0] for _, verdict in known])


def _kept(found: Indices) -> dict[str, Any]:
    """The indices, and the greatest that chance gives."""
    own, random = found
    return {"indices": [round(index, 3) for index in own], "chance": round(max(random), 3)}


def _claim(made: Experiment, name: str, judged: Judged, found: Indices | None) -> dict[str, Any]:
    known = _known(name, judged)
    kept: dict[str, Any] = {"share": [sum(held for _, (held, _) in known), len(known)]}
    if found is None:
        return kept
    kept |= _kept(found)
    best = max(range(len(made.open)), key=lambda place: found[0][place])
    if kept["indices"][best] > kept["chance"]:
        groups: dict[str, list[int]] = {part: [0, 0] for part in _parts(made, best)}
        for set_up, verdict in known:
            group = groups[_part(made, best, set_up)]
            group[0] += verdict[0]
            group[1] += 1
        kept["split"] = [[part, *share] for part, share in groups.items()]
    return kept


def _parts(made: Experiment, place: int) -> list[str]:
    """The values of an open parameter, or the halves of its range."""
    parameter = open_space.parameters(made)[place]
    if parameter.choices:
        return [choice.shown for choice in parameter.choices]
    middle = parameter.at(0.5).shown
    return [f"below {middle}", f"from {middle}"]


def _part(made: Experiment, place: int, set_up: SetUp) -> str:
    if open_space.parameters(made)[place].choices:
        return set_up.choices[place].shown
    return _parts(made, place)[set_up.places[place] >= 0.5]


def _nearest(made: Experiment, judged: Judged) -> dict[str, Any]:
    """The set-up whose numbers are nearest to the printed ones; else that of most claims."""

    def apart(entry: Entry) -> float | None:
        known = [verdict[1] for verdict in entry["claims"].values() if verdict is not None]
        known = [one for one in known if one is not None]
        return statistics.fmean(known) if known else None

    def held(entry: Entry) -> int:
        return sum(verdict is not None and verdict[0] for verdict in entry["claims"].values())

    set_up, entry = min(judged, key=lambda pair: (apart(pair[1]) or 0.0, -held(pair[1])))
    mean = apart(entry)
    return {
        "settings": {
            key: choice.shown for key, choice in zip(made.open, set_up.choices, strict=True)
        },
        "apart": None if mean is None else round(math.exp(mean), 2),
        "held": held(entry),
        "judged": sum(verdict is not None for verdict in entry["claims"].values()),
    }
