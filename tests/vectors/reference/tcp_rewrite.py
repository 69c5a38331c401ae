# SPDX-License-Identifier: Apache-2.0
"""Window and checksum arithmetic by RFC 7323, RFC 9293 and RFC 1071."""

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

UNKNOWN = 0xFF
LARGEST = 65535 << 14
LATER, FIRST, SYN = 0, 1, 2


def lowered(window: int, scale: int, limit: float, floor: int) -> dict[str, int]:
    """The least field that stands for max(limit, floor) bytes, unless the window is below it."""
    if scale == UNKNOWN:
        return {"window": window, "changed": 0, "floored": 0}
    field = math.ceil(Fraction(int(max(limit, floor)), 2 ** min(scale, 14)))
    if field >= window:
        return {"window": window, "changed": 0, "floored": 0}
    return {"window": field, "changed": 1, "floored": int(limit < floor)}


class Edge:
    """What a sender was shown. Positions in the stream are counted from 0 and never wrap."""

    def __init__(self) -> None:
        self.offered: int | None = None

    def keep(self, ack: int, window: int, scale: int, limit: int) -> dict[str, int]:
        """The least field not below the scheme's that takes nothing back; at most `window`."""
        wanted = lowered(window, scale, limit, 1448)
        if scale == UNKNOWN:
            return wanted
        unit = 2 ** min(scale, 14)
        owed = 0 if self.offered is None else self.offered - ack
        if not 0 <= owed <= 2 * 65535 * unit:  # no ACK is so old that more was offered
            owed = 0
        field = min(window, math.ceil(Fraction(owed, unit)))
        if field > wanted["window"]:
            wanted = {"window": field, "changed": int(field < window), "floored": 0}
        if wanted["window"] * unit >= owed:
            self.offered = ack + wanted["window"] * unit
        return wanted


def checksum(words: list[int]) -> int:
    """The whole Internet checksum (RFC 1071 §1)."""
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    """Independent calls without a state, then senders that are shown windows."""
    yield from calls(random)
    for number in range(6):
        yield from edges(Random(f"edge-{number}"), number)


def edges(random: Random, number: int) -> Iterator[dict[str, Any]]:
    """ACKs of one flow: in order, now and then an old one, a shrunk window, another connection."""
    yield {"case": f"edge-{number}", "params": {}}
    edge = Edge()
    start = random.choice([0, 2**32 - 20_000, 2**31 - 20_000])  # wraps within a few segments
    scale = random.choice([0, 2, 7, 10, 14, 15])
    ack = 0
    for _ in range(40):
        step = random.choice([0, 1, 1448, 2896, random.randrange(100_000)])
        ack += step if random.random() < 0.9 else -min(step, ack)
        if random.random() < 0.05:
            ack += random.choice([LARGEST, 2**31 - 1])
        args = {
            "ack": (start + ack) % 2**32,
            "window": random.choice([0, 1, 64, 65535, random.randrange(65536)]),
            "scale": UNKNOWN if random.random() < 0.05 else scale,
            "limit_bytes": random.choice([0, 1448, 2896, random.randrange(1 << 22), 2**32 - 1]),
        }
        result = edge.keep(ack, args["window"], args["scale"], args["limit_bytes"])
        seq = None if edge.offered is None else (start + edge.offered) % 2**32
        yield {"event": "keep_edge", "args": args, "result": result, "state": {"edge": seq}}


def calls(random: Random) -> Iterator[dict[str, Any]]:
    """The functions without a state."""
    yield {"case": "calls", "params": {}}
    windows = [0, 1, 2, 3, 1447, 1448, 1449, 4095, 4096, 65534, 65535]
    for _ in range(150):
        args = {
            "window": random.choice([random.randrange(65536), random.choice(windows)]),
            "scale": random.choice([*range(16), UNKNOWN]),
            "limit_bytes": random.choice([0, 1, 1448, random.randrange(1 << 20), 2**32 - 1]),
            "floor_bytes": random.choice([536, 1448, 2896, 8948]),
        }
        result = lowered(args["window"], args["scale"], args["limit_bytes"], args["floor_bytes"])
        yield {"event": "lower_window", "args": args, "result": result}
    for size in range(2, 62):
        words = [random.choice([0, 0xFFFF, random.randrange(65536)]) for _ in range(size)]
        words[0] = 0x0006  # the pseudo-header is never all zero
        index = random.randrange(1, size)
        new = random.choice([0, 0xFFFF, random.randrange(65536)])
        args = {"checksum": checksum(words), "old": words[index], "new": new}
        after = checksum([*words[:index], new, *words[index + 1 :]])
        yield {"event": "checksum_update", "args": args, "result": after}
    for first in (1, 0x1234, 0xFFFE):  # the sum of eqn. 3 is 0x1ffff: its carry carries again
        words = [first, 0x8765, 6]
        before = checksum(words)
        new = 0x1FFFF - (before ^ 0xFFFF) - (0x8765 ^ 0xFFFF)
        if 0 <= new <= 0xFFFF:
            args = {"checksum": before, "old": 0x8765, "new": new}
            yield {"event": "checksum_update", "args": args, "result": checksum([first, new, 6])}
    for offset in range(20, 40):
        octets = [random.randrange(256) for _ in range(44)]
        octets[1] = 6
        new = random.randrange(256)
        changed = [*octets[:offset], new, *octets[offset + 1 :]]
        before, after = (
            checksum([o[i] << 8 | o[i + 1] for i in range(0, 44, 2)]) for o in (octets, changed)
        )
        args = {"checksum": before, "offset": offset, "old": octets[offset], "new": new}
        yield {"event": "checksum_update_byte", "args": args, "result": after}
    for scale in range(15):
        word = random.randrange(16) << 12 | random.randrange(256)
        window = random.randrange(65536)
        carried = word | scale << 8
        short = min(window, 4095)
        network = random.randrange(15)
        written = min(65535, (window << scale) // 2**network)
        yield {
            "event": "reserved_put_scale",
            "args": {"word": word, "scale": scale},
            "result": carried,
        }
        yield {"event": "reserved_scale", "args": {"word": carried}, "result": scale}
        yield {"event": "reserved_clear", "args": {"word": carried}, "result": word}
        yield {
            "event": "window12_put",
            "args": {"window": window, "scale": scale},
            "result": scale * 4096 + short,
        }
        yield {"event": "window12_scale", "args": {"field": scale * 4096 + short}, "result": scale}
        yield {"event": "window12_window", "args": {"field": scale * 4096 + short}, "result": short}
        yield {
            "event": "unify_window",
            "args": {"window": window, "own": scale, "network": network},
            "result": written,
        }
