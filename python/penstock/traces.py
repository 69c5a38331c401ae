# SPDX-License-Identifier: Apache-2.0
"""Recorded flow traces in Parquet, handed to the simulator as the CSV it reads."""

import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from penstock.errors import ScenarioError
from penstock.source import Source

COLUMNS = ("start_s", "source", "destination", "bytes")


@dataclass(frozen=True)
class Traces:
    """The Parquet traces of a scenario, by the names of their traffic, and their CSV copies."""

    files: dict[str, Path]
    copies: dict[str, Path] = field(default_factory=dict)

    @property
    def overrides(self) -> list[tuple[str, str]]:
        """Settings that point the scenario to the copies."""
        return [(f"traffic.{name}.file", str(copy)) for name, copy in self.copies.items()]

    def restored(self, resolved: str) -> str:
        """The resolved scenario, pointing to the user's files again."""
        for name, copy in self.copies.items():
            resolved = resolved.replace(str(copy), str(self.files[name].resolve()))
        return resolved


@contextmanager
def with_csv_traces(source: Source) -> Iterator[Traces]:
    """Copies every Parquet trace of the scenario to CSV; the copies live while this is open.

    Raises:
        ScenarioError: a trace cannot be read or lacks a column.
    """
    traces = Traces(_parquet_traces(source))
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        for name, path in traces.files.items():
            traces.copies[name] = Path(folder) / f"{name}.csv"
            _read(path).write_csv(traces.copies[name])
        yield traces


def _parquet_traces(source: Source) -> dict[str, Path]:
    try:
        document: dict[str, Any] = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError:
        return {}  # the simulator says what is wrong, with its line
    traffic = document.get("traffic")
    if not isinstance(traffic, dict):
        return {}
    files = {
        name: table["file"]
        for name, table in traffic.items()
        if isinstance(table, dict) and isinstance(table.get("file"), str)
    }
    return {
        name: source.origin.parent / file
        for name, file in files.items()
        if file.endswith(".parquet")
    }


def _read(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path)
        return frame.select(COLUMNS)
    except FileNotFoundError:
        message = f"{path}: no such trace; `file` is looked for beside the scenario"
        raise ScenarioError(message) from None
    except pl.exceptions.ColumnNotFoundError:
        found = ", ".join(frame.columns)
        message = f"{path}: a trace needs the columns {', '.join(COLUMNS)}; it has {found}"
        raise ScenarioError(message) from None
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        message = f"{path}: not a Parquet file ({reason})"
        raise ScenarioError(message) from None
