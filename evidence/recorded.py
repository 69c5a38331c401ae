# SPDX-License-Identifier: Apache-2.0
"""What programs that measure for hours have measured: each run with what it was made from.

A run counts while its scenario and its build are today's. One of the laboratory also counts if it
is of another build, or of an older journal that has none, where the laboratory is only read: it
takes hours to repeat, and the simulator minutes.
"""

import contextlib
import hashlib
import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import RunError
from penstock.execution import LABORATORY, SIMULATOR, build
from penstock.sweeps.journal import JOURNAL, Journal, read

SUBSTRATES = (LABORATORY, SIMULATOR)
_TEXTS = ("title", "about", "schemes")
"""Keys of a scenario that change no run of one scheme."""

Numbers = dict[str, Any]


class Entry(NamedTuple):
    """A run to be found: its name, and what it would be made from today."""

    name: list[Any]
    on: str
    scenario: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Its key in the journal."""
        return json.dumps(self.name)

    @property
    def digest(self) -> str:
        """Of its scenario."""
        played = {key: value for key, value in self.scenario.items() if key not in _TEXTS}
        return hashlib.sha256(json.dumps(played, sort_keys=True).encode()).hexdigest()


class Recorded:
    """The runs of a folder's journal, which only grows, and of one that is published."""

    def __init__(
        self, folder: Path, measured: Collection[str], published: Path | None = None
    ) -> None:
        """Reads them; `measured` are the substrates of which what is missing will be added."""
        folder.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(folder / JOURNAL)
        self._published = dict(read(published)) if published else {}
        self._measured = measured
        self._others: set[str] = set()

    def find(self, entry: Entry) -> Numbers | None:
        """The numbers of a run, if they count; those of the folder come first."""
        own = self._counting(entry, self._journal.entries.get(entry.key))
        return own or self._counting(entry, self._published.get(entry.key))

    def _counting(self, entry: Entry, row: Numbers | None) -> Numbers | None:
        if row is None or row.get("scenario", entry.digest) != entry.digest:
            return None
        if row.get("build") != _build(entry.on):
            if entry.on == SIMULATOR or entry.on in self._measured:
                return None
            self._others.add(entry.key)
        numbers: Numbers = row.get("numbers", row)
        return numbers

    def add(self, entry: Entry, numbers: Numbers) -> None:
        """Writes a run, at once."""
        made = {"scenario": entry.digest, "build": build.digest(entry.on)}
        self._journal.add(entry.key, {**made, "numbers": numbers})

    def close(self) -> None:
        """Ends the writing, and reports how many of the runs found are of another build."""
        self._journal.close()
        if self._others:
            others = "of another build or kernel, or of one that is not recorded"
            print(f"{len(self._others)} of the runs that were read are {others}", file=sys.stderr)


def _build(on: str) -> str:
    with contextlib.suppress(RunError):  # reading needs no programs
        return build.digest(on)
    return ""
