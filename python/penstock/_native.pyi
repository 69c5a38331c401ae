# SPDX-License-Identifier: Apache-2.0
"""The simulator, from crates/python."""

from collections.abc import Callable, Sequence
from pathlib import Path

__version__: str
__commit__: str
"""That the module was built from; empty if it was not built in a clone."""

def schema() -> str:
    """The JSON Schema of scenario files."""

def schemes() -> str:
    """The built-in schemes as a JSON object, by name."""

def deployable() -> list[str]:
    """The names of the schemes that penstockd can attach to a port."""

def definitions() -> str:
    """All definitions of `core/` as JSON: schemes, counters, canary counters, reasons to pass."""

def validate(
    text: str, origin: str, overrides: list[tuple[str, str]], to_csv: Callable[[Path], str]
) -> str:
    """The scenario with its defaults written out, as TOML; the files it names are checked.

    `to_csv` gives the text of a trace that is not CSV.

    Raises:
        ScenarioError: one line with file, line, key, the allowed values and the nearest match.
    """

def layout(text: str, origin: str, to_csv: Callable[[Path], str]) -> str:
    """The hosts, switches and ports of a resolved scenario as a JSON object.

    Raises:
        ScenarioError: as `validate`.
    """

def summarize(
    text: str,
    origin: str,
    transfers: Sequence[
        tuple[
            str,
            int,
            str,
            str,
            float,
            float | None,
            float | None,
            int | None,
            int,
            int,
        ]
    ],
) -> tuple[str, bytes]:
    """Transfers that other programs have measured, summed up as the simulator sums up its own.

    Each is traffic, number, source, destination, start, end, stop (seconds), bytes (None: endless),
    bytes delivered, retransmits. Returns groups by traffic (JSON), and flows (CSV).

    Raises:
        ScenarioError: as `validate`, or a transfer names a traffic or host that it has not.
    """

def run(
    text: str,
    origin: str,
    tasks: list[tuple[str, int]],
    jobs: int,
    to_csv: Callable[[Path], str],
    progress: Callable[[float, str], object] | None,
) -> list[tuple[str, int, str, bytes, bytes, bytes, bytes, bytes, bytes]]:
    """Simulates every (scheme, seed).

    Returns scheme, seed, summary (JSON), then flows, queue samples, windows, jobs, packets and
    events (CSV) of each.

    Raises:
        ScenarioError: as `validate`.
        RunError: a run that could not be computed.
        KeyboardInterrupt: within a second of Ctrl-C.
    """
