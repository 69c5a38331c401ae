# SPDX-License-Identifier: Apache-2.0
"""A task: one scenario under one scheme and seed, on one substrate; and the row it results in."""

import hashlib
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from penstock import units
from penstock.errors import ScenarioError
from penstock.execution import build
from penstock.scenario import parsed

SIMULATOR, LABORATORY, OVS = "sim", "lab", "ovs"
"""Substrates: the simulator, the laboratory, and that with Open vSwitch and a controller."""
TOOLS = {"ab": "lab-tools", "wrk": "lab-wrk"}
"""The laboratory with traffic by iperf3, nginx and this client."""
SUBSTRATES = (SIMULATOR, LABORATORY, OVS)
"""Those that users name."""

_NOT_SIMULATED = ("title", "about", "schemes", "seeds")


class Row(NamedTuple):
    """The results of one task, as text."""

    scheme: str
    seed: int
    summary: str
    """JSON."""
    flows: bytes
    """CSV."""
    queues: bytes
    """CSV."""
    windows: bytes = b""
    """CSV."""
    jobs: bytes = b""
    """CSV."""
    packets: bytes = b""
    """CSV."""
    events: bytes = b""
    """CSV."""


Progress = Callable[[float, str], object]
"""Called with (fraction of all done, "12 of 40 runs")."""
Finished = Generator[tuple[int, Row | BaseException]]
"""The number of a finished task, with its row or its error."""


@dataclass(frozen=True)
class Task:
    """One run: `scheme` and `seed` of a scenario as resolved, in TOML."""

    scenario: str
    origin: str
    """The scenario's file, for messages."""
    scheme: str
    seed: int
    on: str = SIMULATOR
    """The substrate."""

    @cached_property
    def key(self) -> str:
        """The SHA-256 of all that decides the result, the build that computes it included."""
        deciding = _deciding(self.scenario, self.scheme)
        parts = [build.digest(self.on), deciding, self.scheme, self.seed]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the key, which another version of Penstock would compute differently."""
        return {name: value for name, value in self.__dict__.items() if name != "key"}


def substrate_of(on: str, *, tools: str | None = None) -> str:
    """The substrate of a task.

    Raises:
        ScenarioError: `on` or `tools` names none, or tools are asked of the simulator.
    """
    if on not in SUBSTRATES:
        message = f"on: no substrate '{on}'; allowed: {', '.join(SUBSTRATES)}"
        raise ScenarioError(message)
    if tools and on != LABORATORY:
        message = "--tools: is for the laboratory; give --on lab too"
        raise ScenarioError(message)
    if tools and tools not in TOOLS:
        message = f"--tools: no client '{tools}'; allowed: {', '.join(TOOLS)}"
        raise ScenarioError(message)
    return TOOLS[tools] if tools else on


def counted(done: int, total: int) -> str:
    """The label of a progress bar: `12 of 40 runs`."""
    return f"{done} of {units.counted(total, 'run')}"


def _deciding(scenario: str, scheme: str) -> dict[str, Any]:
    """The part of a scenario that decides a scheme's results; files by their contents."""
    document = {key: value for key, value in parsed(scenario).items() if key not in _NOT_SIMULATED}
    document["scheme"] = document.get("scheme", {}).get(scheme)
    document["traffic"] = [
        [name, _content(table, {})] for name, table in document.get("traffic", {}).items()
    ]
    return document


def files_of(scenario: str) -> dict[str, str]:
    """The files that a resolved scenario names, by their full paths, with digests of them."""
    files: dict[str, str] = {}
    _content(parsed(scenario).get("traffic", {}), files)
    return files


def _content(value: Any, files: dict[str, str]) -> Any:  # noqa: ANN401 (a TOML value)
    """The value with a digest of each file instead of its path; `files` gets both."""
    if isinstance(value, dict):
        return {key: _content(each, files) for key, each in value.items()}
    if isinstance(value, list):
        return [_content(each, files) for each in value]
    if not (isinstance(value, str) and Path(value).is_absolute() and Path(value).is_file()):
        return value
    files[value] = build.digest_of(Path(value))
    return files[value]
