# SPDX-License-Identifier: Apache-2.0
"""A journal of finished work: a line of JSON each, written at once, so that a kill loses none."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from penstock import folders

JOURNAL = "journal.jsonl"
"""Its name in a folder."""


class Journal:
    """Entries by key, in a file that only grows."""

    def __init__(self, path: Path) -> None:
        """Reads the entries of an interrupted command, and opens the file for more."""
        self.entries: dict[str, Any] = dict(read(path))
        self._path = path
        self._file = path.open("ab", buffering=0)

    def add(self, key: str, numbers: Any) -> None:  # noqa: ANN401 (JSON)
        """Writes an entry, at once.

        Raises:
            OSError: it cannot be written; those before it stay.
        """
        self.entries[key] = numbers
        line = _line(key, numbers)
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def drop(self, keys: Set[str]) -> None:
        """Removes entries that another file has by now, and the file if none is left; closes it."""
        self.close()
        kept = [_line(*entry) for entry in self.entries.items() if entry[0] not in keys]
        if kept:
            folders.write(self._path, b"".join(kept), is_durable=True)
        else:
            self._path.unlink()

    def close(self) -> None:
        """Ends the writing; the file stays."""
        self._file.close()


def _line(key: str, numbers: Any) -> bytes:  # noqa: ANN401 (JSON)
    return json.dumps({"key": key, "numbers": numbers}, separators=(",", ":")).encode() + b"\n"


def read(path: Path) -> Iterator[tuple[str, Any]]:
    """The entries of a journal, none if there is none; an incomplete last line is cut off."""
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
