# SPDX-License-Identifier: Apache-2.0
"""Commands on this machine, the lock of the laboratory, and the removal of what runs left."""

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from penstock.errors import RunError
from penstock.execution.lab.plan import PREFIX

STATE = Path("/run/penstock-lab")
"""Files of the run that is under way, and its bpffs."""
PINS = STATE / "bpf"
_LOCK = Path("/run/penstock-lab.lock")
_CPU_LATENCY = Path("/dev/cpu_dma_latency")
_NAMESPACES = Path("/run/netns")
_OWN = re.compile(rf"{PREFIX}\d+-")  # no other program's that begin alike
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def call(command: Sequence[str], text: str = "") -> str:
    """Runs a command with `text` as its input, and returns its output.

    Raises:
        RunError: it failed, or is not installed; one line with the command and its output.
    """
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        message = f"lab: {command[0]} is not installed; see `penstock lab check`"
        raise RunError(message) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        message = f"lab: {' '.join(command)}: {lines[0]} (exit code {done.returncode})"
        raise RunError(message)
    return done.stdout


def inside(namespace: str, *command: str) -> list[str]:
    """The command as run in a namespace, ended by the kernel if this process dies.

    By nsenter: `ip netns exec` would put another /sys over the one that has the bpffs.
    """
    return ["nsenter", f"--net={_NAMESPACES / namespace}", *orphaned(*command)]


def orphaned(*command: str) -> list[str]:
    """The command, ended by the kernel if this process dies."""
    return ["setpriv", "--pdeathsig", "TERM", *command]


def need_root() -> None:
    """Raises RunError unless root runs this."""
    if os.geteuid() != 0:
        message = "lab: needs root (network namespaces, eBPF); run it with sudo"
        raise RunError(message)


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Holds the machine for one run; what an earlier one left is removed before and after.

    Raises:
        RunError: another run has it, or this is not root.
    """
    need_root()
    with _LOCK.open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            message = f"lab: busy with another run (process {lock.read().strip()}); wait for it"
            raise RunError(message) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        remove_all()
        with _cleaned_up(), _awake():
            yield


@contextlib.contextmanager
def _awake() -> Iterator[None]:
    """Keeps idle CPUs from sleeping: to wake a virtual one takes longer than a round trip.

    By the kernel's PM quality of service, which ends with the file; without it they sleep on.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # not in every kernel or container
            latency = held.enter_context(_CPU_LATENCY.open("wb", buffering=0))
            latency.write((0).to_bytes(4, sys.byteorder))  # us that waking may take
        yield


def is_busy() -> bool:
    """Whether a run has the machine."""
    with _LOCK.open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def _cleaned_up() -> Iterator[None]:
    """Ends the block in order when a signal ends it, and then removes everything."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        try:
            yield
        finally:
            remove_all()
        return
    # SIGHUP stays ignored under nohup, and a program that handles SIGTERM ends in order, too.
    ending = [number for number in _ENDING if signal.getsignal(number) == signal.SIG_DFL]
    before = {number: signal.signal(number, _terminate) for number in ending}
    try:
        yield
    finally:  # a second signal does not leave half of it behind
        ignored = [signal.SIGINT, *_ENDING]
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in ignored} | before
        remove_all()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _terminate(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)  # through every `finally`


def leftovers() -> list[str]:
    """Namespaces of the lab on this machine; after a run there are none."""
    if not _NAMESPACES.is_dir():
        return []
    return sorted(path.name for path in _NAMESPACES.iterdir() if _OWN.match(path.name))


def remove_all() -> list[str]:
    """Removes every namespace of the lab with its processes, and the state; returns their names.

    Only while holding the lock: no other run is alive then.
    """
    namespaces = leftovers()
    for name in namespaces:
        for process in call(["ip", "netns", "pids", name]).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
    if namespaces:  # its cables, bridges and qdiscs go with a namespace
        call(["ip", "-batch", "-"], "".join(f"netns delete {name}\n" for name in namespaces))
    if PINS.is_mount():
        call(["umount", "--lazy", str(PINS)])
    if STATE.exists():
        call(["rm", "-r", str(STATE)])
    return namespaces


class CpuTimes(NamedTuple):
    """Times of all CPUs, in the kernel's ticks, or shares of their sum."""

    idle: float
    stolen: float
    """By the hypervisor, for other guests: whatever was to be done waited."""
    total: float


def cpu_times() -> CpuTimes:
    """Since boot."""
    first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    ticks = [int(word) for word in first.split()[1:9]]  # guests are in user time already
    return CpuTimes(ticks[3] + ticks[4], ticks[7], sum(ticks))


def cpu_shares(before: CpuTimes) -> CpuTimes:
    """Shares of the CPUs' time since `cpu_times` gave `before`."""
    idle, stolen, total = (now - then for now, then in zip(cpu_times(), before, strict=True))
    return CpuTimes(idle / total, stolen / total, 1.0) if total > 0 else CpuTimes(1.0, 0.0, 1.0)
