# SPDX-License-Identifier: Apache-2.0
"""Pages: HTML and CSS in one file, no script, nothing from a network."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from penstock import folders
from penstock.show import style
from penstock.show.drawing import Drawing

FIGURES = (
    "figures as SVG in <code>figures/</code>, "
    "as PDF too by <code>penstock report FOLDER --pdf</code>"
)
"""Of a page's foot: where its figures are."""
_NUMBER, _NAME = 24, 60  # characters; longer texts are no numbers, and no names


def save(text: str, drawings: Iterable[Drawing], path: Path, *, pdf: bool = False) -> Path:
    """Writes the page and, next to it, `figures/*.svg`; returns the page's path.

    `pdf`: write `figures/*.pdf` too.

    Each file is replaced at once; other files stay.
    """
    figures = path.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    for drawing in drawings:
        drawing.save(figures, pdf=pdf)
    folders.write(path, text)
    return path


def document(title: str, body: str) -> str:
    """A whole page: head and style around what the body holds."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · Penstock</title>
<style>
{_css()}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def sections(drawings: list[Drawing]) -> str:
    """The figures under their headings."""
    return "".join(_section(name, list(part)) for name, part in groupby(drawings, _heading))


def _heading(drawing: Drawing) -> str:
    return drawing.section


def _css() -> str:
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    css = css.partition("*/\n")[2]  # the licence line
    return css.replace("/*light*/", style.css_colours("light")).replace(
        "/*dark*/", style.css_colours("dark")
    )


class Html(str):
    """Text of a table that is HTML already."""

    __slots__ = ()


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], about: str = ""
) -> str:
    """A table that scrolls in its own box where it is too wide; each row's first cell names it.

    Args:
        title: above it, may be empty; `about` follows, less loud.
        headings: of its columns, that of the names included.
        rows: texts, or `Html`.
        about: what the title is, or how much is counted.
    """
    lines = [list(row) for row in rows]
    kinds = [
        _kind([line[place] for line in lines], _NAME if place == 0 else _NUMBER)
        for place in range(len(headings))
    ]
    head = "".join(
        f"<th{kind}{_scope(text)}>{_cell(text)}</th>"
        for text, kind in zip(headings, kinds, strict=True)
    )
    body = "".join(
        f'<tr><th{kinds[0]} scope="row">{_cell(name)}</th>'
        + "".join(
            f"<td{kind}>{_cell(text)}</td>" for text, kind in zip(cells, kinds[1:], strict=True)
        )
        + "</tr>\n"
        for name, *cells in lines
    )
    caption = f"<b>{escape(title)}</b> {escape(about)}".removeprefix("<b></b> ")
    return f"""<div class="scroll"><table>
{f"<caption>{caption}</caption>" if caption else ""}
<thead><tr>{head}</tr></thead>
<tbody>
{body}</tbody>
</table></div>
"""


def _cell(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)


def _kind(texts: list[str], most: int) -> str:
    """Words wrap and begin at the left, unlike numbers; long ones do not stay when one scrolls."""
    lengths = (len(re.sub("<.*?>", "", t) if isinstance(t, Html) else t) for t in texts)
    return ' class="text"' if max(lengths, default=0) > most else ""


def _scope(text: str) -> str:
    return ' scope="col"' if text else ""


def _section(name: str, drawings: list[Drawing]) -> str:
    figures = "".join(_figure(drawing) for drawing in drawings)
    return f"""<section>
<h2>{escape(name)}</h2>
{figures}</section>
"""


def _figure(drawing: Drawing) -> str:
    label = escape(f"{drawing.section}: {drawing.title}".removesuffix(": "))
    title = f"<b>{escape(drawing.title)}</b>" if drawing.title else ""
    return f"""<figure>
<figcaption>{title}<p>{escape(drawing.meaning)}</p></figcaption>
<div class="scroll">{style.for_page(drawing.svg, label)}</div>
</figure>
"""
