# SPDX-License-Identifier: Apache-2.0
"""The only place where Penstock refers to the package `penstock_papers`, which may be absent."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer

from penstock.errors import RunError

_PACKAGE = "penstock_papers"


def experiments() -> Path | None:
    """The folder of the papers' experiments; None without the package."""
    if find_spec(_PACKAGE) is None:
        return None
    folder: Path = import_module(_PACKAGE).experiments_dir()
    return folder


def add_command(app: typer.Typer) -> None:
    """Adds `reproduce` to the command line; without the package it fails with one line."""
    if find_spec(_PACKAGE) is None:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command("reproduce", context_settings=anything)(_absent)
        return
    reproduce = import_module(f"{_PACKAGE}.command").reproduce
    app.command(epilog="Example: penstock reproduce sicc-4 hcf-4")(reproduce)


def _absent(_: typer.Context) -> None:
    """Run experiments of the papers (needs the package penstock_papers)."""
    message = f"reproduce: the package {_PACKAGE} is not installed; run it in a source tree"
    raise RunError(message)
