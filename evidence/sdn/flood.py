# SPDX-License-Identifier: Apache-2.0
"""What one guest can do to others by SYNs: 10,000 a second, next to 7 elephants.

The fabric is that of `lab/sicc`. The eighth sender sends SYNs to a port on which nothing listens,
through the bottleneck that the elephants fill. As root:

    .venv/bin/python evidence/sdn/flood.py [--repeats 3]
"""

import argparse
import socket
import statistics
import struct
import subprocess
import sys
import time

import bed

SYNS_PER_S = 10_000
LASTS_S = 6.0
ELEPHANTS = 7

SENDER = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[3])
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
block = bytes(65536)
while time.monotonic() < end:
    sock.sendall(block)
info = sock.getsockopt(socket.IPPROTO_TCP, 11, 256)
# struct tcp_info: tcpi_bytes_acked.
print(int.from_bytes(info[120:128], "little"))
"""

SINK = """
import socket, sys, threading
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
sock, _ = server.accept()
while sock.recv(1 << 20):
    pass
"""


def main() -> None:
    """Plays both, and prints an elephant's goodput and the timeouts of all."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--repeats", type=int, default=3)
    repeats = arguments.parse_args().repeats
    for floods in (False, True):
        runs = [played(floods=floods) for _ in range(repeats)]
        goodput, timeouts, incasts = (statistics.mean(values) for values in zip(*runs, strict=True))
        print(
            f"{'with' if floods else 'without'} the flood: {goodput:.1f} Mb/s an elephant, "
            f"{timeouts:.1f} timeouts, {incasts:.0f} incasts foreseen",
            flush=True,
        )


def played(*, floods: bool) -> tuple[float, float, float]:
    """Goodput of an elephant in Mb/s, timeouts, and incasts that were foreseen."""
    with bed.running("lab/sicc", "sicc", {}) as made:
        sinks, senders = [], []
        for number in range(1, ELEPHANTS + 1):
            target = [made.address(f"receiver{number}"), "7000"]
            sink = started(made.namespace(f"receiver{number}"), SINK, target)
            sink.stdout.readline()
            sinks.append(sink)
        for number in range(1, ELEPHANTS + 1):
            target = [made.address(f"receiver{number}"), "7000", str(LASTS_S)]
            senders.append(started(made.namespace(f"sender{number}"), SENDER, target))
        if floods:
            flood(made)
        sent = [int(sender.communicate()[0]) for sender in senders]
        names = [made.namespace(f"sender{number}") for number in range(1, ELEPHANTS + 1)]
        timeouts = sum(map(timeouts_of, names))
        for sink in sinks:
            sink.kill()
            sink.wait()
        incasts = made.controlled.counters()["incasts"]
    return 8 * statistics.mean(sent) / LASTS_S / 1e6, timeouts, incasts


def started(namespace: str, program: str, arguments: list[str]) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def timeouts_of(namespace: str) -> int:
    """The retransmission timeouts that a namespace counts."""
    command = ["ip", "netns", "exec", namespace, "nstat", "-asz", "TcpExtTCPTimeouts"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("TcpExt"))


def flood(made: bed.Bed) -> None:
    """Sends SYNs from the eighth host, from all of its ports in turn."""
    source, target = made.plan.home["sender8"], made.plan.home["receiver8"]
    ends = made.address("sender8"), made.address("receiver8")
    with made.inside("sender8"):
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        (link,) = source.interfaces.values()
        wire.bind((link, 0))
    ethernet = bytes.fromhex((target.mac + source.mac).replace(":", "")) + b"\x08\x00"
    ports, begun, sent = 0, time.monotonic(), 0
    while (now := time.monotonic() - begun) < LASTS_S - 0.5:
        while sent < now * SYNS_PER_S:
            ports = ports % 60_000 + 1
            wire.send(ethernet + syn(ends, ports))
            sent += 1
        time.sleep(0.0005)
    wire.close()


def syn(ends: tuple[str, str], port: int) -> bytes:
    """IP and TCP of a SYN to port 81."""
    addresses = b"".join(map(socket.inet_aton, ends))
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + addresses
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    tcp = struct.pack("!HHIIBBHHH", port, 81, port, 0, 5 << 4, 2, 65535, 0, 0)
    summed = checksum(addresses + struct.pack("!HH", 6, len(tcp)) + tcp)
    return ip + tcp[:16] + struct.pack("!H", summed) + tcp[18:]


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


if __name__ == "__main__":
    main()
