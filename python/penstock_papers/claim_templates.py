# SPDX-License-Identifier: Apache-2.0
"""One `[[claim]]` of a file stands for many claims: one for each case, run, scheme and baseline.

`papers/README.md` explains the keys. In its texts `{scheme}`, `{against}`, `{run}` and the keys of
a case are replaced by their values.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Any

Table = dict[str, Any]

_WORD = re.compile(r"\{(\w+)\}")


def expanded(
    template: Table, default: Table, names: Mapping[str, str], runs: Collection[str]
) -> list[Table]:
    """The claims that a `[[claim]]` stands for, each with keys of a single claim only.

    Args:
        template: as in the file.
        default: what it takes where it has no key of its own.
        names: of schemes as the paper has them, for the texts.
        runs: of the experiment; for `for.run = "*"`.

    Raises:
        ValueError: a word of a text is not defined, or a value of `for` is not used.
    """
    common = {**default, **template}
    axes = {**default.get("for", {}), **template.get("for", {})}
    if axes.get("run") == "*":
        axes["run"] = list(runs)
    made = []
    for values in product(*(_axis(name, of) for name, of in axes.items())):
        words = {key: value for each in values for key, value in each.items()}
        claim = {key: value for key, value in {**common, **words}.items() if key in _KEYS}
        rest = {key: value for key, value in common.items() if key not in (*_KEYS, "for")}
        unused = set(words) - {*_KEYS, *_WORD.findall(repr(claim))}
        if unused:
            message = f"for: '{min(unused)}' is neither a key of a claim nor in its text"
            raise ValueError(message)
        made += [one | rest for one in _crossed(claim, words, names)]
    _extend_ids(made)
    return [{key: value for key, value in one.items() if key != "scheme"} for one in made]


_KEYS = (
    *("id", "text", "where", "published", "run", "scheme", "measure"),
    *("relation", "against", "factor", "percent"),
)


def _axis(name: str, values: object) -> list[Table]:
    """The values of an axis of `for`: tables of words, or each the word of the axis's name."""
    return [value if isinstance(value, dict) else {name: value} for value in _listed(values)]


def _crossed(claim: Table, words: Table, names: Mapping[str, str]) -> Iterator[Table]:
    """A claim for each scheme and baseline."""
    baselines = _listed(claim.get("against"))
    for scheme, against in product(_listed(claim.pop("scheme", "")), baselines):
        known = {**words, "run": claim.get("run", ""), "scheme": scheme, "against": against}
        one = {key: _filled(value, known) for key, value in claim.items()}
        shown = {key: names.get(str(value), value) for key, value in known.items()}
        shown |= {key: _filled(value, shown) for key, value in words.items()}
        one["text"] = _filled(claim.get("text"), shown)
        one["id"] = re.sub(r"[^\w.]+", "-", str(one.get("id", "?")))
        measure = {"scheme": scheme, **one.get("measure", {})}
        one |= {"scheme": scheme, "measure": measure}
        one["against"] = _filled(_baseline(against, measure), known)
        yield {key: value for key, value in one.items() if value is not None}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _baseline(against: object, measure: Table) -> object:
    """A scheme's name: the same measure of that scheme; a table: what differs from the measure."""
    if isinstance(against, str):
        return {**measure, "scheme": against}
    return {**measure, **against} if isinstance(against, dict) else against


def _filled(value: Any, words: Mapping[str, object]) -> Any:  # noqa: ANN401 (of a TOML file)
    """The value with the words of its texts replaced."""
    if isinstance(value, dict):
        return {key: _filled(each, words) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, words) for each in value]
    if not isinstance(value, str):
        return value

    def word(found: re.Match[str]) -> str:
        if found[1] not in words:
            message = f"'{value}': unknown word {found[0]}; known: {', '.join(words)}"
            raise ValueError(message)
        return str(words[found[1]])

    return _WORD.sub(word, value)


def _extend_ids(claims: list[Table]) -> None:
    """Appends baseline, scheme and run to ids that would be the same without."""
    for key in ("against", "scheme", "run"):
        if len({one["id"] for one in claims}) == len(claims):
            return
        values = [_word(one.get(key, "")) for one in claims]
        if len(set(values)) > 1:
            for one, value in zip(claims, values, strict=True):
                one["id"] += f"-{value}" if value else ""


def _word(value: object) -> str:
    named = value.get("scheme", "") if isinstance(value, dict) else value
    return re.sub(r"[^\w.]+", "-", named) if isinstance(named, str) else ""
