# SPDX-License-Identifier: Apache-2.0
"""What was found, as scenarios and as penstockd take it."""

import json
import tomllib
from collections.abc import Mapping

import tomli_w

from penstock import api
from penstock.tune.space import Value


def tuned_name(scheme: str) -> str:
    """What the tuned scheme is called in a scenario."""
    return f"{scheme}-tuned"


def scheme_table(scenario: str, scheme: str, found: Mapping[str, Value]) -> str:
    """The `[scheme.NAME]` table of a scenario, of its own name beside the built-in one.

    Args:
        scenario: as resolved, with the values that were found.
        scheme: whose table.
        found: the values by their keys; those of no scheme are told in a comment.
    """
    document = tomllib.loads(scenario)
    table = dict(document["scheme"][scheme])
    table["title"] = f"{scheme}, tuned for: {document['title']}"
    table.pop("source", None)
    for part in ("queue", "window", "controller"):
        if table.get(part, {}).get("kind") in {"none", "drop-tail"}:
            del table[part]
    others = []
    for key, value in found.items():
        *way, last = key.removeprefix(f"scheme.{scheme}.").split(".")
        if not key.startswith(f"scheme.{scheme}."):
            others.append(f"# and {key} = {_toml(value)}\n")
        elif len(way) == 1:
            table[way[0]] = {**table[way[0]], last: value}
    return tomli_w.dumps({"scheme": {tuned_name(scheme): table}}) + "".join(others)


def agent_lines(scenario: str, scheme: str, found: Mapping[str, Value]) -> str:
    """The lines for a port in penstockd's configuration; empty where it does not have the scheme.

    They tell what was found, and what else of the scenario's is not built in.

    Args:
        scenario: as resolved, with the values that were found.
        scheme: whose parameters they are.
        found: the values by their keys.
    """
    known = {one["name"]: one for one in api.schemes()}
    parts = known.get(scheme)
    if parts is None or parts["controller"]["kind"] != "none":
        return ""
    has_window = parts["window"]["kind"] != "none"
    if parts["queue"]["kind"] != "hcf" and not (
        parts["queue"]["kind"] == "drop-tail" and has_window
    ):
        return ""
    own = tomllib.loads(scenario)["scheme"][scheme]
    built_in = tomllib.loads(api.resolved("demo", overrides={"schemes": [scheme]}))["scheme"][
        scheme
    ]
    lines = ["[port.eth1]", f'scheme = "{scheme}"']
    for part in ("window", "queue"):
        if own[part]["kind"] != built_in[part]["kind"]:
            return ""
        values = {
            key: value for key, value in own[part].items() if built_in[part].get(key) != value
        }
        prefix = f"scheme.{scheme}.{part}."
        values |= {
            key.removeprefix(prefix): value
            for key, value in found.items()
            if key.startswith(prefix)
        }
        if values:
            pairs = ", ".join(f"{key} = {_toml(value)}" for key, value in values.items())
            lines.append(f"{part} = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A number, text or truth value; JSON writes these as TOML does."""
    return json.dumps(value)
