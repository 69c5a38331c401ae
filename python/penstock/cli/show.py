# SPDX-License-Identifier: Apache-2.0
"""The command `penstock show`: a scheme and its parameters, or a scenario and its fabric."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import Json, print_json, print_list, scenario_names, scheme_names
from penstock.errors import ScenarioError, suggestion

if TYPE_CHECKING:
    from penstock.scenario import Source


def _names(incomplete: str) -> list[str]:
    return [*scheme_names(), *scenario_names(incomplete)]


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A built-in scheme, as `penstock schemes` lists them; or a scenario: a file in "
            "TOML, or the name of a template.",
            autocompletion=_names,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show a scheme with its parameters, or a scenario with its fabric.

    Of a scheme: its parts, and the meaning, range and default of each parameter. Parameters are
    keys of a scenario: --set scheme.fairq.window.alpha=0.2. --json prints `name`, `title`,
    `source`, and `parameters`: a list of `key`, `meaning`, `allowed`, and `value`, which is null
    where the default of the meaning holds.

    Of a scenario: its switches in rows, the nearest to the hosts last, the links between them, and
    its traffic. --json prints `title`, and the `layout` of hosts, switches and ports.
    """
    from penstock import _native, scenario  # start-up: the simulator

    known = json.loads(_native.schemes())
    if name in known:
        _show_scheme(name, known[name], as_json=as_json)
        return
    try:
        source = scenario.load(name)
    except ScenarioError as error:
        if not str(error).startswith(f"{name}: no such file"):
            raise
        every = [*known, *(each for each, _ in scenario.templates())]
        hint = suggestion(name, every, "see `penstock schemes` and `penstock scenarios`")
        message = f"{name}: no such scheme, scenario file or template; {hint}"
        raise ScenarioError(message) from None
    _show_scenario(source, as_json=as_json)


def _show_scheme(scheme: str, about: dict[str, Any], *, as_json: bool) -> None:
    from penstock import scenario  # start-up: the simulator

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


def _show_scenario(source: "Source", *, as_json: bool) -> None:
    from penstock import scenario  # start-up: the simulator
    from penstock.show import topology  # start-up: likewise

    text = scenario.resolve(source, ())
    document, origin = scenario.parsed(text), str(source.origin)
    if as_json:
        print_json({"title": document["title"], "layout": scenario.layout(text, origin)})
        return
    typer.echo(f"{document['title']}\n")
    fabric = topology.fabric(text, origin)
    too_large = f"more than {topology.MOST_HOSTS} hosts: too many to show"
    shown = iter(topology.lines(fabric) if fabric else [too_large])
    typer.echo("\n".join([f"{document['fabric']['kind']}: {next(shown)}", *shown]))
    rows = [(f"traffic.{name}", table["kind"]) for name, table in document["traffic"].items()]
    print_list([*rows, ("schemes", ", ".join(document["schemes"]))])


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
