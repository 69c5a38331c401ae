# SPDX-License-Identifier: Apache-2.0
"""What is tested on another kernel, one line each: check.py PENSTOCKD SUITE...

`check.py --list SUITE...` prints the names of the checks, one a line.
"""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import net
import traffic
from net import ADDRESS, LIBC, RECEIVER, SENDER, SWITCH, Failure, command

PENSTOCKD = "/run/penstockd"  # of memory: the shared files are slow to read
PINS = Path("/sys/fs/bpf/penstock")
CILIUM = "target/kernels/cilium"  # the tests of crates/agent/tests/cilium
SYS_BPF = 321  # x86-64
NEXT_IDS = {"programs": 11, "maps": 12, "links": 31}  # linux/bpf.h: BPF_*_GET_NEXT_ID
AT_FIRST: dict[str, int] = {}  # objects before anything was attached


def penstockd(*words: str) -> str:
    """Run penstockd next to p0."""
    return command(PENSTOCKD, *words, namespace=SWITCH).strip()


def attach(*words: str) -> str:
    """Attach to p0; small tables, as to make them takes long here."""
    return penstockd("attach", "p0", "--flows", "1024", *words)


def status() -> dict[str, Any]:
    """The status of p0."""
    ports: list[dict[str, Any]] = json.loads(penstockd("status", "p0", "--json", "--for", "10ms"))
    return ports[0]


def objects() -> dict[str, int]:
    """How many eBPF programs, maps and links the kernel has."""
    found = {}
    for name, request in NEXT_IDS.items():
        attributes = (ctypes.c_uint32 * 4)()
        found[name] = 0
        while LIBC.syscall(SYS_BPF, request, attributes, ctypes.sizeof(attributes)) == 0:
            attributes[0] = attributes[1]
            found[name] += 1
    return found


def demand(holds: object, otherwise: str) -> None:
    """Fail with a line unless something holds."""
    if not holds:
        raise Failure(otherwise)


def leaves_nothing() -> None:
    """Nothing is pinned, and no object is left once the kernel had time to free it."""
    demand(not PINS.exists(), f"{PINS} is left behind")
    for _ in range(100):
        if (left := objects()) == AT_FIRST:
            return
        time.sleep(0.1)
    raise Failure(f"in the kernel are {left}; before anything was attached, {AT_FIRST}")


def refused(expected: str, *words: str) -> str:
    """To attach fails with one line that has `expected` in it."""
    try:
        attach(*words)
    except Failure as failure:
        line = str(failure).split(": ", 1)[1]
        demand(expected in line and "\n" not in line, f"instead of {expected!r}: {line}")
        return line
    raise Failure(f"attached, though {expected}")


HCF = ("--scheme", "hcf", "--buffer", "30 kB", "--rate", "10 Mb/s")


def hcf_refuses() -> str:
    """Another's qdisc is not replaced."""
    tbf("root", limit=30_000)
    line = refused("tbf", *HCF)
    tc("del", "root")
    return line


def counted() -> tuple[dict[str, Any], dict[str, Any]]:
    """The qdisc's counters by the kernel and by HCF, with no packet between the two readings."""
    while True:
        before, hcf, after = net.qdisc(), status()["hcf"], net.qdisc()
        if before["bytes"] == after["bytes"]:
            return after, hcf


def hcf_carries() -> str:
    """TCP through HCF: all bytes arrive, and the counters agree with the kernel's."""
    attach(*HCF)
    demand(str(net.qdisc()["kind"]).startswith("hcf_"), f"the root is {net.qdisc()['kind']}")
    done = traffic.transfer([250_000] * 6, mice=20)
    qdisc, hcf = counted()
    demand(qdisc["bytes"] == hcf["sent_bytes"], f"{qdisc['bytes']} and {hcf['sent_bytes']} bytes")
    demand(qdisc["bytes"] > done.bytes, f"{qdisc['bytes']} bytes sent of {done.bytes}")
    demand(qdisc["drops"] == hcf["dropped_packets"] > 0, f"drops: {qdisc['drops']}, {hcf}")
    demand(qdisc["backlog"] == 0 and qdisc["qlen"] == 0, f"{qdisc['qlen']} packets are left")
    entered = hcf["high_packets"] + hcf["low_packets"]
    demand(entered == hcf["sent_packets"], f"{entered} packets in, {hcf['sent_packets']} out")
    demand(hcf["high_packets"] and hcf["low_packets"], "only one queue was used")
    demand(hcf["periods"] > 10, f"{hcf['periods']} periods")
    return (
        f"{done.bytes / 1e6:.1f} MB intact in {done.seconds:.0f} s; {hcf['high_packets']} packets"
        f" by the high queue, {hcf['low_packets']} by the low, {qdisc['drops']} dropped,"
        f" {hcf['periods']} periods"
    )


