# SPDX-License-Identifier: Apache-2.0
"""Where results come from: the command and the machine, as every folder of results keeps them."""

import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock import _native, units
from penstock.execution.threads import cores


def head() -> dict[str, Any]:
    """What a document of results begins with: command, day, version, machine."""
    return {
        "command": command(),
        "date": datetime.now(UTC).date().isoformat(),
        "penstock": _native.__version__,
        "commit": commit(),
        "machine": machine(),
    }


def commit() -> str | None:
    """The commit of this source tree, with `-dirty` if files differ from it.

    Of an installed package it is the one that it was built from; None if that is not known.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return _native.__commit__ or None
    git = ["git", "-C", str(root), "-c", f"safe.directory={root}"]  # root may not own the tree
    command = [*git, "describe", "--always", "--dirty", "--abbrev=12", "--match="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def text(head: Mapping[str, Any]) -> str:
    """`Penstock 0.1.0 (271aef8f1c2b), 2026-11-23, on Linux..., a CPU, 2 cores` of a head."""
    version = f"Penstock {head.get('penstock', '')}"
    if made := head.get("commit"):
        version += f" ({made})"
    about = head.get("machine") or {}
    cores = units.counted(about["cores"], "core") if about else ""
    machine = [about.get("system", ""), about.get("processor", ""), cores]
    return ", ".join(filter(None, [version, head.get("date", ""), *machine]))


def command() -> str:
    """The command line, as a shell would take it."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def machine() -> dict[str, Any]:
    """System, processor, and how many cores this process may use."""
    return {"system": platform.platform(), "processor": _processor(), "cores": cores()}


def _processor() -> str:
    """The name of the CPU, where the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
