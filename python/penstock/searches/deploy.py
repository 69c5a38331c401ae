# SPDX-License-Identifier: Apache-2.0
"""Tuned parameters as TOML for a scenario and for penstockd."""

import json
from collections.abc import Mapping

import tomli_w

from penstock import api
from penstock.errors import ScenarioError
from penstock.execution.lab import schemes
from penstock.scenario import parsed
from penstock.searches.space import Value


def tuned_name(scheme: str) -> str:
    """What the tuned scheme is called in a scenario."""
    return f"{scheme}-tuned"


def scheme_table(scenario: str, scheme: str, tuned: Mapping[str, Value]) -> str:
    """The `[scheme.NAME]` table of a scenario, of its table name next to the built-in one.

    Args:
        scenario: as resolved, with the tuned values.
        scheme: whose table.
        tuned: the values by their keys; those of no scheme become a comment.
    """
    document = parsed(scenario)
    table = dict(document["scheme"][scheme])
    table["title"] = f"{scheme}, tuned for: {document['title']}"
    table.pop("source", None)
    for part in ("queue", "window", "controller"):
        if table.get(part, {}).get("kind") in {"none", "drop-tail"}:
            del table[part]
    others = []
    for key, value in tuned.items():
        *way, last = key.removeprefix(f"scheme.{scheme}.").split(".")
        if not key.startswith(f"scheme.{scheme}."):
            others.append(f"# and {key} = {_toml(value)}\n")
        elif len(way) == 1:
            table[way[0]] = {**table[way[0]], last: value}
    return tomli_w.dumps({"scheme": {tuned_name(scheme): table}}) + "".join(others)


def agent_lines(scenario: str, scheme: str, tuned: Mapping[str, Value]) -> str:
    """The lines for a port in penstockd's configuration; empty where it does not have the scheme.

    They hold the tuned values, and others of the scenario that are not built in.

    Args:
        scenario: as resolved, with the tuned values.
        scheme: whose parameters they are.
        tuned: the values by their keys.
    """
    table = parsed(scenario)["scheme"][scheme]
    try:
        built_in = parsed(api.resolved("demo", overrides={"schemes": [scheme]}))["scheme"][scheme]
        if not schemes.of(scheme, table, rtt_s=0.0).agent:
            return ""
    except ScenarioError:  # no built-in scheme, or none that a port can hold
        return ""
    lines = ["[port.eth1]", f'scheme = "{scheme}"']
    for part in ("window", "queue"):
        if table[part]["kind"] != built_in[part]["kind"]:
            return ""
        values = {
            key: value for key, value in table[part].items() if built_in[part].get(key) != value
        }
        prefix = f"scheme.{scheme}.{part}."
        values |= {
            key.removeprefix(prefix): value
            for key, value in tuned.items()
            if key.startswith(prefix)
        }
        if values:
            pairs = ", ".join(f"{key} = {_toml(value)}" for key, value in values.items())
            lines.append(f"{part} = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A number, text or truth value; JSON writes these as TOML does."""
    return json.dumps(value)