def hcf_keeps_order() -> str:
    """Overloaded, HCF drops, and never reorders a flow (Theorem 1)."""
    before = status()["hcf"]
    arrived, late = traffic.datagrams(flows=8, each=250)
    after = status()["hcf"]
    low = after["low_packets"] - before["low_packets"]
    periods = after["periods"] - before["periods"]
    demand(0 < arrived < 2000, f"{arrived} of 2000 arrived: no overload")
    demand(low > 0 and periods > 0, f"{low} packets by the low queue in {periods} periods")
    demand(late == 0, f"{late} of {arrived} datagrams overtaken by a later one of their flow")
    return f"{arrived} of 2000 datagrams of 8 flows arrived, none late, over {periods} periods"


def hcf_reattaches() -> str:
    """Another HCF takes the place under load, and all bytes arrive."""
    first = net.qdisc()["kind"]
    done = traffic.transfer(
        [traffic.BLOCK] * 4, during=lambda: attach(*HCF, "--set", "queue.bins=64")
    )
    demand(net.qdisc()["kind"] != first, "the qdisc is the old one")
    return f"{done.bytes / 1e6:.1f} MB of 4 flows intact"


def hcf_stays() -> str:
    """Attached again with the same configuration, as when the daemon starts, the qdisc stays."""
    words = (*HCF, "--set", "queue.bins=64")
    first, sent = net.qdisc()["kind"], net.qdisc()["packets"]
    attach(*words)
    demand(net.qdisc()["kind"] == first, "the qdisc is another one")
    demand(net.qdisc()["packets"] >= sent > 0, "its counters began again")
    attach(*HCF)
    demand(net.qdisc()["kind"] != first, "another configuration did not replace it")
    penstockd("detach", "p0")
    tc("add", "root", "pfifo")
    line = refused("pfifo", *HCF)
    attach(*HCF, "--replace-qdisc")
    demand(str(net.qdisc()["kind"]).startswith("hcf_"), f"the root is {net.qdisc()['kind']}")
    return f"kept for the same parameters only; {line}"


def hcf_is_of_one_port() -> str:
    """Another interface cannot take a port's qdisc, nor take it from the port by trying."""
    kind = str(net.qdisc()["kind"])
    line = ""
    for _ in range(2):
        try:
            net.command("tc", "qdisc", "add", "dev", "p1", "root", kind, namespace=SWITCH)
        except Failure as failure:
            line = str(failure).splitlines()[-1]
        else:
            raise Failure(f"p1 took {kind}")
        demand(status().get("hcf"), "the port lost its qdisc")
    return line


def hcf_frees() -> str:
    """Packets that wait when HCF is detached are freed: their socket gets its memory back."""
    outcome: list[int] = []

    def pour() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(200):
                sender.sendto(bytes(1000), (ADDRESS, 9))
            for _ in range(2):
                word = fcntl.ioctl(sender, termios.TIOCOUTQ, bytes(4))
                outcome.append(struct.unpack("i", word)[0])
                if len(outcome) == 1:
                    penstockd("detach", "p0")

    # So slow that all still wait when detached.
    attach(*HCF[:-1], "64 kb/s")
    faults: list[BaseException] = []
    traffic.thread(SWITCH, pour, faults).join()
    demand(not faults, f"{faults}")
    demand(outcome[0] > 0, "nothing waited")
    demand(outcome[1] == 0, f"{outcome[1]} bytes never freed")
    return f"{outcome[0]} bytes waited, none remain"


def hcf_comes_and_goes() -> str:
    """Attached and detached again and again, nothing remains."""
    for _ in range(2):
        attach(*HCF)
        penstockd("detach", "p0")
    leaves_nothing()
    demand(net.qdisc()["kind"] == "noqueue", f"the root is {net.qdisc()['kind']}")
    return "twice, and no program, map, link or pin is left"


def hcf_is_absent() -> str:
    """An old kernel is refused with one line."""
    return refused("6.16", *HCF)


