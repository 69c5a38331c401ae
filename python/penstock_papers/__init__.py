# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers: what was published compared with what is measured.

`experiment` is what a folder of `papers/` contains, `load` reads it, `rules` and `checks` find its
mistakes; `run` runs it, `claims` judges, `figures` draws, `page` writes the report. `analysis` has
the papers' models as numbers. Penstock itself imports nothing of this package but the command
`penstock reproduce`, by `penstock.papers`.
"""

from pathlib import Path


def experiments_dir() -> Path:
    """The folder of the experiments; in a source tree a link to `papers/`."""
    return (Path(__file__).parent / "experiments").resolve()
