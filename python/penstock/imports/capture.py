# SPDX-License-Identifier: Apache-2.0
"""Packets of a capture: pcap (microseconds or nanoseconds, either byte order) and pcapng.

Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. A file that breaks off within a packet
gives those before it.
"""

import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from penstock.errors import ScenarioError

PCAP = {0xA1B2C3D4: 1e-6, 0xA1B23C4D: 1e-9}
"""Magic numbers of pcap, and the unit of the second part of its times."""
PCAPNG = 0x0A0D0D0A
_BYTE_ORDER = 0x1A2B3C4D
_LARGEST = 1 << 24
"""No packet or block is longer; a length beyond it is damage."""
_SECTION, _INTERFACE, _ENHANCED, _OLD = PCAPNG, 1, 6, 2
_RESOLUTION = 9


class Captured(NamedTuple):
    """A packet as it was captured."""

    time_s: float
    link_type: int
    data: bytes
    """As much of it as was captured."""


def is_capture(start: bytes) -> bool:
    """Whether a file that begins so is a capture."""
    if len(start) < 4:
        return False
    numbers = struct.unpack("<I", start[:4]) + struct.unpack(">I", start[:4])
    return any(number in PCAP or number == PCAPNG for number in numbers)


def packets(file: BinaryIO, name: str, broken: Callable[[str], object]) -> Iterator[Captured]:
    """The packets of an open file; `broken` is called with where it breaks off.

    Raises:
        ScenarioError: it is no capture.
    """
    start = file.read(4)
    if not is_capture(start):
        message = f"{name}: not a pcap or pcapng file; make one with tcpdump -w FILE"
        raise ScenarioError(message)
    if struct.unpack(">I", start)[0] == PCAPNG:
        yield from _pcapng(file, name, broken)
        return
    order = "<" if struct.unpack("<I", start)[0] in PCAP else ">"
    yield from _pcap(file, order, PCAP[struct.unpack(f"{order}I", start)[0]], broken)


def _pcap(
    file: BinaryIO, order: str, unit: float, broken: Callable[[str], object]
) -> Iterator[Captured]:
    header = file.read(20)
    if len(header) < 20:
        broken("in its header")
        return
    link_type = struct.unpack(f"{order}I", header[16:])[0] & 0x0FFFFFFF
    while True:
        place = file.tell()
        record = file.read(16)
        if not record:
            return
        if len(record) < 16:
            broken(f"at byte {place}")
            return
        seconds, fraction, captured, _ = struct.unpack(f"{order}IIII", record)
        if captured > _LARGEST:
            broken(f"at byte {place}: a packet of {captured} bytes")
            return
        data = file.read(captured)
        if len(data) < captured:
            broken(f"at byte {place}")
            return
        yield Captured(seconds + fraction * unit, link_type, data)


def _pcapng(file: BinaryIO, name: str, broken: Callable[[str], object]) -> Iterator[Captured]:
    order = _section(file, name)
    interfaces: list[tuple[int, float]] = []
    is_first = True
    while True:
        place = file.tell()
        head = file.read(8)
        if len(head) < 8:
            if head:
                broken(f"at byte {place}")
            return
        kind, length = struct.unpack(f"{order}II", head)
        if kind == _SECTION and not is_first:
            order = _section(file, name, head)
            interfaces = []
            file.seek(place)
            kind, length = struct.unpack(f"{order}II", file.read(8))
        is_first = False
        if length < 12 or length % 4 or length > _LARGEST:
            broken(f"at byte {place}: a block of {length} bytes")
            return
        body = file.read(length - 12)
        if len(body) < length - 12 or len(file.read(4)) < 4:
            broken(f"at byte {place}")
            return
        if kind == _INTERFACE and len(body) >= 8:
            interfaces.append((struct.unpack(f"{order}H", body[:2])[0], _unit(body[8:], order)))
        elif packet := _packet(kind, body, order, interfaces):
            yield packet


def _section(file: BinaryIO, name: str, head: bytes = b"") -> str:
    """The byte order of the section whose block type has been read; the file is at the block again.

    Raises:
        ScenarioError: the block is no section header.
    """
    place = file.tell() - (len(head) or 4)
    file.seek(place + 8)
    magic = file.read(4)
    file.seek(place)
    for order in "<>":
        if len(magic) == 4 and struct.unpack(f"{order}I", magic)[0] == _BYTE_ORDER:
            return order
    message = f"{name}: damaged at byte {place}: no byte order of a pcapng section"
    raise ScenarioError(message)


def _unit(options: bytes, order: str) -> float:
    """The unit of an interface's times: 10^-6 s, unless if_tsresol gives another."""
    place = 0
    while place + 4 <= len(options):
        code, length = struct.unpack(f"{order}HH", options[place : place + 4])
        value = options[place + 4 : place + 4 + length]
        if code == 0:
            break
        if code == _RESOLUTION and value:
            exponent = value[0] & 0x7F
            return 2.0**-exponent if value[0] & 0x80 else 10.0**-exponent
        place += 4 + (length + 3) // 4 * 4
    return 1e-6


def _packet(
    kind: int, body: bytes, order: str, interfaces: list[tuple[int, float]]
) -> Captured | None:
    if kind == _ENHANCED and len(body) >= 20:
        interface, high, low, captured, _ = struct.unpack(f"{order}IIIII", body[:20])
    elif kind == _OLD and len(body) >= 20:
        interface, _, high, low, captured, _ = struct.unpack(f"{order}HHIIII", body[:20])
    else:
        return None  # a simple packet block has no time
    if interface >= len(interfaces):
        return None
    link_type, unit = interfaces[interface]
    return Captured((high << 32 | low) * unit, link_type, body[20 : 20 + captured])
