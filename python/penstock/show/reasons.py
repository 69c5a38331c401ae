# SPDX-License-Identifier: Apache-2.0
"""Why the slow flows of a run were slow, as chart and sentences.

The simulator, and as far as it counts them the kernel, take the waits where timers fire: see
`metrics.CAUSES`. The slow flows are a tenth of a group: those that took longest for their size.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from penstock import missing, units
from penstock.metrics import CAUSES
from penstock.show.charts import Bars

SECTION = "Why the slow flows are slow"
_WORTH_A_WORD = 0.1
_ENOUGH = 0.9

_CUT_OFF = (
    " The wait for a first timeout that has not fired when the run ends counts as queueing; where "
    "this may be the cause, let the run last longer."
)

Slow = Mapping[str, Any]


def charts(results: list[dict[str, Any]]) -> Iterator[Bars]:
    """Of each group whose waits are known, the shares of its slow flows' time."""
    for group in results[0]["groups"]:
        rows = _rows(results, group)
        if not rows:
            continue
        unknown = [
            cause.words
            for cause in CAUSES
            if all(slow[cause.name] is None for slow in rows.values())
        ]
        known = [cause for cause in CAUSES if cause.words not in unknown]
        yield Bars(
            *(SECTION, f"why-{group}", group),
            "The time of the slow flows, a tenth of all, namely those that took longest for what "
            "they had to move; the number at the end is their mean time"
            + (f"; {_listed(unknown)}: not known here, and part of queueing." if unknown else "."),
            label="share of the slow flows' time",
            parts=tuple(cause.words for cause in known),
            rows={
                name: tuple(slow[cause.name] or 0.0 for cause in known)
                for name, slow in rows.items()
            },
            unit="%",
            sums={name: units.seconds(slow["lasted_s"]) for name, slow in rows.items()},
        )


def sentences(results: list[dict[str, Any]]) -> list[str]:
    """What the slow flows of each group waited for."""
    by_group = {group: _rows(results, group) for group in results[0]["groups"]}
    return [
        sentence(group, rows) + (_CUT_OFF if _is_cut_off(results, group) else "")
        for group, rows in by_group.items()
        if rows
    ]


def _is_cut_off(results: list[dict[str, Any]], group: str) -> bool:
    """Whether flows that did not finish seem to have waited in queues, mostly."""
    return any(
        (slow := result["groups"][group].get("slow"))
        and _causes(slow)[0] == "queueing"
        and missing.is_cut_off("fct_s.p99", result["groups"][group])
        for result in results
    )


def sentence(group: str, rows: Mapping[str, Slow]) -> str:
    """What the slow flows of each scheme waited for; schemes with the same causes together."""
    by_causes: dict[tuple[str, ...], list[str]] = {}
    for scheme, slow in rows.items():
        by_causes.setdefault(_causes(slow), []).append(scheme)
    parts = []
    for causes, schemes in by_causes.items():
        shares = [
            _range([rows[scheme][_NAMES[words]] or 0.0 for scheme in schemes]) for words in causes
        ]
        causes_text = " and ".join(
            f"{_IN_SENTENCES.get(words, words)} ({share})"
            for words, share in zip(causes, shares, strict=True)
        )
        parts.append(f"under {_listed(schemes)} on {causes_text}")
    return f"{group}: the slowest tenth of the flows spent their time {'; '.join(parts)}."


_IN_SENTENCES = {
    "ideal": "what an empty network takes",
    "server's think time": "the server's think time",
}
_NAMES = {cause.words: cause.name for cause in CAUSES}


def _causes(slow: Slow) -> tuple[str, ...]:
    """The largest causes, until they explain most of the time."""
    shares = sorted(((slow[c.name] or 0.0, c.words) for c in CAUSES), reverse=True)
    causes, sum_so_far = [shares[0][1]], shares[0][0]
    for share, words in shares[1:]:
        if sum_so_far >= _ENOUGH or share < _WORTH_A_WORD:
            break
        causes.append(words)
        sum_so_far += share
    return tuple(causes)


def _range(shares: list[float]) -> str:
    texts = list(dict.fromkeys(f"{100 * share:.0f}" for share in (min(shares), max(shares))))
    return f"{' to '.join(texts)}\u00a0%"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _rows(results: list[dict[str, Any]], group: str) -> dict[str, Slow]:
    found = {result["scheme"]: result["groups"][group].get("slow") for result in results}
    return {scheme: slow for scheme, slow in found.items() if slow}
