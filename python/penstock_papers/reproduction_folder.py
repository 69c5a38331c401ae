# SPDX-License-Identifier: Apache-2.0
"""The folder of a reproduction: `reproduction.json`, its page, figures, and the runs."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock import _native, provenance
from penstock.errors import RunError, ScenarioError
from penstock_papers import reproduction
from penstock_papers.reproduction import Reproduction

NAME = "reproduction.json"
PAGE = "reproduction.html"


def check_target(folder: Path) -> None:
    """Refuses to write over anything but an earlier reproduction or an empty folder.

    Raises:
        ScenarioError: it is a file, or a folder that holds something else.
    """
    if folder.exists() and not (
        folder.is_dir() and ((folder / NAME).is_file() or not any(folder.iterdir()))
    ):
        message = f"{folder}: exists and is not a reproduction's folder; give another --out"
        raise ScenarioError(message)


def figures_of(folder: Path) -> Path:
    """The folder of the figures, made if need be."""
    (folder / "figures").mkdir(exist_ok=True)
    return folder / "figures"


def write(
    folder: Path, done: Sequence[Reproduction], *, quick: bool, wall_s: float, on: str
) -> None:
    """Writes `reproduction.json` and the page beside the runs."""
    document = {
        "command": provenance.command(),
        "date": datetime.now(UTC).date().isoformat(),
        "penstock": _native.__version__,
        "machine": provenance.machine(),
        "substrate": on,
        "quick": quick,
        "wall_s": round(wall_s, 1),
        **reproduction.as_json(done),
    }
    put(folder, document)


def put(folder: Path, document: dict[str, Any]) -> None:
    """Writes a document as `reproduction.json`, and the page made of it."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (folder / NAME).write_text(text + "\n", encoding="utf-8")
    figures_of(folder)
    from penstock_papers import html_report  # brings matplotlib

    html_report.again(folder, folder / PAGE)


def read(folder: Path) -> dict[str, Any]:
    """The document of a reproduction's folder.

    Raises:
        ScenarioError: the folder is none.
        RunError: its document is damaged.
    """
    path = folder / NAME
    if not path.is_file():
        message = f"{folder}: not a reproduction (no {NAME}); make one with `penstock reproduce`"
        raise ScenarioError(message)
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: {error}; run it again"
        raise RunError(message) from error
    return document


def claims_of(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The claims of each experiment that has any, by its id."""
    by_experiment: dict[str, list[Mapping[str, Any]]] = {}
    for claim in document["claims"]:
        by_experiment.setdefault(claim["experiment"], []).append(claim)
    return by_experiment
