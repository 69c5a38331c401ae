# SPDX-License-Identifier: Apache-2.0
"""The folder of a reproduction: `reproduction.json`, its page, figures, and the runs."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import folders, provenance
from penstock_papers import html_report, reproduction
from penstock_papers.reproduction import Reproduction
from penstock_papers.reproduction_document import NAME, PAGE, read


def figures_of(folder: Path) -> Path:
    """The folder of the figures, made if need be."""
    (folder / "figures").mkdir(exist_ok=True)
    return folder / "figures"


def write(
    folder: Path,
    done: Sequence[Reproduction],
    *,
    quick: bool,
    seeds: int | None,
    wall_s: float,
    on: str,
) -> None:
    """Writes `reproduction.json` and the page next to the runs."""
    document = {
        **provenance.head(),
        "substrate": on,
        "quick": quick,
        "seeds": seeds,
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
