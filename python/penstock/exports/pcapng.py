# SPDX-License-Identifier: Apache-2.0
"""pcapng (draft-ietf-opsawg-pcapng): a port's packets, for Wireshark and tshark.

A file has three interfaces: packets that came to the port to be sent by it, those that it has sent,
and the packets of the other direction twice, as they came in and, where the port's scheme has
rewritten their window, as they went on. A dropped packet is on the first one only, with a comment.
Payload is zeros and only as much of it is stored as headers need (`CAPTURED` bytes a packet).
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

Row = Mapping[str, Any]

CAPTURED = 128
"""Bytes of a packet that are stored at most; its length on the wire is kept."""
ARRIVED, SENT, BACK, REWRITTEN = range(4)
INTERFACES = (
    ("arrived", "packets that came to the port, to be sent by it"),
    ("sent", "packets that the port has sent"),
    ("back", "packets of the other direction, as they came"),
    ("rewritten", "those of them whose window the port has rewritten, or that it made"),
)
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ETHERNET = 1
_COMMENT, _NAME, _DESCRIPTION, _RESOLUTION = 1, 2, 3, 9
_NANOSECONDS = 9
_SYN, _UDP, _TIMESTAMPS, _ECT, _CE = 0x02, 0x400, 0x800, 0x100, 0x200
_TCP_FLAGS = 0xFF
_LISTENER = 5001
"""The port that connections are opened to."""
_FIRST_PORT = 10_000


def write(file: BinaryIO, rows: Iterable[Row], hosts: Mapping[str, int], port: str) -> int:
    """Writes the packets of a port in the order of time; returns how many blocks of them.

    Args:
        file: to be written.
        rows: of the table `packets`, of one scheme and seed.
        hosts: the number of each host, of which its address follows.
        port: its name.
    """
    file.write(_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    for name, about in INTERFACES:
        body = struct.pack("<HHI", _ETHERNET, 0, CAPTURED)
        options = _option(_NAME, f"{port} {name}") + _option(_DESCRIPTION, about)
        options += _option(_RESOLUTION, bytes([_NANOSECONDS])) + struct.pack("<HH", 0, 0)
        file.write(_block(_INTERFACE, body + options))
    frames = sorted(
        (frame for row in rows for frame in _frames(row, hosts)), key=lambda frame: frame[0]
    )
    for nanos, interface, packet, length, comment in frames:
        stored = packet[:CAPTURED]
        body = struct.pack(
            "<IIIII", interface, nanos >> 32, nanos & 0xFFFFFFFF, len(stored), length
        ) + _padded(stored)
        if comment:
            body += _option(_COMMENT, comment) + struct.pack("<HH", 0, 0)
        file.write(_block(_PACKET, body))
    return len(frames)


Frame = tuple[int, int, bytes, int, str]


def _frames(row: Row, hosts: Mapping[str, int]) -> Iterator[Frame]:
    """A packet at each interface: time, interface, bytes, length on the wire, comment."""
    came = round(row["time_s"] * 1e9)
    if row["forward"]:
        lost = f"dropped: {row['lost']}" if row["lost"] else ""
        comment = "; ".join(filter(None, (f"queue {row['queue_bytes']} B", lost)))
        yield (came, ARRIVED, *frame(row, hosts, row["window"]), comment)
        if row["left_s"] is not None and not row["lost"]:
            marked = _CE if row["marked"] else 0
            left = round(row["left_s"] * 1e9)
            yield (left, SENT, *frame(row, hosts, row["window"], marked), "")
        return
    if not row["own"]:
        yield (came, BACK, *frame(row, hosts, row["window"]), "")
    if row["own"] or row["window_after"] != row["window"]:
        comment = "made by the port" if row["own"] else f"window field was {row['window']}"
        yield (came, REWRITTEN, *frame(row, hosts, row["window_after"]), comment)


def frame(
    row: Row, hosts: Mapping[str, int], window: int, more_flags: int = 0
) -> tuple[bytes, int]:
    """The packet's Ethernet frame as far as it is stored, and its length on the wire."""
    flags = row["flags"] | more_flags
    source, destination = (hosts[row[end]] for end in ("source", "destination"))
    opener = _FIRST_PORT + row["connection"] % (65536 - _FIRST_PORT)
    ports = (opener, _LISTENER) if row["opener"] else (_LISTENER, opener)
    is_udp = bool(flags & _UDP)
    size = row["payload"]
    stored = bytes(min(size, CAPTURED))
    if is_udp:
        layer4 = struct.pack("!HHHH", *ports, 8 + size, 0)
    else:
        options = _tcp_options(row, flags)
        words = (20 + len(options)) // 4
        layer4 = struct.pack(
            *("!HHIIBBHHH", *ports, row["seq"], row["ack"], words << 4),
            *(flags & _TCP_FLAGS, window, 0, 0),
        )
        layer4 += options
    total = 20 + len(layer4) + size
    ecn = 3 if flags & _CE else 2 if flags & _ECT else 0
    head = struct.pack(
        *("!BBHHHBBH4s4s", 0x45, ecn, total, 0, 0x4000, 64, 17 if is_udp else 6, 0),
        *(_address(source), _address(destination)),
    )
    head = head[:10] + struct.pack("!H", _checksum(head)) + head[12:]
    if not is_udp:
        pseudo = head[12:20] + struct.pack("!BBH", 0, 6, len(layer4) + size)
        check = struct.pack("!H", _checksum(pseudo + layer4))  # zeros of payload add nothing
        layer4 = layer4[:16] + check + layer4[18:]
    ethernet = _mac(destination) + _mac(source) + b"\x08\x00"
    return ethernet + head + layer4 + stored, len(ethernet) + total


def _tcp_options(row: Row, flags: int) -> bytes:
    options = b""
    if flags & _SYN:
        offer = row["syn_options"]
        options += struct.pack("!BBH", 2, 4, offer & 0xFFFF)
        if scale := offer >> 16 & 0xFF:
            options += struct.pack("!BBBB", 1, 3, 3, scale - 1)
        if offer >> 24 & 1:
            options += struct.pack("!BBBB", 1, 1, 4, 2)
    if flags & _TIMESTAMPS:
        options += struct.pack("!BBBBII", 1, 1, 8, 10, row["ts_val"], row["ts_ecr"])
    if row["sack"]:
        blocks = [[int(edge) for edge in block.split("-")] for block in row["sack"].split()]
        room = (40 - len(options) - 4) // 8
        edges = [edge for block in blocks[:room] for edge in block]
        options += struct.pack(f"!BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges)
    return options


def _address(host: int) -> bytes:
    return struct.pack("!BBH", 10, host + 1 >> 16, (host + 1) & 0xFFFF)


def _mac(host: int) -> bytes:
    return struct.pack("!HI", 0x0200, host + 1)


def _checksum(data: bytes) -> int:
    """The Internet's checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _option(code: int, value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<HH", code, len(content)) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
