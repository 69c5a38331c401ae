# SPDX-License-Identifier: Apache-2.0
"""Runs experiments, all at once; each is judged as soon as its own runs have ended."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from penstock import execution, folders
from penstock.errors import RunError, ScenarioError
from penstock.execution import Progress
from penstock.runs import Run
from penstock_papers import (
    claims,
    drawing,
    experiment_files,
    experiment_runs,
    reproduction_folder,
)
from penstock_papers.experiment import Experiment
from penstock_papers.experiment_names import chosen, shortened
from penstock_papers.experiment_runs import Work
from penstock_papers.reproduction import Reproduction

REPORTS = 4
"""Most runs of an experiment that get a report each; `penstock report` writes that of another."""

Ended = Callable[[Reproduction], object]
"""Called with each experiment as soon as it is judged."""


def reproduce(
    ids: Sequence[str],
    *,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    on: str = execution.SIMULATOR,
    progress: Progress | None = None,
    ended: Ended | None = None,
) -> tuple[list[Reproduction], Path]:
    """Runs experiments, judges their claims, and writes all into a folder, whole or not at all.

    Args:
        ids: of the experiments, as `sicc-4`; `all` stands for every one.
        quick: shortened, as each experiment's `[quick]` specifies.
        seeds: instead of those of the experiments.
        jobs: threads; default: one a core.
        cluster: the address of a Dask scheduler instead of this machine.
        out: the folder; default: a new one, `runs/reproduction`.
        on: the substrate, as `api.run` has it.
        progress: called with the fraction done and what is done.
        ended: called with each experiment as soon as it is judged.

    Returns:
        The experiments in the order of `ids`, and the folder.

    Raises:
        ScenarioError: no such experiment, or one that cannot run on this substrate.
        RunError: an experiment's `claims.toml` is wrong. An experiment that fails later is
            marked as `failed`.
    """
    names = shortened(ids)[0] if quick else chosen(ids)
    wanted = [experiment_files.load(name) for name in names]
    if on != execution.SIMULATOR:
        theory = [one.id for one in wanted if one.scenario is None]
        if theory or quick:
            what = f"{theory[0]}: is theory" if theory else "--quick: is for the simulator"
            message = f"{what}; leave out --on {on}"
            raise ScenarioError(message)
    wanted = [one.played(on, quick=quick) for one in wanted]
    if seeds is not None:
        wanted = [replace(one, seeds=seeds) for one in wanted]
    works = [experiment_runs.prepare(one, on) for one in wanted]
    folder = folders.free("reproduction") if out is None else Path(out)
    begun = time.monotonic()
    with folders.replaced(folder, folders.REPRODUCTION) as new:
        done = {}
        for work in experiment_runs.ended(works, jobs=jobs, cluster=cluster, progress=progress):
            one = done[work.experiment.id] = _finished(work, new)
            if ended is not None:
                ended(one)
        in_order = [done[one.id] for one in wanted]
        wall_s = time.monotonic() - begun
        reproduction_folder.write(new, in_order, quick=quick, seeds=seeds, wall_s=wall_s, on=on)
    return in_order, folder


def _finished(work: Work, folder: Path) -> Reproduction:
    """Judges, draws and saves; the rows are let go."""
    if not work.failures:
        computed, runs = work.computed_s, work.runs()
        try:
            return judged(work.experiment, runs, folder, computed)
        except RunError as error:  # the others' results are not lost for it
            work.failures[str(error)] = None
    unjudged = tuple(claims.unjudged(claim) for claim in work.experiment.claims)
    return Reproduction(work.experiment, unjudged, notes=tuple(work.failures), failed=True)


def judged(
    made: Experiment, runs: Mapping[str, Run], folder: Path, computed_s: float
) -> Reproduction:
    """Judges an experiment by its runs, and saves these and its figures into the folder."""
    schemes = {result["scheme"] for run in runs.values() for result in run.summary["results"]}
    found = tuple(claims.judge(claim, made.runs_of(claim), runs, schemes) for claim in made.claims)
    paths = {name: run_folder(made.id, name) for name in runs}
    for name, run in runs.items():
        run.info["findings"] = [finding.as_json() for finding in found]
        run.save(folder / paths[name], report=len(runs) <= REPORTS)
    drawn = tuple(drawing.draw(made, runs))
    for one in drawn:
        one.save(reproduction_folder.figures_of(folder))
    number = max((len(run.summary["seeds"]) for run in runs.values()), default=0)
    notes = tuple(
        f"{name}: {note}" if name else note for name, run in runs.items() for note in run.notes
    )
    return Reproduction(made, found, tuple(paths.values()), drawn, notes, number, computed_s)


def run_folder(experiment: str, run: str) -> str:
    """Where a run is kept, below the folder of the reproduction."""
    return "/".join(filter(None, (experiment, re.sub(r"[^\w.]+", "-", run))))
