# SPDX-License-Identifier: Apache-2.0
"""The kernel's BPF maps of a name, read by the system call: bpftool is not needed."""

import ctypes
import os
import platform
from collections.abc import Iterator

_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_LOOKUP, _NEXT_KEY, _NEXT_ID, _BY_ID, _INFO = 1, 4, 12, 14, 15
_libc = ctypes.CDLL(None, use_errno=True)


def _call(command: int, attributes: bytes) -> tuple[int, bytes]:
    """The system call; its result, and the attributes as the kernel left them."""
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    return _libc.syscall(_BPF, command, buffer, 128), buffer.raw


def _u32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


class Map:
    """A map that is open."""

    def __init__(self, descriptor: int, key_bytes: int, value_bytes: int) -> None:
        """Of a descriptor, which it keeps."""
        self._descriptor, self._key_bytes = descriptor, key_bytes
        self._value = ctypes.create_string_buffer(value_bytes)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values."""
        key = None
        while True:
            following = ctypes.create_string_buffer(self._key_bytes)
            if self._element(_NEXT_KEY, key, following) != 0:
                return
            key = following
            if self._element(_LOOKUP, key, self._value) == 0:
                yield key.raw, self._value.raw

    def _element(self, command: int, key: object, into: object) -> int:
        at = 0 if key is None else ctypes.addressof(key)
        words = (self._descriptor, 0)
        pointers = at.to_bytes(8, "little") + ctypes.addressof(into).to_bytes(8, "little")
        return _call(command, _u32(*words) + pointers)[0]


def named(name: str) -> list[Map]:
    """All maps of this name that the kernel has."""
    found, number = [], 0
    while True:
        status, out = _call(_NEXT_ID, _u32(number))
        if status != 0:
            return found
        number = int.from_bytes(out[4:8], "little")
        descriptor, _ = _call(_BY_ID, _u32(number))
        if descriptor < 0:
            continue
        info = ctypes.create_string_buffer(128)
        pointer = ctypes.addressof(info).to_bytes(8, "little")
        _call(_INFO, _u32(descriptor, 80) + pointer)
        # struct bpf_map_info: type, id, sizes of key and value, entries, flags, name.
        key_bytes, value_bytes = (int.from_bytes(info.raw[at : at + 4], "little") for at in (8, 12))
        if info.raw[24:40].split(b"\0")[0].decode() == name[:15]:
            found.append(Map(descriptor, key_bytes, value_bytes))
        else:
            os.close(descriptor)
