# SPDX-License-Identifier: Apache-2.0
"""The commands that list and check: schemes, scenarios, schema, validate."""

import re
import sys
import tomllib
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from penstock.cli.options import (
    File,
    Format,
    Json,
    Settings,
    check_form,
    pairs,
    print_json,
    print_list,
    scheme_names,
)
from penstock.cli.show import show
from penstock.errors import Problem, ScenarioError

# The heading of a folder's scenarios.
_GROUPS = {
    "bench": "Benchmarks:",
    "calibration": "The simulator's Linux TCP, compared with the kernel's (`make calibrate`):",
    "crosscheck": "Compared with ns-2:",
    "docs": "Of the pages of the schemes:",
    "grant": "Measurements of Grant (evidence/grant/README.md):",
    "lab": "For the laboratory (`penstock run NAME --on lab`, as root):",
    "papers": "Experiments of the papers (`penstock reproduce` compares them with the claims):",
}


def schemes(
    scheme: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEME",
            help="Show this one's parameters instead, as `penstock show` does.",
            autocompletion=scheme_names,
        ),
    ] = None,
    as_json: Json = False,
    form: Format = "table",
) -> None:
    """List the built-in schemes: what each does, and where it comes from."""
    check_form(form, as_json=as_json)
    if scheme is not None:
        show(scheme, as_json)
        return
    from penstock import api  # start-up: the simulator

    listed = api.schemes()
    if as_json:
        print_json({"schemes": listed})
        return
    if form != "table":
        rows = [(scheme["name"], scheme["title"], scheme["source"]) for scheme in listed]
        typer.echo(_plain(form, ("name", "title", "source"), rows))
        return
    print_list([(scheme["name"], f"{scheme['title']} · {scheme['source']}") for scheme in listed])


def scenarios(
    word: Annotated[
        str,
        typer.Argument(metavar="WORD", help="Only those with this in their name or title."),
    ] = "",
    as_json: Json = False,
    form: Format = "table",
) -> None:
    """List the templates that come with Penstock; `penstock run NAME` runs one."""
    check_form(form, as_json=as_json)
    from penstock import scenario  # start-up: polars and the simulator

    every = [(name, scenario.title(path), path) for name, path in scenario.templates()]
    listed = [row for row in every if word.lower() in f"{row[0]} {row[1]}".lower()]
    if not listed:
        message = f"{word}: no scenario has this in its name or title; see `penstock scenarios`"
        raise ScenarioError(message)
    listed.sort(key=lambda row: _natural(row[0]))
    if as_json:
        keys = ("name", "title", "file")
        rows = [dict(zip(keys, map(str, row), strict=True)) for row in listed]
        print_json({"scenarios": rows})
        return
    if form != "table":
        typer.echo(_plain(form, ("name", "title"), [(name, text) for name, text, _ in listed]))
        return
    width = max(len(name) for name, _, _ in listed)
    for part, members in groupby(listed, lambda row: row[0].rpartition("/")[0]):
        if part:
            typer.echo(f"\n{_GROUPS.get(part, part)}")
        print_list([(name, title) for name, title, _ in members], width)


def _natural(name: str) -> tuple[str, list[str | int]]:
    """The folder, then names with their numbers in order; templates have no folder."""
    folder, _, own = name.rpartition("/")
    parts = re.split(r"(\d+)", own)
    return folder, [int(part) if part.isdecimal() else part for part in parts]


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from penstock import _native  # start-up: the simulator

    typer.echo(_native.schema().rstrip())


def validate(file: File, settings: Settings = None, as_json: Json = False) -> None:
    """Check a scenario, and print it with its defaults written out, or all that is wrong with it.

    Values that follow from the TCP profile, or from a port's rate and buffer, are not printed:
    `penstock run` derives them; docs/tcp.md and docs/schemes/ explain how. --json prints
    `problems`, a list of `line`, `text`, `key`, `what`, and `scenario`, null if there are any.
    """
    overrides = pairs(settings)
    from penstock import api  # start-up: the simulator

    try:
        text = api.resolved(file, overrides=overrides)
    except ScenarioError as error:
        if not as_json:
            for problem in error.lines():
                typer.echo(f"penstock: {problem}", err=True)
            sys.exit(error.exit_code)
        problems = error.problems or [Problem(None, str(error), "", str(error))]
        print_json({"problems": [problem._asdict() for problem in problems], "scenario": None})
        sys.exit(error.exit_code)
    if as_json:
        print_json({"problems": [], "scenario": tomllib.loads(text)})
    else:
        typer.echo(text.rstrip())


def _plain(form: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    from penstock.show import plain  # start-up: only where it is asked for

    if form == "csv":
        return plain.csv_text(headings, rows)
    return plain.markdown(headings, rows, has_numbers=False)
