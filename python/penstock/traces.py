# SPDX-License-Identifier: Apache-2.0
"""Recorded flow traces that are not CSV, as the CSV text that the simulator reads."""

from pathlib import Path

import polars as pl

from penstock.errors import ScenarioError

COLUMNS = ("start_s", "source", "destination", "bytes")


def to_csv(path: Path) -> str:
    """A Parquet trace as CSV text.

    Raises:
        ScenarioError: it cannot be read or lacks a column; the simulator puts the file before it.
    """
    if path.suffix != ".parquet":
        message = f"a trace is CSV or Parquet; '{path.suffix}' is neither"
        raise ScenarioError(message)
    try:
        frame = pl.read_parquet(path)
        return frame.select(COLUMNS).write_csv()
    except pl.exceptions.ColumnNotFoundError:
        message = f"needs the columns {', '.join(COLUMNS)}; has {', '.join(frame.columns)}"
        raise ScenarioError(message) from None
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"cannot be read as Parquet ({str(error).partition(chr(10))[0]})"
        raise ScenarioError(message) from None
