# SPDX-License-Identifier: Apache-2.0
"""What a `claims.toml` must keep to beyond its keys, or a claim would be judged wrongly or never.

Whether groups, ports and fields exist is seen in the runs; a test does so for each experiment.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock_papers import measures, open_space
from penstock_papers.claims import Claim
from penstock_papers.experiment import Experiment, Figure
from penstock_papers.measures import Measure
from penstock_papers.typed_tables import one_of

T = TypeVar("T")

_TAKES = {
    **dict.fromkeys(("lower", "higher", "about"), "factor"),
    **dict.fromkeys(("at-most", "at-least", "within"), "percent"),
}


def check(made: Experiment) -> None:
    """Refuses an experiment that breaks a rule.

    Raises:
        ValueError: one line, with the claim or figure and the key.
    """
    if not made.title:
        message = "title is missing, as there is no scenario"
        raise ValueError(message)
    for name in made.quick.runs:
        one_of("run", name, made.runs)
    made.quickly()
    made.in_laboratory()
    if made.quick.over and list(made.quick.over) != list(next(iter(made.places.values()), ())):
        message = "quick: over needs the same paths as [over], in the same order"
        raise ValueError(message)
    open_space.check(made)
    _unique("claim", [claim.id for claim in made.claims])
    _unique("figure", [figure.name for figure in made.figures])
    for claim in made.claims:
        _labelled(f"claim {claim.id}", _claim, claim, made)
    for figure in made.figures:
        _labelled(f"figure {figure.name or figure.title}", _figure, figure, made)


def _unique(what: str, names: list[str]) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        message = f"{what} {name}: there are {count} of this name"
        raise ValueError(message)


def _labelled(
    label: str, rule: Callable[[T, Experiment], None], subject: T, made: Experiment
) -> None:
    try:
        rule(subject, made)
    except ValueError as error:
        message = f"{label}: {error}"
        raise ValueError(message) from None


def _claim(claim: Claim, made: Experiment) -> None:
    for key in ("factor", "percent"):
        if getattr(claim, key) != getattr(Claim, key) and _TAKES.get(claim.relation) != key:
            message = f"{key}: '{claim.relation}' takes none"
            raise ValueError(message)
    sides = claim.sides
    for key, side in zip(("measure", "against"), sides, strict=False):
        _labelled(key, _measure, side, made)
        if not (side.scheme or side.analysis):
            message = f"{key}: scheme is missing"
            raise ValueError(message)
        if side.each and side.quantile is None:
            message = f"{key}: each needs a quantile over the clients"
            raise ValueError(message)
    loose = [side for side in sides if not (side.across or side.analysis or side.run)]
    if loose and any(side.across for side in sides):
        message = "across: the other side needs it too, or a run of its own"
        raise ValueError(message)
    _runs("run", made.runs_of(claim), made)


def _runs(key: str, names: Iterable[str], made: Experiment) -> None:
    known = dict.fromkeys([*made.runs, *made.lab.runs])
    for name in names:
        if name == "" and "" not in known:
            message = f"{key} is missing, as there are several: {', '.join(known)}; '*' is all"
            raise ValueError(message)
        one_of("run", name, known)


def _measure(measure: Measure, made: Experiment) -> None:
    if measure.analysis:
        measures.analysis(measure.analysis)
        return
    if made.scenario is None:
        message = "without a scenario only { analysis = ... } can be measured"
        raise ValueError(message)
    if not measure.field:
        message = "field is missing"
        raise ValueError(message)
    if bool(measure.group) == bool(measure.port):
        message = "give either group or port"
        raise ValueError(message)
    if not 0 <= (measure.quantile or 0) <= 1:
        message = f"quantile: {measure.quantile} is not between 0 and 1"
        raise ValueError(message)
    for key in ("scheme", "minus"):
        if name := getattr(measure, key):
            one_of(key, name, made.document["schemes"])
    if measure.run:
        _runs("run", (measure.run,), made)


def _figure(figure: Figure, made: Experiment) -> None:
    if figure.kind == "analysis":
        measures.analysis(figure.draw)
        return
    _labelled("measure", _measure, figure.measure, made)
    _runs("runs", figure.runs, made)
    for scheme in figure.schemes:
        one_of("scheme", scheme, made.document["schemes"])
    axes = list(next(iter(made.places.values()), {}))
    wanted = {"line": ("x",), "heat": ("x", "y")}.get(figure.kind, ())
    for key in wanted:
        if getattr(figure, key) not in axes:
            message = f"{key}: give a path of [over]: {', '.join(axes) or 'there is none'}"
            raise ValueError(message)
