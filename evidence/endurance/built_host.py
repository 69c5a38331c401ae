# SPDX-License-Identifier: Apache-2.0
"""The host of a long run: penstockd, many veths in a namespace, and what happens to them."""

import contextlib
import http.client
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.execution import build
from penstock.execution.lab.system import call, inside

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import netns

HOST, PEERS = "endurance-host", "endurance-peers"
METRICS = "127.0.0.1:9468"
SCHEMES = (
    'scheme = "fairq"',
    'scheme = "hscc"',
    'scheme = "fairq"\ncanary = "50 %"',
    'scheme = "fairq"\nexclude = ["tcp:9"]\nwindow = { alpha = 0.25 }',
    'scheme = "observe"',
)
NUMBERS = ("rss_kb", "cpu_s", "files", "flows", "flows_tracked", "half_open_flows")
"""Of the agent, in each sample."""
FLOOD = 2000
"""SYNs of a flood, each from another address."""


class Host:
    """Both namespaces: ports `e0`, `e1` ... of the host, and the address behind each."""

    def __init__(self, folder: Path, ports: int) -> None:
        self.folder = folder
        self.addresses = [f"10.{64 + n // 250}.{n % 250}.2" for n in range(ports)]
        self.pins, self.locks = folder / "bpf" / "penstock", folder / "run"
        self.config = folder / "penstockd.toml"
        self.generator = random.Random(1)
        self.churn = 0
        self.daemon: subprocess.Popen[bytes] | None = None
        self.other: str | None = None
        """Another version of the agent, to which every second upgrade goes."""
        self.is_other = False
        self.starts = 0
        self.deaths: list[str] = []
        """How the agent ended, each time that nothing had asked it to, or with an error."""

    def run(self, *command: str) -> str:
        """What a command in the host's namespace printed."""
        return call(inside(HOST, *command))

    def penstockd(self, *arguments: str) -> str:
        """What the agent printed."""
        folders = ["--pins", str(self.pins), "--locks", str(self.locks)]
        return self.run(build.find(build.AGENT), *arguments, *folders)

    def build(self) -> None:
        """Makes the veths and their addresses."""
        commands = ["link set lo up"]
        far = ["link set lo up"]
        for number, address in enumerate(self.addresses):
            name, near = f"e{number}", address[:-1] + "1"
            commands += [f"link add {name} type veth peer name {name} netns {PEERS}"]
            commands += [f"address add {near}/30 dev {name}", f"link set {name} up"]
            far += [f"address add {address}/30 dev {name}", f"link set {name} up"]
        for namespace, lines in ((HOST, commands), (PEERS, far)):
            call(inside(namespace, "ip", "-batch", "-"), "\n".join(lines))
        queues = (f"qdisc add dev e{n} root pfifo limit 100" for n in range(len(self.addresses)))
        call(inside(HOST, "tc", "-batch", "-"), "\n".join(queues))

    def start(self) -> None:
        """Starts the daemon."""
        program = self.other if self.other and self.is_other else build.find(build.AGENT)
        command = [program, "run", "--config", str(self.config)]
        log = (self.folder / "penstockd.log").open("a")
        # In a session of its own, where Ctrl-C does not end it.
        self.daemon = subprocess.Popen(
            inside(HOST, *command), stderr=log, stdout=log, start_new_session=True
        )
        self.starts += 1

    def is_dead(self) -> bool:
        """Whether the agent has ended by itself, which is noted."""
        assert self.daemon
        if (code := self.daemon.poll()) is not None:
            self.deaths.append(f"by itself with code {code}")
        return code is not None

    def look(self) -> None:
        """Starts the agent again if it has ended by itself."""
        if self.is_dead():
            self.start()

    def end(self) -> None:
        """Ends the agent in order."""
        if self.is_dead():
            return
        assert self.daemon
        self.daemon.terminate()
        # By the signal itself where it has only just started.
        if (code := self.daemon.wait()) not in (0, -signal.SIGTERM):
            self.deaths.append(f"with code {code} at SIGTERM")

    def configure(self, scheme: str) -> None:
        """Writes the configuration."""
        agent = f"[agent]\npins = '{self.pins}'\nlocks = '{self.locks}'\n"
        metrics = f'[metrics]\nlisten = "{METRICS}"\n'
        port = f'[port."e*"]\nbuffer = "256 kB"\n{scheme}\n'
        self.config.write_text(agent + metrics + port, encoding="utf-8")

    # What happens to it.

    def kill(self) -> None:
        """The agent is killed, and starts again, at times after its heartbeat is stale."""
        if not self.is_dead():
            assert self.daemon
            self.daemon.kill()
            self.daemon.wait()
        time.sleep(self.generator.choice((0, 0.5, 3)))
        self.start()

    def upgrade(self) -> None:
        """The agent ends in order, and the next one takes over."""
        self.end()
        self.is_other = not self.is_other
        self.start()

    def reload(self) -> None:
        """Another scheme for all ports, without a gap."""
        assert self.daemon
        self.configure(self.generator.choice(SCHEMES))
        self.daemon.send_signal(signal.SIGHUP)

    def come_and_go(self) -> None:
        """A few interfaces come, are attached by their pattern, and go."""
        self.churn += 1
        names = [f"ex{self.churn}-{n}" for n in range(3)]
        for name in names:
            self.run("ip", "link", "add", name, "type", "veth", "peer", "name", f"p{name}")
            self.run("ip", "link", "set", name, "up")
        time.sleep(self.generator.choice((0, 2)))
        for name in names:
            self.run("ip", "link", "del", name)

    def detach(self) -> None:
        """A port is detached by hand; the daemon attaches it again at its next look."""
        with contextlib.suppress(Exception):  # it may be detached at this moment
            self.penstockd("detach", f"e{self.generator.randrange(len(self.addresses))}")

    def pause(self) -> None:
        """All ports pass packets untouched for a second."""
        with contextlib.suppress(Exception):
            self.penstockd("pause", "--all", "--for", "1s")

    def flood(self) -> None:
        """SYNs of forged addresses leave by a port."""
        to = self.generator.choice(self.addresses)
        forged = [self.generator.randrange(1 << 24, 1 << 31) for _ in range(FLOOD)]
        with netns.inside(HOST):
            _send_syns(to, forged)

    def faults(self, *, restarts: bool) -> list[Callable[[], None]]:
        """All that can happen, with or without those that start another process of the agent."""
        others = [self.reload, self.come_and_go, self.detach, self.pause, self.flood]
        return [self.kill, self.upgrade, *others] if restarts else others

    # What it needs.

    def sample(self) -> dict[str, float | None]:
        """Memory, CPU time and files of the agent, and its own counts; None while it starts."""
        assert self.daemon
        seen: dict[str, float | None] = dict.fromkeys(NUMBERS)
        seen["process"] = self.starts
        process = Path("/proc") / str(self.daemon.pid)
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = (process / "status").read_text()
            seen["rss_kb"] = float(status.split("VmRSS:")[1].split()[0])
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            seen["cpu_s"] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            seen["files"] = float(len(list((process / "fd").iterdir())))
        with contextlib.suppress(OSError, http.client.HTTPException), netns.inside(HOST):
            seen |= _summed(_scrape())
        seen["ports"] = float(len(list(self.pins.glob("v*/*/link_egress"))))
        return seen


