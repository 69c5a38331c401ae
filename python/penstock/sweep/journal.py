# SPDX-License-Identifier: Apache-2.0
"""A journal of finished work: a line of JSON each, written at once, so that a kill loses none."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.errors import RunError

JOURNAL = "journal.jsonl"
"""Its name in a folder."""


class Journal:
    """Entries by key, in a file that only grows."""

    def __init__(self, path: Path) -> None:
        """Reads the entries of an interrupted command, and opens the file for more."""
        self.entries: dict[str, Any] = dict(_read(path))
        self._file = path.open("ab")

    def add(self, key: str, numbers: Any) -> None:  # noqa: ANN401 (JSON)
        """Writes an entry, at once."""
        self.entries[key] = numbers
        line = json.dumps({"key": key, "numbers": numbers}, separators=(",", ":"))
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Ends the writing; the file stays."""
        self._file.close()


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Keeps a folder for this process.

    Raises:
        RunError: another process works on it.
    """
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{folder}: another {what} is at work there; wait for it, or give --out"
            raise RunError(message) from None
        yield


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """The lines of a journal; an incomplete last line is cut off."""
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        os.truncate(path, len(whole))
    for line in whole.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # after a power cut
            entry = json.loads(line)
            yield entry["key"], entry["numbers"]
