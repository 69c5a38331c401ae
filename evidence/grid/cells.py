# SPDX-License-Identifier: Apache-2.0
"""The cells of a grid: all combinations of axes.toml, samples of them, a scenario for each."""

import itertools
import random
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.units import to_bytes

HERE = Path(__file__).resolve().parent
MSS_BYTES, HEADER_BYTES, PACKET_BYTES = 1448, 52, 1500

Cell = dict[str, Any]
"""A value for each axis."""


def axes(name: str) -> dict[str, list[Any]]:
    """The axes of a set."""
    return tomllib.loads((HERE / "axes.toml").read_text("utf-8"))[name]


def cells(name: str) -> list[Cell]:
    """All cells of a set."""
    table = axes(name)
    of_all = itertools.product(*table.values())
    every = [dict(zip(table, values, strict=True)) for values in of_all]
    return [cell for cell in every if not is_by_tools(cell) or can_be_by_tools(cell)]


def is_by_tools(cell: Cell) -> bool:
    """Whether nginx, a client of its own and iperf3 generate the traffic."""
    return cell.get("generator") in ("ab", "wrk")


def can_be_by_tools(cell: Cell) -> bool:
    """Whether they can."""
    return cell["mode"] == "pull" and not is_together(cell)


def sample(all_cells: list[Cell], count: int, seed: int) -> list[Cell]:
    """Some cells in which each value and each pair of values occurs about equally often.

    Each next cell is the one whose pairs are the rarest so far; the seed breaks ties.
    """
    left, seen, chosen = list(all_cells), Counter[Any](), list[Cell]()
    random.Random(seed).shuffle(left)
    while left and len(chosen) < count:
        best = min(left, key=lambda cell: sum(1 - 2.0 ** -seen[pair] for pair in _pairs(cell)))
        left.remove(best)
        chosen.append(best)
        seen.update(_pairs(best))
    return chosen


def missing_pairs(all_cells: list[Cell], chosen: list[Cell]) -> int:
    """How many pairs of values of all cells occur in none that was chosen."""
    of = [{pair for cell in some for pair in _pairs(cell)} for some in (all_cells, chosen)]
    return len(of[0] - of[1])


def _pairs(cell: Cell) -> list[Any]:
    return list(itertools.combinations(cell.items(), 2))


def name(cell: Cell) -> str:
    """The cell in a few words."""
    flows = f"{cell['clients']}+{cell['elephants']}"
    port = f"{cell['rate']}, {cell['buffer']}"
    words = (cell["connection"], cell["rounds"], flows, cell["mode"], cell["size"])
    tools = f", nginx and {cell['generator']}" if is_by_tools(cell) else ""
    return f"{', '.join(words)}, scale {cell['window_scale']}, {port}{tools}"


def flows(cell: Cell) -> int:
    """Flows at the port, all at once."""
    return int(cell["clients"] + cell["elephants"])


def fits(cell: Cell) -> bool:
    """Whether the buffer holds two segments of every flow, rounded up to the window scale."""
    unit = 1 << cell["window_scale"]
    window = -(-2 * MSS_BYTES // unit) * unit
    written = max(window, 2 * PACKET_BYTES)
    return flows(cell) * written <= to_bytes(cell["buffer"])


def scenario(cell: Cell) -> dict[str, Any]:
    """The cell as a scenario."""
    document = tomllib.loads((HERE / "cell.toml").read_text("utf-8"))
    document["title"] = name(cell)
    document["tcp"]["window_scale"] = cell["window_scale"]
    document["fabric"]["bottleneck"] |= {"rate": cell["rate"], "buffer": cell["buffer"]}
    document["traffic"]["web"] |= {
        "flows": cell["clients"],
        "size": cell["size"],
        "mode": cell["mode"],
        "connection": cell["connection"],
        "barrier": cell["rounds"] == "all together",
    }
    document["traffic"]["elephants"]["flows"] = cell["elephants"]
    if is_by_tools(cell):
        del document["traffic"]["elephants"]["start_spread"]
        # nginx sets TCP_NODELAY once a connection is kept alive.
        document["tcp"]["nagle"] = cell["connection"] == "new"
    if not cell["elephants"]:
        del document["traffic"]["elephants"]
    return document


def unloaded(cell: Cell) -> Cell:
    """The cell without elephants, through a buffer that never overflows."""
    return {**cell, "elephants": 0, "buffer": "4 MB"}


def is_together(cell: Cell) -> bool:
    """Whether all clients begin each transfer together."""
    return bool(cell["rounds"] == "all together")


def turns(cell: Cell) -> int:
    """Packets of a transfer, that of the handshake included."""
    segments = -(-to_bytes(cell["size"]) // MSS_BYTES)
    return segments + (cell["connection"] == "new")


def elephants_factor(cell: Cell) -> float:
    """By how much longer transfers take if in each of their turns every elephant sends a packet."""
    size = to_bytes(cell["size"]) + HEADER_BYTES * turns(cell)
    elephants = cell["elephants"] * max(size, PACKET_BYTES * turns(cell))
    return 1.0 + elephants / (cell["clients"] * size)
