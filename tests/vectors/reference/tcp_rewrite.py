# SPDX-License-Identifier: Apache-2.0
"""Window and checksum arithmetic by RFC 7323 and RFC 1071."""

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


def checksum(words: list[int]) -> int:
    """The whole Internet checksum (RFC 1071 §1)."""
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def vectors(random: Random) -> Iterator[dict[str, Any]]:
    """Independent calls; there is no state."""
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
        said = min(65535, (window << scale) // 2**network)
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
            "result": said,
        }