def tc(verb: str, *words: str) -> None:
    """Change the qdiscs of p0."""
    command("tc", "qdisc", verb, "dev", "p0", *words, namespace=SWITCH)


def tbf(*where: str, limit: int, rate: str = "10mbit") -> None:
    """Make p0 a port that holds `limit` bytes."""
    tc("add", *where, "tbf", "rate", rate, "burst", "4000", "limit", str(limit))


def transferred(
    hook: str, warning: str, *scheme: str, address: str = ADDRESS
) -> tuple[int, dict[str, Any]]:
    """Transfer through a scheme that ends with its agent: bytes, and the port's counters."""
    tbf("root", limit=60_000)
    words = ["nsenter", f"--net=/run/netns/{SWITCH}", PENSTOCKD, "attach", "p0", "--stay"]
    words += [*scheme, "--stale", "60 s", "--flows", "1024"]
    agent = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert agent.stdout
    try:
        printed = (text for text in agent.stdout if not text.startswith("audit: "))
        line = next(printed, "").strip()
        demand(f"({hook})" in line and warning in line, f"instead of {hook}: {line}")
        done = traffic.transfer([200_000] * 6, mice=10, address=address)
        counters = status()["counters"]
    finally:
        agent.send_signal(signal.SIGINT)
        agent.wait(traffic.SECONDS)
    demand(agent.returncode == 0, f"penstockd ended with {agent.returncode}")
    tc("del", "root")
    leaves_nothing()
    return done.bytes, counters


def datapath(hook: str, warning: str = "") -> str:
    """FairQ rewrites ACKs; nothing remains after the agent's end."""
    moved, counters = transferred(hook, warning, "--scheme", "fairq")
    keys = ("acks_rewritten", "acks_first_rewritten", "acks")
    rewritten, first, acks = (counters[key] for key in keys)
    demand(first > 0, f"no first window was held: {counters}")
    # Where the queue is not seen, it is taken for empty, and later windows soon are let go.
    demand(warning or rewritten > first, f"first windows alone were held: {counters}")
    return (
        f"{moved / 1e6:.1f} MB intact, {rewritten} of {acks} windows held, {first} of them"
        f" first ones{'; warning: ' + warning if warning else ''}"
    )


def grants(hook: str, side: str) -> str:
    """Grant opens windows itself, on either side; nothing remains after the agent's end."""
    words = ("--scheme", "grant", "--side", side, "--rate", "10 Mb/s", "--buffer", "60 kB")
    moved, counters = transferred(hook, "", *words)
    rewritten, failed = counters["acks_rewritten"], counters["passed_failed"]
    demand(rewritten > 0 and failed == 0, f"{counters}")
    return f"{moved / 1e6:.1f} MB intact, {rewritten} of {counters['acks']} windows lowered"


def grants_in_an_overlay(side: str) -> str:
    """The same for hosts whose packets pass in Geneve, and by p0 in a VLAN."""
    command("modprobe", "-a", "geneve", "8021q")
    for namespace, number in ((SWITCH, 1), (RECEIVER, 2)):
        end = {SWITCH: "p0", RECEIVER: "r0"}[namespace]
        words = f"ip -n {namespace} link add link {end} name vlan type vlan id 5"
        command(*words.split())
        command(*f"ip -n {namespace} address add 10.7.0.{number}/24 dev vlan".split())
        command(*f"ip -n {namespace} link set vlan gso_max_segs 1 up".split())
    command(*f"ip -n {RECEIVER} route replace default via 10.7.0.1".split())
    for namespace, remote, number in ((SENDER, "10.7.0.2", 1), (RECEIVER, "10.9.1.2", 2)):
        words = f"ip -n {namespace} link add over type geneve id 7 remote {remote}"
        command(*words.split())
        command(*f"ip -n {namespace} address add 10.8.0.{number}/24 dev over".split())
        command(*f"ip -n {namespace} link set over gso_max_segs 1 up".split())
    words = ("--scheme", "grant", "--side", side, "--rate", "10 Mb/s", "--buffer", "60 kB")
    moved, counters = transferred("tcx", "", *words, address="10.8.0.2")
    for namespace in (SENDER, SWITCH, RECEIVER):
        for name in ("over", "vlan"):
            delete = ["ip", "-n", namespace, "link", "del", name]
            subprocess.run(delete, capture_output=True, check=False)
    command(*f"ip -n {RECEIVER} route replace default via 10.9.0.1".split())
    rewritten, failed = counters["acks_rewritten"], counters["passed_failed"]
    demand(rewritten > 0 and failed == 0, f"{counters}")
    return f"{moved / 1e6:.1f} MB intact, {rewritten} of {counters['acks']} windows lowered"


