# SPDX-License-Identifier: Apache-2.0
"""The set-ups of experiments as tables: in the terminal, and in Markdown."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.markup import escape

from penstock import units
from penstock.show import terminal
from penstock_papers.setups import claims_map
from penstock_papers.setups.outcome import Outcome, counted, printed
from penstock_papers.setups.robustness import FEWEST_TO_RANK, RULES, Kind

_COLOURS = {Kind.ROBUST: "blue", Kind.FRAGILE: "yellow", Kind.REFUTED: "red"}


def show(one: Outcome) -> None:
    """Prints the claims of an experiment: the share of set-ups in which each holds."""
    console = terminal.console()
    made = one.experiment
    rows = terminal.table(f"[bold]{made.id}[/]  {escape(made.title)}")
    rows.add_column("claim", ratio=1)
    rows.add_column("published", justify="right", max_width=20)
    rows.add_column("holds in", justify="right", max_width=22)
    rows.add_column("", max_width=8)
    rows.add_column("decided by", max_width=34)
    for claim in one.claims:
        kind = claim.share.kind
        rows.add_row(
            escape(claim.claim.text),
            escape(printed(claim.claim)),
            str(claim.share),
            f"[{_COLOURS.get(kind, 'dim')}]{kind}[/]",
            escape(claim.decided),
        )
    console.print(rows)
    for line in notes(one):
        console.print(escape(line))
    console.print()


def notes(one: Outcome) -> Iterator[str]:
    """How the set-ups were run, what failed, and the set-up nearest to the paper."""
    if not one.set_ups:
        return
    kept = one.numbers
    seeds = f"{kept['seeds']} seed{'s' if kept['seeds'] > 1 else ''} each"
    quick = f"; shortened: {kept['shortened']}" if kept["shortened"] else ""
    time = units.seconds(kept["computed_s"])
    yield f"{one.set_ups} set-ups, {seeds}{quick}; {time} on one core"
    if one.set_ups < FEWEST_TO_RANK:
        yield f"what decides is not named: that needs {FEWEST_TO_RANK} set-ups"
    elif one.deciding:
        yield f"the claims depend on {', '.join(one.deciding)}"
    else:
        yield "no open value decides, as far as these set-ups show"
    for failure in kept["failed"]:
        yield f"failed: {failure}"
    if one.nearest:
        yield f"nearest: {one.nearest}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many claims are of each kind."""
    return f"{claims_map.words(outcomes)}."


def markdown(outcomes: Sequence[Outcome], picture: str) -> str:
    """The map with its counts, for the page of results.

    Args:
        outcomes: of all experiments.
        picture: the path of the map's picture in the page.
    """
    counts = counted(outcomes)
    parts = [
        "## The map of all claims",
        f"{_ABOUT} A claim is {RULES}.",
        f"![Map of the claims: {claims_map.words(outcomes)}]({picture})",
        _by_paper(outcomes),
        _by_experiment([one for one in outcomes if one.set_ups]),
    ]
    unrun = [one.experiment.id for one in outcomes if one.parameters and not one.set_ups]
    closed = [one.experiment.id for one in outcomes if not one.parameters]
    if counts[Kind.NOT_RUN] and unrun:
        parts.append(f"Not run: {', '.join(unrun)}.")
    if closed:
        parts.append(f"Nothing is open in {', '.join(closed)}.")
    return "\n\n".join(filter(None, parts)) + "\n"


def texts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """In Markdown, for the page of results: of each claim the share, of each experiment the notes.

    By the ids of those that were judged in set-ups.
    """
    run = [one for one in outcomes if one.set_ups]
    claims = {
        claim.claim.id: f"{claim.share.kind}: {claim.share}"
        + (f"; decided by `{claim.decides}`" if claim.decides else "")
        for one in run
        for claim in one.claims
        if claim.share.judged
    }
    return claims | {one.experiment.id: f"Open set-ups: {'; '.join(notes(one))}." for one in run}


_ABOUT = """\
The papers leave much open: loads, start times, whether a buffer counts packets or bytes, parameters
of the schemes. The `[open]` table of an experiment's `claims.toml` has a range or values for each,
with the reason. `penstock reproduce ID --open` samples this space and judges every claim in each
set-up."""
_VERDICTS = (Kind.ROBUST, Kind.FRAGILE, Kind.REFUTED)


def _by_paper(outcomes: Sequence[Outcome]) -> str:
    rows = [f"| paper | {' | '.join(Kind)} |", "|---" * (1 + len(Kind)) + "|"]
    for paper, members in groupby(outcomes, lambda one: one.experiment.paper):
        counts = counted(members)
        rows.append(f"| {paper} | {' | '.join(str(counts[kind]) for kind in Kind)} |")
    counts = counted(outcomes)
    rows.append(f"| all | {' | '.join(str(counts[kind]) for kind in Kind)} |")
    return "\n".join(rows)


def _by_experiment(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return ""
    rows = [
        "| experiment | set-ups | robust | fragile | refuted | depends on | hold in the nearest |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        name = one.experiment.id
        deciding = ", ".join(f"`{key}`" for key in one.deciding) or "–"
        near = one.numbers["nearest"]
        kinds = " | ".join(str(one.counts[kind]) for kind in _VERDICTS)
        rows.append(
            f"| [{name}](#{name.replace('.', '')}) | {one.set_ups} | {kinds} "
            f"| {deciding} | {near['held']} of {near['judged']} |"
        )
    return "\n".join(rows)
