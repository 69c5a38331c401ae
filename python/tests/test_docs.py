# SPDX-License-Identifier: Apache-2.0
"""Runs the code, commands and transcripts in the documents.

A TOML block with a title is a scenario; one without is a part, merged into BASE. Blocks
with a name (`toml NAME`) are written to a folder, in which the `sh` and `python` blocks of the same
document run.
"""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

import penstock
from penstock import _native, cli, tables
from penstock.execution import build

ROOT = Path(__file__).resolve().parents[2]
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "docs")
    import pictures
    import refresh
    import screenshots

DOCUMENTS = refresh.documents()
SCHEMES = ROOT / "docs/schemes"

SCHEMA = json.loads(_native.schema())

BASE = """
title = "The base of partial scenarios"
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


def named(document):
    """A document's path as used in the names of tests."""
    return document.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


def of(language):
    return [
        pytest.param(document, block, id=f"{named(document)}-{number}")
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


@pytest.mark.parametrize(
    ("document", "block"),
    [one for one in of("toml") if "papers/" not in one.id],  # those are of claims.toml
)
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text())
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (document.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_named_files_exist(document):
    tops = "core|crates|python|scenarios|papers|evidence|tests|docs"
    named = re.findall(rf"`((?:{tops})/[\w./-]+)`", document.read_text())
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert not missing


def options_used(program):
    """Each command of a program in the documents that has options: page, command, options."""
    for document in DOCUMENTS:
        text = document.read_text().replace("\\\n", " ")
        for command, rest in re.findall(rf"\b{program} (\w+)([^\n`#]*)", text):
            own = re.sub(r"'[^']*'", "", rest)  # what is quoted is another command
            options = set(re.findall(r"(?<=\s)--[\w-]+", own))
            if options:
                yield document, command, options


def test_options_of_penstock_in_the_documents_exist():
    def options_of(command):
        below = [options_of(each) for each in getattr(command, "commands", {}).values()]
        own = {option for each in command.params for option in each.opts + each.secondary_opts}
        return own.union(*below)

    commands = typer.main.get_command(cli.app).commands
    known = {name: options_of(command) for name, command in commands.items()}
    used = list(options_used("penstock"))
    assert len(used) > 30
    assert not [one for one in used if not one[2] <= known.get(one[1], set())]


def test_options_of_penstockd_in_the_documents_exist():
    def options_of(command):
        shown = [build.find("penstockd"), *command.split(), "--help"]
        done = subprocess.run(shown, capture_output=True, text=True, check=False)
        return set(re.findall(r"--[\w-]+", done.stdout))

    used = list(options_used("penstockd"))
    assert len(used) > 10
    assert not [one for one in used if not one[2] <= options_of(one[1])]


def test_every_scheme_has_a_page():
    index = (SCHEMES / "index.md").read_text()
    rows = re.findall(r"^\| \[[^\]]+\]\((\w+\.md)\) \| ([^|]+) \|", index, re.M)
    documented = {name: page for page, names in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert sorted(documented) == sorted(scheme["name"] for scheme in penstock.schemes())
    for name, page in documented.items():
        assert re.search(rf"\b{name}\b", (SCHEMES / page).read_text().lower()), name
    assert {SCHEMES / page for page, _ in rows} == set(SCHEMES.glob("*.md")) - {
        SCHEMES / "index.md"
    }


@pytest.mark.parametrize(
    ("part", "document"),
    [
        ("Tcp", "tcp"),
        ("Traffic", "scenarios"),
        ("Fabric", "scenarios"),
        ("Measure", "scenarios"),
    ],
)
def test_every_key_is_documented(part, document):
    text = (ROOT / f"docs/{document}.md").read_text()
    missing = [key for key in keys(SCHEMA["$defs"][part]) if not re.search(rf"\b{key}\b", text)]
    assert not missing


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        *[(kind, "baselines") for kind in ("red", "threshold", "codel", "pie", "sfq", "drr")],
        ("drop-tail", "baselines"),
        *[(name, name) for name in ("fairq", "hscc", "grant", "sicc", "hcf")],
    ],
)
def test_every_parameter_is_in_its_tables(kind, page):
    """The section of baselines.md, or the page, has exactly the parameters of the schema."""
    text = (SCHEMES / f"{page}.md").read_text()
    if page == "baselines":
        heading = "dctcp" if kind == "threshold" else kind
        text = re.search(rf"^## {heading}\b.*?(?=^## |\Z)", text, re.M | re.S)[0]
    documented = parameters_in(text)
    if kind in ("fairq", "hscc", "grant"):  # what is common to window schemes has its own table
        documented |= parameters_in((SCHEMES / "index.md").read_text())
    if kind == page:
        assert "`variant` chooses the column" in text
        documented.add("variant")
    assert documented == set(keys(schema_of(kind)))


