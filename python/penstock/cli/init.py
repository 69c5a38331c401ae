# SPDX-License-Identifier: Apache-2.0
"""The command `penstock init`: five questions, and a scenario."""

import shlex
from pathlib import Path
from typing import Annotated, NamedTuple

import click
import typer

from penstock.errors import ScenarioError


class Question(NamedTuple):
    """A question, the key that its answer sets, and the answer of those who press Enter."""

    text: str
    key: str
    default: str


QUESTIONS = (
    Question("How fast are the servers' links?", "rate", "10 Gb/s"),
    Question("How much can the switch buffer for one port?", "buffer", "256 kB"),
    Question("How many servers answer one client at the same time?", "flows", "32"),
    Question("How large is each answer?", "size", "20 kB"),
    Question("How many long transfers share the port?", "long", "2"),
)
_SCENARIO = """\
# Written by `penstock init`. Keys and units: docs/scenarios.md, or `penstock schema`.
title = "{flows} answers of {size} at {rate}"
duration = "2 s"
seeds = 3
schemes = ["drop-tail", "red-ecn", "dctcp", "fairq", "hscc", "grant"]

[fabric]
kind = "dumbbell"
senders = {senders}
receivers = 1
access = {{ rate = "{rate}", delay = "5 us" }}
bottleneck = {{ rate = "{rate}", delay = "10 us", buffer = "{buffer}" }}

# A request every 100 ms, which all servers answer at once.
[traffic.answers]
kind = "incast"
flows = {flows}
size = "{size}"
from = "senders[0..{flows}]"
to = "receivers"
epochs = 20
every = "100 ms"
"""
_LONG = """
# Long transfers through the same port, such as backups.
[traffic.long]
kind = "bulk"
flows = {long}
from = "senders[{flows}..{senders}]"
to = "receivers"
"""


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scenario to write.")] = Path(
        "scenario.toml"
    ),
) -> None:
    """Ask five questions about a port, and write a scenario of it.

    Enter takes the answer in brackets; answers may also come from a pipe, one on each line.
    """
    if file.exists():
        message = f"{file}: exists already; give another FILE"
        raise ScenarioError(message)
    from penstock import folders  # start-up: not needed for help
    from penstock.scenario import Source, resolve  # start-up: the simulator

    folders.check_file(file)
    answers = {question.key: question.default for question in QUESTIONS}
    for question in QUESTIONS:
        while True:
            try:
                answer = typer.prompt(question.text, default=question.default)
            except click.Abort as abort:
                typer.echo()
                if isinstance(abort.__context__, EOFError):
                    message = f'no answer to "{question.text}"; nothing was written'
                    raise ScenarioError(message) from abort
                raise
            answers[question.key] = answer.strip()
            try:
                resolve(Source(text_of(answers), file, file.stem), ())
                break
            except ScenarioError as error:
                typer.echo(f"  {_reason(error)}", err=True)
    folders.write(file, text_of(answers))
    typer.echo(f"Wrote {file}; next: penstock run {shlex.quote(str(file))}")


def text_of(answers: dict[str, str]) -> str:
    """The scenario of these answers, in TOML.

    Raises:
        ScenarioError: an answer that should be a number is none.
    """
    for key in ("flows", "long"):
        if not answers[key].isdecimal() or (key == "flows" and int(answers[key]) == 0):
            message = f"{answers[key]}: give a whole number, such as 8"
            raise ScenarioError(message)
    if bad := next((text for text in answers.values() if '"' in text or "\\" in text), None):
        message = f"{bad}: give a number and a unit, such as 10 Gb/s"
        raise ScenarioError(message)
    flows, long = int(answers["flows"]), int(answers["long"])
    values = {**answers, "flows": flows, "long": long, "senders": flows + long}
    return (_SCENARIO + (_LONG if long else "")).format(**values)


def _reason(error: ScenarioError) -> str:
    """What is wrong with the answer, without the place in a file that is not yet written."""
    return error.problems[0].what if error.problems else str(error)
