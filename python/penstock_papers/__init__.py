# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers: what was published compared with what is measured.

A folder of `papers/` is an experiment: `experiment_files` reads it (`templates` expands claims,
`rules` checks them) into an `experiment`. `reproduce` runs experiments and is the place to start;
`claims` judges by `measures` and their `values`; `drawing` draws the papers' figures on
`figure_axes`. A `reproduction` is the outcome, kept in a `reproduction_folder`, shown by
`terminal_table`, `html_report` and `markdown_page`; `rejudge` judges an old one again. `analysis`
has the papers' models as numbers. `command` is `penstock reproduce`, all that Penstock imports of
this package, and only by `penstock.papers`.
"""

from pathlib import Path


def experiments_dir() -> Path:
    """The folder of the experiments; in a source tree a link to `papers/`."""
    return (Path(__file__).parent / "experiments").resolve()
