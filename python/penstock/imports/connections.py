# SPDX-License-Identifier: Apache-2.0
"""Transfers of a capture: what each end of a TCP connection sends, without what it sends again."""

from typing import BinaryIO

from penstock.imports import capture, packets
from penstock.imports.flows import MOST_FLOWS, Found, Stream
from penstock.imports.packets import Segment

_HALF = 1 << 31
_WRAP = 1 << 32


class _Direction:
    """One end of a connection: the next byte that it has not sent before."""

    def __init__(self, source: str, destination: str) -> None:
        self.stream = Stream(source, destination)
        self._next: int | None = None

    def new_bytes(self, of: Segment) -> int:
        """Bytes of payload that no segment before has had."""
        first = (of.sequence + bool(of.flags & packets.SYN)) % _WRAP
        end = (first + of.payload) % _WRAP
        if self._next is None or of.flags & packets.SYN:
            self._next = end
            return of.payload
        ahead = (end - self._next) % _WRAP
        if ahead == 0 or ahead >= _HALF:
            return 0
        self._next = end
        return min(ahead, of.payload)


def read(file: BinaryIO, name: str, gap_s: float) -> Found:
    """The transfers of a capture. A pause of more than `gap_s` ends one.

    Raises:
        ScenarioError: it is no capture.
    """
    found = Found.empty()

    def broken(place: str) -> None:
        found.damage = f"breaks off {place}"

    directions: dict[tuple[str, str, tuple[int, int]], _Direction] = {}
    for packet in capture.packets(file, name, broken):
        segment = packets.segment(packet.link_type, packet.data)
        if segment is None:
            found.leave_out("packets without TCP")
            continue
        key = (segment.source, segment.destination, segment.ports)
        direction = directions.get(key)
        if direction is None:
            direction = directions[key] = _Direction(segment.source, segment.destination)
        if size := direction.new_bytes(segment):
            found.flows += direction.stream.add(packet.time_s, size, gap_s)
        if len(directions) > MOST_FLOWS:
            found.damage = f"has more than {MOST_FLOWS} connections"
            break
    for direction in directions.values():
        found.flows += direction.stream.end()
    return found