def sockets_are_read() -> str:
    """A connection older than the attach, at both ends of this host, is controlled."""
    command("ip", "link", "set", "lo", "up", namespace=SWITCH)
    return old_connection("lo", "127.0.0.1", SWITCH, SWITCH)


def sockets_behind_a_veth() -> str:
    """The same between two other namespaces."""
    return old_connection("p0", ADDRESS, SENDER, RECEIVER)


def old_connection(port: str, address: str, sender: str, receiver: str) -> str:
    """Attach FairQ to `port` while a connection is open, which then sends through it."""
    ends: list[socket.socket] = []

    def listen() -> None:
        ends.append(socket.create_server((address, 0)))

    def connect() -> None:
        ends.append(socket.create_connection(ends[0].getsockname(), traffic.SECONDS))

    faults: list[BaseException] = []
    for namespace, work in ((receiver, listen), (sender, connect)):
        traffic.thread(namespace, work, faults).join()
        demand(not faults, f"connect: {faults}")
    ends.append(ends[0].accept()[0])
    ends.pop(0).close()
    words = ("--scheme", "fairq", "--buffer", "20 kB", "--stale", "60 s", "--flows", "1024")
    penstockd("attach", port, *words)
    ends[0].sendall(bytes(traffic.BLOCK))
    left = traffic.BLOCK
    while left:
        left -= len(ends[1].recv(left))
    counters = json.loads(penstockd("status", port, "--json", "--for", "10ms"))[0]["counters"]
    penstockd("detach", port)
    for end in ends:
        end.close()
    leaves_nothing()
    unknown, acks = counters["passed_unknown_scale"], counters["acks"]
    line = f"the scale of {unknown} of {acks} ACKs is unknown"
    demand(acks and not unknown, line)
    return line


def sicc_takes_orders() -> str:
    """SICC's shim clamps a pair that is ordered ON, a SYN-ACK too, until the OFF."""
    pair = ("lo", "127.0.0.1", "127.0.0.1")
    command("ip", "link", "set", "lo", "up", namespace=SWITCH)
    words = ("--set", "controller.duration=600 s", "--stale", "600 s", "--flows", "1024")
    penstockd("attach", "lo", "--scheme", "sicc", *words)
    penstockd("sicc", "on", *pair, "--mss", "1448", "--scale", "7")

    def connect() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(listener.getsockname(), traffic.SECONDS).close()

    faults: list[BaseException] = []
    traffic.thread(SWITCH, connect, faults).join()
    demand(not faults, f"connect: {faults}")

    def look() -> tuple[int, int]:
        status = json.loads(penstockd("status", "lo", "--json", "--for", "10ms"))[0]
        return status["clamped_pairs"], status["counters"]["acks_rewritten"]

    on, rewritten = look()
    penstockd("sicc", "off", *pair)
    off, _ = look()
    penstockd("detach", "lo")
    leaves_nothing()
    line = f"{rewritten} ACKs rewritten, {on} pair clamped, then {off}"
    demand((on, off) == (1, 0) and rewritten, line)
    return line


def sicc_on_ovs() -> str:
    """The laboratory's `--on ovs` over the kernel's datapath: an incast, a clamp, and its end."""
    incast = ("evidence/sdn/incast.py", "--datapath", "system")
    return command(".venv/bin/python", *incast).strip()


def dctcp_holds() -> str:
    """DCTCP keeps the queue near the threshold of our marks, where CUBIC fills the buffer."""
    mark, flows = 15_000, [1_500_000] * 2
    tbf("root", limit=100_000, rate="5mbit")
    cubic = traffic.transfer(flows)
    # Observing marks nothing; HSCC, whose thresholds are out of DCTCP's reach, leaves it to marks.
    thresholds = ("--set", "window.alpha1=0.8", "--set", "window.alpha2=0.9")
    attach("--scheme", "hscc-paper", *thresholds, "--set", f"mark={mark} B", "--stale", "600 s")
    dctcp = traffic.transfer(flows, congestion="dctcp")
    marked = status()["counters"]["ecn_marks"]
    penstockd("detach", "p0")
    tc("del", "root")
    line = (
        f"median queue {dctcp.backlog / 1e3:.0f} kB for marks at {mark / 1e3:.0f} kB, {marked}"
        f" marked; CUBIC {cubic.backlog / 1e3:.0f} kB"
    )
    demand(marked > 0, line)
    demand(mark / 2 < dctcp.backlog < 2 * mark, line)
    demand(cubic.backlog > 2 * dctcp.backlog, line)
    return line


