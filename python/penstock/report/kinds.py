# SPDX-License-Identifier: Apache-2.0
"""Which page belongs to a folder: told by the file that each kind of folder has."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from penstock.errors import ScenarioError


class Kind(NamedTuple):
    """A kind of folder that has a page."""

    file: str
    """Whoever has it is of this kind."""
    made_by: str
    page: str
    """The page's usual name in the folder."""
    draw: str
    """`module:function`, imported when it is called: (folder, page) writes the page anew."""


KINDS = (
    Kind("run.json", "penstock run", "report.html", "penstock.report.kinds:run"),
    Kind("compare.json", "penstock compare", "compare.html", "penstock.report.kinds:comparison"),
    Kind(
        "reproduction.json",
        "penstock reproduce",
        "reproduction.html",
        "penstock_papers.html_report:again",
    ),
    Kind("sweep.json", "penstock sweep", "report.html", "penstock.sweep.page:again"),
    Kind("tune.json", "penstock tune", "report.html", "penstock.tune.page:again"),
)


def report(folder: Path, path: Path | None = None) -> Path:
    """Writes the page of a folder anew, with `figures/` beside it; returns the page's path.

    Args:
        folder: of a run, a comparison, or another of `KINDS`.
        path: of the page; default: its usual place in the folder.

    Raises:
        ScenarioError: the folder is of no kind that has a page.
        RunError: a file in it is missing or damaged.
    """
    for kind in KINDS:
        if (folder / kind.file).is_file():
            path = path or folder / kind.page
            module, _, name = kind.draw.partition(":")
            draw: Callable[[Path, Path], object] = getattr(import_module(module), name)
            draw(folder, path)
            return path
    if not folder.is_dir():
        message = f"{folder}: no such folder"
        raise ScenarioError(message)
    files = ", ".join(kind.file for kind in KINDS)
    commands = " or ".join(f"`{kind.made_by}`" for kind in KINDS)
    message = f"{folder}: nothing to report on (no {files}); make a folder with {commands}"
    raise ScenarioError(message)


def run(folder: Path, path: Path) -> None:
    """The page of a run."""
    from penstock.results import Run

    Run.load(folder).report(path)


def comparison(folder: Path, path: Path) -> None:
    """The page of a comparison."""
    from penstock.compare import Comparison
    from penstock.report.comparison import write

    write(Comparison.load(folder), path)
