# SPDX-License-Identifier: Apache-2.0
"""`papers/*/open.json`: what the set-ups of an experiment gave, for the map of all claims."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from penstock import folders
from penstock.errors import RunError
from penstock_papers import experiment_files, experiment_names
from penstock_papers.setups.outcome import Outcome

NAME = "open.json"
ORIGIN = ("command", "date", "penstock", "machine")


def keep(outcomes: Sequence[Outcome], document: Mapping[str, Any]) -> None:
    """Writes the file of each experiment; `document` is that of the folder's `open.json`."""
    origin = {key: document[key] for key in ORIGIN}
    for one in [one for one in outcomes if one.set_ups]:
        path = experiment_names.find(one.experiment.id) / NAME
        folders.write(path, _text({"origin": origin, **one.numbers}))


def read(ids: Sequence[str]) -> list[Outcome]:
    """The experiments with what was kept of them; without numbers where that is nothing.

    Raises:
        ScenarioError: no such experiment.
        RunError: a file is damaged.
    """
    return [Outcome(experiment_files.load(name), _numbers(name)) for name in ids]


def _numbers(name: str) -> dict[str, Any]:
    path = experiment_names.find(name) / NAME
    if not path.is_file():
        return {}
    kept = folders.read_json(path, f"run `penstock reproduce {name} --open --record`")
    if not isinstance(kept.get("claims"), dict):
        message = f"{path}: has no claims; run `penstock reproduce {name} --open --record`"
        raise RunError(message)
    return kept


def _text(kept: Mapping[str, Any]) -> str:
    """JSON with a line for each key and each claim."""
    lines = [f'"{key}": {_line(value)}' for key, value in kept.items() if key != "claims"]
    claims = ",\n  ".join(
        f"{json.dumps(name)}: {_line(value)}" for name, value in kept["claims"].items()
    )
    return "{" + ",\n ".join([*lines, f'"claims": {{\n  {claims}\n }}']) + "\n}\n"


def _line(value: Any) -> str:  # noqa: ANN401 (JSON)
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
