# SPDX-License-Identifier: Apache-2.0
"""What was found, as scenarios and as penstockd take it."""

import tomllib
from collections.abc import Sequence

from penstock import api
from penstock.tune.space import Parameter


def tuned_name(scheme: str) -> str:
    """What the tuned scheme is called in a scenario."""
    return f"{scheme}-tuned"


def scheme_table(scenario: str, scheme: str, parameters: Sequence[Parameter]) -> str:
    """The `[scheme.NAME]` table of a scenario, of its own name beside the built-in one.

    Args:
        scenario: as resolved, with the values that were found.
        scheme: whose table.
        parameters: what was searched; those of no scheme are told in a comment.
    """
    import tomli_w

    document = tomllib.loads(scenario)
    table = dict(document["scheme"][scheme])
    table["title"] = f"{scheme}, tuned for: {document['title']}"
    table.pop("source", None)
    for part in ("queue", "window", "controller"):
        if table.get(part, {}).get("kind") in {"none", "drop-tail"}:
            del table[part]
    text = tomli_w.dumps({"scheme": {tuned_name(scheme): table}})
    others = [one.key for one in parameters if not one.key.startswith(f"scheme.{scheme}.")]
    return text + "".join(f"# and {key} = {_at(document, key)!r}\n" for key in others)


def agent_lines(scenario: str, scheme: str, parameters: Sequence[Parameter]) -> str:
    """The lines for a port in penstockd's configuration; empty where it does not have the scheme.

    Args:
        scenario: as resolved, with the values that were found.
        scheme: whose parameters they are.
        parameters: what was searched.
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
    document = tomllib.loads(scenario)
    lines = ["[port.eth1]", f'scheme = "{scheme}"']
    for part in ("window", "queue"):
        prefix = f"scheme.{scheme}.{part}."
        keys = [one.key for one in parameters if one.key.startswith(prefix)]
        if keys:
            pairs = (f"{key.removeprefix(prefix)} = {_toml(_at(document, key))}" for key in keys)
            lines.append(f"{part} = {{ {', '.join(pairs)} }}")
    return "\n".join(lines) + "\n"


def _at(document: object, key: str) -> object:
    for part in key.split("."):
        document = document[part] if isinstance(document, dict) else None
    return document


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
