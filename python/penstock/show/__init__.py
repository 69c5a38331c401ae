# SPDX-License-Identifier: Apache-2.0
"""Shows results: tables in the terminal, HTML pages, and figures for pages and papers.

    terminal        progress, and tables as wide as the terminal
    summary_table   rows and columns of a run's summary, the same in terminal and page
    sentences       a scenario and its results in a sentence each
    style           colours and dashes: a scheme has the same everywhere
    charts          what a figure shows, apart from how it is drawn
    reasons         why the slow flows are slow: a chart of causes, and a sentence
    timelines       single flows over time; `recorded` finds their packets
    replay          a burst through a port, packet by packet
    turns           a burst with a row for each transfer; `bursts` finds it
    topology        a fabric as places and cables; `topology_drawing` draws it
    run_page        the page of a run; `run_charts` takes its figures from `curves`
    html            the parts of all pages: templates/, page.css, page.js, and vendor/ with uPlot
    index_page      a page that lists folders of results; `plain` makes CSV and Markdown
    chart_files     the same figures as SVG and PDF, on demand; `drawing` has their parts

A module of another package that shows something (`sweeps.sweep_page`) makes charts and a page of
`html`, or tables of `terminal`.
"""
