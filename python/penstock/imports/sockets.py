# SPDX-License-Identifier: Apache-2.0
"""Transfers of `ss -ti`: what the counters of each socket grow by from one snapshot to the next.

A log has snapshots one after the other, each after a line with its time, as from
`while sleep 0.01; do date +%s.%N; ss -tinH; done`. What its first snapshot counts was sent before.
Of a connection with both ends in the log, what one sends counts, not what the other receives.
Without a second time there is one snapshot, and all that it counts begins at once.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from penstock.errors import ScenarioError
from penstock.imports.flows import Flow, Found, Stream

_SOCKET = re.compile(
    r"^(?:[A-Z][A-Z0-9-]+\s+)?\d+\s+\d+\s+(?P<own>\S+):(?P<own_port>[\w*]+)\s+"
    r"(?P<peer>\S+):(?P<peer_port>[\w*]+)\s*(?P<rest>.*)$"
)
_COUNTER = re.compile(r"\b(bytes_acked|bytes_sent|bytes_received):(\d{1,15})\b")
_SECONDS = re.compile(r"^#?\s*(\d{1,10}(?:\.\d{1,12})?)$")

Key = tuple[str, str, str, str]


def read(lines: Iterator[str], name: str, gap_s: float) -> Found:
    """The transfers of a log. A pause of more than `gap_s` ends one.

    Raises:
        ScenarioError: there is no socket with counters in it.
    """
    found = Found.empty()
    sent: dict[tuple[Key, bool], int] = {}
    streams: dict[tuple[Key, bool], Stream] = {}
    flows: dict[tuple[Key, bool], list[Flow]] = {}
    senders: set[Key] = set()
    now = before = 0.0
    times = 0
    key: Key | None = None
    sockets = 0
    for line in lines:
        text = line.strip()
        time_s = _time(text)
        if time_s is not None:
            before, now = (now if times else time_s), time_s
            times, key = times + 1, None
            if times == 2:  # the first snapshot was sent before it
                streams.clear()
                flows.clear()
            continue
        if match := _SOCKET.match(text):
            own, peer = _address(match["own"]), _address(match["peer"])
            key = (own, match["own_port"], peer, match["peer_port"])
            text = match["rest"]
        if key is None:
            continue
        counters = {kind: int(count) for kind, count in _COUNTER.findall(text)}
        if not counters:
            continue
        sockets += 1
        if "bytes_acked" in counters or "bytes_sent" in counters:
            senders.add(key)
        for is_own, kinds in ((True, ("bytes_acked", "bytes_sent")), (False, ("bytes_received",))):
            count = next((counters[kind] for kind in kinds if kind in counters), 0)
            growth = count - sent.get((key, is_own), 0)
            sent[key, is_own] = count
            if growth < 0:  # another connection with the same ports
                growth = count
            if growth == 0:
                continue
            ends = (key[0], key[2]) if is_own else (key[2], key[0])
            stream = streams.setdefault((key, is_own), Stream(*ends))
            transfers = flows.setdefault((key, is_own), [])
            transfers += stream.add(before, growth, max(gap_s, 1.5 * (now - before)))
    for place, stream in streams.items():
        flows[place] += stream.end()
    found.flows = [flow for place in flows if _counts(*place, senders) for flow in flows[place]]
    if not sockets:
        message = f"{name}: no socket with bytes_acked or bytes_received; log `ss -tin`"
        raise ScenarioError(message)
    return found


def _counts(key: Key, is_own: bool, senders: set[Key]) -> bool:
    """Whether a direction of a socket is not in the log of the other end too."""
    own, own_port, peer, peer_port = key
    return is_own or (peer, peer_port, own, own_port) not in senders


def _time(text: str) -> float | None:
    """Seconds, if the line is a time: of `date +%s.%N`, or in ISO 8601."""
    if match := _SECONDS.match(text):
        return float(match[1])
    if len(text) < 40 and text[:4].isdigit() and text[4:5] == "-":
        try:
            return datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return None


def _address(text: str) -> str:
    """Without brackets, interface and the prefix of IPv4 in IPv6."""
    return text.strip("[]").partition("%")[0].removeprefix("::ffff:")
