# SPDX-License-Identifier: Apache-2.0
"""The answer as people read it, in the terminal; the page says the same."""

from penstock import terminal
from penstock.tune.run import Tuned
from penstock.tune.search import Attempt
from penstock.tune.verdict import Check


def sentences(tuned: Tuned) -> list[str]:
    """What was found, in a few sentences."""
    question, check = tuned.question, tuned.check
    if check is None:
        return [
            f"No trial of {len(tuned.attempts)} keeps all constraints.",
            f"The nearest, trial {tuned.best.number}, misses {missed(tuned, tuned.best)}.",
        ]
    said = [_compared(question.scheme, question.minimize, check)]
    for kept in check.kept:
        verb = "Keeps" if kept.is_kept else "Does not keep"
        noise = "" if kept.is_sure else ", but within the noise"
        said.append(f"{verb} {kept.text}{noise}.")
    return said


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


def missed(tuned: Tuned, one: Attempt) -> str:
    """Which constraints a trial misses, and by how much."""
    if one.error:
        return f"the simulation itself: {one.error}"
    names = [*tuned.question.subject_to, f"{tuned.question.minimize}: flows did not finish"]
    parts = [
        f"{name} by {excess:.1%}" if excess < 1e6 else f"{name}: no such number"
        for name, excess in zip(names, one.excess, strict=True)
        if excess > 0
    ]
    return "; ".join(parts) or "nothing"


def values(tuned: Tuned, one: Attempt) -> list[tuple[str, str]]:
    """The parameters of a trial: key, value."""
    return [(p.key, str(p.value(one.values[p.key]))) for p in tuned.question.parameters]


def show(tuned: Tuned) -> None:
    """Prints the answer."""
    from rich.markup import escape

    console = terminal.console()
    console.print(escape(tuned.title) + "\n")
    for key, value in values(tuned, tuned.best):
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
    console.print(f"Search: {tuned.folder}\nReport: {tuned.folder / 'report.html'}", soft_wrap=True)
