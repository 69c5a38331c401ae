# SPDX-License-Identifier: Apache-2.0
"""Options that several commands take, how `--json` prints, and the list of commands in help."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from typer.core import TyperGroup

from penstock.errors import ScenarioError


class Commands(TyperGroup):
    """Describes each command in a whole sentence, where click would cut it."""

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of the commands."""
        rows = [
            (name, (command.help or "").split("\n\n")[0]) for name, command in self.commands.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in rows])


def _scheme_names() -> list[str]:
    from penstock import _native  # start-up: the simulator

    return list(json.loads(_native.schemes()))


File = Annotated[
    str, typer.Argument(metavar="FILE", help="A scenario in TOML, or the name of a template.")
]
Schemes = Annotated[
    list[str] | None,
    typer.Option(
        "--scheme",
        metavar="NAME",
        help="Only this scheme; may be repeated.",
        autocompletion=_scheme_names,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a value by its dotted path; may be repeated."
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", min=1, help="Run seeds 1 to N and show means.", show_default=False),
]
SeedList = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N",
        help="Run seeds 1 to N and show means; or those of a list, as 3,5,8.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Number of threads; default: one per core.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="The run's folder; default: runs/NAME. Replaces a run only."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Compute on the workers of this Dask scheduler, as tcp://head:8786.",
    ),
]
On = Annotated[
    str,
    typer.Option(
        "--on",
        click_type=click.Choice(["sim", "lab", "ovs"]),
        help=(
            "Run in the simulator, or in the laboratory, on real TCP on this machine as root: lab, "
            "or ovs with Open vSwitch and a controller."
        ),
    ),
]


def pairs(settings: list[str] | None) -> list[tuple[str, str]]:
    """The `--set KEY=VALUE` options as pairs.

    Raises:
        ScenarioError: one is not of this form.
    """
    split = []
    for text in settings or ():
        key, equals, value = text.partition("=")
        if not (key and equals):
            message = f"--set {text}: give KEY=VALUE, such as --set tcp.min_rto='10 ms'"
            raise ScenarioError(message)
        split.append((key.strip(), value.strip()))
    return split


def seeds_of(text: str | None) -> int | list[int] | None:
    """The seeds of `--seeds`: their number, or those of a list.

    Raises:
        ScenarioError: it is neither.
    """
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,17}|\d{1,18}(,\d{1,18})+", text, re.ASCII):
        message = f"--seeds {text}: give a number of seeds, as 5, or a list of them, as 3,5,8"
        raise ScenarioError(message)
    numbers = [int(number) for number in text.split(",")]
    return numbers if "," in text else numbers[0]


def print_json(value: dict[str, Any]) -> None:
    """Prints one JSON object, for `--json`."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
