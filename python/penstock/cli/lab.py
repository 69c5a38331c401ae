# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock lab ...`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.options import Commands, print_json
from penstock.cli.run import run
from penstock.cli.sweep import sweep
from penstock.errors import RunError

app = typer.Typer(
    cls=Commands,
    help="The laboratory: scenarios on real TCP in network namespaces (needs root).",
    epilog="Begin with: penstock lab check",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")]


@app.command(epilog="Example: penstock lab check --json")
def check(as_json: Json = False) -> None:
    """Check whether this machine can run the laboratory; list what is missing, with remedies."""
    from penstock import lab  # start-up: the simulator
    from penstock.execution.lab import check as machine  # start-up: likewise

    findings = lab.check()
    if as_json:
        print_json(machine.as_json(findings))
    else:
        for finding in findings:
            typer.echo(str(finding))
    if not machine.can_run(findings):
        message = "lab: this machine cannot run it yet; the lines above have the remedies"
        raise RunError(message)


@app.command(epilog="Example: sudo penstock lab clean")
def clean() -> None:
    """Remove namespaces that killed runs left on this machine; every run does so first."""
    from penstock import lab  # start-up: the simulator

    namespaces = lab.clean()
    typer.echo(f"Removed {len(namespaces)} namespaces." if namespaces else "Nothing was left.")


_MIXES = ("incast", "incast-elephants")
_CLIENTS, _FEW_CLIENTS = "16,32,48,64,96,126,252,630", "16,64,252"


@app.command(epilog="Example: sudo penstock lab demo --quick")
def demo(
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs of each scenario.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run shorter, with fewer clients.")
    ] = False,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder; default: runs/lab-demo."),
    ] = None,
) -> None:
    """Run five schemes on real TCP, with and without elephants, then with more and more clients.

    Takes some six minutes, or two with --quick. These are `penstock run lab/incast --on lab`,
    the same with lab/incast-elephants, and `penstock sweep lab/sweep --on lab` over the number of
    clients, each with its own folder in DIR. --json prints the JSON objects of the three.
    """
    folder = out or folders.free("lab-demo")
    settings = ["duration=2 s"] if quick else None
    for mix in _MIXES:
        run(
            f"lab/{mix}",
            settings=settings,
            seeds=str(repeats),
            on="lab",
            out=folder / mix,
            as_json=as_json,
        )
    sweep(
        "lab/sweep",
        [f"traffic.web.flows={_FEW_CLIENTS if quick else _CLIENTS}"],
        settings=settings,
        on="lab",
        show=["web.late", "web.fct.p99"],
        out=folder / "clients",
        as_json=as_json,
    )
