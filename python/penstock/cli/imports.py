# SPDX-License-Identifier: Apache-2.0
"""The command `penstock import`: a recording of a real network as a scenario."""

import math
import shlex
from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import ScenarioError


def import_recording(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="pcap, pcapng, a log of `ss -tin`, or CSV of NetFlow, IPFIX or Millisampler.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write; default: the file's name.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--as", help="pcap, ss, netflow or millisampler; default: by its contents."),
    ] = None,
    gap: Annotated[str, typer.Option("--gap", help="The pause that ends a transfer.")] = "10 ms",
    rate: Annotated[str, typer.Option("--rate", help="Rate of the hosts' links.")] = "10 Gb/s",
    delay: Annotated[str, typer.Option("--delay", help="Delay of these links, one way.")] = "5 us",
    buffer: Annotated[str, typer.Option("--buffer", help="Buffer of each switch port.")] = "256 kB",
) -> None:
    """Turn a recording of real traffic into a scenario: one switch, a host for each address.

    A transfer is what one end of a TCP connection sends, without retransmissions, until it pauses
    for --gap. A log of ss needs a line with the time before each snapshot:
    while sleep 0.01; do date +%s.%N; ss -tinH; done > log.ss
    """
    from penstock import imports, units  # start-up: not needed for help

    try:
        gap_s = units.to_seconds(gap)
    except ValueError:
        gap_s = math.nan
    if not 0 <= gap_s < math.inf:  # NaN passes no comparison
        message = f"--gap: '{gap}' is no time; allowed: as in '10 ms'"
        raise ScenarioError(message)
    recording = imports.read(file, kind=kind, gap_s=gap_s)
    folder = out or Path(file.stem)
    written = imports.write(recording, folder, rate=rate, delay=delay, buffer=buffer)
    for note in recording.notes:
        typer.echo(f"{file}: {note}.", err=True)
    size = units.size(sum(flow.size for flow in recording.flows))
    typer.echo(
        f"{recording.count} of {size} between {len(recording.hosts)} hosts; "
        f"next: penstock run {shlex.quote(str(written))}"
    )
