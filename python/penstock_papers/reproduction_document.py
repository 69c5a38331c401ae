# SPDX-License-Identifier: Apache-2.0
"""`reproduction.json`: the outcomes of a reproduction, as its folder keeps them."""

from pathlib import Path
from typing import Any

from penstock import folders
from penstock.errors import ScenarioError

NAME, PAGE = folders.REPRODUCTION.file, folders.REPRODUCTION.page


def read(folder: Path) -> dict[str, Any]:
    """The document of a reproduction's folder.

    Raises:
        ScenarioError: the folder is none.
        RunError: its document is damaged.
    """
    if not folders.has_kind(folder, folders.REPRODUCTION):
        message = f"{folder}: not a reproduction (no {NAME}); make one with `penstock reproduce`"
        raise ScenarioError(message)
    return folders.read_json(folder / NAME, "run it again")
