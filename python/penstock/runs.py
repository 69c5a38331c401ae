# SPDX-License-Identifier: Apache-2.0
"""A run: results, and the folder that keeps them."""

import contextlib
import json
import re
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from penstock import folders, tables, terms
from penstock.errors import RunError, ScenarioError, suggestion
from penstock.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = ("flows", "queues", "ports")
SUMMARY = ("scenario", "seeds", "results")
"""The keys of `summary.json`."""
RESULT = ("scheme", "groups", "ports", "ci95")
"""What each of its `results` has, at least."""
_FIGURE = re.compile(r"(drops|(fct|jct|why|goodput|queue)-.+)\.(svg|pdf)")
"""Files of `run_charts.figures`."""
MAYBE = ("windows", "jobs", "packets", "events")
"""Tables that a folder has only where something is in them."""


def _remove_figures(folder: Path) -> None:
    """Removes the figures of an earlier run's report; other files stay."""
    for path in folder.glob("*.*"):
        if _FIGURE.fullmatch(path.name):
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


class Run(Results):
    """What one scenario did under its schemes and seeds, with its folder and report."""

    @terms.of_arguments
    def save(self, folder: str | Path, *, report: bool = False) -> Path:
        """Writes the run's folder, whole or not at all, and returns it.

        Args:
            folder: the files of an earlier run in it are replaced; others stay.
            report: also write `report.html`.

        Raises:
            ScenarioError: the folder exists and is not a run's.
        """
        folder = Path(folder)
        with folders.replaced(folder, folders.RUN) as new:
            (new / "scenario.toml").write_text(self.scenario, encoding="utf-8")
            folders.write_json(new / folders.RUN.file, self.info)
            folders.write_json(new / "summary.json", self.summary)
            for name in self._tables():
                tables.write(getattr(self, name), new / f"{name}.parquet")
            if report:
                self.report(new / folders.RUN.page)
        written = [(f"{name}.parquet", name in self._tables()) for name in MAYBE]
        for name, is_written in (*written, (folders.RUN.page, report)):
            if not is_written:  # that of an earlier run
                (folder / name).unlink(missing_ok=True)
        _remove_figures(folder / "figures")
        return folder

    def _tables(self) -> tuple[str, ...]:
        return (*TABLES, *(name for name in MAYBE if not getattr(self, name).is_empty()))

    @classmethod
    @terms.of_arguments
    def load(cls, folder: str | Path) -> "Run":
        """Reads a run's folder.

        Raises:
            ScenarioError: the folder is not a run's.
            RunError: it is, but a file in it is missing or damaged.
        """
        folder = Path(folder)
        folders.check_run(folder)
        maybe = (name for name in MAYBE if (folder / f"{name}.parquet").exists())
        names = (*TABLES, *maybe)
        try:
            summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
            loaded = cls(
                summary={key: summary[key] for key in SUMMARY},
                scenario=(folder / "scenario.toml").read_text(encoding="utf-8"),
                info=json.loads((folder / folders.RUN.file).read_text(encoding="utf-8")),
                **{name: tables.load(folder / f"{name}.parquet") for name in names},
            )
            for name in names:
                getattr(loaded, name).select(tables.COLUMNS[name])
            for result in loaded.summary["results"]:
                itemgetter(*RESULT)(result)
            return loaded
        except (OSError, ValueError, TypeError, KeyError, pl.exceptions.PolarsError) as error:
            reason = str(error).partition("\n")[0].partition("; valid columns")[0]
            message = (
                f"{folder}: the run is incomplete, damaged, or of another version ({reason}); "
                "run it again"
            )
            raise RunError(message) from error

    def figures(self) -> dict[str, "Figure"]:
        """The report's figures for papers and notebooks, drawn by matplotlib, by their names.

        `run.figures()["fct-mice"].savefig("fct.pdf")` writes one of them.
        """
        from penstock.show import chart_files, run_charts  # start-up: matplotlib

        return {each.name: chart_files.canvas(each) for each in run_charts.figures(self)}

    @terms.of_arguments
    def plot(self, name: str | None = None) -> "Figure":
        """One of `figures`; default: the first, the completion times of the first traffic.

        Raises:
            ScenarioError: there is none of this name.
        """
        from penstock.show import chart_files, run_charts  # start-up: matplotlib

        charts = {each.name: each for each in run_charts.figures(self)}
        wanted = name or next(iter(charts), "")
        if wanted not in charts:
            hint = suggestion(wanted, charts, f"there are: {', '.join(charts)}")
            message = f"{wanted}: no such figure; {hint}"
            raise ScenarioError(message)
        return chart_files.canvas(charts[wanted])

    def _repr_html_(self) -> str:
        """The summary tables, for notebooks."""
        from penstock.show import run_page  # start-up: the templates

        return run_page.notebook(self)

    def __repr__(self) -> str:
        """One line: the title, and how much was run."""
        return f"<Run {self}>"

    @terms.of_arguments
    def report(self, path: str | Path, *, pdf: bool = False) -> Path:
        """Writes the report, one HTML page without external parts.

        `pdf`: write the figures as SVG and PDF too, in `figures/` next to it.
        """
        from penstock.show import run_page  # start-up: not needed to compute

        return run_page.write(self, Path(path), pdf=pdf)
