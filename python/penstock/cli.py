# SPDX-License-Identifier: Apache-2.0
"""The command line. What is slow to import is imported by the commands that need it."""

import os
import shutil
import sys
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Annotated, NoReturn

import click
import typer
from typer.core import TyperGroup

from penstock import papers
from penstock.errors import PenstockError, ScenarioError
from penstock.lab.cli import app as lab
from penstock.options import (
    File,
    Jobs,
    Json,
    On,
    Out,
    Schemes,
    Seeds,
    Settings,
    print_json,
    setting,
)
from penstock.sweep.cli import sweep
from penstock.tune.cli import tune

_INTERRUPTED = 130  # as shells report Ctrl-C

# What is said above the scenarios of a folder.
_GROUPS = {
    "bench": "Benchmarks:",
    "calibration": "The simulator's Linux TCP, held against the kernel's (`make calibrate`):",
    "crosscheck": "Compared with ns-2:",
    "lab": "For the laboratory (`penstock run NAME --on lab`, as root):",
    "papers": "Experiments of the papers (`penstock reproduce` compares them with the claims):",
}


class _Commands(TyperGroup):
    """Tells what each command does in a whole sentence, where click would cut it."""

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of the commands."""
        rows = [
            (name, (command.help or "").split("\n\n")[0]) for name, command in self.commands.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in rows])


app = typer.Typer(
    cls=_Commands,
    name="penstock",
    help="See, simulate and stop TCP incast without touching the TCP end points.",
    epilog="Begin with: penstock demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would double the time that --help takes
)

app.add_typer(lab, name="lab")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """See, simulate and stop TCP incast without touching the TCP end points."""
    if version:
        from penstock import _native

        typer.echo(f"penstock {_native.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: penstock demo --seeds 5")
def demo(
    schemes: Schemes = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Run the demo: 20 elephants and 60 mice share a 1 Gb/s bottleneck under seven schemes."""
    _run("demo", schemes, None, seeds, jobs, as_json, out)


@app.command(
    epilog="Example: penstock run demo --scheme drop-tail --scheme hcf --set tcp.min_rto='10 ms'"
)
def run(
    file: File,
    schemes: Schemes = None,
    settings: Settings = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    as_json: Json = False,
    out: Out = None,
    on: On = "sim",
    tools: Annotated[
        bool,
        typer.Option(
            "--tools", help="With --on lab: traffic by iperf3, nginx and ab instead of our own."
        ),
    ] = False,
) -> None:
    """Run a scenario under each of its schemes; show a table and write the run's folder.

    The folder holds scenario.toml (as resolved, see `penstock validate --help`), run.json
    (versions, command), summary.json (what --json prints), flows, queues and ports as Parquet,
    report.html, and figures/ as SVG and PDF.

    --json prints one object: `scenario` (as resolved), `seeds`, and `results`, a list with
    `scheme`, `tcp`, `groups` and `ports` by name, `performance`, and `ci95`. With several seeds
    every number is the mean over them, and `ci95` holds `groups` and `ports` once more with the
    half-widths of the 95 % confidence intervals (Student's t); with one seed it is null. With
    --json and without --out no folder is written.
    """
    _run(file, schemes, settings, seeds, jobs, as_json, out, on, tools)


def _run(
    file: str,
    schemes: list[str] | None,
    settings: list[str] | None,
    seeds: int | None,
    jobs: int | None,
    as_json: bool,
    out: Path | None,
    on: str = "sim",
    tools: bool = False,
) -> None:
    if tools and on != "lab":
        message = "--tools: is for the laboratory; give --on lab too"
        raise ScenarioError(message)
    overrides = [setting(text) for text in settings or ()]
    from penstock import api, results, terminal

    if out is not None:
        results.check_target(out)
    with terminal.Progress() as progress:
        ran = api.run(
            file,
            schemes=schemes,
            overrides=overrides,
            seeds=seeds,
            jobs=jobs,
            progress=progress,
            on=on,
            tools=tools,
        )
    if as_json:
        if out is not None:
            ran.save(out, report=True)
        print_json(ran.summary)
        return
    if on == "lab":
        from penstock.lab import substrate

        for note in substrate.notes(ran.info):
            typer.echo(note, err=True)
    typer.echo(f"{ran.summary['scenario']['title']}\n")
    terminal.show(ran.summary)
    folder = ran.save(out or results.free_folder(ran.info["name"]), report=True)
    typer.echo(f"Run:    {folder}\nReport: {folder / 'report.html'}")


