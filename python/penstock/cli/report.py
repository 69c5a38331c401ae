# SPDX-License-Identifier: Apache-2.0
"""The command `penstock report`: the page of any folder of results."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders, papers


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a run, a comparison, a reproduction, a sweep or a search.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page to write; --pdf puts figures/ next to it. Default: in FOLDER.",
        ),
    ] = None,
    pdf: Annotated[
        bool,
        typer.Option(
            "--pdf",
            help="Write the figures as SVG and PDF too. Those of a reproduction always are.",
        ),
    ] = False,
) -> None:
    """Write a report again: one HTML page that needs no network; --pdf adds figures for papers.

    The folder is that of a run, a comparison, a reproduction, a sweep, or a search of `tune`.
    """
    typer.echo(f"Report: {redraw(folder, out, pdf=pdf)}")


def redraw(folder: Path, path: Path | None = None, *, pdf: bool = False) -> Path:
    """Writes the page of a folder again; returns the page's path.

    Args:
        folder: of a kind that `penstock.folders` lists.
        path: of the page; default: its usual place in the folder.
        pdf: write the figures as SVG and PDF too.

    Raises:
        ScenarioError: the folder is of no kind.
        RunError: a file in it is missing or damaged, or the page cannot be written.
    """
    kind = folders.kind_of(folder)
    path = path or folder / kind.page
    folders.check_file(path)
    from penstock.comparisons import comparison_page  # start-up: polars
    from penstock.runs import Run  # start-up: polars
    from penstock.searches import tune_page  # start-up: likewise
    from penstock.sweeps import sweep_page  # start-up: polars

    with folders.checked(folder):
        match kind:
            case folders.RUN:
                Run.load(folder).report(path, pdf=pdf)
            case folders.COMPARISON:
                comparison_page.redraw(folder, path, pdf=pdf)
            case folders.REPRODUCTION:
                papers.module("reproduction_folder").write_page(folder, path)
            case folders.SWEEP:
                sweep_page.redraw(folder, path, pdf=pdf)
            case folders.SEARCH:
                tune_page.redraw(folder, path, pdf=pdf)
    return path
