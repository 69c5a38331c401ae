# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock lab ...`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import RunError
from penstock.options import print_json

app = typer.Typer(
    help="The laboratory: scenarios on real TCP in network namespaces (needs root).",
    epilog="Begin with: penstock lab check",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")]


@app.command(epilog="Example: penstock lab check --json")
def check(as_json: Json = False) -> None:
    """Say whether this machine can hold the laboratory, part by part, and what to do if not."""
    from penstock.lab import check as machine

    found = machine.findings()
    if as_json:
        print_json(machine.as_json(found))
    else:
        for one in found:
            typer.echo(str(one))
    if not all(one.holds for one in found if one.is_needed):
        message = "lab: this machine cannot hold it yet; the lines above say what to do"
        raise RunError(message)


@app.command(epilog="Example: sudo penstock lab clean")
def clean() -> None:
    """Remove what dead runs left on this machine; every run does so before it begins."""
    from penstock.lab import system

    system.need_root()
    found = system.leftovers()
    with system.locked():
        pass
    typer.echo(f"Removed {len(found)} namespaces." if found else "Nothing was left.")


@app.command(epilog="Example: sudo penstock lab demo --quick")
def demo(
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Of each mix.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter runs, fewer clients.")] = False,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Default: runs/lab-demo.")
    ] = None,
) -> None:
    """Run five schemes on real TCP, with and without elephants, then with ever more clients.

    Takes some six minutes, or two with --quick.
    """
    from penstock import results
    from penstock.lab import demo as demonstration

    folder = out or results.free_folder("lab-demo")
    done = demonstration.demonstrate(repeats, folder, is_quick=quick)
    if as_json:
        print_json(done.as_json())
        return
    demonstration.show(done)
    typer.echo(f"Page: {folder / 'demo.html'}")
