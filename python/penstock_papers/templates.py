# SPDX-License-Identifier: Apache-2.0
"""Statements of a paper written once: a `[[claim]]` or `[[figure]]` that stands for several.

`papers/README.md` explains the keys. A template stands for one table for each combination of the
values of its `for`, and a claim moreover for each of its schemes and baselines. In texts
`{scheme}`, `{against}`, `{run}` and the words of `for` are replaced by their values.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Any

Table = dict[str, Any]

_WORD = re.compile(r"\{(\w+)\}")
_CLAIM = (
    *("id", "text", "where", "published", "run", "scheme", "measure"),
    *("relation", "against", "factor", "percent"),
)
_FIGURE = ("name", "title", "where", "meaning", "measure", "x_label", "y_label", "log")


def figures(template: Table) -> list[Table]:
    """The figures that a `[[figure]]` stands for.

    Raises:
        ValueError: a word of a text is not defined.
    """
    made = []
    for given in _combinations(template.get("for", {})):
        words = _filled(given, given)
        table = {**template, **{key: words[key] for key in _FIGURE if key in words}}
        made.append(_filled({key: table[key] for key in table if key != "for"}, words))
    return made


def claims(
    template: Table, default: Table, names: Mapping[str, str], runs: Collection[str]
) -> list[Table]:
    """The claims that a `[[claim]]` stands for, each with the keys of a single claim.

    Args:
        template: as in the file.
        default: what it takes where it has no key of its own.
        names: of schemes as the paper has them, for the texts.
        runs: of the experiment; for `for.run = "*"`.

    Raises:
        ValueError: a word of a text is not defined, or a word of `for` is not used.
    """
    axes = {**default.get("for", {}), **template.get("for", {})}
    if axes.get("run") == "*":
        axes["run"] = list(runs)
    common = {key: value for key, value in {**default, **template}.items() if key != "for"}
    made: list[Table] = []
    for words in _combinations(axes):
        claim = {**common, **{key: value for key, value in words.items() if key in _CLAIM}}
        unused = set(words) - {*_CLAIM, *_WORD.findall(repr(claim))}
        if unused:
            message = f"for: '{min(unused)}' is neither a key of a claim nor in its text"
            raise ValueError(message)
        made += _of_each_scheme(claim, words, names)
    _extend_ids(made)
    return [{key: value for key, value in one.items() if key != "scheme"} for one in made]


def _combinations(axes: Mapping[str, object]) -> Iterator[Table]:
    """The words of each combination; a value that is no table is the word of its axis's name."""
    named = (
        [value if isinstance(value, dict) else {name: value} for value in _listed(values)]
        for name, values in axes.items()
    )
    for values in product(*named):
        yield {key: value for each in values for key, value in each.items()}


def _of_each_scheme(claim: Table, words: Table, names: Mapping[str, str]) -> Iterator[Table]:
    schemes, baselines = _listed(claim.get("scheme", "")), _listed(claim.get("against"))
    for scheme, against in product(schemes, baselines):
        measure = {"scheme": scheme, **claim["measure"]} if "measure" in claim else None
        side = _baseline(against, measure)
        base = side.get("scheme", "") if isinstance(side, dict) else side
        known = {**words, "run": claim.get("run", ""), "scheme": scheme, "against": base}
        shown = {key: names.get(str(value), value) for key, value in known.items()}
        shown = {key: _filled(value, shown) for key, value in shown.items()}
        one = _filled({**claim, "scheme": scheme, "measure": measure, "against": side}, known)
        one["text"] = _filled(claim.get("text"), shown)
        one["id"] = _slug(one.get("id", "?"))
        yield {key: value for key, value in one.items() if value is not None}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _baseline(against: object, measure: Table | None) -> Any:  # noqa: ANN401 (a number or a table)
    """A scheme's name: the same measure of that scheme; a table: what differs from the measure."""
    if isinstance(against, str):
        against = {"scheme": against}
    return {**(measure or {}), **against} if isinstance(against, dict) else against


def _filled(value: Any, words: Mapping[str, object]) -> Any:  # noqa: ANN401 (of a TOML file)
    """The value with the words of its texts replaced."""
    if isinstance(value, dict):
        return {key: _filled(each, words) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, words) for each in value]
    if not isinstance(value, str):
        return value
    for word in _WORD.findall(value):
        if word not in words:
            message = f"'{value}': unknown word '{word}'; known: {', '.join(words)}"
            raise ValueError(message)
    return _WORD.sub(lambda found: str(words[found[1]]), value)


def _extend_ids(claims: list[Table]) -> None:
    """Appends baseline, scheme and run to ids that would be the same without."""
    for key in ("against", "scheme", "run"):
        if len({one["id"] for one in claims}) == len(claims):
            return
        values = [one.get(key, "") for one in claims]
        if any(value != values[0] for value in values):
            for one, value in zip(claims, values, strict=True):
                named = value.get("scheme", "") if isinstance(value, dict) else value
                one["id"] += f"-{_slug(named)}" if isinstance(named, str) else ""


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text)
