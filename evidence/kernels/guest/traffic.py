# SPDX-License-Identifier: Apache-2.0
"""TCP transfers whose every byte is checked, and UDP flows whose order is."""

import hashlib
import random
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from net import ADDRESS, RECEIVER, SENDER, SWITCH, Backlog, Failure, enter

TCP_PORT, UDP_PORT = 5001, 6000
SECONDS = 120.0  # without progress, until a socket gives up
BLOCK = 10_000
DATAGRAM = 1000
SO_RCVBUFFORCE = 33  # asm-generic/socket.h; Python does not name it


def thread(
    namespace: str, work: Callable[[], None], faults: list[BaseException]
) -> threading.Thread:
    """Start `work` in a namespace; what it raises goes to `faults`."""

    def run() -> None:
        try:
            enter(namespace)
            work()
        except Exception as fault:  # reported by the thread that joins
            faults.append(fault)

    started = threading.Thread(target=run)
    started.start()
    return started


def listen(address: str, congestion: str) -> socket.socket:
    """A listener for `transfer`; its connections inherit the congestion control."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    listener.bind((address, TCP_PORT))
    listener.listen(256)
    listener.settimeout(SECONDS)
    return listener


def receive(listener: socket.socket, flows: int) -> None:
    """Take flows one by one in threads and answer each with the digest of its bytes."""

    def answer(connection: socket.socket) -> None:
        digest = hashlib.sha256()
        with connection:
            connection.settimeout(SECONDS)
            while data := connection.recv(1 << 16):
                digest.update(data)
            connection.sendall(digest.digest())

    threads = []
    with listener:
        for _ in range(flows):
            connection, _address = listener.accept()
            threads.append(threading.Thread(target=answer, args=(connection,)))
            threads[-1].start()
    for one in threads:
        one.join()


def send(size: int, address: str, congestion: str, go_on: threading.Event | None = None) -> int:
    """Send `size` random bytes, or more while `go_on` is set; compare the digests."""
    sent, digest = 0, hashlib.sha256()
    with socket.socket() as connection:
        connection.settimeout(SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        connection.connect((address, TCP_PORT))
        while sent < size or (go_on and go_on.is_set()):
            data = random.randbytes(BLOCK)
            connection.sendall(data)
            digest.update(data)
            sent += BLOCK
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while part := connection.recv(64):
            received += part
    if received != digest.digest():
        raise Failure(f"a flow of {sent} bytes arrived as other bytes")
    return sent


@dataclass(frozen=True)
class Transfer:
    """What a transfer did."""

    bytes: int
    seconds: float
    backlogs: list[int]

    @property
    def backlog(self) -> float:
        """Median of the queue while most flows were under way, bytes."""
        middle = self.backlogs[len(self.backlogs) // 5 : -len(self.backlogs) // 5 or None]
        return statistics.median(middle or [0])


def transfer(
    elephants: list[int],
    mice: int = 0,
    congestion: str = "cubic",
    during: Callable[[], object] | None = None,
    address: str = ADDRESS,
) -> Transfer:
    """Send elephants at once and mice of a block one after the other; fail unless all arrive.

    Elephants go on until `during` is over, if there is one.
    """
    faults: list[BaseException] = []
    sent: list[int] = []
    backlogs: list[int] = []
    ready, go_on, is_over = threading.Event(), threading.Event(), threading.Event()

    def serve() -> None:
        listener = listen(address, congestion)
        ready.set()
        receive(listener, len(elephants) + mice)

    def elephant(size: int) -> None:
        sent.append(send(size, address, congestion, go_on))

    def herd() -> None:
        sent.extend(send(BLOCK, address, congestion) for _ in range(mice))

    def sample() -> None:
        backlog = Backlog()
        while not is_over.wait(0.01):
            backlogs.append(backlog.read())

    server = thread(RECEIVER, serve, faults)
    ready.wait(SECONDS)
    sampler = thread(SWITCH, sample, faults)
    began = time.monotonic()
    if during:
        go_on.set()
    senders = [
        thread(SENDER, lambda size=size: elephant(size), faults)  # type: ignore[misc]
        for size in elephants
    ]
    senders.append(thread(SENDER, herd, faults))
    try:
        if during:
            during()
    finally:
        go_on.clear()
        for one in senders:
            one.join()
        is_over.set()
        sampler.join()
    if faults:
        raise Failure(f"transfer: {faults[0]}")
    server.join()
    return Transfer(sum(sent), time.monotonic() - began, backlogs)


def datagrams(flows: int, each: int) -> tuple[int, int]:
    """Send numbered datagrams of several flows; how many arrived, and how many late."""
    faults: list[BaseException] = []
    arrived: list[tuple[int, int]] = []
    ready = threading.Event()

    def take() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
            receiver.bind((ADDRESS, UDP_PORT))
            receiver.settimeout(3)
            ready.set()
            try:
                while True:
                    arrived.append(struct.unpack_from("!II", receiver.recv(2 * DATAGRAM)))
            except TimeoutError:
                pass

    def pour() -> None:
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(flows)]
        for number in range(each):
            for flow, one in enumerate(sockets):
                packet = struct.pack("!II", flow, number).ljust(DATAGRAM, b".")
                one.sendto(packet, (ADDRESS, UDP_PORT))
        for one in sockets:
            one.close()

    receiver = thread(RECEIVER, take, faults)
    ready.wait(SECONDS)
    thread(SENDER, pour, faults).join()
    receiver.join()
    if faults:
        raise Failure(f"datagrams: {faults[0]}")
    last = [-1] * flows
    late = 0
    for flow, number in arrived:
        late += number < last[flow]
        last[flow] = max(last[flow], number)
    return len(arrived), late
