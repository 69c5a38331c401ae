# SPDX-License-Identifier: Apache-2.0
"""The command `penstock reproduce`."""

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.options import Cluster, Jobs, Json, On, Seeds, print_json
from penstock.errors import RunError


def _ids() -> list[str]:
    from penstock_papers import experiment_files  # start-up: the simulator

    return ["all", *(name for name, _ in experiment_files.listed())]


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID...",
            help="Experiments of the papers, or `all`.",
            autocompletion=_ids,
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter and with fewer seeds; states what is left out.")
    ] = False,
    seeds: Seeds = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder; default: runs/reproduction."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", metavar="FILE", help="Also write a page in Markdown, its figures in papers/."
        ),
    ] = None,
    on: On = "sim",
    again: Annotated[
        Path | None,
        typer.Option("--again", metavar="DIR", help="Judge and draw the runs of DIR; run nothing."),
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Show the results recorded in papers/; run nothing."),
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Record the results in papers/, for --recorded.")
    ] = False,
    is_open: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Judge the claims in many set-ups, sampled from what the papers leave open.",
        ),
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=2, help="With --open: set-ups of each experiment (64)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="With --open: the seed of the samples (1).")
    ] = None,
) -> None:
    """Run experiments of the papers; compare each published claim with what is measured.

    The folder has reproduction.json, reproduction.html, the figures as the papers drew them,
    and the experiments' runs. Measured numbers are means over the seeds, with the half-width of
    their 95 % confidence interval. A verdict is "within the noise" where values within the
    intervals give the other one.

    A claim that does not hold is a finding, not a failure: the exit code is 0, and the last line
    counts the claims that hold. --json prints `experiments`, `held`, `judged`, and `claims`: a
    list of `id`, `text`, `published`, `measured`, `ci95`, `holds`, `within_noise`.

    --open answers another question: does a claim depend on what the paper leaves open? The values
    in `[open]` of an experiment's claims.toml are sampled, and every claim is judged in each
    set-up, with one seed unless --seeds is given. The share of set-ups in which it holds makes a
    claim robust, fragile or refuted. The folder, runs/open, has open.json and open.html; finished
    set-ups are not run again. --json prints `counts` and `experiments`.
    """
    experiment_files = _checked(experiments or [])
    from penstock.show.terminal import Progress  # start-up: rich
    from penstock_papers import (  # start-up: polars and matplotlib
        markdown_page,
        rejudge,
        reproduction,
        reproduction_folder,
        terminal_table,
    )
    from penstock_papers import recorded as records  # start-up: likewise
    from penstock_papers import reproduce as running  # start-up: likewise

    if listed or not (experiments or again):
        _list(experiment_files.listed(), as_json=as_json)
        return
    if is_open or samples is not None or seed is not None:
        from penstock_papers.setups import open_command  # start-up: matplotlib

        open_command.check(
            is_open=is_open,
            others={f"--on {on}": on != "sim", "--again": again, "--page": page},
            needless={"--samples": samples, "--seed": seed} if recorded or not is_open else {},
        )
        open_command.run(
            experiments or [],
            options={
                "samples": samples,
                "seed": seed,
                "seeds": seeds,
                "quick": quick or None,
                "jobs": jobs,
                "cluster": cluster,
                "out": out,
            },
            recorded=recorded,
            record=record,
            as_json=as_json,
        )
        return
    if page is not None:
        folders.check_file(page)
    if record and not again:
        records.check(quick=quick, seeds=seeds)
    with Progress() as progress:

        def ended(one: reproduction.Reproduction) -> None:
            if not as_json:
                progress.__exit__(None, None, None)
                terminal_table.table(one)

        run_options = {"--quick": quick, "--seeds": seeds}
        if again is not None:
            rejudge.check(
                "--again", {**dict.fromkeys(experiments or (), True), **run_options, "--out": out}
            )
            done, folder = rejudge.again(again, ended), again
        elif recorded:
            rejudge.check("--recorded", {**run_options, "--record": record})
            done, folder = records.reproduce(experiments or [], on=on, out=out, ended=ended)
        else:
            done, folder = running.reproduce(
                experiments or [],
                quick=quick,
                seeds=seeds,
                jobs=jobs,
                cluster=cluster,
                out=out,
                on=on,
                progress=progress,
                ended=ended,
            )
    if record:
        records.record(done, reproduction_folder.read(folder))
    if page is not None:
        markdown_page.write(folder, page)
    if as_json:
        print_json(reproduction.as_json(done))
    else:
        typer.echo(f"Report: {folder / 'reproduction.html'}")
        typer.echo(terminal_table.summary(done))
    if failed := [one.experiment.id for one in done if one.failed]:
        message = f"{', '.join(failed)}: could not be run; what could is in {folder}"
        raise RunError(message)


def _checked(experiments: list[str]) -> ModuleType:
    """The module of the experiments; a wrong name is an error before all that is slow to load."""
    from penstock_papers import experiment_files  # start-up: the simulator

    for experiment in experiments:
        if experiment != "all":
            experiment_files.find(experiment)
    return experiment_files


def _list(experiments: list[tuple[str, str]], *, as_json: bool) -> None:
    if as_json:
        rows = [{"id": name, "title": title} for name, title in experiments]
        print_json({"experiments": rows})
        return
    width = max(len(name) for name, _ in experiments)
    for name, title in experiments:
        typer.echo(f"{name:<{width}}  {title}")
