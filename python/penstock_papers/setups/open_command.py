# SPDX-License-Identifier: Apache-2.0
"""`penstock reproduce --open`."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from penstock import folders
from penstock.cli.options import print_json
from penstock.show.terminal import Progress
from penstock_papers.experiment_names import chosen
from penstock_papers.setups import explore, kept, outcome, tables
from penstock_papers.setups.outcome import Outcome


def run(
    experiments: Sequence[str],
    *,
    options: Mapping[str, Any],
    recorded: bool,
    record: bool,
    as_json: bool,
) -> None:
    """Explores experiments, or shows what is recorded of them; `options` are those of `explore`.

    Raises:
        ScenarioError: no such experiment, or a set-up cannot run.
        RunError: SALib is missing, or a file is wrong.
    """
    if recorded:
        done = kept.read(chosen(experiments))
        for one in done if not as_json else []:
            tables.show(one)
    else:
        done = _explored(experiments, options, record=record, as_json=as_json)
    if as_json:
        print_json(outcome.as_json(done))
    else:
        typer.echo(tables.summary(done))


def _explored(
    experiments: Sequence[str], options: Mapping[str, Any], *, record: bool, as_json: bool
) -> list[Outcome]:
    with Progress() as progress:

        def ended(one: Outcome) -> None:
            if not as_json:
                progress.__exit__(None, None, None)
                tables.show(one)

        given = {key: value for key, value in options.items() if value is not None}
        done, folder = explore.explore(experiments, **given, progress=progress, ended=ended)
    if record:
        document = folders.read_json(folder / explore.KIND.file, "run it again")
        kept.keep(done, document)
    if not as_json:
        typer.echo(f"Report: {folder / explore.KIND.page}")
    return done
