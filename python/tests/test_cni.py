# SPDX-License-Identifier: Apache-2.0
"""The plugin penstock-cni with penstockd, as a runtime calls it: no drops, and nothing stays."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from penstock.execution import build

from .host import Hosts, run, until

PODS = {"pod": "10.9.0.2", "other": "10.9.0.3"}
CLIENTS, ANSWER, RATE = 64, 100_000, 50_000_000


class Node(Hosts):
    """A bridge with two pods on it, and penstockd."""

    def config(self, **keys):
        limits = {"ingressRate": RATE, "ingressBurst": 256_000}
        document = {
            "cniVersion": "1.1.0",
            "name": "test",
            "penstockd": build.find(build.AGENT),
            "pins": str(self.pins),
            "locks": str(self.locks),
            "runtimeConfig": {"bandwidth": limits},
            "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "veth-pod"}]},
        }
        return json.dumps(document | keys)

    def plugin(self, command, config):
        environment = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": "c1",
            "CNI_NETNS": f"/run/netns/{self.names['pod']}",
            "CNI_IFNAME": "eth0",
        }
        return run(*self.inside("node", build.find("penstock-cni")), env=environment, input=config)

    def drops(self):
        shown = self.call("node", "tc", "-s", "-j", "qdisc", "show", "dev", "veth-pod", "root")
        return sum(one["drops"] for one in json.loads(shown))

    def fetch(self):
        """All clients of the pod at once, from a server in the other; their bytes."""
        server = f"""
import socket, threading
def answer(c):
    with c: c.sendall(bytes({ANSWER}))
listening = socket.create_server(("", 7), backlog=999)
print(flush=True)
while True: threading.Thread(target=answer, args=[listening.accept()[0]]).start()"""
        client = f"""
import socket, threading
def fetch():
    with socket.create_connection(("{PODS["other"]}", 7), timeout=60) as c:
        while data := c.recv(1 << 16): got.append(len(data))
got, all = [], [threading.Thread(target=fetch) for _ in range({CLIENTS})]
[t.start() for t in all]; [t.join() for t in all]
print(sum(got))"""
        command = self.inside("other", "python3", "-c", server)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            total = int(self.call("pod", "python3", "-c", client))
            process.kill()
        return total


@pytest.fixture
def node(tmp_path):
    with Node(tmp_path, "node", *PODS).made() as made:
        made.call("node", "ip", "link", "add", "bridge", "type", "bridge")
        made.call("node", "ip", "link", "set", "bridge", "up")
        for key, address in PODS.items():
            peer = ["type", "veth", "peer", "name", "eth0", "netns", made.names[key]]
            made.call("node", "ip", "link", "add", f"veth-{key}", *peer)
            made.call("node", "ip", "link", "set", f"veth-{key}", "up", "master", "bridge")
            made.call(key, "ip", "address", "add", f"{address}/24", "dev", "eth0")
            made.call(key, "ip", "link", "set", "eth0", "up")
        yield made


def test_the_ingress_of_a_pod_is_limited_and_nothing_is_dropped(node):
    config = node.config()
    with node.daemon():
        assert node.plugin("STATUS", config) == ""
        for _ in range(2):
            node.plugin("ADD", config)
        assert node.plugin("CHECK", config) == ""
        assert sorted(node.pinned()) == ["link_egress", "link_ingress"]
        begun = time.monotonic()
        assert node.fetch() == CLIENTS * ANSWER
        rate_bps = CLIENTS * ANSWER * 8 / (time.monotonic() - begun)
        assert node.drops() == 0
        assert rate_bps < 1.05 * RATE, "the limit"
        for _ in range(2):
            node.plugin("DEL", config)
        assert node.pinned() == []


def test_without_grant_the_same_load_overflows_the_limit(node):
    config = node.config(penstockd="/nowhere/penstockd")
    node.plugin("ADD", config)
    assert node.fetch() == CLIENTS * ANSWER
    assert node.drops() > 0, "the load is too small"
    node.plugin("DEL", config)


def test_the_side_limit_works_in_the_pods_namespace(node):
    config = node.config(side="limit")
    for _ in range(2):
        node.plugin("ADD", config)
        assert node.plugin("CHECK", config) == ""
    assert len(node.pinned()) == 2
    begun = time.monotonic()
    assert node.fetch() == CLIENTS * ANSWER
    assert CLIENTS * ANSWER * 8 / (time.monotonic() - begun) < 1.05 * RATE, "the limit"
    for _ in range(2):
        node.plugin("DEL", config)
    assert node.pinned() == []
    assert not any(Path(node.locks, "pods").iterdir())
    # The process in the pod's namespace ends by itself.
    until(lambda: not run("ip", "netns", "pids", node.names["pod"]).strip())
