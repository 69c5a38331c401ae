# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock lab ...`."""

from typing import Annotated

import typer

from penstock.errors import RunError

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
    import json

    from penstock.lab import check as machine

    found = machine.findings()
    if as_json:
        typer.echo(json.dumps(machine.as_json(found), indent=2, ensure_ascii=False))
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
