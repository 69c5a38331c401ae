# SPDX-License-Identifier: Apache-2.0
"""Runs experiments: all their simulations at once, each judged as soon as its own are in."""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from penstock import api, execution, folders
from penstock.api import Prepared
from penstock.errors import PenstockError, RunError, ScenarioError
from penstock.execution import Progress, Row, Task
from penstock.runs import Run
from penstock_papers import claims, experiment_files, reproduction_folder
from penstock_papers.experiment import Experiment
from penstock_papers.reproduction import Reproduction

REPORTS = 4
"""Most runs of an experiment that get a report each; `penstock report` writes it of the others."""


@dataclass
class _Work:
    """An experiment whose simulations are under way."""

    experiment: Experiment
    prepared: dict[str, Prepared]
    missing: set[Task]
    rows: dict[Task, Row] = field(default_factory=dict)
    failures: dict[str, None] = field(default_factory=dict)


def reproduce(
    ids: Sequence[str],
    *,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    out: Path | None = None,
    on: str = execution.SIMULATOR,
    progress: Progress | None = None,
    ended: Callable[[Reproduction], object] | None = None,
) -> tuple[list[Reproduction], Path]:
    """Runs experiments, judges their claims, and writes all into a folder, whole or not at all.

    Args:
        ids: of the experiments, as `sicc-4`; `all` stands for every one.
        quick: shortened, as each experiment's `[quick]` says.
        seeds: instead of what the experiments say.
        jobs: threads; default: one a core.
        cluster: the address of a Dask scheduler instead of this machine.
        out: the folder; default: a new one, `runs/reproduction`.
        on: the substrate, as `api.run` has it.
        progress: called with the fraction done and what is done.
        ended: called with each experiment as soon as it is judged.

    Returns:
        The experiments in the order of `ids`, and the folder.

    Raises:
        ScenarioError: no such experiment, or one that cannot run here.
        RunError: an experiment's `claims.toml` is wrong. One that fails later is told as `failed`.
    """
    wanted = [experiment_files.load(name) for name in chosen(ids)]
    if on == execution.LABORATORY:
        theory = [one.id for one in wanted if one.scenario is None]
        if theory or cluster or quick:
            option = "--cluster" if cluster else "--quick"
            what = f"{theory[0]}: is theory" if theory else f"{option}: is for the simulator"
            message = f"{what}; leave out --on lab"
            raise ScenarioError(message)
        wanted = [one.in_laboratory() for one in wanted]
    wanted = [one.quickly() if quick else one for one in wanted]
    if seeds is not None:
        wanted = [replace(one, seeds=seeds) for one in wanted]
    folder = out or folders.free("reproduction")
    reproduction_folder.check_target(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        done: list[Reproduction] = []
        make = _in_laboratory if on == execution.LABORATORY else _simulated
        for reproduction in make(wanted, new, jobs, cluster, progress):
            done.append(reproduction)
            if ended is not None:
                ended(reproduction)
        order = {one.id: place for place, one in enumerate(wanted)}
        done.sort(key=lambda reproduction: order[reproduction.experiment.id])
        reproduction_folder.write(new, done, quick=quick, wall_s=time.monotonic() - begun, on=on)
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        new.rename(folder)
    return done, folder


def chosen(ids: Sequence[str]) -> list[str]:
    """The ids, `all` replaced by every experiment, each once.

    Raises:
        ScenarioError: there is none of such an id.
    """
    for name in ids:
        if name != "all":
            experiment_files.find(name)
    names = [name for name, _ in experiment_files.listed()] if "all" in ids else ids
    return list(dict.fromkeys(names))


def _simulated(
    wanted: Sequence[Experiment],
    folder: Path,
    jobs: int | None,
    cluster: str | None,
    progress: Progress | None,
) -> Iterator[Reproduction]:
    works = [_prepare(one) for one in wanted]
    users: dict[Task, list[_Work]] = {}
    for work in works:
        for task in work.missing:
            users.setdefault(task, []).append(work)
    in_order = dict.fromkeys(
        task for work in works for p in work.prepared.values() for task in p.tasks
    )

    def failed(task: Task, error: PenstockError) -> None:
        for work in users[task]:
            work.failures[f"{task.scheme}, seed {task.seed}: {error}"] = None
            work.missing.discard(task)

    for work in [work for work in works if not work.missing]:
        works.remove(work)
        yield _finished(work, folder)
    for task, row in execution.execute(
        in_order, jobs=jobs, cluster=cluster, progress=progress, failed=failed
    ):
        for work in users[task]:
            work.rows[task] = row
            work.missing.discard(task)
        for work in [work for work in works if not work.missing]:
            works.remove(work)
            yield _finished(work, folder)
    for work in works:  # whose last simulation failed
        yield _finished(work, folder)


def _prepare(made: Experiment) -> _Work:
    prepared = {}
    if made.scenario is not None:
        for name, overrides in made.runs.items():
            prepared[name] = api.prepare(
                made.scenario,
                schemes=made.schemes or None,
                overrides=overrides,
                seeds=made.seeds,
            )
    return _Work(made, prepared, {task for one in prepared.values() for task in one.tasks})


def _finished(work: _Work, folder: Path) -> Reproduction:
    """Judges, draws and saves; the rows are let go."""
    if not work.failures:
        computed = sum(json.loads(row[2])["performance"]["wall_s"] for row in work.rows.values())
        runs = {name: one.collect(work.rows) for name, one in work.prepared.items()}
        work.rows.clear()
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
    folders = {name: run_folder(made.id, name) for name in runs}
    for name, run in runs.items():
        run.info["findings"] = [finding.as_json() for finding in found]
        run.save(folder / folders[name], report=len(runs) <= REPORTS)
    from penstock_papers import drawing

    drawn = tuple(drawing.draw(made, runs))
    for one in drawn:
        one.save(reproduction_folder.figures_of(folder))
    number = max((len(run.summary["seeds"]) for run in runs.values()), default=0)
    notes = _notes(runs)
    return Reproduction(made, found, tuple(folders.values()), drawn, notes, number, computed_s)


def run_folder(experiment: str, run: str) -> str:
    """Where a run is kept, below the folder of the reproduction."""
    return "/".join(filter(None, (experiment, re.sub(r"[^\w.]+", "-", run))))


def _in_laboratory(
    wanted: Sequence[Experiment],
    folder: Path,
    jobs: int | None,
    _: str | None,
    progress: Progress | None,
) -> Iterator[Reproduction]:
    """One run after another: real TCP needs the machine for itself."""
    total = sum(len(one.runs) for one in wanted)
    done = count()
    for made in wanted:
        assert made.scenario is not None
        runs = {}
        begun = time.monotonic()
        for name, overrides in made.runs.items():
            label, before = f"{made.id} {name}".strip(), next(done)

            def listen(fraction: float, said: str, label: str = label, n: int = before) -> None:
                if progress is not None:
                    progress((n + fraction) / total, f"{label}: {said}")

            runs[name] = api.run(
                made.scenario,
                schemes=made.schemes or None,
                overrides=overrides,
                seeds=made.seeds,
                jobs=jobs,
                progress=listen,
                on=execution.LABORATORY,
            )
        yield judged(made, runs, folder, time.monotonic() - begun)


def _notes(runs: Mapping[str, Run]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {note}" if name else note for name, run in runs.items() for note in run.notes
    )
