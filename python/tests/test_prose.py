# SPDX-License-Identifier: Apache-2.0
"""What users read is in plain English: documents, help, descriptions of keys and of experiments."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from penstock import _native, cli

from .test_docs import DOCUMENTS, ROOT

AVOIDED = {
    r"tells?|told": "report, print, list, show, specify",
    r"says?|said": "state, print, specify; according to",
    r"anew": "again",
    r"whoever": "the caller, the reader, the agent",
    r"thereof": "of it",
    r"mend(s|ed|ing)?": "fix, repair, update",
    r"beside": "next to, compared with, in addition to",
    r"(held|holds?|holding) (\S+ ){0,3}against": "compare with",
    r"nobody|somebody": "no one, another, the noun itself",
    r"for ever": "forever",
    r"so long": "that long, while",
    r"blows?": "fault",
    r"dice": "random seed",
    r"daily bread": "typical case",
    r"hears?|heard": "receive, learn",
}
"""Words that no page, help text or description needs, and what to write instead."""

WORDS = re.compile("|".join(rf"\b(?:{word})\b" for word in AVOIDED), re.I)
TEXTS = {"title", "about", "why", "text", "description"}
"""The keys of scenarios, claims and the schema whose values are prose."""


def found_in(text: str) -> list[str]:
    """Each avoided word of a text, with its line and what to write instead."""
    lines = enumerate(text.splitlines(), start=1)
    return [
        f"line {number}: `{hit[0]}`; write: {better(hit[0])}"
        for number, line in lines
        for hit in WORDS.finditer(line)
    ]


def better(word: str) -> str:
    return next(new for old, new in AVOIDED.items() if re.fullmatch(old, word, re.I))


def prose(value: object, key: str = "") -> Iterator[str]:
    """The prose within parsed TOML or JSON."""
    if isinstance(value, str) and key in TEXTS:
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from prose(each, key)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from prose(each, name)


def commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The contexts of a command and of all commands below it."""
    yield context
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from commands(each, click.Context(each, parent=context, info_name=name))


def named(paths: list[Path]) -> list[object]:
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in sorted(set(paths))]


PAGES = [
    *DOCUMENTS,
    ROOT / "CHANGELOG.md",
    ROOT / "bpf/README.md",
    ROOT / "tests/vectors/README.md",
    *(ROOT / "packaging").glob("*.toml"),
    *(ROOT / "packaging").glob("*.in"),
]


@pytest.mark.parametrize("page", named(PAGES))
def test_pages_are_in_plain_english(page):
    assert not found_in(page.read_text())


@pytest.mark.parametrize(
    "file",
    named([file for top in ("scenarios", "papers", "evidence") for file in ROOT.glob(f"{top}/**/*.toml")]),
)
def test_scenarios_and_claims_are_in_plain_english(file):
    texts = prose(tomllib.loads(file.read_text()))
    assert not [hit for text in texts for hit in found_in(text)]


def test_help_of_penstock_is_in_plain_english():
    root = typer.main.get_command(cli.app)
    contexts = list(commands(root, click.Context(root, info_name="penstock")))
    assert len(contexts) > 10
    assert not [
        f"{each.command_path}: {hit}" for each in contexts for hit in found_in(each.get_help())
    ]


def test_help_of_penstockd_is_in_plain_english():
    """Clap makes the help from doc comments, so all of those are read."""
    sources = sorted((ROOT / "crates/agent/src").rglob("*.rs"))
    comments = {
        file: "\n".join(re.findall(r"^\s*///(.*)$", file.read_text(), re.M)) for file in sources
    }
    assert any("Attach" in text for text in comments.values())
    assert not [f"{file.name}: {hit}" for file, text in comments.items() for hit in found_in(text)]


def test_help_of_make_is_in_plain_english():
    helps = re.findall(r"## (.*)", (ROOT / "Makefile").read_text())
    assert helps
    assert not found_in("\n".join(helps))


def test_descriptions_of_keys_are_in_plain_english():
    texts = list(prose(json.loads(_native.schema())))
    assert len(texts) > 100
    assert not [f"{text}: {hit}" for text in texts for hit in found_in(text)]
