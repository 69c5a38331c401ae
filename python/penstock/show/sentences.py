# SPDX-License-Identifier: Apache-2.0
"""A scenario and its outcome in a sentence each."""

from typing import Any

from markupsafe import Markup, escape

from penstock import missing, units
from penstock.show import summary_table

_TCP = {"newreno": "NewReno", "cubic": "CUBIC", "dctcp": "DCTCP", "bbr": "BBR"}


def scenario(summary: dict[str, Any], substrate: str = "sim") -> str:
    """The run in one sentence: traffic, fabric, TCP, duration, seeds."""
    document, seeds = summary["scenario"], summary["seeds"]
    tables = document.get("traffic", {})
    traffic = _listed([_traffic(name, table) for name, table in tables.items()])
    fabric = _fabric(document.get("fabric", {}))
    tcp = _listed(list(dict.fromkeys(_TCP.get(r["tcp"], r["tcp"]) for r in summary["results"])))
    done, each = ("simulated", "seeds") if substrate == "sim" else ("of real TCP", "repeats")
    repeated = f", {len(seeds)} {each}" if len(seeds) > 1 else ""
    return f"{traffic} on {fabric}; {tcp}; {document['duration']} {done}{repeated}."


def findings(results: list[dict[str, Any]]) -> list[Markup]:
    """For each traffic whose schemes differ: the best and the worst of them, as HTML.

    First by how many flows finished; the slowest 1 % are compared only among schemes under which as
    many did, or a scheme that leaves the slow flows unfinished would look best.
    """
    sentences = []
    for group in results[0]["groups"]:
        rows = {result["scheme"]: result["groups"][group] for result in results}
        if not any(row["finished"] for row in rows.values()):
            continue
        sentences += _finishers(group, rows)
        sentences += _slowest(group, rows)
    return sentences


def _finishers(group: str, rows: dict[str, dict[str, Any]]) -> list[Markup]:
    planned = {scheme: missing.planned(row) for scheme, row in rows.items()}
    shares = {scheme: row["finished"] / max(planned[scheme], 1) for scheme, row in rows.items()}
    best, worst = max(shares, key=lambda s: shares[s]), min(shares, key=lambda s: shares[s])
    if shares[best] - shares[worst] < 0.01:
        return []
    parts = [
        f"<b>{units.count(rows[scheme]['finished'])} of {units.count(planned[scheme])}</b>{what} "
        f"under {_named([other for other in shares if shares[other] == shares[scheme]])}"
        for scheme, what in ((best, " flows finished within the run"), (worst, ""))
    ]
    return [
        Markup(
            f"{escape(group)}: {parts[0]}, and {parts[1]}; completion times are those of the "
            "finished ones, so compare them only where as many finished."
        )
    ]


def _named(schemes: list[str]) -> str:
    few = len(schemes) <= 3
    return str(escape(_listed(schemes))) if few else f"{len(schemes)} schemes"


def _slowest(group: str, rows: dict[str, dict[str, Any]]) -> list[Markup]:
    most = summary_table.comparable(list(rows.values()))
    tails = {
        scheme: row["fct_s"]["p99"]
        for place, (scheme, row) in enumerate(rows.items())
        if place in most and row["fct_s"] and row["fct_s"]["p99"]
    }
    if len(tails) < 2:
        return []
    best, worst = min(tails, key=lambda s: tails[s]), max(tails, key=lambda s: tails[s])
    if tails[worst] < 1.5 * tails[best]:
        return []
    parts = [
        f"<b>{units.seconds(tails[scheme])}</b> under {escape(scheme)}" for scheme in (best, worst)
    ]
    return [
        Markup(
            f"{escape(group)}: 99\u00a0% of the finished flows took at most {parts[0]}, "
            f"and {parts[1]}."
        )
    ]


def _traffic(name: str, table: dict[str, Any]) -> str:
    flows = f"{table['flows']} " if "flows" in table else ""
    size = f" of {table['size']}" if isinstance(table.get("size"), str) else ""
    epochs = f", {table['epochs']} epochs" if table.get("epochs", 1) > 1 else ""
    return f"{flows}{name} ({table.get('kind', 'flows')}{size}{epochs})"


def _fabric(fabric: dict[str, Any]) -> str:
    kind = str(fabric.get("kind", "network"))
    bottleneck = fabric.get("bottleneck")
    if isinstance(bottleneck, dict) and "rate" in bottleneck:
        size = fabric.get("buffer_at", {}).get("left", bottleneck.get("buffer"))
        buffer = f" and a buffer of {size}" if size else ""
        return f"a {kind} with a bottleneck of {bottleneck['rate']}{buffer}"
    sizes = [f"{key} {value}" for key, value in fabric.items() if type(value) is int]  # no bool
    return f"a {kind}" + (f" ({', '.join(sizes).replace('_', ' ')})" if sizes else "")


def _listed(items: list[str]) -> str:
    return (
        items[0]
        if len(items) == 1
        else f"{', '.join(items[:-1])} and {items[-1]}"
        if items
        else "No traffic"
    )
