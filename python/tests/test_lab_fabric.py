# SPDX-License-Identifier: Apache-2.0
"""The laboratory on this machine, as root: built, used, removed, and nothing left."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.errors import RunError
from penstock.execution.lab import agent, fabric, plan, schemes, system

from .test_lab_plan import layout, tree

PENSTOCK = Path(sys.executable).with_name("penstock")


@pytest.fixture(autouse=True)
def _root():
    assert os.geteuid() == 0, "the laboratory's tests need root: run them with sudo"


def received(planned, tag, source, destination):
    """Whether a datagram from one host arrives at the other."""
    address = planned.home[destination].hosts[destination]
    listen = "import socket,sys; s=socket.socket(type=2); s.bind((sys.argv[1],7)); s.settimeout(9);"
    listen += "print('up',flush=True); print(s.recv(9).decode())"
    name = planned.name(planned.home[destination].node, tag)
    command = system.inside(name, sys.executable, "-c", listen, address)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout.readline() == "up\n"
        send = "import socket,sys; socket.socket(type=2).sendto(b'hello',(sys.argv[1],7))"
        name = planned.name(planned.home[source].node, tag)
        system.call(system.inside(name, sys.executable, "-c", send, address))
        return listener.stdout.read().strip() == "hello"


@pytest.mark.parametrize("described", [layout, tree])
def test_a_fabric_carries_packets_and_leaves_nothing(described):
    planned = plan.of(described(), "congctl cubic")
    hosts = list(planned.home)
    with system.locked():
        with fabric.built(planned) as tag:
            assert received(planned, tag, hosts[0], hosts[-1])
            assert received(planned, tag, hosts[-1], hosts[0])
            port = planned.protected[0]
            shown = system.call(
                system.inside(planned.name(port.node, tag), "tc", "-j", "qdisc", "show")
            )
            kinds = {(one["dev"], one["kind"]) for one in json.loads(shown)}
            assert (port.interface, "tbf") in kinds
            offloads = system.call(
                system.inside(planned.name(port.node, tag), "ethtool", "-k", port.interface)
            )
            assert "generic-segmentation-offload: off" in offloads
            assert "generic-receive-offload: off" in offloads
        assert system.leftovers() == []
    assert not system.STATE.exists()


def test_all_cpus_share_the_work_of_every_cable():
    planned = plan.of(layout())
    look = "mount -t sysfs sysfs /mnt; cat /mnt/class/net/*/queues/rx-*/rps_cpus"
    with system.locked(), fabric.built(planned) as tag:
        for node, space in planned.namespaces.items():
            inside = system.inside(planned.name(node, tag), "unshare", "--mount")
            masks = system.call([*inside, "sh", "-c", look]).split()
            assert len(masks) > len(space.interfaces)
            at_work = {int(mask.replace(",", ""), 16).bit_count() for mask in masks}
            assert at_work == {len(os.sched_getaffinity(0))}


def test_cpus_stay_awake_during_a_run_and_only_then():
    latency = Path("/dev/cpu_dma_latency")

    def allowed_us():
        return int.from_bytes(latency.read_bytes(), sys.byteorder)

    if latency.exists():  # where CPUs can sleep at all
        before = allowed_us()
        with system.locked():
            assert allowed_us() == 0
        assert allowed_us() == before > 0


def test_hosts_that_share_a_namespace_are_all_reached():
    planned = plan.of(layout(**{"fabric.senders": 100, "fabric.receivers": 30}), "congctl reno")
    with system.locked(), fabric.built(planned) as tag:
        assert planned.home["sender99"].node != "sender99"
        assert received(planned, tag, "receiver30", "sender99")
    assert system.leftovers() == []


BUILD_AND_WAIT = """
import json, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
from penstock.execution.lab import agent, fabric, plan, schemes, system
with system.locked(), fabric.built(plan.of(json.loads(sys.argv[1]))):
    print("built", flush=True)
    time.sleep(60)
"""


def started():
    command = [sys.executable, "-c", BUILD_AND_WAIT, json.dumps(layout())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "built\n", process.stderr.read()
    return process


def ended(process, number):
    process.send_signal(number)
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_removes_everything(number):
    ended(started(), number)
    assert system.leftovers() == []
    assert not system.STATE.exists()


def test_a_run_outside_the_main_thread_removes_everything_too():
    planned = plan.of(layout())

    def build():
        with system.locked(), fabric.built(planned):
            return len(system.leftovers())

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(build).result() == 7
    assert system.leftovers() == []


def test_namespaces_of_others_are_left_alone():
    name = "penstock-of-another"
    system.call(["ip", "netns", "add", name])
    try:
        with system.locked():
            assert name not in system.leftovers()
        assert (Path("/run/netns") / name).exists()
    finally:
        system.call(["ip", "netns", "delete", name])


def test_an_agent_that_ends_before_the_run_is_reported():
    planned = plan.of(layout())
    held = schemes.Scheme("observe", agent=("--scheme", "observe"))
    lost = pytest.raises(RunError, match="penstockd ended before the run")
    with system.locked(), fabric.built(planned) as tag, lost, agent.attached(held, planned, tag):
        found = next(
            int(line.split()[0])
            for line in system.call(["ps", "-eww", "-o", "pid,args"]).splitlines()
            if "penstockd attach" in line and str(system.PINS) in line
        )
        os.kill(found, signal.SIGKILL)
        os.waitid(os.P_PID, found, os.WEXITED | os.WNOWAIT)


def test_what_a_killed_run_left_is_removed_by_the_next():
    process = started()
    ended(process, signal.SIGKILL)
    assert len(system.leftovers()) == 7
    done = subprocess.run([PENSTOCK, "lab", "clean"], capture_output=True, text=True, check=True)
    assert done.stdout == "Removed 7 namespaces.\n"
    assert system.leftovers() == []
    assert not system.STATE.exists()


def test_a_second_run_is_refused_while_the_machine_is_busy():
    busy = pytest.raises(RunError, match=rf"busy .*{os.getpid()}")
    assert not system.is_busy()
    with system.locked(), busy:
        assert system.is_busy()
        with system.locked():
            pytest.fail("both had the machine")


def test_a_machine_that_carries_the_other_tests_can_hold_the_laboratory():
    done = subprocess.run(
        [PENSTOCK, "lab", "check", "--json"], capture_output=True, text=True, check=False
    )
    report = json.loads(done.stdout)
    assert report["can_run"], done.stdout
    assert done.returncode == 0
    assert {one["name"] for one in report["findings"]} >= {"bpffs", "TBF", "eBPF btf"}


def test_a_command_that_fails_is_one_line():
    with pytest.raises(RunError, match=r"^lab: ip link show nowhere: .* \(exit code 1\)$"):
        system.call(["ip", "link", "show", "nowhere"])
    with pytest.raises(RunError, match="not installed; see `penstock lab check`"):
        system.call(["no-such-program"])
