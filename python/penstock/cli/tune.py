# SPDX-License-Identifier: Apache-2.0
"""The command `penstock tune`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.options import (
    Cluster,
    File,
    Jobs,
    Json,
    On,
    Settings,
    number_names,
    pairs,
    print_json,
    scheme_names,
)
from penstock.errors import RunError


def tune(
    file: File,
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            metavar="NAME",
            help="The scheme whose parameters to search.",
            autocompletion=scheme_names,
        ),
    ],
    minimize: Annotated[
        str,
        typer.Option(
            "--minimize",
            metavar="NUMBER",
            help="The number to minimize, such as mice.fct.p99.",
            autocompletion=number_names,
        ),
    ],
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to",
            metavar="CONSTRAINT",
            help="A constraint: elephants.goodput>=0.95 is 95 % of the baseline's; with a unit "
            "(<=20ms, >=40Mb/s, <=100abs) absolute. May be repeated.",
            autocompletion=number_names,
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="KEY=LOW..HIGH",
            help="Search this range, such as 'scheme.fairq.window.interval=10us..1ms log'; may "
            "be repeated. Default: all numeric parameters of the scheme.",
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline", metavar="NAME", help="The scheme that constraints are relative to."
        ),
    ] = "drop-tail",
    trials: Annotated[
        int, typer.Option("--trials", min=1, help="How many sets of values to try.")
    ] = 40,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Seeds of each trial.")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The random seed of the search.")] = 1,
    settings: Settings = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The search's folder; default: runs/NAME-tune."),
    ] = None,
    on: On = "sim",
) -> None:
    """Search a scheme's parameters to minimize one number under constraints on others.

    The best trial, the defaults and the baseline then run on fresh seeds. The output has their
    numbers with 95 % confidence, whether the best trial is significantly better than the defaults,
    and the TOML for a scenario and for penstockd. A completion time counts as infinitely bad where
    too many flows did not finish.

    Trials are kept as they end: after Ctrl-C the same command goes on, and with more --trials it
    searches further. Where no trial meets the constraints, the nearest is shown, and the exit code
    is 1. --json prints tune.json: `feasible`, `best`, `check`, `scheme_toml`, `agent_toml`,
    `trials`.
    """
    overrides = pairs(settings)
    from penstock import api, metric_names, scenario  # start-up: the simulator
    from penstock.searches import constraints, space  # start-up: likewise

    # Errors are quick: those of `tuning.tune` come seconds later.
    space.named(params or ())
    prepare = partial(api.prepare, file, on=on)
    prepared = space.prepared_by(scheme, baseline, prepare, overrides=overrides, seeds=seeds)
    resolved = scenario.parsed(prepared.text)
    ports = partial(scenario.measured_ports, prepared.text, prepared.origin)
    metric_names.check(minimize, resolved, ports)
    constraints.check(subject_to or (), resolved, ports)
    from penstock.searches import answer, tune_page, tuning  # start-up: polars
    from penstock.show import terminal  # start-up: rich

    with terminal.Progress() as progress:
        tuned = tuning.tune(
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
            progress=progress,
            on=on,
        )
    tune_page.redraw(tuned.folder, tuned.folder / folders.SEARCH.page)
    if as_json:
        print_json(tuning.load(tuned.folder))
    else:
        answer.show(tuned)
    if not tuned.is_feasible:
        remedy = "search more, or relax them" if subject_to else "search more, or minimize another"
        message = f"{tuned.folder}: no trial {answer.aim(tuned)}; {remedy}"
        raise RunError(message)
