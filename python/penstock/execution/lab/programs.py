# SPDX-License-Identifier: Apache-2.0
"""Starts, watches and ends the programs that a run needs."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.errors import RunError

_GRACE_S = 5.0  # to detach and leave, before a program is killed


@contextlib.contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program while the block runs; what it says goes to `log`."""
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we end it in order
            )
        except FileNotFoundError:
            message = f"lab: {command[0]} is not installed; see `penstock lab check`"
            raise RunError(message) from None
        try:
            yield process
        finally:
            end(process)


def still(process: subprocess.Popen[bytes], what: str, log: Path) -> None:
    """Raises RunError if a program that was to run until now has ended before."""
    if process.poll() is not None:
        raise failure(what, log, " ended before the run")


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks a program to end, and kills it if it does not."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def failure(what: str, log: Path, happened: str = "") -> RunError:
    """The error of a program that failed: its last words."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    said = lines[-1].removeprefix(f"{what}: ") if lines else "it ended without a word"
    return RunError(f"lab: {what}{happened}: {said}")


def wait_until(process: subprocess.Popen[bytes], said: str, what: str, log: Path) -> None:
    """Waits until a program has said that it is ready.

    Raises:
        RunError: it ended before, or took longer than ten seconds.
    """
    for _ in range(1000):
        if said in log.read_text(encoding="utf-8", errors="replace"):
            return
        if process.poll() is not None:
            raise failure(what, log)
        time.sleep(0.01)
    message = f"lab: {what}: not ready after 10 s (it has not said '{said}')"
    raise RunError(message)
