# SPDX-License-Identifier: Apache-2.0
"""Pages: one HTML file each, with style, script and data inside and nothing from a network."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from penstock import folders, missing, units
from penstock.show import style
from penstock.show.charts import Chart, Figure, dash_of
from penstock.show.style import Look

Html = Markup
"""Text of a page that is HTML already; all other text is escaped."""

_HERE = Path(__file__).parent
_NUMBER, _NAME = 24, 60  # characters; longer texts are no numbers, and no names
_NO_NUMBER = ("", units.NONE, missing.UNFINISHED)  # in a column of numbers


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    value: float | None = None
    """What the column is sorted by; None: by the text."""
    best: bool = False
    spread: str = ""
    """What follows in small type, as ± 3 ms."""


class Column(NamedTuple):
    """The head of a column."""

    text: str
    meaning: str = ""


def render(
    template: str,
    page_title: str,
    figures: Sequence[Figure] = (),
    looks: Mapping[str, Look] | None = None,
    scripts: Mapping[str, Any] | None = None,
    placed: Sequence[Chart] = (),
    **values: Any,  # noqa: ANN401 (what the template takes)
) -> str:
    """A page.

    Args:
        template: a file in `templates/`.
        page_title: of the browser's window.
        figures: those that the template places with `figures()`.
        looks: of the schemes, which the reader can pick; none: there is nothing to pick.
        scripts: by their names the data of those that the page has besides its own.
        placed: charts that the template places itself.
        values: what the template takes.
    """
    charts = [chart.as_json() for chart in (*figures, *placed) if isinstance(chart, Chart)]
    return (
        _environment()
        .get_template(template)
        .render(
            page_title=page_title,
            figures=_by_section(figures),
            has_charts=bool(charts),
            data={"charts": charts, **(scripts or {})},
            scripts=[_file(f"{name}.js") for name in scripts or {}],
            schemes=looks or {},
            **values,
        )
    )


def fragment(template: str, **values: Any) -> str:  # noqa: ANN401 (what the template takes)
    """A part of a page, for a notebook."""
    return _environment().get_template(template).render(**values)


def save(text: str, figures: Sequence[Figure], path: Path, *, pdf: bool = False) -> Path:
    """Writes the page, and if `pdf` its figures as SVG and PDF in `figures/` next to it.

    Each file is replaced at once; other files stay. Returns the page's path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if pdf:
        from penstock.show import chart_files  # start-up: matplotlib

        chart_files.save(figures, path.parent / "figures")
    folders.write(path, text)
    return path


def document(title: str, body: str) -> str:
    """A page without charts around a body that is HTML."""
    return render("body.html", title, body=Html(body))


def table(
    title: str,
    headings: Sequence[str | Column],
    rows: Iterable[Sequence[str | Cell]],
    about: str = "",
    looks: Mapping[str, Look] | None = None,
) -> Html:
    """A table that scrolls in its own box where it is too wide; each row's first cell names it.

    Args:
        title: above it, may be empty; `about` follows, less loud.
        headings: of its columns, that of the names included.
        rows: texts, `Html`, or cells.
        about: what the title is, or how much is counted.
        looks: of the schemes that the rows are of.
    """
    columns = [each if isinstance(each, Column) else Column(each) for each in headings]
    lines = [[each if isinstance(each, Cell) else Cell(each) for each in row] for row in rows]
    kinds = [
        _kind([line[place].text for line in lines], _NAME if place == 0 else _NUMBER)
        for place in range(len(columns))
    ]
    parts: Any = _environment().get_template("parts.html").module
    made: Html = parts.table(title, about, columns, lines, kinds, looks or {})
    return made


def _by_section(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    sections: dict[str, list[Figure]] = {}
    for figure in figures:
        sections.setdefault(figure.section, []).append(figure)
    return sections


def _kind(texts: list[str], most: int) -> str:
    """Words begin at the left, unlike numbers; long ones wrap and do not stay when one scrolls."""
    shown = [re.sub("<.*?>", "", t) if isinstance(t, Html) else t for t in texts]
    if max(map(len, shown), default=0) > most:
        return "text"
    return "" if any(t[:1].isdigit() or t in _NO_NUMBER for t in shown) else "left"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "css": _file("vendor/uPlot.css") + _css(),
        "script": _file("page.js"),
        "uplot": _file("vendor/uPlot.js"),
        "uplot_licence": _file("vendor/uPlot.LICENSE"),
        "swatch": _swatch,
    }
    environment.filters |= {"as_count": units.count, "as_percent": units.percent}
    return environment


def _file(name: str) -> Html:
    return Html((_HERE / name).read_text(encoding="utf-8").rstrip())


def _css() -> Html:
    css = _file("page.css").partition("*/\n")[2]  # the licence line
    light, dark = (style.css_colours(mode) for mode in ("light", "dark"))
    return Html(css.replace("/*light*/", light).replace("/*dark*/", dark))


def _swatch(look: Look) -> Html:
    """A short piece of a scheme's line."""
    dash = " ".join(f"{length * 1.6:g}" for length in dash_of(look))
    dashes = Html(' stroke-dasharray="{}"').format(dash) if dash else ""
    return Html(
        '<svg class="swatch" width="20" height="8" aria-hidden="true">'
        '<path d="M0 4H20" stroke="var(--{})" stroke-width="3"{}/></svg>'
    ).format(style.SERIES[look.ink].name, dashes)
