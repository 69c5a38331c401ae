# SPDX-License-Identifier: Apache-2.0
"""What the set-ups of an experiment gave, claim by claim."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock_papers import open_space
from penstock_papers.claims import Claim, published
from penstock_papers.experiment import Experiment
from penstock_papers.measures import Measure
from penstock_papers.open_space import Parameter
from penstock_papers.setups.robustness import Kind, Share

Numbers = Mapping[str, Any]
"""As `papers/*/open.json` has them; `numbers` of `explore` makes them."""


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim over all set-ups."""

    claim: Claim
    share: Share
    indices: Mapping[str, float]
    """Of each open value how much the claim depends on it; empty with too few set-ups."""
    chance: float
    """The greatest index that chance gives."""
    split: tuple[tuple[str, Share], ...] = ()
    """The share for each value, or each half of the range, of what decides."""

    @property
    def decides(self) -> str:
        """The open value that the claim depends on most; empty where none is above chance."""
        if not self.indices:
            return ""
        key = max(self.indices, key=lambda name: self.indices[name])
        return key if self.indices[key] > self.chance else ""

    @property
    def decided(self) -> str:
        """What decides and how, as people read it."""
        if not self.decides:
            return ""
        shares = ", ".join(
            f"{name}: {share.value:.0%}" for name, share in self.split if share.judged
        )
        return f"{self.decides} ({shares.replace('%', ' %')})" if shares else self.decides

    def as_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        low, high = self.share.interval
        return {
            "id": self.claim.id,
            "text": self.claim.text,
            "where": self.claim.where,
            "published": self.claim.published,
            "held": self.share.held,
            "judged": self.share.judged,
            "share": self.share.value,
            "interval": [low, high],
            "kind": self.share.kind,
            "indices": dict(self.indices),
            "chance": self.chance,
            "decides": self.decides,
            "split": [
                {"of": name, "held": share.held, "judged": share.judged}
                for name, share in self.split
            ],
        }


@dataclass(frozen=True)
class Outcome:
    """An experiment over all set-ups; none where none were run."""

    experiment: Experiment
    numbers: Numbers

    @property
    def set_ups(self) -> int:
        """How many were judged."""
        return int(self.numbers.get("set_ups", 0))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What is open today."""
        return open_space.parameters(self.experiment)

    @property
    def claims(self) -> tuple[ClaimOutcome, ...]:
        """Those of `claims.toml` today; one that was added since has no set-ups."""
        return tuple(self._claim(claim) for claim in self.experiment.claims)

    def _claim(self, claim: Claim) -> ClaimOutcome:
        kept = self.numbers.get("claims", {}).get(short(claim.id, self.experiment), {})
        return ClaimOutcome(
            claim,
            Share(*kept.get("share", (0, 0))),
            dict(zip(self.numbers.get("open", ()), kept.get("indices", ()), strict=False)),
            kept.get("chance", 0.0),
            tuple((name, Share(*share)) for name, *share in kept.get("split", ())),
        )

    @property
    def counts(self) -> Counter[Kind]:
        """How many claims are of each kind."""
        return counted([self])

    @property
    def deciding(self) -> list[str]:
        """The open values on which the claims depend, taken together, most first."""
        over = self.numbers.get("over_claims")
        if not over:
            return []
        known = zip(over["indices"], self.numbers["open"], strict=True)
        return [key for index, key in sorted(known, reverse=True) if index > over["chance"]]

    @property
    def nearest(self) -> str:
        """The set-up nearest to the paper, as a sentence."""
        near = self.numbers.get("nearest")
        if not near:
            return ""
        place = ", ".join(f"{key} = {value}" for key, value in near["settings"].items())
        held = f"{near['held']} of {near['judged']} claims hold"
        if near["apart"] is None:
            return f"{place}: {held}, the most"
        apart = f"its numbers are a factor of {near['apart']:.2f} from the printed ones"
        return f"{place}: {apart}, and {held}"

    def as_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        made = self.experiment
        return {
            "id": made.id,
            "paper": made.paper,
            "title": made.title,
            **{key: self.numbers.get(key) for key in RUN},
            "open": [
                {"key": one.key, "given": one.given, "reason": one.table.reason}
                for one in self.parameters
            ],
            "deciding": self.deciding,
            "nearest": self.numbers.get("nearest"),
            "counts": {kind: self.counts[kind] for kind in Kind},
            "claims": [one.as_json() for one in self.claims],
        }


RUN = ("set_ups", "failed", "seed", "seeds", "shortened", "computed_s")
"""The keys that describe how the set-ups were run."""


def counted(outcomes: Iterable[Outcome]) -> Counter[Kind]:
    """How many claims are of each kind."""
    return Counter(claim.share.kind for one in outcomes for claim in one.claims)


def as_json(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What `penstock reproduce --open --json` prints."""
    every = list(outcomes)
    counts = counted(every)
    return {
        "counts": {kind: counts[kind] for kind in Kind},
        "experiments": [one.as_json() for one in every],
    }


def short(claim_id: str, made: Experiment) -> str:
    """A claim's id without its experiment's."""
    return claim_id.removeprefix(f"{made.id}.")


def states_a_number(claim: Claim) -> bool:
    """Whether the paper prints what the claim's number is, or how many times another's."""
    if isinstance(claim.against, Measure):
        return claim.relation in ("lower", "higher") and claim.factor != 1
    return claim.relation in ("within", "about") and claim.against != 0


FARTHEST = math.log(100)
"""What a number counts for that is missing, or further away than this factor."""


def distance(claim: Claim, measured: float | None, against: float | None) -> float:
    """How far a number is from the printed one: the logarithm of their ratio.

    A claim of at least a factor is at no distance where it holds.
    """
    if measured is None or against is None or measured <= 0 or against <= 0:
        return 0.0 if claim.is_borne_out(measured, against) else FARTHEST
    if isinstance(claim.against, Measure):
        times = against / measured if claim.relation == "lower" else measured / against
        return min(max(0.0, math.log(claim.factor / times)), FARTHEST)
    return min(abs(math.log(measured / against)), FARTHEST)


def printed(claim: Claim) -> str:
    """What is printed, as text."""
    return published(claim.published)
