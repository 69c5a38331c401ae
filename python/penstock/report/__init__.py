# SPDX-License-Identifier: Apache-2.0
"""The report of a run: one HTML page without outside parts, and its figures for papers.

`data` brings the tables to the size of a picture, `figures` draws, `page` puts it together.
"""

import shutil
import tempfile
from pathlib import Path

from penstock.report import figures, page
from penstock.results import Run


def write(run: Run, path: Path) -> Path:
    """Writes the page and, beside it, `figures/*.svg` and `*.pdf`; returns the page's path.

    What stood in their place is replaced when the new is complete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as temporary:
        new = Path(temporary)
        (new / "figures").mkdir()
        drawn = list(figures.draw(run))
        for figure in drawn:
            figure.save(new / "figures")
        (new / "page").write_text(page.render(run, drawn), encoding="utf-8")
        shutil.rmtree(path.parent / "figures", ignore_errors=True)
        (new / "figures").rename(path.parent / "figures")
        (new / "page").rename(path)
    return path
