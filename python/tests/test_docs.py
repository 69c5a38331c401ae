# SPDX-License-Identifier: Apache-2.0
"""What the documents show is run, so that they cannot rot.

A TOML block with a title is a scenario; one without is part of one, put over BASE. Blocks
with a name (`toml NAME`) are written to a folder, in which the `sh` and `python` blocks of the same
document run.
"""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

import penstock
from penstock import _native, cli, columns

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")])

SCHEMA = json.loads(_native.schema())

BASE = """
title = "What a part is put over"
duration = "1 s"
schemes = ["drop-tail"]
[fabric]
kind = "dumbbell"
senders = 80
receivers = 80
access = { rate = "1 Gb/s", delay = "12.5 us" }
bottleneck = { rate = "1 Gb/s", delay = "25 us" }
[traffic.some]
kind = "bulk"
from = "all"
to = "all"
pairs = "random"
"""


class Block(NamedTuple):
    """A fenced block: its language, the rest of its first line, its text."""

    language: str
    name: str
    text: str


def blocks(document):
    found = re.findall(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", document.read_text(), re.M | re.S)
    return [Block(*parts) for parts in found]


def of(language):
    return [
        pytest.param(document, block, id=f"{document.stem}-{number}")
        for document in DOCUMENTS
        for number, block in enumerate(blocks(document))
        if block.language == language
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Fills a folder with the named files of a document and makes it the current one."""

    def fill(document):
        for block in blocks(document):
            if block.language in {"toml", "csv", "text"} and block.name:
                (tmp_path / block.name).write_text(block.text)
        monkeypatch.chdir(tmp_path)

    return fill


@pytest.mark.parametrize(("document", "block"), of("toml"))
def test_scenarios_are_valid(document, block, folder):
    folder(document)
    part = tomllib.loads(block.text)
    penstock.validate(part if "title" in part else tomllib.loads(BASE) | part)


@pytest.mark.parametrize(("document", "block"), of("sh"))
def test_commands_succeed(document, block, folder, monkeypatch):
    folder(document)
    for line in block.text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "penstock"
        monkeypatch.setattr("sys.argv", [program, *arguments])
        cli.main()


@pytest.mark.parametrize(("document", "block"), of("python"))
def test_programs_succeed(document, block, folder):
    folder(document)
    exec(compile(block.text, document.name, "exec"), {})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text())
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (document.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_named_files_exist(document):
    tops = "core|crates|python|scenarios|tests|bench|crosscheck|docs"
    named = re.findall(rf"`((?:{tops})/[\w./-]+)`", document.read_text())
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert not missing


def test_every_scheme_has_a_section():
    headings = re.findall(r"^### (.*)$", (ROOT / "docs/schemes.md").read_text(), re.M)
    told = [name for heading in headings for name in heading.split(", ")]
    assert told == [scheme["name"] for scheme in penstock.schemes()]


@pytest.mark.parametrize(
    ("part", "document"),
    [
        ("Queue", "schemes"),
        ("Window", "schemes"),
        ("Controller", "schemes"),
        ("Tcp", "tcp"),
        ("Traffic", "scenarios"),
        ("Fabric", "scenarios"),
        ("Measure", "scenarios"),
    ],
)
def test_every_key_is_told(part, document):
    text = (ROOT / f"docs/{document}.md").read_text()
    missing = [key for key in keys(SCHEMA["$defs"][part]) if not re.search(rf"\b{key}\b", text)]
    assert not missing


def keys(schema):
    """The properties of a schema and of its alternatives."""
    schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    found = set(schema.get("properties", ()))
    for other in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        found |= keys(other)
    return found - {"kind"}


def test_the_readme_shows_the_demo_as_it_is():
    """When this fails, run the demo and bring README.md's table and picture up to date."""
    mice = next(b for b in columns.blocks(penstock.run("demo").summary) if b.title == "mice")
    rows = [
        [scheme, *(column.text(row) for column in mice.columns)]
        for scheme, row in zip(mice.schemes, mice.rows, strict=True)
    ]
    table = next(b.text for b in blocks(ROOT / "README.md") if b.text.startswith("mice"))
    shown = [re.split(r"  +", line) for line in table.splitlines()[2:]]
    assert shown == rows
