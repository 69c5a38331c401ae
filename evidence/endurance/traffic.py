# SPDX-License-Identifier: Apache-2.0
"""Connections without end: `traffic.py serve PORT`, `traffic.py fetch PORT ADDRESS...`.

A client opens a connection, asks for some bytes, counts them and closes. Each process also keeps
one connection from beginning to end. The client prints its counts as JSON each second.
"""

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import socket
import struct
import sys
import threading
import time

PROCESSES = 6
PATIENCE_S = 300
KEEP = 0xFFFFFFFF
"""The size that asks for a connection that stays: 1000 bytes for each further byte."""
KEPT_EVERY = 10
"""Connections between two rounds of the one that stays."""
_CHUNK = bytes(1 << 16)
DONE, BYTES, FAILED, KEPT, LOST = range(5)
COUNTS = ("connections", "bytes", "failed", "kept_rounds", "kept_lost")


def serve(port: int) -> None:
    """Answers, one connection after the other in each of a few processes."""
    _fork(lambda _: _answer(port))
    while True:
        time.sleep(60)


def _answer(port: int) -> None:
    listening = socket.create_server(("", port), backlog=4096, reuse_port=True)
    while True:
        connection, _ = listening.accept()
        _be_patient(connection)
        try:
            (size,) = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))
            if size == KEEP:
                threading.Thread(target=_keep, args=[connection], daemon=True).start()
                continue
            connection.sendall(_CHUNK[:size])
        except (OSError, struct.error):
            pass
        connection.close()


def _be_patient(connection: socket.socket) -> None:
    """Lets the kernel end what takes too long: Python's own timeouts ask before each call."""
    patience = struct.pack("ll", PATIENCE_S, 0)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, patience)


def _keep(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))
    with connection, contextlib.suppress(ConnectionResetError):
        while connection.recv(1):
            connection.sendall(_CHUNK[:1000])


def fetch(port: int, addresses: list[str]) -> None:
    """Fetches from all addresses until its end, or that of one of its processes; prints counts."""
    counts = multiprocessing.Array("Q", len(COUNTS) * PROCESSES, lock=False)
    _fork(lambda number: _fetch(port, addresses, counts, number))
    while os.waitpid(-1, os.WNOHANG) == (0, 0):
        sums = [sum(counts[index :: len(COUNTS)]) for index in range(len(COUNTS))]
        print(json.dumps(dict(zip(COUNTS, sums, strict=True))), flush=True)
        time.sleep(1)


def _fetch(port: int, addresses: list[str], counts: "multiprocessing.Array", number: int) -> None:
    generator = random.Random(number)
    base = number * len(COUNTS)

    def connect(size: int) -> socket.socket:
        made = socket.socket()
        _be_patient(made)
        made.connect((generator.choice(addresses), port))
        made.sendall(struct.pack("!I", size))
        return made

    kept: socket.socket | None = None
    for done in itertools.count():
        if done % KEPT_EVERY == 0:
            try:
                kept = kept or connect(KEEP)
                kept.sendall(b"x")
                if len(kept.recv(1000, socket.MSG_WAITALL)) != 1000:
                    raise ConnectionError
                counts[base + KEPT] += 1
            except OSError:
                counts[base + LOST] += 1
                kept = None
        size = min(int(generator.lognormvariate(8, 1.3)) + 1, len(_CHUNK))
        try:
            with connect(size) as connection:
                received = 0
                while data := connection.recv(1 << 16):
                    received += len(data)
            counts[base + (DONE if received == size else FAILED)] += 1
            counts[base + BYTES] += received
        except OSError:
            counts[base + FAILED] += 1


def _fork(work) -> None:  # noqa: ANN001 (a function of the process's number)
    """Runs `work` in some processes, which end with this one."""
    parent = os.getpid()
    for number in range(PROCESSES):
        if os.fork() == 0:
            threading.Thread(target=_end_with, args=[parent], daemon=True).start()
            work(number)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        fetch(int(sys.argv[2]), sys.argv[3:])
