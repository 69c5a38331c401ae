# SPDX-License-Identifier: Apache-2.0
"""The folder of a reproduction: `reproduction.json`, its page, figures, and the runs."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import folders, provenance
from penstock.errors import ScenarioError
from penstock_papers import html_report, reproduction
from penstock_papers.reproduction import Reproduction

NAME, PAGE = folders.REPRODUCTION.file, folders.REPRODUCTION.page


def figures_of(folder: Path) -> Path:
    """The folder of the figures, made if need be."""
    (folder / "figures").mkdir(exist_ok=True)
    return folder / "figures"


def write(
    folder: Path, done: Sequence[Reproduction], *, quick: bool, wall_s: float, on: str
) -> None:
    """Writes `reproduction.json` and the page next to the runs."""
    document = {
        **provenance.head(),
        "substrate": on,
        "quick": quick,
        "wall_s": round(wall_s, 1),
        **reproduction.as_json(done),
    }
    put(folder, document)


def put(folder: Path, document: dict[str, Any]) -> None:
    """Writes a document as `reproduction.json`, and its page."""
    folders.write_json(folder / NAME, document)
    figures_of(folder)
    write_page(folder, folder / PAGE)


def write_page(folder: Path, path: Path) -> None:
    """Writes the page of a reproduction's folder, with `figures/` next to it.

    Raises:
        ScenarioError: the folder is no reproduction.
    """
    document = read(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.resolve() != folder.resolve():
        shutil.copytree(folder / "figures", path.parent / "figures", dirs_exist_ok=True)
    path.write_text(html_report.render(document, folder, path.parent), encoding="utf-8")


def read(folder: Path) -> dict[str, Any]:
    """The document of a reproduction's folder.

    Raises:
        ScenarioError: the folder is none.
        RunError: its document is damaged.
    """
    if not folders.has_kind(folder, folders.REPRODUCTION):
        message = f"{folder}: not a reproduction (no {NAME}); make one with `penstock reproduce`"
        raise ScenarioError(message)
    return folders.read_json(folder / NAME, "run it again")
