# SPDX-License-Identifier: Apache-2.0
"""The page that lists the folders of results below a folder, the newest first."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock import folders
from penstock.errors import ScenarioError
from penstock.show import html
from penstock.show.html import Cell, Html

_DEPTH = 3  # lab-demo/clients is a folder of a folder
_ENDING = ": results"
_MARK = f"{_ENDING} · Penstock</title>".encode()


def write(parent: Path) -> Path:
    """Writes `index.html` of a folder with folders of results; returns its path.

    Raises:
        ScenarioError: it has none, or a page of that name that is not ours.
    """
    page = parent / "index.html"
    rows = [_row(folder, kind, parent) for folder, kind in sorted(_found(parent), key=_age)]
    if not rows:
        message = f"{parent}: no folder of results in it; `penstock demo` makes runs/demo"
        raise ScenarioError(message)
    if page.exists() and _MARK not in page.read_bytes():
        message = f"{page}: exists and is not a list of results; give another folder"
        raise ScenarioError(message)
    headings = ("folder", "what", "title", "when", "command")
    text = html.render(
        "index.html",
        f"{parent.resolve().name}{_ENDING}",
        name=parent.resolve().name,
        count=len(rows),
        table=html.table("", headings, rows),
    )
    return html.save(text, (), page)


def _found(parent: Path) -> Iterator[tuple[Path, folders.Kind]]:
    for path, inner, files in os.walk(parent):
        inner[:] = [name for name in inner if not name.startswith(".")]
        if len(Path(path).relative_to(parent).parts) >= _DEPTH:
            inner.clear()
        for kind in folders.KINDS:
            if kind.file in files:
                yield Path(path), kind


def _age(found: tuple[Path, folders.Kind]) -> float:
    folder, kind = found
    return -(folder / kind.file).stat().st_mtime


def _row(folder: Path, kind: folders.Kind, parent: Path) -> list[str | Cell]:
    page = folder / kind.page
    path = os.fsencode(folder.relative_to(parent))  # which need not be UTF-8
    name = path.decode(errors="replace")
    link = Html('<a href="{}">{}</a>').format(f"{quote(path)}/{kind.page}", name)
    written = -_age((folder, kind))
    when = datetime.fromtimestamp(written, UTC).strftime("%Y-%m-%d %H:%M UTC")
    about = _about(folder / kind.file)
    title = about.get("title") or _about(folder / "summary.json").get("scenario", {}).get("title")
    return [
        Cell(link if page.is_file() else name),
        kind.name,
        str(title or about.get("name", "")),
        Cell(when, written),
        str(about.get("command", "")),
    ]


def _about(file: Path) -> dict[str, Any]:
    """What a JSON file has, or nothing: a damaged folder is listed too."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
