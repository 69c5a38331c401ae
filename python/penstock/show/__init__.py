# SPDX-License-Identifier: Apache-2.0
"""Shows results: tables in the terminal, HTML pages, and figures for pages and papers.

    terminal        progress, and tables as wide as the terminal
    summary_table   rows and columns of a run's summary, the same in terminal and page
    sentences       a scenario and its results in a sentence each
    run_page        the page of a run; `run_figures` draws it from `curves`
    html, drawing   the parts of all pages and of all figures; `style` has colours and type

A module of another package that shows something (`sweep.sweep_page`) builds on `html`, `drawing`
and `terminal`.
"""
