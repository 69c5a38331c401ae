# SPDX-License-Identifier: Apache-2.0
"""One incast on Open vSwitch, over the datapath of this kernel: from SYNs to the end of a clamp.

New flows of two senders are more than a port's buffer takes. The windows of their ACKs are lowered,
all bytes arrive, and the clamp ends. The machine may be as slow as it is. As root:

    .venv/bin/python evidence/sdn/incast.py [--datapath system]
"""

import argparse
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

import bed

from penstock.errors import PenstockError
from penstock.execution.lab import ovs, system

FLOWS = 8  # of each sender
FLOW_BYTES = 60_000
PATIENCE_S = 300.0
OVERRIDES = {
    "fabric.senders": 2,
    "fabric.receivers": 2,
    "fabric.bottleneck.rate": "10 Mb/s",
    # A single new flow, of 14.6 kB, is too much.
    "scheme.sicc.controller.alpha1": 0.05,
    "scheme.sicc.controller.alpha2": 0.1,
    "scheme.sicc.controller.duration": "10 s",
    # The queue may be short again before anyone looks.
    "scheme.sicc.controller.off_needs_both": True,
}


def main() -> None:
    """Plays it, and prints what was seen in one line."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--datapath", choices=("system", "netdev"), help="fail with another one")
    wanted = arguments.parse_args().datapath
    if wanted not in {None, ovs.datapath_type()}:
        sys.exit(f"incast.py: the datapath is {ovs.datapath_type()}, not {wanted}")
    with bed.running("lab/sicc", "sicc", OVERRIDES) as made:
        with transfers(made):
            clamped = awaited(made, lambda pairs: pairs > 0)
        entries = entries_of_datapath(made)
        awaited(made, lambda pairs: pairs == 0)
        counters = made.controlled.counters()
    if not counters["acks_rewritten"]:
        sys.exit(f"incast.py: no ACK was rewritten: {counters}")
    print(
        f"{counters['incasts']} incasts, {clamped} pairs clamped, then 0; "
        f"{counters['acks_rewritten']} ACKs rewritten; {entries} flows in the datapath "
        f"{ovs.datapath_type()}"
    )


@contextlib.contextmanager
def transfers(made: bed.Bed) -> Iterator[None]:
    """Flows that begin at once; at the end of the block all of their bytes have to arrive."""
    pairs = [(f"sender{one}", f"receiver{one}") for one in (1, 2)]
    threads, faults = [], []
    for sender, receiver in pairs:
        with made.inside(receiver):
            server = socket.create_server((made.address(receiver), 7000), backlog=FLOWS)
        for _ in range(FLOWS):
            work = (made, sender, server.getsockname(), server, faults)
            threads.append(threading.Thread(target=transfer, args=work))
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()
    if faults:
        sys.exit(f"incast.py: {len(faults)} flows failed, as {faults[0]!r}")


def transfer(
    made: bed.Bed,
    sender: str,
    address: tuple[str, int],
    server: socket.socket,
    faults: list[Exception],
) -> None:
    """Sends a flow, and takes one, which may be another's, at the server."""
    try:
        with made.inside(sender):
            client = socket.create_connection(address, PATIENCE_S)
        server.settimeout(PATIENCE_S)
        accepted, _ = server.accept()
        accepted.settimeout(PATIENCE_S)
        sending = threading.Thread(target=client.sendall, args=(bytes(FLOW_BYTES),))
        sending.start()
        left = FLOW_BYTES
        while left and (got := len(accepted.recv(left))):
            left -= got
        sending.join()
        client.close()
        accepted.close()
        if left:
            raise EOFError(f"{left} bytes are missing")
    except (OSError, EOFError) as fault:
        faults.append(fault)


def awaited(made: bed.Bed, holds: Callable[[int], bool]) -> int:
    """Waits until the number of clamped pairs is as wanted."""
    begun = time.monotonic()
    while not holds(pairs := made.controlled.clamped_pairs()):
        if time.monotonic() - begun > PATIENCE_S:
            sys.exit(f"incast.py: {pairs} pairs are clamped after {PATIENCE_S:g} s")
        time.sleep(0.05)
    return pairs


def entries_of_datapath(made: bed.Bed) -> int:
    """The flows that the datapath has, by its own tables."""
    kind = ovs.datapath_type()
    namespace = made.plan.name(made.plan.bridges[0].node, made.tag)
    daemon = ("ovs-appctl", "-t", str(system.STATE / "ovs" / "ovs-vswitchd.unixctl"))
    command = system.inside(namespace, *daemon, "dpctl/dump-flows", f"{kind}@ovs-{kind}")
    return len(system.call(command).splitlines())


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        sys.exit(f"incast.py: {error}")