def _summed(text: str) -> dict[str, float]:
    """Sums over all ports; without those that the text does not have."""
    sums: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition("{")[0].removeprefix("penstock_")
        if name in NUMBERS:
            sums[name] = sums.get(name, 0.0) + float(line.rpartition(" ")[2])
    return sums


def _scrape() -> str:
    with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def _send_syns(to: str, forged: list[int]) -> None:
    """IP packets by hand; the kernel adds the sums of the IP header, and those of TCP are wrong."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sender:
        target = socket.inet_aton(to)
        for address in forged:
            source = struct.pack("!I", address)
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, source, target)
            tcp = struct.pack(
                "!HHIIBBHHH", address & 0x7FFF | 1024, 7, address, 0, 0x50, 2, 65535, 0, 0
            )
            with contextlib.suppress(OSError):
                sender.sendto(ip + tcp, (to, 0))


@contextlib.contextmanager
def host(ports: int) -> Iterator[Host]:
    """A built host; nothing of it stays."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="endurance-")))
        (folder / "bpf").mkdir()
        call(["mount", "-t", "bpf", "bpf", str(folder / "bpf")])
        stack.callback(call, ["umount", str(folder / "bpf")])
        for name in (HOST, PEERS):
            call(["ip", "netns", "add", name])
            stack.callback(call, ["ip", "netns", "del", name])
        made = Host(folder, ports)
        made.build()
        yield made
