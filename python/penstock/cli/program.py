# SPDX-License-Identifier: Apache-2.0
"""The program `penstock`: its commands, and its exit codes."""

import codecs
import io
import os
import signal
import sys
from typing import Annotated, NoReturn

import click
import typer

from penstock import papers
from penstock.cli import fleet, lab, lists
from penstock.cli.compare import compare
from penstock.cli.controller import controller
from penstock.cli.export import export
from penstock.cli.imports import import_recording
from penstock.cli.init import init
from penstock.cli.open import open_page
from penstock.cli.options import Commands
from penstock.cli.report import report
from penstock.cli.run import demo, run
from penstock.cli.show import show
from penstock.cli.sweep import sweep
from penstock.cli.tune import tune
from penstock.errors import InterruptedRunError, PenstockError, ScenarioError

_SIGNALLED = 128  # and the signal's number, as shells report it
_PLAIN = {
    "\u00a0": " ",
    "µ": "u",
    "±": "+-",
    "–": "-",
    "·": "*",
    "…": "...",
    "×": "x",
    "█": "#",
    "░": ".",
}


app = typer.Typer(
    cls=Commands,
    name="penstock",
    help="See, simulate and stop TCP incast without touching the TCP end points.",
    epilog="Begin with: penstock demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    suggest_commands=False,  # click does
    rich_markup_mode=None,  # rich would double the time that --help takes
)

app.add_typer(lab.app, name="lab")
app.add_typer(fleet.app, name="fleet")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """See, simulate and stop TCP incast without touching the TCP end points."""
    if version:
        from penstock import _native  # start-up: the simulator's module

        typer.echo(f"penstock {_native.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command, example in (
    (demo, "penstock demo --scheme drop-tail --scheme fairq"),
    (run, "penstock run demo --scheme drop-tail --scheme hcf --set tcp.min_rto='10 ms'"),
    (report, "penstock report runs/demo"),
    (export, "penstock export runs/demo --to demo.pcapng --scheme fairq"),
    (compare, "penstock compare runs/demo runs/demo-2"),
    (sweep, "penstock sweep demo --over traffic.mice.flows=10..60+10"),
    (
        tune,
        "penstock tune demo --scheme fairq --minimize mice.fct.p99 "
        "--subject-to 'elephants.goodput>=0.95'",
    ),
    (open_page, "penstock open"),
    (init, "penstock init mine.toml"),
    (import_recording, "penstock import capture.pcapng --out recorded"),
    (lists.schemes, "penstock schemes --json"),
    (show, "penstock show fairq"),
    (lists.scenarios, "penstock scenarios"),
    (lists.schema, "penstock schema > scenario.schema.json"),
    (lists.validate, "penstock validate my.toml --set traffic.mice.flows=120"),
):
    # `open` is a function of Python, and `import` a word of its language.
    name = {open_page: "open", import_recording: "import"}.get(command)
    app.command(name, epilog=f"Example: {example}")(command)


# What follows is for the other program.
app.command(
    epilog="Example: penstock controller run controller.toml",
    context_settings={"ignore_unknown_options": True},
)(controller)


def _no_papers(_: typer.Context) -> None:
    """Run experiments of the papers (needs the package penstock_papers)."""
    papers.module("command")  # raises an error with the remedy


if papers.is_installed():
    reproduce = papers.module("command").reproduce
    app.command(epilog="Example: penstock reproduce sicc-4 hcf-4")(reproduce)
else:
    any_arguments = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command("reproduce", context_settings=any_arguments)(_no_papers)


def main() -> None:
    """The program `penstock`: errors are one line on stderr, with an exit code that is not 0."""
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    for word in sys.argv[1:]:
        try:
            word.encode()
        except UnicodeEncodeError:  # JSON and HTML cannot hold it, and so no folder of results
            _fail(f"{word!a}: is no UTF-8; rename it, or use a link", ScenarioError.exit_code)
    ended_by = signal.SIGINT

    def end(number: int, _: object) -> NoReturn:
        nonlocal ended_by
        ended_by = signal.Signals(number)
        signal.signal(number, signal.SIG_IGN)  # `timeout` sends it twice
        raise KeyboardInterrupt  # as Ctrl-C: through every `finally`, with what is kept

    signal.signal(signal.SIGTERM, end)
    try:
        code = app(standalone_mode=False)
    except PenstockError as error:
        is_interrupted = isinstance(error, InterruptedRunError)
        if isinstance(error, ScenarioError) and sys.stderr.isatty():
            typer.echo("\n".join(f"penstock: {text}" for text in error.lines()), err=True)
            sys.exit(error.exit_code)
        _fail(str(error), _SIGNALLED + ended_by if is_interrupted else error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.message)
        code = 0
    except click.ClickException as error:
        _fail(_with_hint(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        code = InterruptedRunError.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has closed it
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: cannot be written or read ({error.strerror})", 1)
    if code == InterruptedRunError.exit_code:
        _fail("interrupted", _SIGNALLED + ended_by)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What a terminal shows of characters that its encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end


def _with_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context else ""
    return error.format_message().removesuffix(".") + hint


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"penstock: {' '.join(message.split())}", err=True)
    sys.exit(code)
