# SPDX-License-Identifier: Apache-2.0
"""The experiments by name: those that there are, their folders and titles.

What a wrong name needs is quick to load; reading an experiment is in `experiment_files`.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import penstock_papers
from penstock import scenario as scenarios
from penstock.errors import ScenarioError, suggestion

PAPERS = {"fairq": "FairQ", "hscc": "HSCC", "sicc": "SICC", "hcf": "HCF"}
_PARTS = re.compile(r"\d+|[^\d.-]+")


def listed() -> list[tuple[str, str]]:
    """Id and title of every experiment that can be reproduced, in the order of the papers."""
    return [(name, _title(folder)) for name, folder in _folders().items()]


def cpu_s(experiment: str) -> float | None:
    """The CPU time that its runs took when they were recorded; None where nothing is."""
    recorded = find(experiment) / "recorded.json"
    found = re.search(r'"computed_s":([\d.]+)', recorded.read_text()) if recorded.exists() else None
    return float(found[1]) if found else None


def is_synthesized(experiment: str) -> bool:
    """Whether its numbers are those of a synthesis of `rtl/`, which takes minutes."""
    return 'analysis = "hardware.' in (find(experiment) / "claims.toml").read_text(encoding="utf-8")


def shortened(ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """What `--quick` runs of these ids, and what of `all` it leaves out.

    Raises:
        ScenarioError: one that is named cannot be shortened.
    """
    left_out = [name for name in chosen(ids) if is_synthesized(name)]
    if named := [name for name in left_out if name in ids]:
        message = f"{named[0]}: is synthesized, which nothing shortens; leave out --quick"
        raise ScenarioError(message)
    return [name for name in chosen(ids) if name not in left_out], left_out


def find(experiment: str) -> Path:
    """The folder of an experiment.

    Raises:
        ScenarioError: there is none of this id.
    """
    known = _folders()
    if experiment in known:
        return known[experiment]
    hint = suggestion(experiment, known, "see `penstock reproduce --list`")
    message = f"{experiment}: no such experiment; {hint}"
    raise ScenarioError(message)


def chosen(ids: Sequence[str]) -> list[str]:
    """The ids, `all` replaced by every experiment, each once.

    Raises:
        ScenarioError: there is none of such an id.
    """
    for name in ids:
        if name != "all":
            find(name)
    names = list(_folders()) if "all" in ids else ids
    return list(dict.fromkeys(names))


def _folders() -> dict[str, Path]:
    folders = [path.parent for path in penstock_papers.experiments_dir().glob("*/claims.toml")]
    return {folder.name: folder for folder in sorted(folders, key=_order)}


def _order(folder: Path) -> tuple[Any, ...]:
    """By paper, and numbers by their value: `hscc-9` before `hscc-10`."""
    paper, _, rest = folder.name.partition("-")
    papers = list(PAPERS)
    parts = [(int(part), "") if part.isdigit() else (10**6, part) for part in _PARTS.findall(rest)]
    return (papers.index(paper) if paper in papers else len(papers), paper, parts)


def _title(folder: Path) -> str:
    try:
        document = tomllib.loads((folder / "claims.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if "title" in document:
        return str(document["title"])
    other = folder.parent / str(document.get("scenario", folder.name))
    return scenarios.title(other / "scenario.toml")
