# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that the documents show and updates their tables and figures: `make refresh`.

A transcript is a console block that begins with `$ penstock run NAME` (or `demo`), where NAME is a
shipped scenario, and continues with tables: those of that run, identified by group or port. A
picture whose caption contains "Drawn by `penstock run NAME` (`figures/FIGURE.svg`)" is that figure.
A table between `<!-- parameters: NAME -->` and `<!-- end -->` lists the parameters that `core/`
defines for a scheme, or for all window schemes (`window`).
The tests compare the documents with the same functions.
"""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import penstock
from penstock import _native, scenario
from penstock.runs import Run
from penstock.show import chart_files, run_charts, summary_table
from penstock.show.drawing import file_name

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPT = re.compile(
    r"(?<=^```console\n)\$ penstock ([^\n]*[^\\\n])\n([^$`\n].*?)(?=^```$)", re.M | re.S
)
PICTURE = re.compile(
    r"!\[[^\]]*\]\(([^)]+\.svg)\)\n\n\*[^*]*Drawn\s+by\s+`penstock\s+([^`]+)`\s+"
    r"\(`(?:[\w/]+/)?figures/([\w.-]+)\.svg`\)"
)

PARAMETERS = re.compile(r"(?<=<!-- parameters: )(\w+)( -->\n)(.*?)(?=<!-- end -->)", re.S)


class Picture(NamedTuple):
    """A figure of a document: its file, the command that draws it, and its name in the run."""

    file: Path
    command: str
    figure: str

    def drawn(self) -> str:
        """The figure's SVG from a fresh run, with coordinates rounded to a tenth of a point."""
        figures = run_charts.figures(run_of(self.command))
        named = {file_name(figure.name): figure for figure in figures}
        svg = chart_files.draw(named[self.figure]).svg
        return re.sub(r'\bd="[^"]*"', short, svg)


def short(path: re.Match[str]) -> str:
    """A path of an SVG with coordinates rounded to a tenth, without optional characters."""
    return re.sub(r" ?\nL? ?", "\n", re.sub(r"(\.\d)\d+", r"\1", path[0]))


def documents() -> list[Path]:
    """README, CONTRIBUTING, ARCHITECTURE, and all pages of docs/, papers/ and evidence/."""
    tops = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    folders = ("docs", "papers", "evidence")
    return [*tops, *(page for folder in folders for page in sorted((ROOT / folder).rglob("*.md")))]


def is_shipped(command: str) -> bool:
    """Whether the command runs a shipped scenario, in the simulator."""
    words = [*shlex.split(command), ""]
    name = words[1] if words[0] == "run" else words[0]
    return name in dict(scenario.templates()) and "--on" not in words


def transcripts(text: str) -> Iterator[re.Match[str]]:
    """The transcripts of a document; group 1 is the command, group 2 its tables."""
    return (found for found in TRANSCRIPT.finditer(text) if is_shipped(found[1]))


def pictures(document: Path) -> list[Picture]:
    """The figures of a document that a command draws."""
    found = PICTURE.findall(document.read_text())
    return [
        Picture(document.parent / file, " ".join(command.split()), name)
        for file, command, name in found
    ]


@cache
def run_of(command: str) -> Run:
    """The run of `run NAME [--scheme NAME] [--set KEY=VALUE] [--seeds N]`, or of `demo`."""
    words = shlex.split(command)
    name = words[1] if words[0] == "run" else words[0]
    options = list(pairwise(words))
    schemes = [value for option, value in options if option == "--scheme"]
    seeds = [int(value) for option, value in options if option == "--seeds"]
    overrides = [tuple(value.split("=", 1)) for option, value in options if option == "--set"]
    return penstock.run(
        name, schemes=schemes, overrides=overrides, seeds=seeds[0] if seeds else None
    )


def tables(command: str, shown: str) -> str:
    """The current version of the tables that `shown` has of the command's run."""
    blocks = {block.title: block for block in summary_table.blocks(run_of(command).summary)}
    titles = [part.split()[0] for part in shown.strip("\n").split("\n\n")]
    return "\n\n".join(table(blocks[title]) for title in titles) + "\n"


def table(block: summary_table.Block) -> str:
    """A table as the terminal shows it."""
    rows = [["scheme", *(column.heading for column in block.columns)]]
    for scheme, row, half in zip(block.schemes, block.rows, block.ci95, strict=True):
        rows.append([scheme, *(column.with_spread(row, half) for column in block.columns)])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    return "\n".join([f"{block.title}  {block.about}", *lines])


def parameters(name: str) -> str:
    """The table of a scheme's parameters."""
    schemes = json.loads(_native.definitions())["schemes"]
    definition = next(scheme for scheme in schemes if scheme["name"] == name)
    columns = ["parameter", "meaning", "unit", "allowed", "default", "paper"]
    columns += definition["variants"]
    rows = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for each in definition["params"]:
        words = "; ".join(f"`{word['name']}`: {word['meaning']}" for word in each["words"])
        meaning = f"{each['meaning']}. {words}." if words else each["meaning"]
        paper = each["paper_text"] if each["paper_text"] != each["default_text"] else ""
        allowed = "" if each["unit"] in ("one of", "true or false") else each["range_text"]
        cells = [f"`{each['key']}`", meaning, each["unit"], allowed, each["default_text"], paper]
        # As with `paper`: only what differs from the column before it.
        cells += [text if text != each["paper_text"] else "" for text in each["variant_texts"]]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def refreshed(text: str) -> str:
    """A document with its tables up to date."""
    text = PARAMETERS.sub(lambda match: match[1] + match[2] + parameters(match[1]), text)
    for found in reversed(list(transcripts(text))):
        start, end = found.span(2)
        text = text[:start] + tables(found[1], found[2]) + text[end:]
    return text


def main() -> None:
    """Writes the files that have changed and prints their names."""
    for document in documents():
        files = {document: refreshed(document.read_text())}
        files |= {picture.file: picture.drawn() for picture in pictures(document)}
        for file, text in files.items():
            if not file.exists() or file.read_text() != text:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
                sys.stdout.write(f"{file.resolve().relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
