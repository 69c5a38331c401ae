# SPDX-License-Identifier: Apache-2.0
"""The command `penstock show`: one scheme and its parameters, from the schema of scenarios."""

import difflib
import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from penstock.cli.lists import print_list
from penstock.cli.options import Json, print_json, scheme_names
from penstock.errors import ScenarioError

_PARTS = ("queue", "window", "controller")


def show(
    scheme: Annotated[
        str,
        typer.Argument(
            metavar="SCHEME",
            help="A built-in scheme, as `penstock schemes` lists them.",
            autocompletion=scheme_names,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show a built-in scheme: its parts, and the meaning, range and default of each parameter.

    Parameters are keys of a scenario: --set scheme.fairq.window.alpha=0.2. --json prints `name`,
    `title`, `source`, and `parameters`: a list of `key`, `meaning`, `allowed`, and `value`, which
    is null where the default of the meaning holds.
    """
    from penstock import _native  # start-up: the simulator

    known = json.loads(_native.schemes())
    if scheme not in known:
        near = difflib.get_close_matches(scheme, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "; see `penstock schemes`"
        message = f"{scheme}: no such scheme{hint}"
        raise ScenarioError(message)
    about, definitions = known[scheme], json.loads(_native.schema())["$defs"]
    parameters = [
        row
        for part in _PARTS
        for row in _parameters(f"scheme.{scheme}.{part}", about[part], definitions[part.title()])
    ]
    if as_json:
        named = {"name": scheme, "title": about["title"], "source": about["source"]}
        print_json({**named, "parameters": parameters})
        return
    typer.echo(f"{scheme}: {about['title']}\n{about['source']}\n")
    if not parameters:
        typer.echo("It has no parameters.")
        return
    print_list([(row["key"], _sentence(row)) for row in parameters])


def _parameters(
    prefix: str, part: dict[str, Any], schema: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The keys of a part of this kind, with what the built-in scheme gives them."""
    for kind in schema["anyOf"]:
        properties = kind["properties"]
        if part["kind"] == "none" or properties["kind"]["const"] != part["kind"]:
            continue
        for key, value in properties.items():
            if key != "kind":
                yield {
                    "key": f"{prefix}.{key}",
                    "meaning": " ".join(value.get("description", "").split()),
                    "allowed": _allowed(value),
                    "value": part.get(key),
                }


def _allowed(schema: dict[str, Any]) -> str:
    """What a key takes, where its type does not show it."""
    if "oneOf" in schema:
        return ", ".join(str(each["const"]) for each in schema["oneOf"])
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']:g} to {schema['maximum']:g}"
    return "true or false" if schema.get("type") == "boolean" else ""


def _sentence(row: dict[str, Any]) -> str:
    allowed = f" Allowed: {row['allowed']}." if row["allowed"] else ""
    value = "" if row["value"] is None else f" Here: {row['value']}."
    return f"{row['meaning']}{allowed}{value}"
