# SPDX-License-Identifier: Apache-2.0
"""Tables of a TOML file as dataclasses: unknown keys, missing ones and wrong types are errors."""

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from penstock_papers.measures import nearest

T = TypeVar("T")

_DESCRIPTIONS = {
    str: "text",
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    tuple: "a list",
    dict: "a table",
}


def typed(kind: type[T], table: Mapping[str, Any]) -> T:
    """The table as this dataclass; lists become tuples.

    Raises:
        ValueError: a key is unknown or missing, or its value is of a wrong type.
    """
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values = {}
    for name, value in table.items():
        one_of("key", name, known)
        values[name] = tuple(value) if isinstance(value, list) else value
        names = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        if names and value not in names:
            one_of(name, str(value), filter(None, names))
        elif not names and not _fits(values[name], hints[name]):
            message = f"{name}: is {value!r}; give {_described(hints[name])}"
            raise ValueError(message)
    for name, one in known.items():
        if one.default is MISSING and one.default_factory is MISSING and name not in values:
            message = f"{name} is missing"
            raise ValueError(message)
    return kind(**values)


def one_of(what: str, name: str, allowed: Iterable[str]) -> None:
    """Refuses a name that is not among these.

    Raises:
        ValueError: it is not; the message names the nearest.
    """
    known = list(allowed)
    if name not in known:
        message = f"unknown {what} '{name}'; {nearest(name, known)}"
        raise ValueError(message)


def _fits(value: object, hint: Any) -> bool:  # noqa: ANN401 (a type)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if origin is not None:
        return isinstance(value, origin)
    if hint in (int, float):
        wanted = (int,) if hint is int else (int, float)
        return isinstance(value, wanted) and not isinstance(value, bool)
    return hint is Any or isinstance(value, hint)


def _described(hint: Any) -> str:  # noqa: ANN401 (a type)
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_described(one) for one in get_args(hint) if one is not type(None))
    kind = get_origin(hint) or hint
    return _DESCRIPTIONS.get(kind, f"a {getattr(kind, '__name__', kind)}".lower())
