# SPDX-License-Identifier: Apache-2.0
"""The command `penstock compare`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.options import Format, Json, check_form, print_json


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The reference.")],
    others: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The runs to compare with it.")
    ],
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder of page and figures; default: new."),
    ] = None,
    form: Format = "table",
) -> None:
    """Compare runs with the first: what differs in their settings, and in their results.

    The runs may differ in settings, seeds and substrates; the numbers that both have are compared.
    Means, medians, queues, utilization, fairness and the counts of flows and of finished ones agree
    within 15 %; the p99 and maximum of completion times, flows per second, and the counts of
    unfinished or late flows, timeouts and drops within 25 %. A difference is significant if it is
    larger than the seeds explain (Welch's t test, 95 %), which needs several seeds in each run. A
    percentile of completion times is unfinished where more flows did not finish than lie
    above it: then it does not agree, or is not judged if it is in both runs.
    --json prints `settings`, `agree`, `of`, `significant`, `tested`, `left_out`, and `lines`: a
    list of `run`, `scheme`, `group`, `measure`, `first`, `second`, `ratio`, `agrees`,
    `significant`, `first_unfinished`, `second_unfinished`. With --json or --format, and without
    --out, no folder is written.
    """
    check_form(form, as_json=as_json)
    for folder in (first, *others):
        folders.check_run(folder)
    from penstock.comparisons import compare as compared  # start-up: polars
    from penstock.comparisons import comparison_page, comparison_table  # start-up: rich

    with folders.checked(first):
        comparison = compared(first, *others)
        if out is not None or not (as_json or form != "table"):
            name = f"compare-{first.resolve().name}-{others[0].resolve().name}"
            page = comparison_page.save(comparison, out or folders.free(name))
    if as_json:
        print_json(comparison.as_json())
        return
    if form != "table":
        typer.echo(comparison_table.text(comparison, form))
        return
    comparison_table.show(comparison)
    typer.echo(f"Page: {page}")
