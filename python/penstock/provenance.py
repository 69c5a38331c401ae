# SPDX-License-Identifier: Apache-2.0
"""Where results come from: the command and the machine, as every folder of results keeps them."""

import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock import _native
from penstock.execution.threads import cores


def head() -> dict[str, Any]:
    """What a document of results begins with: command, day, version, machine."""
    return {
        "command": command(),
        "date": datetime.now(UTC).date().isoformat(),
        "penstock": _native.__version__,
        "machine": machine(),
    }


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