def next_to_cilium(test: str) -> str:
    """A test with stand-ins for Cilium's programs that needs what this kernel has."""
    built = "target/debug/penstockd"  # which the tests start
    if not os.path.ismount(built):
        command("mount", "--bind", PENSTOCKD, built)
    printed = command(CILIUM, "--ignored", "--exact", "--nocapture", test)
    return next(line[2:] for line in printed.splitlines() if line.startswith("= "))


SUITES: dict[str, list[tuple[str, Callable[[], str]]]] = {
    "hcf": [
        ("HCF refuses to replace another qdisc", hcf_refuses),
        ("HCF carries TCP", hcf_carries),
        ("HCF preserves order", hcf_keeps_order),
        ("HCF replaces HCF", hcf_reattaches),
        ("HCF stays at a restart", hcf_stays),
        ("HCF is of one port", hcf_is_of_one_port),
        ("HCF frees queued packets", hcf_frees),
        ("HCF attaches and detaches", hcf_comes_and_goes),
    ],
    "no-hcf": [("HCF is refused", hcf_is_absent)],
    "tcx": [
        ("FairQ by tcx", lambda: datapath("tcx")),
        ("Grant at a port by tcx", lambda: grants("tcx", "port")),
        ("Grant behind a port by tcx", lambda: grants("tcx", "receiver")),
        ("Grant at a port, in Geneve", lambda: grants_in_an_overlay("port")),
        ("Grant behind a port, in Geneve", lambda: grants_in_an_overlay("receiver")),
        ("Open connections by tcx", sockets_are_read),
        ("Containers' open connections by tcx", sockets_behind_a_veth),
        ("SICC's shim by tcx", sicc_takes_orders),
    ],
    "clsact": [
        ("FairQ by clsact", lambda: datapath("clsact", "Linux 6.1 hides queues")),
        ("Grant at a port by clsact", lambda: grants("clsact", "port")),
        ("Grant behind a port by clsact", lambda: grants("clsact", "receiver")),
        ("Open connections by clsact", sockets_are_read),
        ("Containers' open connections by clsact", sockets_behind_a_veth),
        ("SICC's shim by clsact", sicc_takes_orders),
    ],
    "dctcp": [("DCTCP with the port's marks", dctcp_holds)],
    "netkit": [
        ("Pods behind netkit", lambda: next_to_cilium("pods_behind_netkit_are_held_on_the_card")),
        (
            "A netkit pair as a port",
            lambda: next_to_cilium("a_netkit_pair_is_a_port_where_the_kernel_routes"),
        ),
    ],
    "ovs": [("SICC on Open vSwitch in the kernel", sicc_on_ovs)],
}


def clear() -> None:
    """What a failed step may have left does not disturb the next."""
    for words in ([PENSTOCKD, "detach", "p0"], ["tc", "qdisc", "del", "dev", "p0", "root"]):
        enter = ["nsenter", f"--net=/run/netns/{SWITCH}"]
        subprocess.run([*enter, *words], capture_output=True, check=False)


def main() -> int:
    """Run the suites named."""
    steps = [step for suite in sys.argv[2:] for step in SUITES[suite]]
    if sys.argv[1] == "--list":
        print(*(name for name, _ in steps), sep="\n")
        return 0
    shutil.copy(sys.argv[1], PENSTOCKD)
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], capture_output=True, check=False)
    failures = 0
    net.build()
    AT_FIRST.update(objects())
    for name, step in steps:
        began = time.monotonic()
        try:
            word, line = "ok  ", step()
        except (Failure, OSError, subprocess.SubprocessError, KeyError, ValueError) as failure:
            word, line = "FAIL", f"{type(failure).__name__}: {failure}"
            failures += 1
            clear()
        print(f"{word} {name}: {line} ({time.monotonic() - began:.0f} s)", flush=True)
    net.remove()
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
