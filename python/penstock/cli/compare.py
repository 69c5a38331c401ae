# SPDX-License-Identifier: Apache-2.0
"""The command `penstock compare`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.options import Json, print_json


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The reference.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The run to compare with it.")],
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder of page and figures; default: new."),
    ] = None,
) -> None:
    """Compare two runs of a scenario, e.g. laboratory and simulator.

    Times and rates agree within 15 %, tails and counts within 25 %. --json prints `agree`, `of`,
    and `lines`: a list of `scheme`, `group`, `measure`, `first`, `second`, `ratio`, `agrees`.
    With --json and without --out no folder is written.
    """
    for folder in (first, second):
        folders.check_run(folder)
    from penstock.compare import compare as compared  # start-up: polars
    from penstock.compare import comparison_page, comparison_table  # start-up: rich

    with folders.checked(first), folders.checked(second):
        comparison = compared(first, second)
        if out is not None or not as_json:
            name = f"compare-{first.resolve().name}-{second.resolve().name}"
            page = comparison_page.save(comparison, out or folders.free(name))
    if as_json:
        print_json(comparison.as_json())
        return
    comparison_table.show(comparison)
    typer.echo(f"Page: {page}")
