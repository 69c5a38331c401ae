# SPDX-License-Identifier: Apache-2.0
"""Runs the set-ups that a paper leaves open, and judges every claim in each of them.

A journal in the folder has what each finished set-up gave, so that a command that was killed goes
on where it was. Set-ups are known by their tasks: other experiments, samples or seeds may share the
folder, and equal runs of several experiments run once.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock import folders, provenance
from penstock.errors import InterruptedRunError, RunError, ScenarioError, resumable
from penstock.execution import Progress
from penstock.sweeps.journal import JOURNAL, Journal
from penstock_papers import claims, experiment_files, experiment_runs, open_space
from penstock_papers.claims import Claim, Finding
from penstock_papers.experiment import Experiment
from penstock_papers.experiment_names import chosen
from penstock_papers.experiment_runs import Work
from penstock_papers.open_space import SetUp
from penstock_papers.setups import numbers, open_page, outcome
from penstock_papers.setups.outcome import Outcome

SAMPLES = 64
"""Set-ups of an experiment, unless given."""
KIND = folders.Kind("set-ups", "open.json", "penstock reproduce --open", "open.html")

Ended = Callable[[Outcome], object]
"""Called with each experiment as soon as its last set-up is judged."""


def explore(
    ids: Sequence[str],
    *,
    samples: int = SAMPLES,
    seed: int = 1,
    seeds: int = 1,
    quick: bool = False,
    jobs: int | None = None,
    cluster: str | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
    ended: Ended | None = None,
) -> tuple[list[Outcome], Path]:
    """Samples what experiments leave open, and judges their claims in each set-up.

    Args:
        ids: of the experiments; `all` stands for every one that leaves something open.
        samples: set-ups of each experiment.
        seed: of the samples.
        seeds: of the simulator, for each set-up; each set-up has its own.
        quick: the runs are shortened, as each experiment's `[quick]` specifies.
        jobs: threads; default: one a core.
        cluster: the address of a Dask scheduler instead of this machine.
        out: the folder; default: `runs/open`. What it has is not run again.
        progress: called with the fraction done and what is done.
        ended: called with each experiment as soon as its last set-up is judged.

    Returns:
        The experiments in the order of `ids`, and the folder.

    Raises:
        ScenarioError: no such experiment, one that leaves nothing open, or a set-up cannot run.
        RunError: an experiment's `claims.toml` is wrong, or SALib is not installed.
        InterruptedRunError: Ctrl-C. What was judged is in the folder.
    """
    if find_spec("SALib") is None:
        message = "reproduce --open needs SALib; install it with: pip install 'penstock[open]'"
        raise RunError(message)
    wanted = _wanted(ids)
    works: dict[Work, tuple[_Exploration, str]] = {}
    begun = time.monotonic()
    explorations = [
        _Exploration(one, samples, seed, seeds, works)
        for one in (one.quickly(seeds) if quick else one for one in wanted)
    ]
    folder = folders.for_work(KIND, "open", out, is_same=lambda _: True, other="")
    with folders.locked(folder, "exploration"), closing(Journal(folder / JOURNAL)) as journal:
        if not folders.has_kind(folder, KIND):  # so that the folder is known if this is killed
            folders.write_json(folder / KIND.file, outcome.as_json([]))
        missing = []
        for work, (one, key) in works.items():
            if key in journal.entries:
                one.entries[key] = journal.entries[key]
            else:
                missing.append(work)
        for one in [one for one in explorations if one.is_complete]:
            one.end(ended)
        options: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "progress": progress}
        try:
            for work in experiment_runs.ended(missing, **options):
                one, key = works[work]
                one.take(work, key, journal)
                if one.is_complete:
                    one.end(ended)
        except KeyboardInterrupt:
            judged = sum(len(one.entries) for one in explorations)
            finished = resumable(f"{judged} of {len(works)} set-ups", folder)
            message = f"interrupted; {finished}"
            raise InterruptedRunError(message) from None
    in_order = [one.outcome() for one in explorations]
    write(folder, in_order, time.monotonic() - begun)
    return in_order, folder


def _wanted(ids: Sequence[str]) -> list[Experiment]:
    """The experiments of these ids; `all`: those that leave something open."""
    wanted = [experiment_files.load(name) for name in chosen(ids)]
    if "all" in ids:
        return [one for one in wanted if one.open]
    if closed := next((one.id for one in wanted if not one.open), ""):
        message = f"{closed}: leaves nothing open; its claims.toml has no [open]"
        raise ScenarioError(message)
    return wanted


class _Exploration:
    """An experiment, and what its set-ups gave so far."""

    def __init__(
        self,
        made: Experiment,
        samples: int,
        seed: int,
        seeds: int,
        works: dict[Work, tuple["_Exploration", str]],
    ) -> None:
        """Samples the set-ups, each with seeds of its own, and adds their checked runs to `works`.

        Raises:
            ScenarioError: a set-up cannot run.
        """
        self.made, self.seed, self.seeds = made, seed, seeds
        self.set_ups: dict[str, SetUp] = {}
        """By their keys in the journal."""
        self.entries: dict[str, Any] = {}
        self.failed: list[str] = []
        self._outcome: Outcome | None = None
        for set_up in open_space.sample(made, samples, seed):
            work = _prepared(made, set_up, seeds)
            key = _key(work)
            if key not in self.set_ups:  # lists of few values have equal samples
                works[work] = self, key
                self.set_ups[key] = set_up

    @property
    def is_complete(self) -> bool:
        return len(self.entries) + len(self.failed) == len(self.set_ups)

    def take(self, work: Work, key: str, journal: Journal) -> None:
        """Judges a set-up whose runs have ended, and writes what it gave to the journal."""
        if not work.failures:
            try:
                self.entries[key] = _judged(work)
            except RunError as error:
                work.failures[str(error)] = None
        if work.failures:
            self.failed.append(f"set-up {self.set_ups[key].number}: {next(iter(work.failures))}")
        else:
            journal.add(key, self.entries[key])

    def end(self, ended: Ended | None) -> None:
        """Reports the experiment, whose last set-up is judged."""
        if ended is not None:
            ended(self.outcome())

    def outcome(self) -> Outcome:
        """What the set-ups gave."""
        if self._outcome is None:
            pairs = [(one, self.entries[k]) for k, one in self.set_ups.items() if k in self.entries]
            run = {"failed": self.failed, "seed": self.seed, "seeds": self.seeds}
            self._outcome = Outcome(self.made, {**run, **numbers.of(self.made, pairs)})
        return self._outcome


def write(folder: Path, outcomes: Sequence[Outcome], wall_s: float) -> None:
    """Writes `open.json` and the page."""
    document = {
        **provenance.head(),
        "wall_s": round(wall_s, 1),
        **outcome.as_json(outcomes),
    }
    folders.write_json(folder / KIND.file, document)
    folders.write(folder / KIND.page, open_page.render(document, outcomes))


def _prepared(made: Experiment, set_up: SetUp, seeds: int) -> Work:
    first = set_up.number * seeds + 1
    own = replace(
        made,
        runs={name: {**set_up.settings, **own} for name, own in made.runs.items()},
        seeds=tuple(range(first, first + seeds)),
    )
    try:
        work = experiment_runs.prepare(own)
    except ScenarioError as error:
        message = f"{made.id}: set-up {set_up.number} of [open]: {error}"
        raise ScenarioError(message) from None
    work.has_queues = any(side.analysis for claim in made.claims for side in claim.sides)
    return work


def _key(work: Work) -> str:
    """A digest of all that decides the verdicts: the runs, and the claims about them."""
    made = work.experiment
    parts = [
        made.id,
        repr(made.claims),
        {name: [task.key for task in one.tasks] for name, one in work.prepared.items()},
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _judged(work: Work) -> numbers.Entry:
    """What a set-up gave, as the journal has it."""
    made, computed_s, runs = work.experiment, work.computed_s, work.runs()
    schemes = {result["scheme"] for run in runs.values() for result in run.summary["results"]}
    return {
        "computed_s": round(computed_s, 3),
        "claims": {
            outcome.short(claim.id, made): _verdict(
                claim, claims.judge(claim, made.runs_of(claim), runs, schemes)
            )
            for claim in made.claims
        },
    }


def _verdict(claim: Claim, found: Finding) -> list[Any] | None:
    """Whether it holds, and how far it is from a printed number; None: not judged."""
    if found.holds is None:
        return None
    if not outcome.states_a_number(claim):
        return [found.holds, None]
    return [found.holds, outcome.distance(claim, found.measured, found.against)]
