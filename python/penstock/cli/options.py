# SPDX-License-Identifier: Apache-2.0
"""Options that several commands take, how `--json` prints, and the list of commands in help."""

import json
import re
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import suppress
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


def scheme_names() -> list[str]:
    """For the shell's completion."""
    from penstock import _native  # start-up: the simulator

    return list(json.loads(_native.schemes()))


def scenario_names(incomplete: str) -> list[str]:
    """Templates, and files as the shell would list them."""
    from penstock import scenario  # start-up: the simulator

    folder = Path(incomplete).parent if "/" in incomplete else Path()
    files = [str(path) + "/" * path.is_dir() for path in sorted(folder.glob("[!.]*"))]
    fitting = [file for file in files if file.endswith((".toml", "/"))]
    return [*(name for name, _ in scenario.templates()), *fitting]


def _scenario(context: click.Context) -> dict[str, Any]:
    """The scenario on this command line, which may end in an option without its value.

    Raises:
        ScenarioError: it cannot be run.
    """
    from penstock import api  # start-up: the simulator

    # Of such a line click has the words, but no arguments.
    return api.validate(context.params.get("file") or next(iter(context.args), "demo"))


def setting_keys(context: click.Context) -> list[str]:
    """The keys of the scenario on this command line, as `tcp.min_rto=`, and those it may have."""
    from penstock import _native  # start-up: the simulator

    schema = json.loads(_native.schema())["$defs"]

    def allowed(definition: str, table: dict[str, Any]) -> list[str]:
        for variant in schema[definition].get("oneOf", [schema[definition]]):
            keys: dict[str, Any] = variant["properties"]
            if keys.get("kind", {}).get("const") == table.get("kind"):
                return [key for key in keys if not isinstance(table.get(key), dict)]
        return []

    def flat(prefix: str, table: dict[str, Any]) -> Iterator[str]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from flat(f"{prefix}{key}.", value)
            else:
                yield f"{prefix}{key}="

    keys = [f"tcp.{key}=" for key in allowed("Tcp", {})]
    with suppress(ScenarioError):
        scenario = _scenario(context)
        keys += flat("", scenario)
        traffic = {f"traffic.{name}": table for name, table in scenario["traffic"].items()}
        of_all = [("Traffic", *item) for item in traffic.items()]
        for definition, prefix, table in [("Fabric", "fabric", scenario["fabric"]), *of_all]:
            keys += (f"{prefix}.{key}=" for key in allowed(definition, table))
    return list(dict.fromkeys(keys))


def number_names(context: click.Context) -> list[str]:
    """The numbers of the scenario on this command line, for the shell's completion."""
    from penstock import metric_names  # start-up: the simulator

    with suppress(ScenarioError):
        return list(map(metric_names.short, metric_names.names(_scenario(context))))
    return []


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A scenario in TOML, the name of a template, or - for standard input.",
        autocompletion=scenario_names,
    ),
]
Schemes = Annotated[
    list[str] | None,
    typer.Option(
        "--scheme",
        metavar="NAME",
        help="Only this scheme; may be repeated.",
        autocompletion=scheme_names,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a value by its dotted path; may be repeated.",
        autocompletion=setting_keys,
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
        help="Run seeds 1 to N and show means; or those of a list, such as 3,5,8.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Number of threads; default: one per core.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        click_type=click.Choice(["table", "csv", "md"]),
        help="Print tables, CSV with every number, or tables in Markdown.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="The run's folder; an old run in it is replaced. Default: runs/NAME, or where that is "
        "taken runs/NAME-2, ...",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Compute on the workers of this Dask scheduler, such as tcp://head:8786.",
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
        message = f"--seeds {text}: give a number of seeds, such as 5, or a list, such as 3,5,8"
        raise ScenarioError(message)
    numbers = [int(number) for number in text.split(",")]
    return numbers if "," in text else numbers[0]


def check_form(form: str, *, as_json: bool) -> None:
    """Refuses two forms of output.

    Raises:
        ScenarioError: both are given.
    """
    if as_json and form != "table":
        message = f"--format {form}: --json prints JSON; leave one of the two out"
        raise ScenarioError(message)


def print_json(value: dict[str, Any]) -> None:
    """Prints one JSON object, for `--json`."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_list(rows: list[tuple[str, str]], width: int = 0) -> None:
    """Names with their descriptions, wrapped to the terminal."""
    width = max(width, *(len(name) for name, _ in rows)) + 2
    for name, text in rows:
        room = max(shutil.get_terminal_size((100, 24)).columns - width, 20)
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        typer.echo(f"{name:<{width}}" + f"\n{'':<{width}}".join(lines))
