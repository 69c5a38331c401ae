# SPDX-License-Identifier: Apache-2.0
"""Errors of the Python API in its own terms: arguments by name, and always a PenstockError."""

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from penstock.errors import PenstockError, RunError, ScenarioError

Function = TypeVar("Function", bound=Callable[..., Any])

_REWRITTEN = (
    (r"^--set schemes=\S.*?: ", "schemes: "),
    (r"^--set seeds=\S.*?: ", "seeds: "),
    (r"^--set ([^=\s]+)=", r"overrides: \1="),
    (r"^--scheme (.*?): no such scheme", r"schemes: no scheme '\1'"),
    (r"^--over (\S+): give KEY=VALUES, such as --over (\S+)", r"over: \1; allowed: as in '\2'"),
    (r"^--(\w+): ", r"\1: "),
    (r"\bgive --on lab too", "give on='lab' too"),
    (r"\bgive another --out\b", "give another out"),
)
_PATHS = ("out", "folder", "path")
_TEXTS = ("on", "cluster", "tools", "name", "minimize", "scheme")


def of_api(function: Function) -> Function:
    """A function of the command line's parts whose errors name the arguments of Python."""
    checked = of_arguments(function)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 (as the function)
        try:
            return checked(*arguments, **named)
        except PenstockError as error:
            error.args = (rewritten(str(error)), *error.args[1:])
            if isinstance(error, ScenarioError):
                problems = error.problems
                error.problems = [each._replace(text=rewritten(each.text)) for each in problems]
            raise

    return wrapped  # type: ignore[return-value]


def of_arguments(function: Function) -> Function:
    """A function that refuses arguments of a wrong type and files that fail by a PenstockError."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 (as the function)
        bound = signature.bind(*arguments, **named)
        for name, value in bound.arguments.items():
            if value is not None and (allowed := _allowed(name, value)):
                message = f"{name}: is of type {type(value).__name__}; allowed: {allowed}"
                raise ScenarioError(message)
        try:
            return function(*arguments, **named)
        except OSError as error:
            message = f"{error.filename or 'output'}: cannot be written or read ({error.strerror})"
            raise RunError(message) from error

    return wrapped  # type: ignore[return-value]


def rewritten(message: str) -> str:
    """A message of the command line, with the API's words."""
    for pattern, words in _REWRITTEN:
        message = re.sub(pattern, words, message)
    return message


def _allowed(name: str, value: object) -> str:
    """What an argument may be, if it is something else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if name == "jobs" and not is_number:
        return "a whole number"
    if name == "seeds" and not (is_number or _holds(value, int)):
        return "a whole number, or a list of them"
    if name == "schemes" and not (isinstance(value, str) or _holds(value, object)):
        return "a list of names"
    if name == "overrides" and not (hasattr(value, "items") or _holds(value, tuple | list)):
        return "a dict of values by dotted path"
    if name in _PATHS and not isinstance(value, str | os.PathLike):
        return "a path"
    return "a text" if name in _TEXTS and not isinstance(value, str) else ""


def _holds(value: object, kind: Any) -> bool:  # noqa: ANN401 (a type or several)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return False
    return all(isinstance(each, kind) for each in value)
