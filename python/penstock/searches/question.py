# SPDX-License-Identifier: Apache-2.0
"""The question of a search, as the user asked it, and the answer as `tune.json` keeps it."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import provenance
from penstock.execution import build, files_of
from penstock.searches.space import Parameter, Value
from penstock.searches.trial import Attempt
from penstock.searches.verdict import Check


@dataclass(frozen=True)
class Question:
    """What to search; a search with an equal question continues the earlier one."""

    scenario: str
    """As resolved, with the baseline's and the scheme's tables."""
    scheme: str
    baseline: str
    minimize: str
    subject_to: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    seeds: int
    seed: int
    on: str
    """The substrate."""

    def as_json(self) -> dict[str, Any]:
        """As JSON holds it, with the build that computes the answer, and what its files hold."""
        decided_by = {"build": build.digest(self.on), "files": files_of(self.scenario)}
        fields = asdict(self) | decided_by
        return json.loads(json.dumps(fields))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Tuned:
    """The answer, as `tune.json` keeps it."""

    folder: Path
    question: Question
    attempts: list[Attempt]
    best: Attempt
    """The best feasible trial, or the one nearest to that."""
    check: Check | None
    """None where no trial was feasible."""
    unit: str
    """Of the minimized number: `s`, `bps`, `bytes`, or empty."""
    scheme_toml: str
    agent_toml: str

    @property
    def is_feasible(self) -> bool:
        """Whether the best trial meets all constraints."""
        return self.best.is_feasible

    @property
    def title(self) -> str:
        """The scenario's."""
        return str(tomllib.loads(self.question.scenario)["title"])

    def values(self, attempt: Attempt) -> dict[str, Value]:
        """The parameters of a trial as a scenario has them, by key."""
        return {p.key: p.value(attempt.values[p.key]) for p in self.question.parameters}

    def as_json(self, sentences: Sequence[str]) -> dict[str, Any]:
        """What `tune.json` and `--json` have; `sentences` describe the answer."""
        return {
            "title": self.title,
            "feasible": self.is_feasible,
            "sentences": list(sentences),
            "unit": self.unit,
            "best": {
                "trial": self.best.number,
                "values": self.values(self.best),
                "objective": self.best.objective,
                "constraints": list(self.best.kept),
            },
            "check": self.check.as_json() if self.check else None,
            "scheme_toml": self.scheme_toml,
            "agent_toml": self.agent_toml,
            "trials": [{"trial": a.number, **asdict(a)} for a in self.attempts],
            "question": self.question.as_json(),
            **provenance.head(),
        }
