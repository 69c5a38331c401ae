# SPDX-License-Identifier: Apache-2.0
"""The tables of a run: what their columns are, and how the simulator's text becomes polars."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

KEYS = {"scheme": pl.String, "seed": pl.Int64}
"""The first columns of every table."""

FLOWS: dict[str, type[pl.DataType]] = {
    "traffic": pl.String,  # the name of its [traffic.*] table
    "flow": pl.Int64,
    "source": pl.String,
    "destination": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,  # null: unfinished
    "bytes": pl.Int64,  # null: endless
    "delivered_bytes": pl.Int64,
    "fct_s": pl.Float64,
    "goodput_bps": pl.Float64,  # in the measured time; null: not under way in it
    "packets": pl.Int64,  # data packets that arrived in the measured time
    "retransmits": pl.Int64,
    "timeouts": pl.Int64,
    "syn_timeouts": pl.Int64,
    "drops": pl.Int64,  # either direction
    "longest_silence_s": pl.Float64,
    "missed_deadline": pl.Boolean,  # null: no deadline
}
QUEUES: dict[str, type[pl.DataType]] = {
    "port": pl.String,
    "time_s": pl.Float64,
    "bytes": pl.Int64,
    "packets": pl.Int64,
}


def read(
    text: bytes, columns: Mapping[str, type[pl.DataType]], scheme: str, seed: int
) -> pl.DataFrame:
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
