# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as one line each: what, where, and what to do."""

import difflib
from collections.abc import Iterable
from pathlib import Path


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


class ScenarioError(PenstockError):
    """A scenario, option or file that cannot be used as given (exit code 2)."""

    exit_code = 2


class InterruptedRunError(PenstockError):
    """Ctrl-C; what was finished is in a folder (exit code 130)."""

    exit_code = 130


class RunError(PenstockError):
    """A run, report or claim that could not be computed (exit code 1)."""
