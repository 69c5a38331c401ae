# SPDX-License-Identifier: Apache-2.0
"""What a `claims.toml` must keep to, beyond its keys: all that is known without a simulation."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from penstock.tables import FLOWS
from penstock_papers import measures, schema
from penstock_papers.claims import RELATIONS, Claim
from penstock_papers.experiment import COLUMNS, KINDS, Experiment, Figure
from penstock_papers.measures import EACH, Measure
from penstock_papers.values import ACROSS

T = TypeVar("T", Claim, Figure)

_TAKES_FACTOR = ("lower", "higher", "about")
_TAKES_PERCENT = ("at-most", "at-least", "within")


def check(made: Experiment) -> None:
    """Refuses an experiment that breaks a rule.

    Raises:
        ValueError: one line, with the claim or figure and the key.
    """
    if made.scenario is None and not made.title:
        message = "title is missing, as there is no scenario"
        raise ValueError(message)
    for name in made.quick.runs:
        schema.one_of("run", name, made.runs)
    made.quickly()
    made.in_laboratory()
    if made.quick.over and list(made.quick.over) != list(next(iter(made.places.values()), ())):
        message = "quick: over needs the same paths as [over], in the same order"
        raise ValueError(message)
    _all("claim", made.claims, lambda claim: claim.id, lambda claim: _claim(claim, made))
    _all("figure", made.figures, lambda one: one.name, lambda one: _figure(one, made))
    nameless = [one.title for one in made.figures if not one.name]
    if len(made.figures) > 1 and nameless:
        message = f"figure {nameless[0]}: name is missing, as there are several"
        raise ValueError(message)


def _all(
    what: str, things: Sequence[T], name: Callable[[T], str], rule: Callable[[T], None]
) -> None:
    for known, times in Counter(map(name, things)).items():
        if times > 1 and known:
            message = f"{what} {known}: there are {times} of this name"
            raise ValueError(message)
    for thing in things:
        try:
            rule(thing)
        except ValueError as error:
            label = name(thing) or getattr(thing, "title", "?")
            message = f"{what} {label}: {error}"
            raise ValueError(message) from None


def _claim(claim: Claim, made: Experiment) -> None:
    if not claim.id.startswith(f"{made.id}."):
        message = f"id: must begin with '{made.id}.'"
        raise ValueError(message)
    schema.one_of("relation", claim.relation, RELATIONS)
    if claim.factor != 1 and claim.relation not in _TAKES_FACTOR:
        message = f"factor: '{claim.relation}' takes none"
        raise ValueError(message)
    if claim.percent and claim.relation not in _TAKES_PERCENT:
        message = f"percent: '{claim.relation}' takes none"
        raise ValueError(message)
    _measure("measure", claim.measure, made, claim=True)
    if isinstance(claim.against, Measure):
        _measure("against", claim.against, made, claim=True)
        sides = (claim.measure, claim.against)
        loose = [one for one in sides if not (one.across or one.analysis or one.run)]
        if loose and any(one.across for one in sides):
            message = "across: the other side needs it too, or a run of its own"
            raise ValueError(message)
    _runs("run", made.runs_of(claim), made)
    if not claim.measure.analysis and made.scenario is not None and claim.run == ():
        message = "run: the list is empty"
        raise ValueError(message)


def _runs(key: str, names: Iterable[str], made: Experiment) -> None:
    known = dict.fromkeys([*made.runs, *made.lab.runs])
    for name in names:
        if name == "" and "" not in known:
            message = f"{key} is missing, as there are several: {', '.join(known)}; '*' is all"
            raise ValueError(message)
        schema.one_of("run", name, known)


def _measure(key: str, measure: Measure, made: Experiment, *, claim: bool) -> None:
    try:
        _check(measure, made, claim=claim)
    except ValueError as error:
        message = f"{key}: {error}"
        raise ValueError(message) from None


def _check(measure: Measure, made: Experiment, *, claim: bool) -> None:
    if measure.analysis:
        if measure != Measure(analysis=measure.analysis, field=measure.field):
            message = "analysis takes no key but field, which tells the unit"
            raise ValueError(message)
        measures.analysis(measure.analysis)
        return
    if made.scenario is None:
        message = "without a scenario only { analysis = ... } can be measured"
        raise ValueError(message)
    if claim and not measure.scheme:
        message = "scheme is missing"
        raise ValueError(message)
    if not measure.field:
        message = "field is missing"
        raise ValueError(message)
    if bool(measure.group) == bool(measure.port):
        message = "give either group or port"
        raise ValueError(message)
    if measure.run:
        _runs("run", (measure.run,), made)
        if measure.across:
            message = "give run or across, not both"
            raise ValueError(message)
    if measure.across:
        schema.one_of("across", measure.across, ACROSS)
    if measure.each:
        schema.one_of("each", measure.each, EACH)
    if measure.each or measure.quantile is not None:
        _check_flows(measure, claim=claim)


def _check_flows(measure: Measure, *, claim: bool) -> None:
    if not measure.group:
        message = "each and quantile are of a group's flows: give group"
        raise ValueError(message)
    if measure.per:
        message = "per is of the summary: not with each or quantile"
        raise ValueError(message)
    if claim and measure.quantile is None:
        message = "each needs a quantile over the clients"
        raise ValueError(message)
    if not 0 <= (measure.quantile or 0) <= 1:
        message = f"quantile: {measure.quantile} is not between 0 and 1"
        raise ValueError(message)
    schema.one_of("field", measure.field, FLOWS)


def _figure(figure: Figure, made: Experiment) -> None:
    schema.one_of("kind", figure.kind, KINDS)
    if figure.log:
        schema.one_of("log", figure.log, ("x", "y", "xy"))
    if figure.kind == "analysis":
        if not figure.draw:
            message = "draw is missing: a function of penstock_papers.analysis"
            raise ValueError(message)
        measures.analysis(figure.draw)
        return
    _measure("measure", figure.measure, made, claim=False)
    _runs("runs", figure.runs, made)
    axes = list(next(iter(made.places.values()), {}))
    if figure.kind in ("line", "heat"):
        for key, path in (("x", figure.x), *((("y", figure.y),) if figure.kind == "heat" else ())):
            if path not in axes:
                message = f"{key}: give a path of [over]: {', '.join(axes) or 'there is none'}"
                raise ValueError(message)
    if figure.kind in COLUMNS:
        if not figure.measure.group:
            message = f"measure: '{figure.kind}' is of a group's flows: give group"
            raise ValueError(message)
        schema.one_of("field", figure.measure.field, FLOWS)
