# SPDX-License-Identifier: Apache-2.0
"""Where a scenario comes from: a file, a shipped template by name, or a dict."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import papers
from penstock.errors import ScenarioError


@dataclass(frozen=True)
class Source:
    """A scenario as text, before the simulator has read it."""

    text: str
    origin: Path
    """The file, for messages and for files named relative to it."""
    name: str
    """What its run folder is called."""


def templates_dir() -> Path:
    """The folder of the shipped scenarios; in a source tree a link to `scenarios/`."""
    return (Path(__file__).parent / "scenarios").resolve()


_EVIDENCE = {"bench": "speed", "crosscheck": "ns2", "calibration": "linux"}
"""Scenarios of a source tree: the first part of their names, and their folder in `evidence/`."""


def collections() -> dict[str, Path]:
    """Folders of scenarios by the first part of their names; the product's own have none."""
    root = templates_dir()
    evidence = {name: root.parent / "evidence" / folder for name, folder in _EVIDENCE.items()}
    found = {"": root, "papers": papers.experiments(), **evidence}
    return {name: folder for name, folder in found.items() if folder and folder.is_dir()}


def templates() -> Iterator[tuple[str, Path]]:
    """Name and file of each scenario: `demo`, `papers/sicc-4`, ... in order of names.

    Those of the folder `templates` go by their own names, without the folder's.
    """
    named = {
        _template_name(Path(collection) / path.relative_to(folder)): path
        for collection, folder in collections().items()
        for path in folder.rglob("*.toml")
        if path.name != "claims.toml"
    }
    yield from sorted(named.items())


def _template_name(path: Path) -> str:
    named = path.parent if path.name == "scenario.toml" else path.with_suffix("")
    return named.as_posix().removeprefix("templates/")


def load(scenario: str | Path | Mapping[str, Any]) -> Source:
    """Reads a scenario file, a shipped template by name, or a dict of the same shape.

    Raises:
        ScenarioError: no such file or template, or not readable.
    """
    if isinstance(scenario, Mapping):
        import tomli_w

        return Source(tomli_w.dumps(scenario), Path("scenario"), "run")
    path, name = _find(str(scenario))
    try:
        return Source(path.read_text(encoding="utf-8"), path, name)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        message = f"{path}: {reason}; give a scenario in TOML"
        raise ScenarioError(message) from error


def _find(wanted: str) -> tuple[Path, str]:
    path = Path(wanted)
    if path.is_file():
        return path, path.parent.name if path.name == "scenario.toml" else path.stem
    known = dict(templates())
    if wanted in known:
        return known[wanted], wanted.rsplit("/", 1)[-1]
    if path.is_dir():
        message = f"{wanted}: is a folder; give a scenario file"
        raise ScenarioError(message)
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "see `penstock scenarios`"
    message = f"{wanted}: no such file, and no template of this name; {hint}"
    raise ScenarioError(message)


def title(path: Path) -> str:
    """The title of a scenario file, or an empty string where it has none or is not TOML."""
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))
    except (OSError, ValueError):
        return ""
