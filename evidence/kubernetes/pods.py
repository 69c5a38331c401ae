# SPDX-License-Identifier: Apache-2.0
"""A node and its pods, as network namespaces, joined by cnitool as a container runtime does it."""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.execution import build
from penstock.execution.lab.system import inside

ROOT = Path(__file__).resolve().parents[2]
GO = ROOT / "target" / "go" / "bin"
"""Where `make bench-cni` puts cnitool and the standard plugins."""

NODE, PODS = "penstock-cni-node", ("penstock-cni-client", "penstock-cni-server")
NETWORK, OPEN_NETWORK = "limited", "open"
PLUGINS: dict[str, list[dict[str, Any]]] = {
    "no limit": [],
    "bandwidth": [{"type": "bandwidth"}],
    "penstock-cni": [{"type": "penstock-cni"}],
    "penstock-cni, side limit": [{"type": "penstock-cni", "side": "limit"}],
}
"""What follows the plugin that makes the interface, by the name of the case."""


def run(*command: str, **options: Any) -> str:
    """What a command printed; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


class Node:
    """A node with penstockd, in a namespace of its own, and its two pods."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pins, self.locks = folder / "bpf" / "penstock", folder / "run"
        (folder / "nets").mkdir()

    def network(self, name: str, subnet: str, plugins: list[dict[str, Any]]) -> None:
        """Writes the list of plugins of a network."""
        own = {"penstockd": build.find(build.AGENT), "pins": str(self.pins)}
        own["locks"] = str(self.locks)
        ipam = {
            "type": "host-local",
            "ranges": [[{"subnet": subnet}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self.folder / "addresses"),
        }
        chained = [
            {**one, "capabilities": {"bandwidth": True}}
            | (own if one["type"] == "penstock-cni" else {})
            for one in plugins
        ]
        first = {"type": "ptp", "ipam": ipam}
        text = {"cniVersion": "1.0.0", "name": name, "plugins": [first, *chained]}
        path = self.folder / "nets" / f"{name}.conflist"
        path.write_text(json.dumps(text), encoding="utf-8")

    def cni(
        self, verb: str, network: str, pod: str, bandwidth: dict[str, int] | None = None
    ) -> str:
        """Has cnitool add, check or delete a pod's interface."""
        arguments = json.dumps({"bandwidth": bandwidth} if bandwidth else {})
        environment = {
            **os.environ,
            "NETCONFPATH": str(self.folder / "nets"),
            "CNI_PATH": f"{GO}:{Path(build.find('penstock-cni')).parent}",
            "CAP_ARGS": arguments,
        }
        tool = [str(GO / "cnitool"), verb, network, f"/run/netns/{pod}"]
        return run(*inside(NODE, *tool), env=environment)

    @contextlib.contextmanager
    def pods(
        self, plugins: list[dict[str, Any]], bandwidth: dict[str, int]
    ) -> Iterator[tuple[str, str]]:
        """Both pods: the interface of the first, which is limited; the other's address."""
        self.network(NETWORK, "10.88.1.0/24", plugins)
        self.network(OPEN_NETWORK, "10.88.2.0/24", [])
        client, server = PODS
        for pod in PODS:
            run("ip", "netns", "add", pod)
            run(*inside(pod, "ip", "link", "set", "lo", "up"))
        try:
            limited = json.loads(self.cni("add", NETWORK, client, bandwidth))
            answer = json.loads(self.cni("add", OPEN_NETWORK, server))
            self.cni("check", NETWORK, client, bandwidth)
            host = next(i["name"] for i in limited["interfaces"] if not i.get("sandbox"))
            yield host, answer["ips"][0]["address"].partition("/")[0]
        finally:
            self.cni("del", NETWORK, client, bandwidth)
            self.cni("del", OPEN_NETWORK, server)
            for pod in PODS:
                run("ip", "netns", "del", pod)


@contextlib.contextmanager
def node() -> Iterator[Node]:
    """A node whose penstockd runs until the end; nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="penstock-cni-") as name:
        made = Node(Path(name))
        bpf = made.folder / "bpf"
        bpf.mkdir()
        run("mount", "-t", "bpf", "bpf", str(bpf))
        run("ip", "netns", "add", NODE)
        config = made.folder / "penstockd.toml"
        config.write_text(f"[agent]\npins = '{made.pins}'\nlocks = '{made.locks}'\n", "utf-8")
        command = inside(NODE, build.find(build.AGENT), "run", "--config", str(config))
        try:
            run(*inside(NODE, "ip", "link", "set", "lo", "up"))
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as daemon:
                try:
                    yield made
                finally:
                    daemon.terminate()
        finally:
            run("ip", "netns", "del", NODE)
            run("umount", str(bpf))
