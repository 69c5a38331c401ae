# SPDX-License-Identifier: Apache-2.0
"""The only place where Penstock refers to the package `penstock_papers`, which may be absent."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock import folders, terms
from penstock.errors import RunError, ScenarioError

_PACKAGE = "penstock_papers"


def is_installed() -> bool:
    """Whether the package can be imported."""
    return find_spec(_PACKAGE) is not None


def module(name: str) -> ModuleType:
    """A module of the package, imported when first requested.

    Raises:
        RunError: the package is not installed.
    """
    if not is_installed():
        message = f"the package {_PACKAGE} is not installed; run penstock in a source tree"
        raise RunError(message)
    return import_module(f"{_PACKAGE}.{name}")


def reproduce(*ids: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 (penstock_papers')
    """Runs experiments of the papers and judges their claims, as `penstock reproduce` does.

    Args:
        ids: as `sicc-4`; `all` stands for every experiment.
        options: of `penstock_papers.reproduce.reproduce`: `quick`, `seeds`, `jobs`, `out`, `on`.

    Returns:
        what `reproduction.json` has: `held` of `judged` claims, and each of them.

    Raises:
        ScenarioError: there is no such experiment.
        RunError: the package penstock_papers is not installed.
    """
    if not ids:
        message = "ids: is missing; name experiments, or 'all' for every one"
        raise ScenarioError(message)
    run = terms.of_arguments(module("reproduce").reproduce)
    _, folder = run(list(ids), **options)
    document: dict[str, Any] = json.loads(
        (folder / folders.REPRODUCTION.file).read_text(encoding="utf-8")
    )
    return document


def experiments() -> Path | None:
    """The folder of the papers' experiments; None without the package."""
    if not is_installed():
        return None
    folder: Path = import_module(_PACKAGE).experiments_dir()
    return folder
