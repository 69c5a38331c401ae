# SPDX-License-Identifier: Apache-2.0
"""Errors of the Python API in its own terms: arguments by name, and always a PenstockError."""

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from penstock.errors import PenstockError, RunError, ScenarioError

Function = TypeVar("Function", bound=Callable[..., Any])

_REWRITTEN = (
    (r"^--set (schemes|seeds)=\S.*?: ", r"\1: "),
    (r"^--seeds -?[\d,]+: ", "seeds: "),
    (r"^--scheme (.*?): no such scheme", r"schemes: no scheme '\1'"),
    (r"such as --over (\S+)", r"as in '\1'"),
    (r"as --param (\S+)", r"as in '\1'"),
    (r"--on (lab|ovs)\b", r"on='\1'"),
    (r"^--([a-z-]+) ", lambda found: f"{_argument(found)}: "),
    (r"`[^`]*`|--([a-z][a-z-]*)", lambda found: _argument(found) if found[1] else found[0]),
)
_ARGUMENTS = {"set": "overrides", "scheme": "schemes", "show": "numbers", "param": "params"}
"""Where they have another name than the option."""
_LISTS = ("schemes", "over", "numbers", "subject_to", "params", "ids")
"""Arguments that are lists of texts; one alone may be a text."""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_Kind = tuple[Callable[[Any], bool], str]
_SCENARIO: _Kind = (
    lambda value: _is_path(value) or isinstance(value, Mapping),
    "a file, the name of a template, or a dict",
)
_COUNT: _Kind = (_is_count, "a whole number")
_PATH: _Kind = (_is_path, "a path")
_TEXT: _Kind = (_is_text, "a text")
_KINDS: dict[str, _Kind] = {
    "scenario": _SCENARIO,
    "file": _SCENARIO,
    "jobs": _COUNT,
    "seeds": (
        lambda value: _is_count(value) or _holds(value, int),
        "a whole number, or a list of them",
    ),
    "overrides": (
        lambda value: hasattr(value, "items") or _holds(value, tuple | list),
        "a dict of values by dotted path",
    ),
    "progress": (callable, "a function"),
    "tasks": (lambda value: isinstance(value, Iterable), "a list of tasks"),
    "others": (lambda value: all(map(_is_path, value)), "paths"),
    **dict.fromkeys(("out", "folder", "path", "first"), _PATH),
    **dict.fromkeys(("on", "cluster", "tools", "name", "minimize", "scheme", "baseline"), _TEXT),
    **dict.fromkeys(_LISTS, (lambda value: _holds(value, str), "a list of texts")),
    "schemes": (lambda value: _holds(value, object), "a list of names"),
}
"""What arguments may be, by their names; those that are annotated `int` are counts."""


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
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            taken = ", ".join(signature.parameters) or "no argument"
            message = f"{function.__name__}: {error}; allowed: {taken}"
            raise ScenarioError(message) from None
        for name, value in bound.arguments.items():
            is_count = signature.parameters[name].annotation is int
            fits, allowed = _COUNT if is_count else _KINDS.get(name, (lambda _: True, ""))
            if name in _LISTS and isinstance(value, str):
                bound.arguments[name] = [value]
            elif value is not None and not fits(value):
                message = f"{name}: is of type {type(value).__name__}; allowed: {allowed}"
                raise ScenarioError(message)
        try:
            return function(*bound.args, **bound.kwargs)
        except OSError as error:
            message = f"{error.filename or 'output'}: cannot be written or read ({error.strerror})"
            raise RunError(message) from error

    return wrapped  # type: ignore[return-value]


def rewritten(message: str) -> str:
    """A message of the command line, with the API's words."""
    for pattern, words in _REWRITTEN:
        message = re.sub(pattern, words, message)
    return message


def _argument(option: re.Match[str]) -> str:
    """The argument of Python that an option is."""
    return _ARGUMENTS.get(option[1], option[1].replace("-", "_"))


def _holds(value: object, kind: Any) -> bool:  # noqa: ANN401 (a type or several)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return False
    return all(isinstance(each, kind) for each in value)
