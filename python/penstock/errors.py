# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as one line each: what, where, and what to do."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


def resumable(finished: str, folder: Path) -> str:
    """Where finished work is, such as `3 of 12 runs`, and how the rest follows."""
    return f"{finished} kept in {folder}; the same command goes on from there"


def suggestion(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """A known name near a wrong one, as a question; `otherwise` if there is none."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean '{near[0]}'?" if near else otherwise


class PenstockError(Exception):
    """Any error that is not a defect of Penstock; `str()` of it is one line for the user."""

    exit_code = 1


class Problem(NamedTuple):
    """One thing that is wrong with a scenario."""

    line: int | None
    """In its file, from 1; None: it is in an override or a built-in scheme."""
    text: str
    """`FILE:LINE: KEY: WHAT`, or `--set KEY=VALUE: WHAT`."""
    key: str
    """Its dotted path."""
    what: str
    """What is wrong, and what is allowed."""

    def excerpt(self, source: str) -> str:
        """The line of the scenario's text with the key marked below; empty where there is none."""
        lines = source.splitlines()
        if self.line is None or not 0 < self.line <= len(lines):
            return ""
        written = lines[self.line - 1].expandtabs(4)
        name = re.escape(re.sub(r"\[\d+\]", "", self.key).rpartition(".")[2])
        found = name and re.search(rf"(?<![\w-]){name}(?![\w-])", written)
        start, end = found.span() if found else (0, len(written.rstrip()))
        if not found:
            start = len(written) - len(written.lstrip())
        number = f"{self.line} | "
        return f"{number}{written}\n{'| '.rjust(len(number))}{' ' * start}{'^' * (end - start)}"


class ScenarioError(PenstockError):
    """A scenario, option or file that cannot be used as given (exit code 2)."""

    exit_code = 2

    def __init__(
        self, message: str, problems: Iterable[tuple[int | None, str, str, str]] = ()
    ) -> None:
        """`problems`: all that is wrong with a scenario, of which the message is the first."""
        super().__init__(message)
        self.problems = [Problem(*problem) for problem in problems]
        self.source = ""
        """The scenario's text, once it is known."""

    def lines(self) -> list[str]:
        """Every problem, each with its line of the scenario and a mark under the key."""
        if not self.problems:
            return [str(self)]
        parts = [(problem.text, problem.excerpt(self.source)) for problem in self.problems]
        return ["\n".join(filter(None, part)) for part in parts]


class InterruptedRunError(PenstockError):
    """Ctrl-C; what was finished is in a folder (exit code 130; 143 if it was SIGTERM)."""

    exit_code = 130


class RunError(PenstockError):
    """A run, report or claim that could not be computed (exit code 1)."""
