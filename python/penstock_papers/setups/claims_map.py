# SPDX-License-Identifier: Apache-2.0
"""The map of all claims: a row for each experiment, a cell with a letter for each claim."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from penstock_papers.setups.outcome import Outcome, counted
from penstock_papers.setups.robustness import MEANINGS, Kind


class _Look(NamedTuple):
    letter: str
    fill: str
    ink: str


# Okabe and Ito's colours for the colour-blind; the letters are enough without them.
_LOOKS = {
    Kind.ROBUST: _Look("R", "#0072b2", "#ffffff"),
    Kind.FRAGILE: _Look("F", "#f0e442", "#1f2430"),
    Kind.REFUTED: _Look("X", "#d55e00", "#ffffff"),
    Kind.TOO_FEW: _Look("?", "#d5d9e0", "#1f2430"),
    Kind.NOT_RUN: _Look("·", "#ffffff", "#6a7180"),
}
_CELL, _LABEL, _ROW = 15, 78, 30  # pixels, pixels, cells
_LEGEND = 26  # pixels of a line of the legend


def svg(outcomes: Sequence[Outcome]) -> str:
    """The map as SVG. In a row robust claims come first, then fragile, refuted, and the others."""
    parts = [*_legend(outcomes)]
    top = _LEGEND * (1 + len(Kind) // 2) + 6
    for one in outcomes:
        kinds = sorted(
            ((claim.share.kind, claim) for claim in one.claims), key=lambda pair: _order(pair[0])
        )
        middle = top + _CELL / 2
        parts.append(f'<text class="label" x="0" y="{middle:g}">{escape(one.experiment.id)}</text>')
        for number, (kind, claim) in enumerate(kinds):
            row, column = divmod(number, _ROW)
            title = f"{claim.claim.text}: {kind}, {claim.share}"
            parts.append(_cell(kind, _LABEL + column * _CELL, top + row * _CELL, title))
        top += _CELL * max(1, -(-len(kinds) // _ROW)) + 3
    width = _LABEL + _ROW * _CELL
    label = escape(f"Map of {sum(len(one.claims) for one in outcomes)} claims: {words(outcomes)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" viewBox="0 0 {width} {top}" '
        f'role="img" aria-label="{label}">\n<style>{_STYLE}</style>\n'
        f'<rect width="{width}" height="{top}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def words(outcomes: Sequence[Outcome]) -> str:
    """The counts in words: `120 robust, 80 fragile, ...`."""
    counts = counted(outcomes)
    return ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])


_STYLE = (
    "text{font:11px sans-serif;text-anchor:middle;dominant-baseline:central}"
    "text.label{text-anchor:start;fill:#1f2430}rect{stroke:#ffffff}rect.empty{stroke:#e3e6ec}"
)


def _order(kind: Kind) -> int:
    return list(Kind).index(kind)


def _legend(outcomes: Sequence[Outcome]) -> Iterator[str]:
    counts = counted(outcomes)
    for number, kind in enumerate(Kind):
        row, column = divmod(number, 2)
        x, y = column * 265, 6 + row * _LEGEND
        yield _cell(kind, x, y, kind)
        text = escape(f"{counts[kind]} {kind}: {MEANINGS[kind]}")
        yield f'<text class="label" x="{x + _CELL + 6}" y="{y + _CELL / 2:g}">{text}</text>'


def _cell(kind: Kind, x: int, y: int, title: str) -> str:
    look = _LOOKS[kind]
    empty = ' class="empty"' if kind is Kind.NOT_RUN else ""
    half = _CELL / 2
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect{empty} x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="{look.fill}"/>'
        f'<text x="{x + half:g}" y="{y + half:g}" fill="{look.ink}">{look.letter}</text></g>'
    )
