# SPDX-License-Identifier: Apache-2.0
"""What a packet's headers hold: addresses, ports, TCP sequence numbers, length of the payload."""

import ipaddress
import struct
from typing import NamedTuple

_ETHERNET, _LOOPBACK, _RAW, _SLL, _SLL2 = (1,), (0, 108), (12, 14, 101, 228, 229), (113,), (276,)
_VLAN = {0x8100, 0x88A8, 0x9100}
_IPV4, _IPV6 = 0x0800, 0x86DD
_EXTENSIONS = {0, 43, 60}
_TCP = 6
SYN = 0x02


class Segment(NamedTuple):
    """A TCP segment."""

    source: str
    destination: str
    ports: tuple[int, int]
    """Source and destination."""
    sequence: int
    """Of its first byte of payload; a SYN counts as one byte before it."""
    payload: int
    """Bytes, also of those that were not captured."""
    flags: int


def segment(link_type: int, data: bytes) -> Segment | None:
    """The TCP segment of a captured packet; None if it has none, or breaks off before its ports."""
    try:
        kind, packet = _network(link_type, data)
        if kind == _IPV4:
            return _ipv4(packet)
        return _ipv6(packet) if kind == _IPV6 else None
    except (struct.error, IndexError, ValueError):
        return None


def _network(link_type: int, data: bytes) -> tuple[int, bytes]:
    """The EtherType, and the packet behind it."""
    if link_type in _ETHERNET:
        kind, place = struct.unpack("!H", data[12:14])[0], 14
        while kind in _VLAN:
            kind, place = struct.unpack("!H", data[place + 2 : place + 4])[0], place + 4
        return kind, data[place:]
    if link_type in _SLL:
        return struct.unpack("!H", data[14:16])[0], data[16:]
    if link_type in _SLL2:
        return struct.unpack("!H", data[0:2])[0], data[20:]
    if link_type in _LOOPBACK:
        data = data[4:]
    elif link_type not in _RAW:
        return 0, b""
    return {4: _IPV4, 6: _IPV6}.get(data[0] >> 4, 0), data


def _ipv4(packet: bytes) -> Segment | None:
    header = (packet[0] & 0x0F) * 4
    total, _, fragment, _, protocol = struct.unpack("!HHHBB", packet[2:10])
    if protocol != _TCP or fragment & 0x1FFF:
        return None
    ends = (str(ipaddress.IPv4Address(packet[place : place + 4])) for place in (12, 16))
    # A network card that cuts segments itself shows the sender a length of 0.
    length = total or len(packet)
    return _tcp(packet[header:], length - header, *ends)


def _ipv6(packet: bytes) -> Segment | None:
    length, protocol = struct.unpack("!HB", packet[4:7])
    length = length or len(packet) - 40
    place = 40
    while protocol in _EXTENSIONS:
        size = (packet[place + 1] + 1) * 8
        protocol, place, length = packet[place], place + size, length - size
    if protocol != _TCP:
        return None  # a fragment too: its ports are in the first one only
    ends = (str(ipaddress.IPv6Address(packet[at : at + 16])) for at in (8, 24))
    return _tcp(packet[place:], length, *ends)


def _tcp(data: bytes, length: int, source: str, destination: str) -> Segment | None:
    source_port, destination_port, sequence = struct.unpack("!HHI", data[:8])
    header, flags = (data[12] >> 4) * 4, data[13]
    payload = length - header
    if header < 20 or payload < 0:
        return None
    ports = (source_port, destination_port)
    return Segment(source, destination, ports, sequence, payload, flags)
