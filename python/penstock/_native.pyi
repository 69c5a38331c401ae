# SPDX-License-Identifier: Apache-2.0
"""The simulator, from crates/python."""

from collections.abc import Callable

__version__: str

def schema() -> str:
    """The JSON Schema of scenario files."""

def schemes() -> str:
    """The built-in schemes as a JSON list."""

def validate(text: str, origin: str, overrides: list[tuple[str, str]]) -> str:
    """The scenario with every default written out, as TOML.

    Raises:
        ScenarioError: one line with file, line, key, the allowed values and the nearest match.
    """

def run(
    text: str,
    origin: str,
    tasks: list[tuple[str, int]],
    jobs: int,
    progress: Callable[[float, str], object] | None,
) -> list[tuple[str, int, str, bytes, bytes]]:
    """Simulates every (scheme, seed); gives scheme, seed, summary (JSON), flows, queues (CSV).

    Raises:
        ScenarioError: as `validate`.
        RunError: a run that could not be computed.
        KeyboardInterrupt: within a second of Ctrl-C.
    """
