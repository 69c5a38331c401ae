# SPDX-License-Identifier: Apache-2.0
"""The packets of one scheme of a run, in the format of a file's name."""

import io
from pathlib import Path

import polars as pl

from penstock import folders
from penstock.errors import ScenarioError, suggestion
from penstock.exports import pcapng, qlog
from penstock.runs import Run

FORMATS = (".pcapng", ".qlog", ".json")
"""Endings of the files: for Wireshark, and events as JSON twice."""


def export(run: Run, path: Path, scheme: str | None = None) -> tuple[str, int]:
    """Writes the recorded packets of a scheme; returns its name, and how many packets or events.

    Args:
        run: with `measure.packets` in its scenario.
        path: its ending chooses the format.
        scheme: default: the first of the run.

    Raises:
        ScenarioError: the run has no packets or no such scheme, or the ending is not in `FORMATS`.
    """
    if path.suffix not in FORMATS:
        message = f"{path}: of an unknown type; allowed: names that end in {', '.join(FORMATS)}"
        raise ScenarioError(message)
    if run.packets.is_empty():
        message = (
            "the run has recorded no packets; run it again with --set 'measure.packets={}' "
            "(in the simulator)"
        )
        raise ScenarioError(message)
    schemes = run.packets["scheme"].unique(maintain_order=True).to_list()
    name = scheme or schemes[0]
    if name not in schemes:
        hint = suggestion(name, schemes, f"the run has: {', '.join(schemes)}")
        message = f"--scheme {name}: no such scheme in the run; {hint}"
        raise ScenarioError(message)
    folders.check_file(path)
    packets = run.packets.filter(pl.col("scheme") == name)
    if path.suffix == ".pcapng":
        stream = io.BytesIO()
        hosts = {host: number for number, host in enumerate(_hosts(packets))}
        count = pcapng.write(stream, packets.iter_rows(named=True), hosts, _port(run))
        folders.write(path, stream.getvalue())
        return name, count
    text = io.StringIO()
    events = run.events.filter(pl.col("scheme") == name)
    title = f"{run.summary['scenario']['title']}, {name}"
    count = qlog.write(text, packets, events, title, _port(run))
    folders.write(path, text.getvalue())
    return name, count


def _hosts(packets: pl.DataFrame) -> list[str]:
    """The hosts in the order of their names, numbers in them by their value."""
    names = pl.concat([packets["source"], packets["destination"]]).unique().to_list()

    def key(name: str) -> tuple[str, int]:
        letters = name.rstrip("0123456789")
        return letters, int(name[len(letters) :] or 0)

    return sorted(names, key=key)


def _port(run: Run) -> str:
    recorded = run.summary["scenario"].get("measure", {}).get("packets", {})
    return str(recorded.get("port") or next(iter(run.summary["results"][0]["ports"]), "port"))
