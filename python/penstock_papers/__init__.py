# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers: what was published compared with what is measured.

A folder of `papers/` is an experiment: a scenario, its runs, the paper's claims about them, and
its figures. Each module imports only those of lines above its own:

    experiment_names             the experiments by name, and their folders
    option_checks                which options of `penstock reproduce` go together
    reproduction_document        `reproduction.json`
    values                       numbers with confidence intervals
    measures                     numbers of runs, by name, for claims and figures
    claims                       judges a claim: published and measured
    experiment                   an experiment with its runs, claims and figures
    open_space                   what a paper leaves open, and samples of it
    typed_tables, templates      TOML tables as dataclasses; claims written once for many schemes
    rules                        checks an experiment beyond the types
    experiment_files             reads the folders of `papers/`
    figure_data                  the numbers of a figure
    small_svg, figure_axes       smaller files; axes as the papers have them
    reproduction                 an experiment's outcome: verdicts and figures
    drawing                      draws the papers' figures from `figure_data`
    terminal_table, html_report  an outcome in the terminal, as a page
    reproduction_folder          the folder that keeps outcomes, their page and runs
    markdown_page                the same in Markdown, for the documentation
    experiment_runs              the runs of several experiments as one list of tasks
    reproduce                    runs experiments and judges each; the place to start
    rejudge, recorded            outcomes of an earlier folder; those recorded in `papers/`
    setups/                      in how many of the set-ups that a paper leaves open a claim holds
    analysis/                    the papers' models as numbers, which claims and figures name
    command                      `penstock reproduce`

Penstock imports this package only by `penstock.papers`.
"""

from pathlib import Path


def experiments_dir() -> Path:
    """The folder of the experiments; in a source tree a link to `papers/`."""
    return (Path(__file__).parent / "experiments").resolve()
