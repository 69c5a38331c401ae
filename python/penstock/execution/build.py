# SPDX-License-Identifier: Apache-2.0
"""Which builds compute results: the programs of this repository, and digests of their code."""

import hashlib
import platform
import shutil
from functools import lru_cache
from pathlib import Path

from penstock import _native
from penstock.errors import RunError

TRAFFIC, AGENT, CONTROLLER = "penstock-traffic", "penstockd", "penstock-controller"
_BUILT = Path(__file__).parents[3] / "target" / "release"


def find(name: str) -> str:
    """A program of this repository as `make lab` builds it, or as it is installed.

    Raises:
        RunError: it is neither.
    """
    built = _BUILT / name
    if built.is_file():
        return str(built)
    if installed := shutil.which(name):
        return installed
    message = f"lab: {name} is neither in target/release nor installed; `make lab` builds it"
    raise RunError(message)


def digest(on: str) -> str:
    """A digest of the code that computes results: those of another build are not comparable.

    Of the simulator's module; in the laboratory of the kernel's release and our programs.
    """
    if on == "sim":
        return digest_of(Path(_native.__file__))
    names = (TRAFFIC, AGENT, CONTROLLER) if on == "ovs" else (TRAFFIC, AGENT)
    programs = [digest_of(Path(find(name))) for name in names]
    return " ".join([on, platform.release(), *programs])


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, computed again only when it has changed."""
    stat = path.stat()
    return _digest(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _digest(path: Path, _changed: int, _size: int) -> str:
    return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()} {path.suffix}"
