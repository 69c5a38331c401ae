# SPDX-License-Identifier: Apache-2.0
"""The command `penstock open`: a page of results in the browser."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.report import redraw
from penstock.errors import ScenarioError


def open_page(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A folder of results, or one that holds several.",
        ),
    ] = Path("runs"),
    is_printed: Annotated[
        bool, typer.Option("--print", help="Print the page's path, and open nothing.")
    ] = False,
) -> None:
    """Open the page of a folder of results in a browser.

    For a folder that holds several, such as runs/, writes index.html, which lists them with links
    to their pages, and opens that. A page that is missing is written first.
    """
    page = _page(folder)
    if is_printed or not webbrowser.open(page.resolve().as_uri()):
        typer.echo(str(page))


def _page(folder: Path) -> Path:
    if not folder.is_dir():
        message = f"{folder}: no such folder; `penstock demo` makes runs/demo"
        raise ScenarioError(message)
    kind = next((kind for kind in folders.KINDS if folders.has_kind(folder, kind)), None)
    if kind is None:
        from penstock.show import index_page  # start-up: the templates

        return index_page.write(folder)
    page = folder / kind.page
    return page if page.is_file() else redraw(folder)