def parameters_in(text):
    """The names in the first column of the table of parameters."""
    table = re.search(r"^\| parameter.*?(?=\n\n|\Z)", text, re.M | re.S)
    rows = [row for row in table[0].splitlines()[2:] if row.startswith("|")] if table else []
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def schema_of(kind):
    """The schema of a policy's parameters, by its `kind`."""
    parts = ("Queue", "Window", "Controller")
    alternatives = [each for part in parts for each in SCHEMA["$defs"][part]["anyOf"]]
    return next(each for each in alternatives if each["properties"]["kind"]["const"] == kind)


def keys(schema):
    """The properties of a schema and of its alternatives."""
    schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    found = set(schema.get("properties", ()))
    for other in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        found |= keys(other)
    return found - {"kind"}


@pytest.mark.parametrize(
    "document",
    [each for each in DOCUMENTS if list(refresh.transcripts(each.read_text()))],
    ids=named,
)
def test_tables_match_a_fresh_run(document):
    """When this fails: `make refresh`, then check that the text around the tables is still true."""
    text = document.read_text()
    assert refresh.refreshed(text) == text


@pytest.mark.parametrize(
    "picture",
    [picture for document in DOCUMENTS for picture in refresh.pictures(document)],
    ids=lambda picture: picture.file.stem,
)
def test_pictures_match_a_fresh_run(picture):
    """When this fails: `make refresh`."""
    assert picture.file.read_text() == picture.drawn()
    assert picture.file.stat().st_size < 50_000


def test_every_picture_of_a_scheme_is_drawn_by_a_command():
    for page in set(SCHEMES.glob("*.md")) - {SCHEMES / "index.md"}:
        captions = list(pictures.CAPTION.finditer(page.read_text()))
        assert captions, page
        assert all(refresh.is_shipped(" ".join(each["command"].split())) for each in captions)


def test_the_only_pictures_kept_are_drawn_by_a_command():
    drawn = {each.file.resolve() for document in DOCUMENTS for each in refresh.pictures(document)}
    taken = {ROOT / "docs/img" / name for name in screenshots.names()}
    assert drawn | taken == set((ROOT / "docs/img").iterdir())
    assert all(150 < (ROOT / "docs/img" / name).stat().st_size < 150_000 for name in taken)


def test_the_picture_of_the_display_is_the_text_of_its_page():
    """When this fails: `make screenshots`."""
    assert (ROOT / "docs/img/watch.svg").read_text() == screenshots.terminal(screenshots.display())


def test_the_gallery_has_every_picture_and_the_commands_that_made_them():
    gallery = (ROOT / "docs/gallery.md").read_text()
    assert set(re.findall(r"\]\(img/([\w.]+)\)", gallery)) == set(screenshots.names())
    shown = re.findall(r"`penstock (\w+ [^`]*)`", gallery)
    assert next(each for each in shown if each.startswith("sweep")) in " ".join(
        screenshots.commands(Path())
    )


def test_a_caption_gets_its_picture_on_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MADE", tmp_path)
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    caption = (
        "*Two queues. The line\nis the mean. Drawn by `penstock run\ndocs/hcf` (`figures/{}.svg`).*"
    )
    known = caption.format("goodput-long")
    page = f"# A\n\n{known}\n\n*Not drawn.*\n\n![b](b.svg)\n\n{known}\n"
    shown = pictures.with_pictures(page)
    picture = "![Two queues](/pictures/run-docs-hcf-goodput-long.svg)"
    assert shown == page.replace("# A\n\n", f"# A\n\n{picture}\n\n")
    assert (tmp_path / "pictures/run-docs-hcf-goodput-long.svg").read_text().startswith("<?xml")
    with pytest.raises(KeyError, match="no-such"):
        pictures.with_pictures(caption.format("no-such"))


def test_rust_of_the_documents_is_what_the_doctests_run():
    source = (ROOT / "crates/sim/src/queue/mod.rs").read_text()
    tested = "".join(re.findall(r"^ *///? ?(.*\n)", source, re.M))
    shown = [block for each in DOCUMENTS for block in blocks(each) if block.language == "rust"]
    assert shown
    assert all(block.text in tested for block in shown)


def test_every_public_name_and_column_is_documented():
    text = (ROOT / "docs/python-api.md").read_text()
    assert not [name for name in penstock.__all__ if f":: penstock.{name}\n" not in text]
    assert not [name for name in tables.KEYS if f"`{name}`" not in text]
    for table in ("flows", "jobs", "queues", "windows", "packets", "events"):
        rows = re.search(rf"^\| `{table}` \| meaning \|\n((?:\|.*\n)+)", text, re.M)
        assert rows, f"docs/python-api.md has no table of {table}"
        documented = set(re.findall(r"`(\w+)`", rows[1]))
        assert not [name for name in getattr(tables, table.upper()) if name not in documented]
