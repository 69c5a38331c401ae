# SPDX-License-Identifier: Apache-2.0
"""Plain English: help, errors, documents, comments and names avoid words that hide their meaning.

Help, descriptions of keys and error messages are made from the sources, so those are read.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

AVOIDED = {
    "tells?|told|telling": "report, print, list, show, distinguish",
    "says?|said|saying": "state, specify; according to",
    "hears?|heard": "receive, learn",
    "anew": "again",
    "beside": "next to, in addition to",
    "whoever": "the caller, the reader",
    "nobody|somebody": "no one; or the noun itself",
    "thereof": "of it",
    "for ever": "forever",
    "so long": "that long, while",
    "(hold|holds|held|holding) against": "compare with",
    "(is|are) there for": "is for, may do",
    "mend(s|ed|ing)?": "fix, repair, update",
    "blows?": "fault",
    "dice": "random seed, generator",
    "daily bread": "typical case",
}
"""Words, and what to write instead."""

# Within names too: `is_told`. Not a method of a library: `study.tell()`.
PATTERN = re.compile("|".join(rf"(?<![A-Za-z.])(?:{word})(?![A-Za-z])" for word in AVOIDED), re.I)

CODE = {"c", "cpp", "css", "h", "js", "pkt", "py", "pyi", "rs", "sv", "tcl"}
TEXT = CODE | {"", "in", "md", "service", "toml"}
"""Suffixes of the files that people write; scripts and the Makefile have none."""

FOLDERS = [
    ".ci",
    "bpf",
    "core",
    "crates",
    "docs",
    "evidence",
    "packaging",
    "papers",
    "python",
    "rtl",
    "scenarios",
    "tests",
]


def avoided(text):
    """Each avoided word of a text, with its line and what to write instead."""
    return [
        f"{text.count(chr(10), 0, hit.start()) + 1}: `{hit[0]}`; write: {better(hit[0])}"
        for hit in PATTERN.finditer(text)
    ]


def better(word):
    return next(new for old, new in AVOIDED.items() if re.fullmatch(old, word, re.I))


def files():
    inner = [path for top in FOLDERS for path in (ROOT / top).rglob("*")]
    found = [path for path in [*ROOT.glob("*"), *inner] if path.suffix.removeprefix(".") in TEXT]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def test_what_people_read_is_in_plain_english():
    ours = set(files()) - {Path(__file__).resolve()}
    assert len(ours) > 700, "the files are no longer found"
    texts = {path: path.read_text(encoding="utf-8") for path in ours}
    quoted = {  # names of an earlier version, in code spans
        path: re.sub(r"`[^`\n]*`", "", text) if path.suffix == ".md" else text
        for path, text in texts.items()
    }
    hits = [
        f"{path.relative_to(ROOT)}:{hit}" for path, text in quoted.items() for hit in avoided(text)
    ]
    assert not hits, "\n" + "\n".join(sorted(hits))


@pytest.mark.parametrize(
    "text",
    ["It tells why.", "def is_told():", "Anew", "a // what the file says", "FOR EVER", "fn blow("],
)
def test_an_avoided_word_would_be_found(text):
    assert avoided(text)


@pytest.mark.parametrize("text", ["study.tell(trial)", "besides", "untold", "recommended", "essay"])
def test_other_words_pass(text):
    assert not avoided(text)
