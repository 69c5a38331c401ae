# SPDX-License-Identifier: Apache-2.0
"""What an experiment gave: its claims with their verdicts, its figures, what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.show.drawing import Drawing
from penstock_papers.claims import Finding
from penstock_papers.experiment import Experiment
from penstock_papers.figure_data import Data


@dataclass(frozen=True)
class Drawn:
    """A figure of the paper, drawn again."""

    drawing: Drawing
    where: str
    """Section and figure of the paper."""
    data: Data
    """The numbers it shows."""
    png: bytes = b""
    """Where the SVG is large."""

    def save(self, folder: Path) -> None:
        """Writes the figure's files."""
        self.drawing.save(folder)
        if self.png:
            (folder / f"{self.drawing.name}.png").write_bytes(self.png)


@dataclass(frozen=True)
class Reproduction:
    """One experiment, run again."""

    experiment: Experiment
    findings: tuple[Finding, ...]
    runs: tuple[str, ...] = ()
    """The folders of its runs, below that of the reproduction."""
    drawn: tuple[Drawn, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on its runs: that the machine was busy, or that one failed."""
    seeds: int = 0
    computed_s: float = 0.0
    """The time that its simulations took, on one core each."""
    failed: bool = False

    @property
    def held(self) -> int:
        """How many of the claims hold."""
        return sum(finding.holds is True for finding in self.findings)

    @property
    def judged(self) -> int:
        """How many of the claims could be judged."""
        return sum(finding.holds is not None for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Everything but the claims."""
        made = self.experiment
        return {
            "id": made.id,
            "paper": made.paper,
            "title": made.title,
            "about": made.about,
            "why": made.why,
            "shortened": made.shortened,
            "seeds": self.seeds,
            "computed_s": self.computed_s,
            "runs": list(self.runs),
            "figures": [
                {
                    "file": f"figures/{one.drawing.name}.svg",
                    "title": one.drawing.title,
                    "where": one.where,
                    "meaning": one.drawing.meaning,
                }
                for one in self.drawn
            ],
            "notes": list(self.notes),
            "held": self.held,
            "judged": self.judged,
        }


def as_json(done: Sequence[Reproduction]) -> dict[str, Any]:
    """What `penstock reproduce --json` prints."""
    return {
        "experiments": [one.as_json() for one in done],
        "held": sum(one.held for one in done),
        "judged": sum(one.judged for one in done),
        "claims": [
            {"experiment": one.experiment.id, **finding.as_json()}
            for one in done
            for finding in one.findings
        ],
    }


def claims_by_experiment(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The claims of each experiment that has any, by its id."""
    by_experiment: dict[str, list[Mapping[str, Any]]] = {}
    for claim in document["claims"]:
        by_experiment.setdefault(claim["experiment"], []).append(claim)
    return by_experiment
