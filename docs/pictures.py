# SPDX-License-Identifier: Apache-2.0
"""Pictures that `make docs` draws, below target/docs: those of captions, and the papers' results.

A caption in the Markdown, in italics, that ends with "Drawn by `penstock run NAME`
(`figures/FIGURE.svg`)" gets that figure above it on the site; `penstock reproduce ID` stands for
the recorded results of an experiment. A picture is drawn again when what it shows has changed.
"""

import logging
import re
from functools import cache
from pathlib import Path

import refresh

from penstock import execution, scenario
from penstock_papers import experiment_names, experiments_dir, markdown_page, recorded
from penstock_papers.setups import claims_map, kept, tables

ROOT = refresh.ROOT
MADE = ROOT / "target/docs"
CAPTION = re.compile(
    r"(?<!\)\n\n)^\*(?P<text>[^*]*?)\s*Drawn\s+by\s+`penstock\s+(?P<command>[^`]+)`\s+"
    r"\(`figures/(?P<figure>[\w.-]+)\.svg`\)\.?\*",
    re.M,
)
logging.getLogger("fontTools").setLevel(logging.WARNING)  # reports each font of a PDF otherwise

RESULTS = "papers/results"
"""The page that the recorded results continue."""
LABORATORY = "docs/laboratory"
"""That which those on real TCP continue."""


def with_pictures(text: str) -> str:
    """A page with a picture above each caption that has none."""
    return CAPTION.sub(lambda found: f"{_picture(found)}\n\n{found[0]}", text)


def _picture(caption: re.Match[str]) -> str:
    command = " ".join(caption["command"].split())
    if command.startswith("reproduce"):
        file = results()[1][f"figures/{caption['figure']}.svg"]
    else:
        file = _drawn(
            refresh.Picture(_file(command, caption["figure"]), command, caption["figure"])
        )
    alt = re.split(r"(?<=[a-z]{3})\.\s", " ".join(caption["text"].split()))[0].removesuffix(".")
    return f"![{alt}](/{file})"


def _file(command: str, figure: str) -> Path:
    return MADE / "pictures" / f"{re.sub(r'[^a-z0-9]+', '-', f'{command}-{figure}'.lower())}.svg"


def _drawn(picture: refresh.Picture) -> str:
    """The path of a run's figure below the repository, drawn if its scenario is newer."""
    source = dict(scenario.templates())[picture.command.split()[-1]]
    if not _is_newer(picture.file, [source]):
        picture.file.parent.mkdir(parents=True, exist_ok=True)
        picture.file.write_text(picture.drawn())
    return str(picture.file.relative_to(ROOT))


@cache
def results() -> tuple[str, dict[str, str]]:
    """The map of claims and the papers' recorded results as Markdown, and where each figure is."""
    folder = _recorded(execution.SIMULATOR)
    outcomes = kept.read([name for name, _ in experiment_names.listed()])
    text, figures = markdown_page.results(folder, MADE / "papers", ROOT, tables.texts(outcomes))
    picture = MADE / "papers/map.svg"
    picture.write_text(claims_map.svg(outcomes), encoding="utf-8")
    return f"{tables.markdown(outcomes, str(picture.relative_to(ROOT)))}\n{text}", figures


@cache
def on_real_tcp() -> str:
    """The papers' results recorded in the laboratory, as Markdown."""
    folder = _recorded(execution.LABORATORY)
    return markdown_page.results(folder, MADE / "papers-lab", ROOT)[0]


def _recorded(on: str) -> Path:
    """The folder of what is recorded on a substrate, made again if a file of papers/ is newer."""
    folder = MADE / f"reproduction-{on}"
    inputs = [path for path in experiments_dir().glob("*/*") if path.is_file()]
    if not _is_newer(folder / "reproduction.json", inputs):
        recorded.reproduce(["all"], on=on, out=folder)
    return folder


def _is_newer(file: Path, inputs: list[Path]) -> bool:
    newest = max(path.stat().st_mtime for path in inputs)
    return file.exists() and file.stat().st_mtime > newest
