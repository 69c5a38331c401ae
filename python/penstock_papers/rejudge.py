# SPDX-License-Identifier: Apache-2.0
"""Judges and draws a reproduction again from its runs, as after a change of `claims.toml`."""

from collections.abc import Callable
from pathlib import Path

from penstock.errors import RunError
from penstock.runs import Run
from penstock_papers import (
    experiment_files,
    reproduction,
    reproduction_document,
    reproduction_folder,
)
from penstock_papers.experiment import Experiment
from penstock_papers.reproduce import judged, run_folder
from penstock_papers.reproduction import Reproduction


def again(
    folder: Path, ended: Callable[[Reproduction], object] | None = None
) -> list[Reproduction]:
    """Judges every experiment of a reproduction's folder again; nothing is simulated.

    The texts and claims are the current ones, the numbers those of the runs in the folder. Its
    command, machine and date are kept.

    Args:
        folder: of an earlier reproduction; changed in place.
        ended: called with each experiment as soon as it is judged.

    Raises:
        ScenarioError: the folder is no reproduction.
        RunError: it lacks a run that an experiment has today, or a `claims.toml` is wrong.
    """
    document = reproduction_document.read(folder)
    old = {one["id"]: one for one in document["experiments"]}
    on, quick = document["substrate"], document["quick"]
    wanted = [experiment_files.load(name).played(on, quick=quick) for name in old]
    found = {one.id: _runs(one, folder) for one in wanted}  # all are there before any is changed
    done = []
    for one in wanted:
        runs = {name: Run.load(path) for name, path in found[one.id].items()}
        done.append(judged(one, runs, folder, old[one.id]["computed_s"]))
        if ended is not None:
            ended(done[-1])
    reproduction_folder.put(folder, {**document, **reproduction.as_json(done)})
    return done


def _runs(one: Experiment, folder: Path) -> dict[str, Path]:
    if one.scenario is None:
        return {}
    found = {name: folder / run_folder(one.id, name) for name in one.runs}
    for name, path in found.items():
        if not (path / "run.json").is_file():
            message = f"{path}: no run '{name}' of {one.id}; run it: `penstock reproduce {one.id}`"
            raise RunError(message)
    return found
