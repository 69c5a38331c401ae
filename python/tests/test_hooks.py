# SPDX-License-Identifier: Apache-2.0
"""The hooks of packaging/hooks: ports of guests and of Open vSwitch, with penstockd."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from penstock.execution import build

from .host import Hosts, run, until

HOOKS = Path(__file__).resolve().parents[2] / "packaging" / "hooks"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")

DOMAIN = """<domain type='kvm' id='1'>
  <name>web</name>
  <devices>
    <disk type='file' device='disk'>
      <target dev='vda' bus='virtio'/>
    </disk>
    <interface type='network'>
      <mac address='52:54:00:71:b1:b6'/>
      <source network='default'/>
      <target dev='vnet0'/>
      <model type='virtio'/>
    </interface>
    <interface type='bridge'>
      <target dev='vnet1'/>
    </interface>
  </devices>
</domain>
"""


class Host(Hosts):
    """A host of guests, whose taps are made by `ip tuntap`."""

    def options(self, name, text):
        """Writes the options of the ports of a name."""
        (self.folder / "ports.d").mkdir(exist_ok=True)
        (self.folder / "ports.d" / name).write_text(text, encoding="utf-8")

    def environment(self):
        """That of the hooks: the programs and folders of this test."""
        agent = self.folder / "penstockd"
        if not agent.exists():
            folders = f"--pins '{self.pins}' --locks '{self.locks}'"
            agent.write_text(f"#!/bin/sh\nexec '{build.find(build.AGENT)}' \"$@\" {folders}\n")
            agent.chmod(0o755)
        return os.environ | {
            "PENSTOCKD": str(agent),
            "PENSTOCK_PORTS": str(self.folder / "ports.d"),
            "PENSTOCK_RUN": str(self.locks),
            "OVS_DATABASE": f"unix:{self.folder}/db.sock",
            "OVS_RUNDIR": str(self.folder),
        }

    def hook(self, name, *arguments, **options):
        return self.call("host", str(HOOKS / name), *arguments, env=self.environment(), **options)

    def tap(self, name):
        self.call("host", "ip", "tuntap", "add", name, "mode", "tap")
        self.call("host", "ip", "link", "set", name, "up")

    def status(self, name):
        command = ["penstockd", "status", name, "--json", "--for", "0 s"]
        command[0] = self.environment()["PENSTOCKD"]
        return json.loads(self.call("host", *command))[0]


@pytest.fixture
def host(tmp_path):
    with Host(tmp_path, "host").made() as made, made.daemon():
        yield made


def test_libvirt_attaches_the_ports_of_a_guest_and_detaches_them(host):
    host.options(
        "web", "# of all its ports\n--scheme fairq --buffer '128 kB' --set window.alpha=0.25\n"
    )
    for name in ("vnet0", "vnet1"):
        host.tap(name)
    # As when libvirtd starts again.
    for operation in ("prepare", "start", "started", "reconnect"):
        assert host.hook("libvirt", "web", operation, "begin", "-", input=DOMAIN) == ""
    assert host.ports() == ["vnet0", "vnet1"]
    status = host.status("vnet1")
    assert (status["scheme"], status["buffer_bytes"]) == ("fairq", 128_000)
    host.hook("libvirt", "web", "stopped", "end", "-", input=DOMAIN)
    assert host.ports() == []
    host.hook("libvirt", "web", "release", "end", "-", input=DOMAIN)


def test_a_port_whose_interface_is_gone_leaves_nothing(host):
    host.options("default", "--scheme observe")
    host.tap("vnet0")
    host.hook("libvirt", "other", "started", "begin", "-", input=DOMAIN)
    assert host.ports() == ["vnet0"]
    host.call("host", "ip", "link", "del", "vnet0")
    host.hook("libvirt", "other", "stopped", "end", "-", input=DOMAIN)
    assert host.ports() == []
    assert list((host.locks / "hooks").iterdir()) == []


def test_the_guest_starts_whatever_is_wrong(host):
    host.tap("vnet0")
    host.hook("port", "attach", "vnet0", "web")
    assert host.ports() == [], "without options a port is left alone"
    for text in ("--scheme nope", "--scheme 'fairq", "--scheme $(touch run) ; touch run"):
        host.options("web", text)
        host.hook("port", "attach", "vnet0", "web", cwd=host.folder)
        assert host.ports() == []
    assert not (host.folder / "ports.d" / "run").exists()
    for interface in ("", "../vnet0", ".x"):
        host.hook("port", "attach", interface, "web")
    host.options("default", "--scheme observe")
    host.hook("port", "attach", "vnet0", "../../etc/passwd")
    assert host.ports() == ["vnet0"], "a guest of any name has the default"


def test_qemu_brings_a_tap_up_and_detaches_it(host):
    host.options("default", "--scheme observe")
    host.tap("tap7")
    host.call("host", "ip", "link", "set", "tap7", "down")
    host.hook("qemu-ifup", "tap7")
    assert host.ports() == ["tap7"]
    assert "UP" in json.loads(host.call("host", "ip", "-j", "link", "show", "tap7"))[0]["flags"]
    host.hook("qemu-ifdown", "tap7")
    assert host.ports() == []


@pytest.fixture
def database(host):
    """Open vSwitch's database; what switches is of no matter here."""
    assert SCHEMA.is_file(), "Open vSwitch is missing: make lab"
    run("ovsdb-tool", "create", str(host.folder / "db"), str(SCHEMA))
    remote = host.environment()["OVS_DATABASE"]
    command = ["ovsdb-server", str(host.folder / "db"), f"--remote=p{remote}"]
    with subprocess.Popen(command, env=host.environment(), stderr=subprocess.DEVNULL) as server:
        until((host.folder / "db.sock").exists)

        def configure(*words):
            return run("ovs-vsctl", f"--db={remote}", "--no-wait", "--timeout=30", *words)

        configure("init")
        yield configure
        server.terminate()


@contextlib.contextmanager
def following(host):
    """Runs the service that follows Open vSwitch."""
    command = host.inside("host", str(HOOKS / "openvswitch"))
    with subprocess.Popen(command, env=host.environment()) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_ports_of_open_vswitch_are_attached_by_their_key(host, database):
    host.options("web", "--scheme fairq --buffer '64 kB'")
    host.options("slow", "--scheme hscc --buffer '64 kB'")
    for name in ("vnet0", "vnet1", "vnet2"):
        host.tap(name)
    database("add-br", "br0", "--", "add-port", "br0", "vnet0", "--", "add-port", "br0", "vnet1")
    key = "external_ids:penstock"
    with following(host) as process:
        database("set", "interface", "vnet0", f"{key}=web")
        until(lambda: host.ports() == ["vnet0"])
        database("add-port", "br0", "vnet2", "--", "set", "interface", "vnet2", f"{key}=web")
        until(lambda: host.ports() == ["vnet0", "vnet2"])
        database("set", "interface", "vnet0", f"{key}=slow")
        until(lambda: host.status("vnet0")["scheme"] == "hscc")
        database("del-port", "vnet2")
        until(lambda: host.ports() == ["vnet0"])
        process.terminate()
        assert process.wait(30) == 0
    assert host.ports() == ["vnet0"], "a stop leaves ports attached"
    database("remove", "interface", "vnet0", "external_ids", "penstock")
    database("set", "interface", "vnet1", f"{key}=web")
    with following(host):
        until(lambda: host.ports() == ["vnet1"])
