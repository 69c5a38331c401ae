# SPDX-License-Identifier: Apache-2.0
"""The page of a canary: both sides over time, the difference and its confidence."""

from collections.abc import Sequence
from pathlib import Path

from penstock import units
from penstock.fleet.canary import CANARY, CONTROL, Canary, Judgement, Measure
from penstock.show import html, style
from penstock.show.charts import Axis, Chart, Panel, Series
from penstock.show.html import Cell, Column

PAGE = "canary.html"
_FORMS = {"b/s": units.rate, "B": units.size, "%": units.percent}


def value(measure: Measure, number: float | None) -> str:
    """A number of a measure as people read it."""
    return _FORMS.get(measure.unit, units.factor)(number)


def lines(judgements: Sequence[Judgement]) -> list[str]:
    """A line for each measure, for the terminal."""
    return [
        f"{one.measure.name}: {value(one.measure, one.canary)}, control "
        f"{value(one.measure, one.control)}; {one.sentence}"
        for one in judgements
    ]


def write(canary: Canary, outcome: str, folder: Path) -> Path:
    """Writes `canary.html`; returns its path."""
    judgements = canary.judgements()
    looks = style.looks([CANARY, CONTROL])
    figures = [_chart(canary, one.measure, looks) for one in judgements]
    headings = (
        Column("measure"),
        Column(CANARY, "mean of the intervals"),
        Column(CONTROL),
        Column("difference", "± half-width of its 95 % interval of confidence"),
        Column("worse", f"intervals worse by more than {units.percent(canary.margin)}"),
        Column("judgement"),
    )
    rows: list[list[str | Cell]] = [
        [
            Cell(f"{one.measure.name}: {one.measure.meaning}"),
            value(one.measure, one.canary),
            value(one.measure, one.control),
            Cell(
                _signed(one.measure, one.difference),
                spread=f"± {value(one.measure, one.half_width)}",
            ),
            f"{one.worse} of {one.intervals}",
            one.sentence,
        ]
        for one in judgements
    ]
    body = html.table("Difference", headings, rows)
    text = html.render("outcome.html", "Canary", figures, looks, outcome=outcome, body=body)
    return html.save(text, figures, folder / PAGE)


def _signed(measure: Measure, number: float | None) -> str:
    text = value(measure, None if number is None else abs(number))
    return text if number is None or number == 0 else ("+" if number > 0 else "−") + text


def _chart(canary: Canary, measure: Measure, looks: dict[str, style.Look]) -> Chart:
    def series(name: str) -> Series:
        sides = [one.canary if name == CANARY else one.control for one in canary.intervals]
        known = [
            (i.end_s, side[measure.name])
            for i, side in zip(canary.intervals, sides, strict=True)
            if measure.name in side
        ]
        return Series(name, looks[name], [x for x, _ in known], [y for _, y in known])

    scale = "%" if measure.unit == "%" else measure.unit
    return Chart(
        "Over time",
        measure.name.replace(" ", "-"),
        measure.name.capitalize(),
        measure.meaning,
        Axis("time", "s"),
        Axis(measure.name, scale, least=0.0),
        (Panel((series(CANARY), series(CONTROL))),),
        linked="canary",
    )
