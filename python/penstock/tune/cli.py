# SPDX-License-Identifier: Apache-2.0
"""The command `penstock tune`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import RunError
from penstock.options import Cluster, File, Jobs, Json, Settings, print_json, setting


def tune(
    file: File,
    scheme: Annotated[
        str, typer.Option("--scheme", metavar="NAME", help="The scheme whose parameters to find.")
    ],
    minimize: Annotated[
        str,
        typer.Option("--minimize", metavar="NUMBER", help="What to make small, as mice.fct.p99."),
    ],
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to",
            metavar="CONSTRAINT",
            help="What to keep: elephants.goodput>=0.95 is 95 % of the baseline's; with a unit "
            "(<=20ms, >=40Mb/s, <=100abs) absolute. May be repeated.",
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="KEY=LOW..HIGH",
            help="Search this, as 'scheme.fairq.window.interval=10us..1ms log'; may be repeated. "
            "Default: all numeric parameters of the scheme.",
        ),
    ] = None,
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="NAME", help="What constraints are shares of.")
    ] = "drop-tail",
    trials: Annotated[int, typer.Option("--trials", min=1, help="Sets of values to try.")] = 40,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Seeds of each trial.")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the search itself.")] = 1,
    settings: Settings = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The search's folder; default: runs/NAME-tune."),
    ] = None,
) -> None:
    """Find parameters of a scheme that make a number small, and keep others.

    Then the found, the defaults and the baseline run on fresh seeds: the table shows them with 95 %
    confidence, whether the defaults are beaten beyond the noise, and the TOML for a scenario and
    for penstockd. Completion times of which too many flows did not finish count as infinitely
    bad.

    Trials are kept as they end: after Ctrl-C the same command goes on, and with more --trials it
    searches further. Where no trial keeps the constraints, the nearest is told, and the exit code
    is 1. --json prints what tune.json has: `feasible`, `best`, `check`, `scheme_toml`,
    `agent_toml`, `trials`.
    """
    overrides = [setting(text) for text in settings or ()]
    from penstock.tune import page, run, show

    tuned = run.tune(
        file,
        scheme,
        minimize,
        subject_to=subject_to or (),
        params=params or (),
        overrides=overrides,
        baseline=baseline,
        trials=trials,
        seeds=seeds,
        seed=seed,
        jobs=jobs,
        cluster=cluster,
        out=out,
    )
    page.again(tuned.folder, tuned.folder / "report.html")
    if as_json:
        print_json(run.load(tuned.folder))
    else:
        show.show(tuned)
    if not tuned.is_feasible:
        message = f"{tuned.folder}: no trial keeps all constraints; search more, or ask for less"
        raise RunError(message)
