# SPDX-License-Identifier: Apache-2.0
"""The command `penstock export`: recorded packets for Wireshark, and events as JSON."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders, units


def export(
    folder: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The folder of a run that has recorded packets."),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="FILE",
            help="What to write: FILE.pcapng for Wireshark, FILE.qlog or FILE.json for events.",
        ),
    ],
    scheme: Annotated[
        str | None,
        typer.Option("--scheme", help="The scheme whose packets are written. Default: the first."),
    ] = None,
) -> None:
    """Export a run's recorded packets: pcapng for Wireshark, or events as JSON similar to qlog.

    A run records the packets of a port if its scenario has `measure.packets`, as the demo has; for
    others `penstock run FILE --set 'measure.packets={}'`. A pcapng file has the packets as they
    came to the port and as they left it, with windows before and after the scheme, each on an
    interface of its own.
    """
    folders.check_run(folder)
    from penstock.exports import export as exported  # start-up: polars
    from penstock.runs import Run  # start-up: polars

    with folders.checked(folder):
        name, count = exported(Run.load(folder), to, scheme)
    what = "packets" if to.suffix == ".pcapng" else "events"
    typer.echo(f"{to}: {units.count(count)} {what} of {name}")
