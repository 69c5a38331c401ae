# SPDX-License-Identifier: Apache-2.0
"""A run: its summary and tables, and the folder that keeps them."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from penstock import units
from penstock.errors import RunError, ScenarioError

TABLES = ("flows", "queues", "ports")


@dataclass(frozen=True)
class Run:
    """What one scenario did under its schemes and seeds."""

    summary: dict[str, Any]
    """The object that `--json` prints; `penstock run --help` tells its shape."""
    flows: pl.DataFrame
    """One row a flow; the columns are those of `penstock.tables.FLOWS`."""
    queues: pl.DataFrame
    """One row a measured port and sample, with `port`, `time_s`, `bytes`, `packets`."""
    ports: pl.DataFrame
    """One row a measured port, with what it sent, marked, rewrote, and dropped by reason."""
    scenario: str
    """The scenario as resolved, in TOML, its defaults written out."""
    info: dict[str, Any]
    """Versions, seeds, schemes, overrides, command line and machine of the run."""

    def save(self, folder: str | Path, *, report: bool = False) -> Path:
        """Writes the run's folder, whole or not at all, and returns it.

        Args:
            folder: replaced if it is an earlier run's folder.
            report: also write `report.html` and `figures/`.

        Raises:
            ScenarioError: the folder exists and is not a run's.
        """
        folder = Path(folder)
        check_target(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
            new = Path(temporary) / "new"
            new.mkdir()
            self._write(new)
            if report:
                self.report(new / "report.html")
            if folder.exists():
                folder.rename(Path(temporary) / "old")
            new.rename(folder)
        return folder

    def _write(self, folder: Path) -> None:
        (folder / "scenario.toml").write_text(self.scenario, encoding="utf-8")
        for name, value in (("run.json", self.info), ("summary.json", self.summary)):
            text = json.dumps(value, indent=2, ensure_ascii=False)
            (folder / name).write_text(text + "\n", encoding="utf-8")
        for name in TABLES:
            table: pl.DataFrame = getattr(self, name)
            table.write_parquet(folder / f"{name}.parquet", compression="zstd")

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """Reads a run's folder.

        Raises:
            ScenarioError: the folder is not a run's.
            RunError: it is, but a file in it is missing or damaged.
        """
        folder = Path(folder)
        if not is_run(folder):
            message = f"{folder}: not a run's folder (no run.json); make one with `penstock run`"
            raise ScenarioError(message)
        try:
            return cls(
                summary=json.loads((folder / "summary.json").read_text(encoding="utf-8")),
                scenario=(folder / "scenario.toml").read_text(encoding="utf-8"),
                info=json.loads((folder / "run.json").read_text(encoding="utf-8")),
                **{name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES},
            )
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            reason = str(error).partition("\n")[0]
            message = f"{folder}: the run is incomplete or damaged ({reason}); run it again"
            raise RunError(message) from error

    def members(self, group: str) -> pl.DataFrame:
        """The rows of `flows` that a group of the summary counts.

        A group is a traffic, or one class of its sizes: `web/small` are the flows of `web` up to
        the size `measure.sizes.small`, and above that of the class before it.
        """
        traffic, _, name = group.rpartition("/")
        bounds = self.summary["scenario"].get("measure", {}).get("sizes", {})
        if not traffic or name not in bounds:
            return self.flows.filter(pl.col("traffic") == group)
        upper = units.to_bytes(bounds[name])
        below = [bound for bound in map(units.to_bytes, bounds.values()) if bound < upper]
        above = pl.col("bytes") > max(below, default=-1)
        return self.flows.filter(pl.col("traffic") == traffic, above, pl.col("bytes") <= upper)

    def report(self, path: str | Path) -> Path:
        """Writes the report, one HTML page without outside parts, and `figures/` beside it."""
        from penstock.report import write

        return write(self, Path(path))

    def __str__(self) -> str:
        """The title, and how much was run."""
        schemes = ", ".join(result["scheme"] for result in self.summary["results"])
        return f"{self.summary['scenario']['title']}: {schemes}; {self.flows.height} flows"


def is_run(folder: Path) -> bool:
    """Whether the folder is one that `Run.save` wrote."""
    return (folder / "run.json").is_file()


def check_target(folder: Path) -> None:
    """Refuses to write a run over anything but an earlier run or an empty folder.

    Raises:
        ScenarioError: it is a file, or a folder that holds something else.
    """
    if folder.is_dir() and (is_run(folder) or not any(folder.iterdir())):
        return
    if folder.exists():
        message = f"{folder}: exists and is not a run's folder; give another --out"
        raise ScenarioError(message)


def free_folder(name: str, parent: Path = Path("runs")) -> Path:
    """`runs/name`, or `runs/name-2`, `-3`, ... where that is taken."""
    folder, number = parent / name, 1
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder
