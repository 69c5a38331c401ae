# SPDX-License-Identifier: Apache-2.0
"""The page of a search: its course, the effect of each parameter, and the result."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock import provenance, units
from penstock.searches.tuning import load
from penstock.show import html
from penstock.show.charts import Axis, Chart, Panel, Series, distinct
from penstock.show.style import Look

Table = dict[str, Any]
_GOOD, _BAD, _BEST = Look(2), Look(0), Look(1)


def redraw(folder: Path, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page of a search again.

    Raises:
        RunError: the search has not ended, or the folder is damaged.
    """
    document = load(folder)
    has_dots = any(trial["objective"] is not None for trial in document["trials"])
    charts = distinct([_history(document), *_slices(document)]) if has_dots else []
    return html.save(_render(document, charts), charts, path, pdf=pdf)


def _good(trial: Table) -> bool:
    return bool(not trial["error"] and trial["objective"] is not None and max(trial["excess"]) <= 0)


def _objective(document: Table) -> Axis:
    return Axis(document["question"]["minimize"], units.AXES.get(document["unit"], ""), least=0.0)


def _dots(document: Table, key: str = "", scale: float = 1.0) -> Iterator[Series]:
    """The trials that keep all constraints, and the others, over a parameter or their number."""
    shown = [trial for trial in document["trials"] if trial["objective"] is not None]
    for name, look, is_good in (("misses a constraint", _BAD, False), ("keeps all", _GOOD, True)):
        trials = [trial for trial in shown if _good(trial) is is_good]
        x = [scale * trial["values"][key] if key else float(trial["number"]) for trial in trials]
        if trials:
            yield Series(name, look, x, [trial["objective"] for trial in trials], kind="dots")


def _history(document: Table) -> Chart:
    best, course = math.inf, []
    for trial in document["trials"]:
        best = min(best, trial["objective"] if _good(trial) else math.inf)
        course.append((float(trial["number"]), best))
    known = [point for point in course if math.isfinite(point[1])]
    x, y = [x for x, _ in known], [y for _, y in known]
    line = [Series("best so far", _BEST, x, y, kind="step")] if known else []
    meaning = "Each dot is a trial; the line falls where the search found something better."
    return Chart(
        *("How the search went", "history", "", meaning),
        *(Axis("trial"), _objective(document), (Panel((*_dots(document), *line)),)),
    )


def _slices(document: Table) -> Iterator[Chart]:
    for parameter in document["question"]["parameters"]:
        key, unit = parameter["key"], parameter["unit"]
        name = key.rpartition(".")[2]
        scale, axis_unit = (1e-9, "s") if unit == "ns" else (1.0, "")
        label = name if axis_unit or not unit else f"{name} ({unit})"
        meaning = "Each dot is a trial; the parameter is best where dots lie lowest."
        yield Chart(
            *("What each parameter did", f"slice-{name}", key, meaning),
            Axis(label, axis_unit, log=parameter["is_log"]),
            _objective(document),
            (Panel(tuple(_dots(document, key, scale))),),
        )


def _render(document: Table, charts: list[Chart]) -> str:
    question, check = document["question"], document["check"]
    goal = " subject to ".join(
        part for part in (question["minimize"], ", ".join(question["subject_to"])) if part
    )
    rows = [(key, str(value)) for key, value in document["best"]["values"].items()]
    tables = [html.table("Found" if check else "Nearest", ["parameter", "value"], rows)]
    if check:
        seeds = f"means of the seeds {check['seeds'][0]} to {check['seeds'][-1]}, ± 95 % confidence"
        numbers = [
            (variant, *(number["text"] for number in row))
            for variant, row in check["variants"].items()
        ]
        tables.append(html.table("Check on fresh seeds", ["", *check["names"]], numbers, seeds))
    code = (document["scheme_toml"], document["agent_toml"]) if check else ()
    return html.render(
        "search.html",
        document["title"],
        charts,
        document=document,
        trials=units.counted(len(document["trials"]), "trial"),
        seeds=units.counted(question["seeds"], "seed"),
        goal=goal,
        tables=tables,
        blocks=[text for text in code if text],
        origin=provenance.text(document),
    )
