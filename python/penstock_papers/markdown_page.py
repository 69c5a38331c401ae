# SPDX-License-Identifier: Apache-2.0
"""A reproduction in Markdown: a page of its own, or part of the documentation."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from penstock import units
from penstock_papers import reproduction_document, small_svg
from penstock_papers.claims import published, verdict
from penstock_papers.reproduction import claims_by_experiment

FIGURES = "papers"
"""The folder of the figures, next to the page."""

Table = Mapping[str, Any]


def write(folder: Path, page: Path) -> Path:
    """Writes the page of a reproduction's folder, and its figures in `papers` next to it.

    Raises:
        ScenarioError: the folder is no reproduction.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    text, _ = results(folder, page.parent / FIGURES, page.parent)
    page.write_text(f"{_HEAD}\n\n{text}", encoding="utf-8")
    return page


def results(
    folder: Path, figures: Path, base: Path, shares: Mapping[str, str] | None = None
) -> tuple[str, dict[str, str]]:
    """The results of a reproduction's folder as text, and the path of each figure.

    Args:
        folder: of the reproduction.
        figures: the folder to copy its figures to.
        base: the paths of the figures begin here; it contains `figures`.
        shares: of claims and experiments, by their ids: what the open set-ups show.

    Raises:
        ScenarioError: the folder is no reproduction.
    """
    document = reproduction_document.read(folder)
    files = [figure["file"] for one in document["experiments"] for figure in one["figures"]]
    figures.mkdir(parents=True, exist_ok=True)
    kept = {file: str(_keep(folder / file, figures).relative_to(base)) for file in files}
    return render(document, kept, shares), kept


def render(
    document: Table, figures: Mapping[str, str], shares: Mapping[str, str] | None = None
) -> str:
    """The results as text.

    Args:
        document: of `reproduction.json`.
        figures: of each figure's file, the path in the page.
        shares: as `results` has them.
    """
    claims = claims_by_experiment(document)
    parts = [*_summary(document), *_overview(document["experiments"], claims)]
    for paper, members in groupby(document["experiments"], lambda one: one["paper"]):
        parts.append(f"## {paper}")
        for one in members:
            parts += _experiment(one, claims.get(one["id"], []), figures, shares or {})
    return "\n\n".join(parts) + "\n"


_HEAD = """\
# What reproduces, and why the rest does not

A measured number is the mean over the seeds, ± the half-width of its 95 % confidence interval.
"Within the noise" means that values within the intervals give the other verdict."""


def _summary(document: Table) -> Iterator[str]:
    machine = document["machine"]
    yield (
        f"**{document['held']} of {document['judged']} claims hold**, on {document['date']} with "
        f"Penstock {document['penstock']}, in {units.seconds(document['wall_s'])} "
        f"on {machine['cores']} cores ({machine['processor']}): `{document['command']}`"
    )
    if document["quick"]:
        yield "**Quick: runs were shortened**, as noted at each experiment."


def _overview(experiments: list[Table], claims: Mapping[str, list[Table]]) -> Iterator[str]:
    rows = ["| paper | experiments | claims that hold |", "|---|---|---|"]
    for paper, members in groupby(experiments, lambda one: one["paper"]):
        own = list(members)
        held, judged = (sum(one[key] for one in own) for key in ("held", "judged"))
        rows.append(f"| [{paper}](#{paper.lower()}) | {len(own)} | {held} of {judged} |")
    yield "\n".join(rows)
    rows = ["| experiment | what | seeds | claims that hold |", "|---|---|---|---|"]
    for one in experiments:
        left = len(claims.get(one["id"], [])) - one["judged"]
        more = f", {left} not judged" if left else ""
        rows.append(
            f"| [{one['id']}](#{one['id'].replace('.', '')}) | {_cell(one['title'])} "
            f"| {one['seeds'] or '–'} | {one['held']} of {one['judged']}{more} |"
        )
    yield "\n".join(rows)


def _experiment(
    one: Table, claims: list[Table], figures: Mapping[str, str], shares: Mapping[str, str]
) -> Iterator[str]:
    yield f"### {one['id']}"  # plain: a link in a heading breaks the site's contents
    place = f"[{one['title']}](../papers/{one['id']}/claims.toml)"
    yield f"**{place}.** {one['about']}".strip()
    if one["shortened"]:
        yield f"Quick: {one['shortened']}."
    for note in one["notes"]:
        yield f"*{note}*"
    if one["id"] in shares:
        yield shares[one["id"]]
    if claims:
        is_open = any(claim["id"] in shares for claim in claims)
        rows = [
            "| claim | where | published | measured | |" + " set-ups |" * is_open,
            "|---|---|---|---|---|" + "---|" * is_open,
        ]
        for claim in claims:
            run = f" (shown: {claim['run']})" if claim["run"] else ""
            outcome = verdict(claim["holds"], is_open=claim["within_noise"])
            outcome = outcome if claim["holds"] is not False else f"**{outcome}**"
            cells = (
                claim["text"] + run,
                claim["where"],
                published(claim["published"]),
                claim["shown"],
                outcome,
                *([shares.get(claim["id"], "")] if is_open else []),
            )
            rows.append(f"| {' | '.join(map(_cell, cells))} |")
        yield "\n".join(rows)
    for figure in one["figures"]:
        path = figures[figure["file"]]
        yield f"![{figure['title']}]({path})"
        yield f"*{figure['where']}: {figure['title']}.* {figure['meaning']}"
    if one["why"]:
        yield str(one["why"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _keep(source: Path, folder: Path) -> Path:
    """Copies a figure, made small; a large one as PNG."""
    text = small_svg.small(source.read_text(encoding="utf-8"))
    target = folder / source.name
    if len(text.encode()) <= small_svg.MOST_BYTES:
        target.write_text(text, encoding="utf-8")
        target.with_suffix(".png").unlink(missing_ok=True)
        return target
    target.unlink(missing_ok=True)
    target = target.with_suffix(".png")
    target.write_bytes(source.with_suffix(".png").read_bytes())
    return target
