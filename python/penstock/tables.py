# SPDX-License-Identifier: Apache-2.0
"""The tables of a run: the simulator's text as polars frames."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from penstock import columns, folders

KEYS = {"scheme": pl.String, "seed": pl.Int64}
"""The first columns of every table."""

_TYPES = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
FLOWS = {name: _TYPES[kind] for name, kind in columns.FLOWS.items()}
JOBS = {name: _TYPES[kind] for name, kind in columns.JOBS.items()}
QUEUES = {name: _TYPES[kind] for name, kind in columns.QUEUES.items()}
WINDOWS = {name: _TYPES[kind] for name, kind in columns.WINDOWS.items()}
PACKETS = {name: _TYPES[kind] for name, kind in columns.PACKETS.items()}
EVENTS = {name: _TYPES[kind] for name, kind in columns.EVENTS.items()}
COLUMNS = {
    "flows": [*KEYS, *FLOWS],
    "queues": [*KEYS, *QUEUES],
    "ports": [*KEYS, "port"],
    "windows": [*KEYS, *WINDOWS],
    "jobs": [*KEYS, *JOBS],
    "packets": [*KEYS, *PACKETS],
    "events": [*KEYS, *EVENTS],
}
"""What each table of a run has, at least."""
NO_WINDOWS = pl.DataFrame(schema={**KEYS, **WINDOWS})
"""The windows of a run that samples none."""
NO_JOBS = pl.DataFrame(schema={**KEYS, **JOBS})
"""The jobs of a run without any."""
NO_PACKETS = pl.DataFrame(schema={**KEYS, **PACKETS})
"""The packets of a run that records none."""
NO_EVENTS = pl.DataFrame(schema={**KEYS, **EVENTS})
"""The events of such a run."""


def read(text: bytes, columns: Mapping[str, Any], scheme: str, seed: int) -> pl.DataFrame:
    """A table of one run from its CSV text, with `scheme` and `seed` in front.

    Columns the simulator adds beyond `columns` are kept, their types inferred.
    """
    keys = [pl.lit(scheme).alias("scheme"), pl.lit(seed, pl.Int64).alias("seed")]
    if not text:
        return pl.DataFrame(schema={**KEYS, **columns})
    header = text[: text.index(b"\n")].decode().split(",")
    types = {name: columns[name] for name in header if name in columns}
    frame = pl.read_csv(io.BytesIO(text), schema_overrides=types, infer_schema_length=None)
    return frame.select(*keys, pl.all())


def read_queues(text: bytes, ports: Sequence[str], scheme: str, seed: int) -> pl.DataFrame:
    """The queue samples of one run, whose text has indices into `ports` instead of names."""
    names = (
        pl.col("port").cast(pl.Int64).replace_strict(dict(enumerate(ports)), return_dtype=pl.String)
    )
    return read(text, QUEUES, scheme, seed).with_columns(names)


def stack(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The tables of all runs as one, in their order."""
    return pl.concat(frames, how="vertical_relaxed").rechunk()


def load(path: Path) -> pl.DataFrame:
    """Reads a table from Parquet, whose path may have brackets: it is no pattern.

    Raises:
        OSError, PolarsError: it cannot be read.
    """
    return pl.read_parquet(path, glob=False)


def write(table: pl.DataFrame, path: Path, *, is_durable: bool = False) -> None:
    """Writes a table as Parquet, whole or not at all; if `is_durable`, even if the power fails.

    Raises:
        OSError: it cannot be written. Polars itself has errors of its own for that.
    """
    content = io.BytesIO()
    table.write_parquet(content, compression="zstd")
    folders.write(path, content.getvalue(), is_durable=is_durable)


def ports(rows: Iterable[tuple[str, int, Mapping[str, Any]]]) -> pl.DataFrame:
    """The table of ports from (scheme, seed, ports by name); nested values get joined names.

    `{"drops_by_reason": {"full": 3}}` becomes the column `drops_full`.
    """
    records = [
        {"scheme": scheme, "seed": seed, "port": port, **_flat(values)}
        for scheme, seed, by_name in rows
        for port, values in by_name.items()
    ]
    frame = pl.DataFrame(records, infer_schema_length=None)
    drops = [name for name in frame.columns if name.startswith("drops_")]
    return frame.with_columns(pl.col(drops).fill_null(0)) if drops else frame


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = prefix + key
        if isinstance(value, Mapping):
            flat |= _flat(value, name.removesuffix("_by_reason") + "_")
        else:
            flat[name] = value
    return flat
