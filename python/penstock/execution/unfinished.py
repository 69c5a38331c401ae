# SPDX-License-Identifier: Apache-2.0
"""The finished runs of a command that has not ended, so that no interruption loses one.

Until a run's folder is complete it has `unfinished/`: the scenario as resolved, and a file for
each (scheme, seed) that has ended, by the key of its task. The same command goes on from there.
"""

import json
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from penstock import folders, units
from penstock.errors import (
    InterruptedRunError,
    PenstockError,
    RunError,
    ScenarioError,
    resumable,
)
from penstock.execution.task import Row
from penstock.folders import UNFINISHED

_SCENARIO = "scenario.toml"


class Rows:
    """Rows by the keys of their tasks, a file each."""

    def __init__(self, folder: Path) -> None:
        """Those in a folder, which exists."""
        self._folder = folder

    def __len__(self) -> int:
        """How many rows there are."""
        return len(list(self._folder.glob("*.row")))

    def get(self, key: str) -> Row | None:
        """A row; None if there is none, or its file is damaged."""
        try:
            scheme, seed, *texts = json.loads(zlib.decompress(self._file(key).read_bytes()))
            summary, *tables = texts
            return Row(scheme, seed, summary, *(table.encode() for table in tables))
        except (OSError, ValueError, TypeError, zlib.error):
            return None

    def add(self, key: str, row: Row) -> None:
        """Writes a row, at once."""
        values = [each.decode() if isinstance(each, bytes) else each for each in row]
        folders.write(self._file(key), zlib.compress(json.dumps(values).encode(), 1))

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.row"


def folder_for(name: str, scenario: str) -> Path:
    """`runs/NAME` with a number where it is taken, unless a run of this scenario did not end there.

    Args:
        name: of the run.
        scenario: as resolved.
    """

    def is_usable(folder: Path) -> bool:
        path = folder / UNFINISHED / _SCENARIO
        is_same = path.is_file() and path.read_text(encoding="utf-8") == scenario
        return is_same and not folders.is_locked(folder / UNFINISHED)

    return folders.free(name, is_usable=is_usable)


@contextmanager
def kept(folder: Path, scenario: str) -> Iterator[Rows]:
    """The rows that a run's folder has of earlier commands, to add those of this one.

    They are removed when the block ends in order, which is when the folder has the whole run.

    Args:
        folder: of the run, made if need be.
        scenario: as resolved.

    Raises:
        ScenarioError: the folder holds something else, or cannot be written.
        RunError: another process works on it, or the disk is full.
        InterruptedRunError: Ctrl-C.
    """
    folders.check_target(folder, folders.RUN)
    place, is_new = folder / UNFINISHED, not folder.exists()
    rows, has_ended = Rows(place), False
    with ExitStack() as opened:
        try:
            place.mkdir(parents=True, exist_ok=True)
            opened.enter_context(folders.locked(place, "run"))
            folders.write(place / _SCENARIO, scenario)
        except OSError as error:
            if not len(rows):
                _remove(place, with_folder=is_new)
            message = f"{folder}: cannot be written ({error.strerror}); give another --out"
            raise ScenarioError(message) from None
        try:
            yield rows
            has_ended = True
        except KeyboardInterrupt:
            raise InterruptedRunError(_with_rest("interrupted", rows, folder)) from None
        except OSError as error:
            reason = f"{error.filename or folder}: cannot be written ({error.strerror or error})"
            raise RunError(_with_rest(reason, rows, folder)) from None
        except PenstockError as error:
            raise type(error)(_with_rest(str(error), rows, folder)) from None
        finally:
            if has_ended or not len(rows):
                _remove(place, with_folder=is_new and not has_ended)


def _with_rest(message: str, rows: Rows, folder: Path) -> str:
    """Why a command did not end, with what it has finished."""
    if not (count := len(rows)):
        return message
    return f"{message}; {resumable(units.counted(count, 'run'), folder)}"


def _remove(place: Path, *, with_folder: bool) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if with_folder:
        with suppress(OSError):  # other files are in it
            place.parent.rmdir()
