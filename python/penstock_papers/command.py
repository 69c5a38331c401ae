# SPDX-License-Identifier: Apache-2.0
"""The command `penstock reproduce`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock import folders
from penstock.cli.options import Cluster, Jobs, Json, On, Seeds, print_json
from penstock.errors import RunError


def _ids() -> list[str]:
    from penstock_papers import experiment_names  # start-up: the simulator

    return ["all", *experiment_names.chosen(["all"])]


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
    from penstock_papers import (  # start-up: the simulator
        experiment_names,
        option_checks,
        reproduction_document,
    )

    if listed or not (experiments or again):
        every = experiment_names.listed()
        cpu_s = {name: experiment_names.cpu_s(name) for name, _ in every}
        _list(every, cpu_s, as_json=as_json)
        return
    experiments = experiments or []
    experiment_names.chosen(experiments)  # a wrong one is an error before all that is slow to load
    sampling = {"--samples": samples, "--seed": seed}
    shortening = {"--quick": quick, "--seeds": seeds}
    if is_open:
        others = {f"--on {on}": on != "sim", "--again": again, "--page": page}
        option_checks.goes_with_open(others, sampling, recorded=recorded)
        _open(
            experiments,
            options={
                **{"samples": samples, "seed": seed, "seeds": seeds, "quick": quick or None},
                **{"jobs": jobs, "cluster": cluster, "out": out},
            },
            recorded=recorded,
            record=record,
            as_json=as_json,
        )
        return
    option_checks.only_with_open(sampling)
    if again is not None:
        named = dict.fromkeys(experiments, True)
        option_checks.nothing_runs("--again", {**named, **shortening, "--out": out})
        reproduction_document.read(again)
    elif recorded:
        option_checks.nothing_runs("--recorded", {**shortening, "--record": record})
    elif record:
        option_checks.recordable(shortening)
    if quick:
        for name in experiment_names.shortened(experiments)[1]:
            typer.echo(f"{name}: left out, as a synthesis takes minutes", err=True)
    if page is not None:
        folders.check_file(page)
    _reproduce(
        experiments,
        {"quick": quick, "seeds": seeds, "jobs": jobs, "cluster": cluster, "out": out, "on": on},
        again=again,
        recorded=recorded,
        record=record,
        page=page,
        as_json=as_json,
    )


def _reproduce(
    experiments: list[str],
    options: dict[str, Any],
    *,
    again: Path | None,
    recorded: bool,
    record: bool,
    page: Path | None,
    as_json: bool,
) -> None:
    from penstock.show.terminal import Progress  # start-up: rich
    from penstock_papers import (  # start-up: polars and matplotlib
        markdown_page,
        rejudge,
        reproduction,
        terminal_table,
    )
    from penstock_papers import recorded as records  # start-up: likewise
    from penstock_papers import reproduce as running  # start-up: likewise

    with Progress() as progress:

        def ended(one: reproduction.Reproduction) -> None:
            if not as_json:
                progress.__exit__(None, None, None)
                terminal_table.table(one)

        if again is not None:
            done, folder = rejudge.again(again, ended), again
        elif recorded:
            where = {key: options[key] for key in ("on", "out")}
            done, folder = records.reproduce(experiments, **where, ended=ended)
        else:
            done, folder = running.reproduce(experiments, **options, progress=progress, ended=ended)
    if record:
        records.record(done, folders.read_json(folder / folders.REPRODUCTION.file, "run it again"))
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


def _open(experiments: list[str], **options: Any) -> None:  # noqa: ANN401 (open_command's)
    from penstock_papers.setups import open_command  # start-up: matplotlib

    open_command.run(experiments, **options)


def _list(
    experiments: list[tuple[str, str]], cpu_s: dict[str, float | None], *, as_json: bool
) -> None:
    from penstock_papers import experiment_names  # start-up: the simulator

    if as_json:
        rows = [{"id": name, "title": title, "cpu_s": cpu_s[name]} for name, title in experiments]
        print_json({"experiments": rows})
        return
    width = max(len(name) for name, _ in experiments)
    longest = max(len(title) for _, title in experiments)
    for name, title in experiments:
        took = cpu_s[name]
        time = "" if took is None else f"  {took:>6,.0f} s of CPU time"
        time = "   minutes of synthesis" if experiment_names.is_synthesized(name) else time
        typer.echo(f"{name:<{width}}  {title:<{longest}}{time}".rstrip())
