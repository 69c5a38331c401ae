# SPDX-License-Identifier: Apache-2.0
"""The command `penstock controller`: the program penstock-controller, in place of this one."""

import os
from pathlib import Path
from typing import Annotated

import click
import typer

_COMMANDS = ("run", "check", "status")


def _words(context: click.Context, incomplete: str) -> list[str]:
    """The commands of the program, and then its configuration, as the shell would list files."""
    if not context.params.get("words"):
        return [name for name in _COMMANDS if name.startswith(incomplete)]
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    files = [str(path) + "/" * path.is_dir() for path in sorted(folder.glob("[!.]*"))]
    return [file for file in files if file.endswith((".toml", "/"))]


def controller(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND FILE",
            help="run, check or status, and the configuration; status takes --json.",
            autocompletion=_words,
        ),
    ] = None,
) -> None:
    """Run the controller of OpenFlow switches, check its configuration, or show its status.

    It learns the network, predicts incast for SICC and counts flows for FairQ and HSCC. This is
    the program penstock-controller, which takes the same arguments.
    """
    from penstock.execution import build  # start-up: the simulator

    program = build.find(build.CONTROLLER)
    os.execv(program, [program, *(words or ["--help"])])
