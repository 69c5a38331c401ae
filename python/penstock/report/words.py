# SPDX-License-Identifier: Apache-2.0
"""A scenario and its outcome in a sentence each."""

from html import escape
from typing import Any

from penstock import units


def scenario(document: dict[str, Any], seeds: list[int]) -> str:
    """What was simulated: traffic, fabric, TCP, duration, seeds."""
    traffic = _listed(
        [_traffic(name, table) for name, table in document.get("traffic", {}).items()]
    )
    fabric = _fabric(document.get("fabric", {}))
    tcp = document.get("tcp", {}).get("congestion", "")
    repeated = f", {len(seeds)} seeds" if len(seeds) > 1 else ""
    return (
        f"{traffic} on {fabric}, {tcp} senders, {document.get('duration', '')} simulated{repeated}."
    )


def findings(results: list[dict[str, Any]]) -> list[str]:
    """For each traffic whose slowest 1 % differ: the best and the worst scheme, as HTML."""
    said = []
    for group in results[0]["groups"]:
        tails = {
            result["scheme"]: (result["groups"][group].get("fct_s") or {}).get("p99")
            for result in results
        }
        known = {scheme: tail for scheme, tail in tails.items() if tail}
        if len(known) < 2:
            continue
        best, worst = min(known, key=lambda s: known[s]), max(known, key=lambda s: known[s])
        if known[worst] < 1.5 * known[best]:
            continue
        said.append(
            f"99 % of the finished {escape(group)} took at most "
            f"<b>{units.seconds(known[best])}</b> under {escape(best)}, "
            f"and <b>{units.seconds(known[worst])}</b> under {escape(worst)}."
        )
    return said


def _traffic(name: str, table: dict[str, Any]) -> str:
    flows = f"{table['flows']} " if "flows" in table else ""
    size = f" of {table['size']}" if isinstance(table.get("size"), str) else ""
    return f"{flows}{name} ({table.get('kind', 'flows')}{size})"


def _fabric(fabric: dict[str, Any]) -> str:
    kind = str(fabric.get("kind", "network"))
    bottleneck = fabric.get("bottleneck")
    if isinstance(bottleneck, dict) and "rate" in bottleneck:
        buffer = f" and a buffer of {bottleneck['buffer']}" if "buffer" in bottleneck else ""
        return f"a {kind} with a bottleneck of {bottleneck['rate']}{buffer}"
    sizes = [f"{key} {value}" for key, value in fabric.items() if isinstance(value, int)]
    return f"a {kind}" + (f" ({', '.join(sizes).replace('_', ' ')})" if sizes else "")


def _listed(items: list[str]) -> str:
    return (
        items[0]
        if len(items) == 1
        else f"{', '.join(items[:-1])} and {items[-1]}"
        if items
        else "No traffic"
    )