@app.command(epilog="Example: penstock report runs/demo")
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Of a run, a comparison, or the like.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="The page; figures/ comes beside it. Default: in FOLDER."
        ),
    ] = None,
) -> None:
    """Write a report anew: one HTML page that needs no network, and figures for papers.

    The folder is that of a run, a comparison, a reproduction, a sweep, or a search of `tune`.
    """
    from penstock.report import kinds

    typer.echo(f"Report: {kinds.report(folder, out)}")


@app.command(epilog="Example: penstock compare runs/incast runs/incast-2")
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A run: the measure.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The run held against it.")],
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder of page and figures; default: new."),
    ] = None,
) -> None:
    """Hold a run against another of the same scenario: the laboratory against the simulator, say.

    Times and rates agree within 15 %, tails and counts within 25 %. --json prints `agree`, `of`,
    and `lines`: a list of `scheme`, `group`, `measure`, `first`, `second`, `ratio`, `agrees`.
    With --json and without --out no folder is written.
    """
    from penstock import compare as comparing

    found = comparing.compare(first, second)
    if out is not None or not as_json:
        page = found.save(out or comparing.free_folder(first, second))
    if as_json:
        print_json(found.as_json())
        return
    comparing.show(found)
    typer.echo(f"Page: {page}")


app.command(epilog="Example: penstock sweep demo --over traffic.mice.flows=10..60+10")(sweep)
app.command(
    epilog="Example: penstock tune demo --scheme fairq --minimize mice.fct.p99 "
    "--subject-to 'elephants.goodput>=0.95'"
)(tune)


@app.command(epilog="Example: penstock schemes --json")
def schemes(as_json: Json = False) -> None:
    """List the built-in schemes: what each does, and where it comes from."""
    from penstock import api

    listed = api.schemes()
    if as_json:
        print_json({"schemes": listed})
        return
    _print_list([(one["name"], f"{one['title']} · {one['source']}") for one in listed])


@app.command(epilog="Example: penstock scenarios")
def scenarios(as_json: Json = False) -> None:
    """List the templates that come with Penstock; `penstock run NAME` runs one."""
    from penstock import source

    listed = [(name, source.title(path), path) for name, path in source.templates()]
    if as_json:
        keys = ("name", "title", "file")
        rows = [dict(zip(keys, map(str, row), strict=True)) for row in listed]
        print_json({"scenarios": rows})
        return
    width = max((len(name) for name, _, _ in listed), default=0)
    listed.sort(key=lambda row: row[0].rpartition("/")[0])  # templates have no folder
    for part, members in groupby(listed, lambda row: row[0].rpartition("/")[0]):
        if part:
            typer.echo(f"\n{_GROUPS.get(part, part)}")
        _print_list([(name, title) for name, title, _ in members], width)


@app.command(epilog="Example: penstock schema > scenario.schema.json")
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from penstock import _native

    typer.echo(_native.schema().rstrip())


@app.command(epilog="Example: penstock validate my.toml --set traffic.mice.flows=120")
def validate(file: File, settings: Settings = None) -> None:
    """Check a scenario, and print it with its defaults written out.

    Left open is what follows from the TCP profile, or from a port's rate and buffer: `penstock
    run` derives it anew, and docs/tcp.md and docs/schemes/ tell how.
    """
    overrides = [setting(text) for text in settings or ()]
    from penstock import api

    typer.echo(api.resolved(file, overrides=overrides).rstrip())


papers.add_command(app)


def _print_list(rows: list[tuple[str, str]], width: int = 0) -> None:
    """Names, and what is said of each, wrapped to the terminal."""
    width = max(width, *(len(name) for name, _ in rows)) + 2
    for name, text in rows:
        room = max(shutil.get_terminal_size((100, 24)).columns - width, 20)
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        typer.echo(f"{name:<{width}}" + f"\n{'':<{width}}".join(lines))


def main() -> None:
    """The program `penstock`: errors are one line on stderr, with an exit code that is not 0."""
    try:
        code = app(standalone_mode=False)
    except PenstockError as error:
        _fail(str(error), error.exit_code)
    except click.ClickException as error:
        _fail(_with_hint(error), error.exit_code)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}", 1)
    if code == _INTERRUPTED:
        _fail("interrupted; nothing was written", _INTERRUPTED)


def _with_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context else ""
    return error.format_message() + hint


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"penstock: {' '.join(message.split())}", err=True)
    sys.exit(code)
