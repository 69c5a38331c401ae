# SPDX-License-Identifier: Apache-2.0
"""Prints the page of one ACK's way through the switch, and draws its waveform, from the run of
ack_walk.cpp: `ack_walk.py ack.vcd ack.md ack.svg`. Called by `make -C rtl wave`."""

import sys
from pathlib import Path
from typing import NamedTuple

IN, OUT = "g_port[0].line.", "g_port[1].line."
WINDOWS = IN + "g_windows.windows.windows."


class Signal(NamedTuple):
    """A row of the waveform: a bit of a signal."""

    label: str
    name: str
    bit: int
    meaning: str


SIGNALS = [
    Signal("word enters", "rx_tvalid", 0, "a word of the ACK enters by port 0"),
    Signal("kept", IN + "line_in.was_kept", 0, "`frame_store` keeps it, the address table is asked"),
    Signal("header known", IN + "line_in.headers.header_valid", 0, "`parser` has its header"),
    Signal("patches ready", IN + "line_in.valid_pipe", 16, "the window is lowered, the checksum updated"),
    Signal("waits", IN + "line_in.m_frame_valid", 0, "its patches are the next in the queue of frames"),
    Signal("starts", IN + "line_in.m_started", 0, "port 1 has room: it may leave its input"),
    Signal("words patched", IN + "words_valid", 0, "a word leaves `frame_patch` for port 1"),
    Signal("word leaves", "tx_tvalid", 1, "a word leaves by port 1"),
]
VALUES = [
    ("question: window", WINDOWS + "window", 1),
    ("limit, bytes", WINDOWS + "limit", 11),
    ("floor, bytes", WINDOWS + "floor", 11),
    ("answer: window", WINDOWS + "lowered", 15),
    ("changed", WINDOWS + "changed", 15),
]
"""What the scheme has of the ACK, and how many clocks after the ACK's header: 10 clocks after the
question limit and floor are known, 14 after it the answer. At other times it is of other headers."""


def read(path: Path) -> tuple[dict[str, list[int]], int]:
    """Each signal's value in each clock, by its name below the switch, and the number of clocks."""
    scope: list[str] = []
    names: dict[str, list[str]] = {}
    now: dict[str, int] = {}
    clocks: list[dict[str, int]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "$scope":
            scope.append(words[2])
        elif words[0] == "$upscope":
            scope.pop()
        elif words[0] == "$var":
            names.setdefault(words[3], []).append(".".join([*scope, words[4]]))
        elif line[0] == "#":
            clocks.append({})
        elif line[0] in "01":
            clocks[-1][line[1:]] = int(line[0])
        elif line[0] == "b":
            clocks[-1][words[1]] = int(words[0][1:].replace("x", "0"), 2)
    series: dict[str, list[int]] = {}
    for code, aliases in names.items():
        values = []
        for changes in clocks:
            now[code] = changes.get(code, now.get(code, 0))
            values.append(now[code])
        for alias in aliases:
            series[alias.split("ethernet_switch.", 1)[-1]] = values
    return series, len(clocks)


def find(series: dict[str, list[int]], name: str) -> list[int]:
    """The values of a signal, whatever generated scopes are around it."""
    matches = [key for key in series if key.endswith(name)]
    if not matches:
        raise SystemExit(f"{name}: no such signal in the waveform")
    return series[min(matches, key=len)]


def page(series: dict[str, list[int]], count: int) -> str:
    """What happens in each clock, from the first word on."""
    high = {s: [value >> s.bit & 1 for value in find(series, s.name)] for s in SIGNALS}
    begin = high[SIGNALS[0]].index(1)
    header = find(series, IN + "line_in.headers.header_valid").index(1, begin)
    values = [(label, find(series, name), header + after) for label, name, after in VALUES]
    rows: list[tuple[int, int, str]] = []
    for clock in range(begin, count):
        events = [
            s.meaning
            for s in SIGNALS
            if high[s][clock] and not (s.label == "waits" and high[s][clock - 1])
        ]
        events += [f"{label} {numbers[clock]:,}" for label, numbers, known in values if clock == known]
        text = "; ".join(events)
        if rows and rows[-1][2] == text and rows[-1][1] == clock - 1:
            rows[-1] = (rows[-1][0], clock, text)
        elif events:
            rows.append((clock, clock, text))
    names = [str(a - begin) if a == b else f"{a - begin} to {b - begin}" for a, b, _ in rows]
    return "\n".join(f"| {name} | {row[2]} |" for name, row in zip(names, rows))


def draw(series: dict[str, list[int]], count: int) -> str:
    """The waveform as SVG: a row for each signal, a column for each clock."""
    step, height, left = 9, 27, 120
    begin = [value & 1 for value in find(series, "rx_tvalid")].index(1)
    parts = []
    for row, s in enumerate(SIGNALS):
        base = height * row + 46
        bits = [value >> s.bit & 1 for value in find(series, s.name)][begin:]
        points = []
        for clock, bit in enumerate(bits):
            y = base - 15 * bit
            points += [f"{left + step * clock},{y}", f"{left + step * (clock + 1)},{y}"]
        parts.append(f'<text x="{left - 8}" y="{base}" text-anchor="end">{s.label}</text>')
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>')
    for clock in range(0, count - begin, 5):
        x = left + step * clock
        parts.append(f'<line x1="{x}" y1="22" x2="{x}" y2="{height * len(SIGNALS) + 26}" stroke="#ccc"/>')
        parts.append(f'<text x="{x}" y="16" text-anchor="middle">{clock}</text>')
    parts.append(f'<text x="{left - 14}" y="16" text-anchor="end">clock</text>')
    width, total = left + step * (count - begin) + 10, height * len(SIGNALS) + 34
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" font-family="sans-serif" font-size="15">'
    return head + '<rect width="100%" height="100%" fill="#fff"/>' + "".join(parts) + "</svg>\n"


HEAD = """# One ACK through the switch, clock by clock

<!-- Written by `make -C rtl wave`. -->

An ACK of 60 bytes, a window of 60,000, enters by port 0, by which 60 SYN-ACKs have come, and leaves by port 1. The numbers are from
a run of the Verilated switch at 64 bits: what its registers hold after each clock. Clock 0 is that of the first word, and a clock takes
6.4 ns. [The switch in hardware](README.md) has the blocks.

![Waveform](ack.svg)

| clock | what happens |
|---:|---|
"""


def main(vcd: str, markdown: str, picture: str) -> None:
    series, count = read(Path(vcd))
    Path(markdown).write_text(HEAD + page(series, count) + "\n", encoding="utf-8")
    Path(picture).write_text(draw(series, count), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
