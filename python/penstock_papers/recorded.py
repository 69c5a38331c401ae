# SPDX-License-Identifier: Apache-2.0
"""Recorded results: `papers/ID/recorded.json` has an experiment's numbers, verdicts and curves.

Those on real TCP are in `laboratory.json` next to it. With them the page of results and its figures
are drawn without running anything. Texts and claims are those of `claims.toml`; a claim that was
added later is not judged.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock import execution, folders
from penstock.errors import RunError
from penstock_papers import claims, drawing, experiment_files, reproduction, reproduction_folder
from penstock_papers.claims import Claim, Finding
from penstock_papers.experiment import Experiment
from penstock_papers.experiment_names import chosen, find
from penstock_papers.figure_data import Data
from penstock_papers.option_checks import recordable
from penstock_papers.reproduce import Ended
from penstock_papers.reproduction import Reproduction
from penstock_papers.values import Value

NAMES = {
    execution.SIMULATOR: "recorded.json",
    execution.LABORATORY: "laboratory.json",
    execution.OVS: "laboratory.json",
}
"""The file by substrate."""
_ORIGIN = ("command", "date", "penstock", "machine", "wall_s")
_DIGITS = 6
"""Significant digits of a claim's numbers."""
_LINE = 160
"""Longest line of the file, but for curves."""


def record(done: Sequence[Reproduction], document: Mapping[str, Any]) -> None:
    """Writes the file of each experiment; `document` is that of `reproduction.json`.

    Raises:
        ScenarioError: its runs were shortened.
    """
    recordable({"--quick": document["quick"], "--seeds": document.get("seeds")})
    origin = {key: document[key] for key in _ORIGIN}
    for one in [one for one in done if not one.failed]:
        kept = {
            "origin": origin,
            "result": {"seeds": one.seeds, "computed_s": round(one.computed_s, 1)},
            "claims": {
                _short(finding.id, one.experiment): _numbers(finding) for finding in one.findings
            },
            "figures": {drawn.drawing.name: drawn.data for drawn in one.drawn},
        }
        path = _path(one.experiment.id, document["substrate"])
        folders.write(path, _json(kept) + "\n")


def reproduce(
    ids: Sequence[str],
    *,
    on: str = execution.SIMULATOR,
    out: Path | None = None,
    ended: Ended | None = None,
) -> tuple[list[Reproduction], Path]:
    """A reproduction's folder from recorded results, without runs; as `reproduce.reproduce`.

    Of `all`, those of which something is recorded on that substrate.

    Raises:
        ScenarioError: no such experiment.
        RunError: nothing is recorded of one, or its file is damaged.
    """
    names = [name for name in chosen(ids) if name in ids or _path(name, on).exists()]
    wanted = [(experiment_files.load(name).played(on), read(name, on)) for name in names]
    folder = out or folders.free("reproduction")
    if not wanted:
        message = f"nothing is recorded: {_how('ID', on)}"
        raise RunError(message)
    with folders.replaced(folder, folders.REPRODUCTION) as new:
        done = []
        for made, kept in wanted:
            done.append(_reproduction(made, kept))
            for drawn in done[-1].drawn:
                drawn.save(reproduction_folder.figures_of(new))
            if ended is not None:
                ended(done[-1])
        origins = origin([kept for _, kept in wanted], on)
        document = {**origins, **reproduction.as_json(done)}
        reproduction_folder.put(new, document)
    return done, folder


def read(experiment: str, on: str = execution.SIMULATOR) -> dict[str, Any]:
    """The recorded results of an experiment.

    Raises:
        ScenarioError: no such experiment.
        RunError: nothing is recorded of it, or its file is damaged.
    """
    return folders.read_json(_path(experiment, on), _how(experiment, on))


def origin(recorded: Sequence[Mapping[str, Any]], on: str = execution.SIMULATOR) -> dict[str, Any]:
    """Where results come from, as `reproduction.json` has it: the commands, and the last date."""
    distinct = {json.dumps(one["origin"]): one["origin"] for one in recorded}
    in_order = sorted(distinct.values(), key=lambda one: str(one["date"]))
    return {
        **in_order[-1],
        "command": "; ".join(one["command"] for one in in_order),
        "wall_s": sum(one["wall_s"] for one in in_order),
        "substrate": on,
        "quick": False,
        "seeds": None,
    }


def _path(experiment: str, on: str) -> Path:
    return find(experiment) / NAMES[on]


def _how(experiment: str, on: str) -> str:
    where = "" if on == execution.SIMULATOR else f"--on {on} "
    return f"run `penstock reproduce {experiment} {where}--record`"


def _reproduction(made: Experiment, kept: Mapping[str, Any]) -> Reproduction:
    found = tuple(
        _finding(claim, kept["claims"].get(_short(claim.id, made))) for claim in made.claims
    )
    drawn = []
    for figure in made.figures:
        data: Data | None = kept["figures"].get(drawing.name_of(figure, made))
        if data is not None:
            drawn.append(drawing.redraw(figure, made, data))
    return Reproduction(made, found, drawn=tuple(drawn), **kept["result"])


def _numbers(finding: Finding) -> dict[str, Any]:
    """The finding without what the claim has."""
    sides = {
        key: _rounded(getattr(finding, key))
        for key in ("measured", "ci95", "against", "against_ci95")
    }
    kept = {"holds": finding.holds, "run": finding.run or None, **sides}
    return {key: value for key, value in kept.items() if value is not None}


def _finding(claim: Claim, kept: Mapping[str, Any] | None) -> Finding:
    if kept is None:
        return claims.unjudged(claim)
    measured, against = (
        Value(kept[mean], kept.get(half)) if mean in kept else None
        for mean, half in (("measured", "ci95"), ("against", "against_ci95"))
    )
    return claims.finding(claim, kept.get("holds"), measured, against, kept.get("run", ""))


def _short(claim_id: str, made: Experiment) -> str:
    """A claim's id without its experiment's, which the folder has."""
    return claim_id.removeprefix(f"{made.id}.")


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _json(value: Any, indent: int = 0) -> str:  # noqa: ANN401 (JSON)
    """JSON with a line for each claim and each curve."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    is_table = isinstance(value, dict)
    if len(text) <= _LINE or not (is_table or (value and isinstance(value[0], dict))):
        return text
    inner = indent + 1
    if is_table:
        rows = [f"{json.dumps(key)}: {_json(one, inner)}" for key, one in value.items()]
    else:
        rows = [_json(one, inner) for one in value]
    left, right = "{}" if is_table else "[]"
    return f",\n{' ' * inner}".join([left, *rows]).replace(",", "", 1) + f"\n{' ' * indent}{right}"
