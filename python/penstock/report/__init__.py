# SPDX-License-Identifier: Apache-2.0
"""The report of a run: one HTML page without outside parts, and its figures for papers.

`data` brings the tables to the size of a picture, `figures` draws, `page` puts it together, and
`kinds` knows which page belongs to a folder.
"""

from pathlib import Path

from penstock.report import figures, page
from penstock.results import Run


def write(run: Run, path: Path) -> Path:
    """Writes the page and, beside it, `figures/`; returns the page's path."""
    drawn = list(figures.draw(run))
    return page.save(page.render(run, drawn), drawn, path)
