# SPDX-License-Identifier: Apache-2.0
"""This thread in a network namespace; the sockets that it makes there stay there."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)  # os.setns is of Python 3.12
_CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    """Takes this thread into a namespace.

    Raises:
        OSError: There is none of that name, or it may not be entered.
    """
    with Path(f"/run/netns/{namespace}").open() as there:
        _set(there.fileno())


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread in a namespace, while the block runs."""
    with Path("/proc/thread-self/ns/net").open() as here:
        enter(namespace)
        try:
            yield
        finally:
            _set(here.fileno())


def _set(file: int) -> None:
    if _LIBC.setns(file, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
