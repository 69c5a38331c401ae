# SPDX-License-Identifier: Apache-2.0
"""Measures answers to a virtual machine, with Grant at its tap or at its host's card, or without.

Needs root. In the guest eight ab ask an nginx of eight addresses for 11.5 kB, through a bridge on
its host and a port of 50 Mb/s and 128 kB, which an emulated guest can take. The port is the guest's
tap; or the port of a switch, where only the host's card is ours. Offloads are on, and neither guest
nor servers are changed.

Times are ab's own, of all requests; drops are the port's; timeouts are the servers'.

sudo .venv/bin/python evidence/grant/guest.py [--repeats N] [--only TEXT]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean

from penstock.errors import PenstockError, RunError
from penstock.execution import build
from penstock.execution.lab import programs, system
from penstock.execution.lab.tools import NGINX
from penstock.units import three

ROOT = Path(__file__).resolve().parents[2]
SERVERS, HOST = (f"grant-guest-{side}-{os.getpid()}" for side in ("servers", "host"))
ADDRESSES = [f"10.82.0.{number}" for number in range(1, 9)]
GUEST = "10.82.0.100"
PORT = "rate 50mbit burst 6kb limit"
SCHEMES = {"fifo": 16_000_000, "drop-tail": 128_000, "grant": 128_000}
"""What the port's buffer holds, in bytes: under `fifo` everything."""
LOADS = {
    "16 clients each, persistent": (16, "-k"),
    "8 clients each, new connections": (8, ""),
}
"""Clients that ask one server, and the option of their ab."""
REQUESTS = 1000
PLACES = {
    "guest's tap": (HOST, "tap0", "tap0", ("--side", "port")),
    "switch, behind it the host's card": (
        SERVERS,
        "uplink",
        "card",
        ("--side", "receiver", "--buffer", "128 kB"),
    ),
}
"""Where the port is, the interface to which Grant is attached, and how."""


def main() -> int:
    """Prints a row for each load, place and scheme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="loads with this text in their name")
    parser.add_argument("--scheme", action="append", choices=SCHEMES)
    options = parser.parse_args()
    heads = ("load", "port", "scheme", "answers/s", "mean", "p50", "p99", "max")
    heads += ("drops", "timeouts")
    sys.stdout.write(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
    try:
        system.call([str(ROOT / "evidence/kernels/fetch"), "7.2"])
        with system.locked():
            for name in filter(lambda name: options.only in name, LOADS):
                for place in PLACES:
                    for scheme in options.scheme or SCHEMES:
                        played = [play(name, place, scheme) for _ in range(options.repeats)]
                        means = map(three, map(mean, zip(*played, strict=True)))
                        rate, *times, drops, timeouts = means
                        row = [name, place, scheme, rate, *(f"{time} ms" for time in times)]
                        sys.stdout.write(f"| {' | '.join([*row, drops, timeouts])} |\n")
                        sys.stdout.flush()
    except PenstockError as error:
        sys.stderr.write(f"guest: {error}\n")
        return 2
    return 0


def play(load: str, place: str, scheme: str) -> list[float]:
    """One boot of the guest; the numbers of a row."""
    port_at, port, interface, side = PLACES[place]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(network(folder))
        queue = f"qdisc add dev {port} root tbf {PORT} {SCHEMES[scheme]}"
        system.call(system.inside(port_at, "tc", *queue.split()))
        if scheme == "grant":
            attach(stack, interface, side, folder)
        requests = folder / "requests"
        requests.write_text(guest_script(load), encoding="utf-8")
        kernel = str(ROOT / "evidence/kernels/run")
        command = system.inside(HOST, kernel, "--tap", "tap0", "bash", str(requests))
        printed = system.call(command)
        answers = [float(each) for each in re.findall(r"Requests per second: +([\d.]+)", printed)]
        if len(answers) != len(ADDRESSES) or re.search("Failed requests: +[1-9]", printed):
            raise RunError("ab failed in the guest: " + printed)
        counts = re.findall(r"^ *(\d+) (\d+)$", printed, re.MULTILINE)
        times = [float(ms) for count, ms in counts for _ in range(int(count))]
        if len(times) != len(ADDRESSES) * REQUESTS:
            raise RunError(f"ab lists {len(times)} of {len(ADDRESSES) * REQUESTS} answers")
        shown = system.call(system.inside(port_at, "tc", "-s", "-j", "qdisc", "show", "dev", port))
        counted = system.call(system.inside(SERVERS, "nstat", "-asz", "TcpExtTCPTimeouts"))
        parts = [mean(times), *(times[int(part * (len(times) - 1))] for part in (0.5, 0.99, 1))]
        return [sum(answers), *parts, json.loads(shown)[0]["drops"], float(counted.split()[-2])]


def guest_script(load: str) -> str:
    """What the guest does."""
    clients, keep = LOADS[load]
    ask = f"ab -q -r {keep} -n {REQUESTS} -c {clients} -g /run/$server.tsv"
    return f"""modprobe virtio_net
ip address add {GUEST}/24 dev eth0 && ip link set eth0 up
for server in {" ".join(ADDRESSES)}; do
    {ask} http://$server/answer &
done
wait
cut -f 5 /run/10.*.tsv | sort -n | uniq -c
"""


@contextmanager
def network(folder: Path) -> Iterator[None]:
    """Servers, and a host whose bridge has its card and the guest's tap."""
    (folder / "www").mkdir()
    (folder / "www/answer").write_bytes(bytes(11_500))
    with ExitStack() as stack:
        for name in (SERVERS, HOST):
            stack.callback(
                subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True
            )
            system.call(["ip", "netns", "add", name])
        ends = f"card netns {HOST} type veth peer name uplink netns {SERVERS}"
        system.call(f"ip link add {ends}".split())
        lines = [
            *((SERVERS, f"ip address add {address}/24 dev uplink") for address in ADDRESSES),
            (SERVERS, "ip link set uplink up"),
            (HOST, "ip link add bridge type bridge"),
            (HOST, "ip tuntap add tap0 mode tap"),
            *((HOST, f"ip link set {port} master bridge") for port in ("card", "tap0")),
            *((HOST, f"ip link set {port} up") for port in ("card", "tap0", "bridge")),
        ]
        for name, line in lines:
            system.call(system.inside(name, *line.split()))
        config = folder / "nginx.conf"
        server = {"folder": folder, "host": "nginx", "address": "0.0.0.0", "port": 80}
        config.write_text(NGINX.format(**server), encoding="utf-8")
        nginx = ("nginx", "-e", "stderr", "-p", str(folder), "-c", str(config))
        started = programs.running(system.inside(SERVERS, *nginx), "nginx", folder / "nginx.log")
        stack.enter_context(started).wait_until((folder / "nginx.pid").exists, "no pid file")
        yield


def attach(stack: ExitStack, interface: str, side: tuple[str, ...], folder: Path) -> None:
    """Grant, until the stack ends."""
    pins = folder / "bpf"
    pins.mkdir()
    system.call(["mount", "-t", "bpf", "penstock", str(pins)])
    stack.callback(system.call, ["umount", "--lazy", str(pins)])
    agent = (str(build.find(build.AGENT)), "attach", interface, "--scheme", "grant", *side)
    command = system.inside(HOST, *agent, "--rate", "50 Mb/s", "--stay", "--pins", f"{pins}/p")
    started = programs.running(command, build.AGENT, folder / "agent.log")
    stack.enter_context(started).wait_for("attached")


if __name__ == "__main__":
    sys.exit(main())
