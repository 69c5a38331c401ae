# SPDX-License-Identifier: Apache-2.0
"""Starts, watches and ends the programs that a run needs."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import RunError

_GRACE_S = 5.0  # to detach and leave, before a program is killed


class Process:
    """A program at work; its output goes to a log."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, log: Path) -> None:
        """Of a started process."""
        self._process, self._name, self._log = process, name, log
        self._is_interrupted = False

    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def check_alive(self) -> None:
        """Raises RunError if it has ended before the run did."""
        if self.has_ended():
            event = " ended before the run"
            raise self._failure(event)

    def check_success(self) -> None:
        """Raises RunError if it has ended with a failure, unless it was interrupted."""
        if self._process.returncode and not self._is_interrupted:
            raise self._failure()

    def wait_for(self, text: str) -> None:
        """Waits until its log has this text.

        Raises:
            RunError: it ended before, or took longer than ten seconds.
        """
        self.wait_until(lambda: text in self._output(), f"no '{text}' in its output")

    def wait_until(self, is_ready: Callable[[], bool], lack: str) -> None:
        """Waits until it is ready; `lack` names what it still lacks.

        Raises:
            RunError: it ended before, or took longer than ten seconds.
        """
        for _ in range(1000):
            if is_ready():
                return
            if self.has_ended():
                raise self._failure()
            time.sleep(0.01)
        message = f"lab: {self._name}: not ready after 10 s ({lack})"
        raise RunError(message)

    def interrupt(self) -> None:
        """Asks it once to end and to report what it has reached."""
        if not self._is_interrupted and not self.has_ended():
            self._is_interrupted = True
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Asks it to end, and kills it if it does not."""
        if self.has_ended():
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _failure(self, event: str = "") -> RunError:
        """The error of a program that failed, with the last line of its output."""
        lines = self._output().strip().splitlines() or ["no output"]
        return RunError(f"lab: {self._name}{event}: {lines[-1].removeprefix(f'{self._name}: ')}")


@contextmanager
def running(command: Sequence[str], name: str, log: Path) -> Iterator[Process]:
    """A program while the block runs, called `name` in errors; its output goes to `log`."""
    with log.open("wb") as output:
        try:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we end it in order
            )
        except FileNotFoundError:
            message = f"lab: {command[0]} is not installed; see `penstock lab check`"
            raise RunError(message) from None
        process = Process(started, name, log)
        try:
            yield process
        finally:
            process.end()
