# SPDX-License-Identifier: Apache-2.0
"""The command `penstock show`: one scheme and its parameters, from the schema of scenarios."""

import json
from typing import Annotated, Any

import typer

from penstock.cli.lists import print_list
from penstock.cli.options import Json, print_json, scheme_names
from penstock.errors import ScenarioError, suggestion


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
    from penstock import _native, scenario  # start-up: the simulator

    known = json.loads(_native.schemes())
    if scheme not in known:
        hint = suggestion(scheme, known, "see `penstock schemes`")
        message = f"{scheme}: no such scheme; {hint}"
        raise ScenarioError(message)
    about = known[scheme]
    parameters = [
        _parameter(f"scheme.{scheme}.{part}.{key}", schema, about[part].get(key))
        for part in scenario.PARTS
        if about[part]["kind"] != "none"
        for key, schema in scenario.parameters(part, about[part]["kind"]).items()
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


def _parameter(key: str, schema: dict[str, Any], value: object) -> dict[str, Any]:
    """A key of a scheme, with what the built-in scheme gives it."""
    return {
        "key": key,
        "meaning": " ".join(schema.get("description", "").split()),
        "allowed": _allowed(schema),
        "value": value,
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
