# SPDX-License-Identifier: Apache-2.0
"""The only place where Penstock refers to the package `penstock_papers`, which may be absent."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from penstock.errors import RunError

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


def experiments() -> Path | None:
    """The folder of the papers' experiments; None without the package."""
    if not is_installed():
        return None
    folder: Path = import_module(_PACKAGE).experiments_dir()
    return folder
