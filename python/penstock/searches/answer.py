# SPDX-License-Identifier: Apache-2.0
"""The answer of a search in sentences, and in the terminal; the page has the same sentences."""

from rich.markup import escape

from penstock import folders, units
from penstock.searches.question import Tuned
from penstock.searches.trial import Attempt
from penstock.searches.verdict import Check
from penstock.show import terminal


def sentences(tuned: Tuned) -> list[str]:
    """The answer in a few sentences."""
    question, check = tuned.question, tuned.check
    if check is None:
        return [
            f"No trial of {len(tuned.attempts)} {aim(tuned)}.",
            f"The nearest, trial {tuned.best.number}, misses {missed(tuned, tuned.best)}.",
        ]
    lines = [_compared(question.scheme, question.minimize, check)]
    for constraint in check.kept:
        verb = "Keeps" if constraint.is_kept else "Does not keep"
        noise = "" if constraint.is_sure else ", but within the noise"
        lines.append(f"{verb} {constraint.text}{noise}.")
    return lines


def _compared(scheme: str, minimized: str, check: Check) -> str:
    if check.change is None:
        if check.is_better:
            return f"Beats the defaults of {scheme}, which leave flows unfinished."
        return f"Does not beat the defaults of {scheme}: it leaves flows unfinished, too."
    defaults = list(check.variants.values())[1][0].mean
    share = abs(check.change / defaults) if defaults else 0.0
    size = "by less than 1 %" if share < 0.01 else f"by {share:.0%}"
    change = f"{minimized} {check.change_text}"
    if check.is_better:
        return f"Beats the defaults of {scheme} beyond the noise, {size}: {change}."
    return f"Does not beat the defaults of {scheme} beyond the noise: {change}."


def aim(tuned: Tuned) -> str:
    """What a trial does that is an answer."""
    question = tuned.question
    return "keeps all constraints" if question.subject_to else f"has {question.minimize}"


def missed(tuned: Tuned, attempt: Attempt) -> str:
    """Which constraints a trial misses, and by how much."""
    if attempt.error:
        return f"the run itself: {attempt.error}"
    *kept, lost = attempt.excess
    missed = [*zip(tuned.question.subject_to, kept, strict=True), (tuned.question.minimize, lost)]
    parts = []
    for place, (name, excess) in enumerate(missed):
        if excess >= 1e6:
            parts.append(f"{name}: no such number")
        elif excess > 0 and place == len(kept):
            share = units.percent(excess)
            parts.append(f"{name}: the unfinished flows exceed what it allows by {share} of all")
        elif excess > 0:
            parts.append(f"{name} by {excess:.1%}")
    return "; ".join(parts) or "nothing"


def show(tuned: Tuned) -> None:
    """Prints the answer."""
    console = terminal.console()
    console.print(escape(tuned.title) + "\n")
    for key, value in tuned.values(tuned.best).items():
        console.print(escape(f"{key} = {value}"))
    console.print()
    if tuned.check is not None:
        table = terminal.table()
        table.add_column("")
        for name in tuned.check.names:
            table.add_column(escape(name), justify="right")
        for variant, numbers in tuned.check.variants.items():
            table.add_row(escape(variant), *(escape(number.text) for number in numbers))
        console.print(table)
        seeds = tuned.check.seeds
        console.print(f"Means of the fresh seeds {seeds[0]} to {seeds[-1]}, 95 % confidence.\n")
    for sentence in sentences(tuned):
        console.print(escape(sentence))
    if tuned.check is not None:
        console.print("\nFor scenarios:\n", escape(tuned.scheme_toml), sep="\n", soft_wrap=True)
        if tuned.agent_toml:
            console.print("For penstockd:\n", escape(tuned.agent_toml), sep="\n", soft_wrap=True)
    where = f"Search: {tuned.folder}\nReport: {tuned.folder / folders.SEARCH.page}"
    console.print(escape(where), soft_wrap=True)
