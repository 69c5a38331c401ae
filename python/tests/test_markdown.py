# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown: of a row that is too long, or under a header that is, cells are lost."""

import re
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = {".git", ".venv", "node_modules", "runs", "target"}

DELIMITER = re.compile(r"\s*\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?)?\s*")


def cells(row):
    """How many cells a row has: pipes divide, but not escaped ones, code spans included."""
    return len(re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|")))


def uneven(text):
    """A line for each row of a table that has not as many cells as the table's delimiter row."""
    fenced = re.compile(r"^(`{3,}|~{3,}).*?^\1[^\n]*$", re.M | re.S)
    lines = fenced.sub(lambda block: "\n" * block[0].count("\n"), text).splitlines()
    for number, line in enumerate(lines):
        if not DELIMITER.fullmatch(line) or "|" not in lines[number - 1]:
            continue
        rows = [lines[number - 1], line, *takewhile(lambda row: "|" in row, lines[number + 1 :])]
        for place, row in enumerate(rows, start=number):
            if cells(row) != cells(line):
                yield f"{place}: {cells(row)} cells, not {cells(line)}: {row}"


def documents():
    inner = [one for one in ROOT.iterdir() if one.is_dir() and one.name not in BUILT]
    return [*ROOT.glob("*.md"), *(path for folder in inner for path in folder.rglob("*.md"))]


def test_the_rows_of_every_table_are_as_long_as_its_header():
    texts = {path: path.read_text(encoding="utf-8") for path in documents()}
    assert sum(bool(re.search(r"^\|-+\|", text, re.M)) for text in texts.values()) > 20
    hits = [
        f"{path.relative_to(ROOT)}:{hit}" for path, text in texts.items() for hit in uneven(text)
    ]
    assert not hits, "\n" + "\n".join(sorted(hits))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("| a | b |\n|---|---:|\n| 1 | 2 |\n", []),
        ("text\n\na | b\n--- | ---\n1 | `2\\|3`\n\n1 | 2 | 3\n", []),
        ("```\n| a |\n|---|---|\n```\n", []),
        ("| a | b | c |\n|---|---|\n| 1 | 2 |\n", [1]),
        ("```text\na\n```\n\n| a | b |\n|---|---|\n| 1 |\n| `2|3` | 4 |\n", [7, 8]),
    ],
)
def test_an_uneven_row_would_be_found(text, lines):
    assert [int(hit.partition(":")[0]) for hit in uneven(text)] == lines
