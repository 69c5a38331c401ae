# SPDX-License-Identifier: Apache-2.0
"""Folders of results: their kinds, free names, and writing that leaves no half of anything.

A folder is of the kind whose file it has: a run's has `run.json`, a sweep's `sweep.json`. Nothing
is written over a folder of another kind.
"""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import PenstockError, RunError, ScenarioError


class Kind(NamedTuple):
    """A kind of folder."""

    name: str
    file: str
    """The file that marks a folder of this kind."""
    command: str
    """The command that writes such a folder."""
    page: str
    """The name of its page."""


RUN = Kind("run", "run.json", "penstock run", "report.html")
COMPARISON = Kind("comparison", "compare.json", "penstock compare", "compare.html")
REPRODUCTION = Kind("reproduction", "reproduction.json", "penstock reproduce", "reproduction.html")
SWEEP = Kind("sweep", "sweep.json", "penstock sweep", "report.html")
SEARCH = Kind("search", "tune.json", "penstock tune", "report.html")
KINDS = (RUN, COMPARISON, REPRODUCTION, SWEEP, SEARCH)

UNFINISHED = "unfinished"
"""The folder of the finished parts of a run that has not ended, in the run's folder."""
_LOCK = ".lock"


def has_kind(folder: Path, kind: Kind) -> bool:
    """Whether the folder is of this kind."""
    return (folder / kind.file).is_file()


def check_run(folder: Path) -> None:
    """Refuses all but the folder of a run that has ended.

    Raises:
        ScenarioError: it is something else.
    """
    _check_exists(folder)
    _check_ended(folder)
    if not has_kind(folder, RUN):
        message = f"{folder}: not a run's folder (no run.json); make one with `penstock run`"
        raise ScenarioError(message)


def _check_exists(folder: Path) -> None:
    if not folder.is_dir():
        reason = "is a file; give the folder that has it" if folder.exists() else "no such folder"
        message = f"{folder}: {reason}"
        raise ScenarioError(message)


def _check_ended(folder: Path) -> None:
    if (folder / UNFINISHED).is_dir() and not has_kind(folder, RUN):
        message = f"{folder}: the run did not end; give its command again, and it goes on"
        raise ScenarioError(message)


def kind_of(folder: Path) -> Kind:
    """The kind of a folder.

    Raises:
        ScenarioError: it has none, or does not exist.
    """
    for kind in KINDS:
        if has_kind(folder, kind):
            return kind
    _check_exists(folder)
    _check_ended(folder)
    files = ", ".join(kind.file for kind in KINDS)
    commands = " or ".join(f"`{kind.command}`" for kind in KINDS)
    message = f"{folder}: nothing to report on (no {files}); make a folder with {commands}"
    raise ScenarioError(message)


def check_target(folder: Path, kind: Kind) -> None:
    """Refuses to write over anything but a folder of this kind or an empty one.

    Raises:
        ScenarioError: it is a file, a folder with other content, or in a folder that is read-only.
    """
    is_begun = kind is RUN and (folder / UNFINISHED).is_dir()
    if folder.exists() and not (is_empty(folder) or is_begun or has_kind(folder, kind)):
        message = f"{folder}: exists and is not a {kind.name}'s folder; give another --out"
        raise ScenarioError(message)
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        reason = "is read-only" if nearest.is_dir() else "is not a folder"
        message = f"{folder}: cannot be written ({nearest} {reason}); give another --out"
        raise ScenarioError(message)


def is_empty(folder: Path) -> bool:
    """Whether a folder has nothing, or only what a command left that could write nothing else."""
    return folder.is_dir() and all(path.name == _LOCK for path in folder.iterdir())


def check_file(path: Path) -> None:
    """Refuses a file that cannot be written, by trying; makes its folder.

    Raises:
        ScenarioError: it cannot.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}); give another file"
        raise ScenarioError(message) from None


def free(name: str, is_usable: Callable[[Path], bool] | None = None) -> Path:
    """`runs/name`, or `runs/name-2`, `-3`, ... where that is taken, unless it `is_usable`."""
    parent = Path("runs")
    folder, number = parent / name, 1
    while folder.exists() and not (is_usable and is_usable(folder)):
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


def for_work(
    kind: Kind, name: str, out: Path | None, is_same: Callable[[Path], bool], other: str
) -> Path:
    """A folder for work that can be resumed: `out`, or `runs/NAME` with a number; it is made.

    Args:
        kind: of the folder.
        name: what to call it without `out`, with a number where that holds other work.
        out: the requested folder.
        is_same: whether a folder of this kind holds the same work.
        other: what it holds if not, for the message.

    Raises:
        ScenarioError: `out` holds something else, or cannot be written.
    """

    def is_usable(folder: Path) -> bool:
        return is_same(folder) if has_kind(folder, kind) else is_empty(folder)

    folder = out or free(name, is_usable=is_usable)
    check_target(folder, kind)
    if has_kind(folder, kind) and not is_same(folder):
        message = f"{folder}: holds {other}; give another --out"
        raise ScenarioError(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{folder}: cannot be written ({error.strerror}); give another --out"
        raise ScenarioError(message) from None
    return folder


@contextmanager
def checked(folder: Path) -> Iterator[None]:
    """For work on what a folder holds: where its files do not fit together it is damaged.

    Raises:
        RunError: anything but an error of Penstock or of the system is raised in the block.
    """
    try:
        yield
    except (PenstockError, OSError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        message = f"{folder}: is damaged, or of another version of Penstock ({reason})"
        raise RunError(message) from error


@contextmanager
def replaced(folder: Path, kind: Kind) -> Iterator[Path]:
    """An empty folder to fill, whose files replace those of `folder` when the block ends in order.

    Other files in `folder` stay.

    Raises:
        ScenarioError: `folder` exists and is not of this kind, or its place is read-only.
        RunError: a file cannot be written.
    """
    check_target(folder, kind)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{folder.name[:40]}-"  # a whole long name would leave no room for the rest
        with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as temporary:
            new = Path(temporary) / "new"
            new.mkdir()
            yield new
            (new / kind.file).rename(Path(temporary) / kind.file)
            _move_files(new, folder)
            (Path(temporary) / kind.file).replace(folder / kind.file)  # last: now it is of its kind
    except OSError as error:
        message = f"{folder}: cannot be written ({error.strerror or error})"
        raise RunError(message) from None


def _move_files(source: Path, target: Path) -> None:
    """Moves all files below a folder to the same places below another."""
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        if path.is_dir():
            _move_files(path, target / path.name)
        else:
            path.replace(target / path.name)


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Keeps a folder for this process.

    Raises:
        RunError: another process works on it.
    """
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{folder}: another {what} is at work there; wait for it, or give --out"
            raise RunError(message) from None
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process keeps the folder for itself."""
    try:
        with locked(folder, "command"):
            return False
    except RunError:
        return True


def write(path: Path, content: str | bytes, *, is_durable: bool = False) -> None:
    """Writes a file, whole or not at all; if `is_durable`, even if the power fails.

    A device or a pipe, such as /dev/stdout, is written to: a rename would remove it.
    """
    content = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.new")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        with temporary.open("wb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_json(path: Path, value: Any, *, is_durable: bool = False) -> None:  # noqa: ANN401 (JSON)
    """Writes a JSON value, whole or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    write(path, text + "\n", is_durable=is_durable)


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        RunError: it cannot be read; the message ends with the remedy.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: cannot be read ({error}); {remedy}"
        raise RunError(message) from None
    return value
