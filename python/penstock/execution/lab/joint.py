# SPDX-License-Identifier: Apache-2.0
"""How a cable whose port has a queue is joined to a bridge of Open vSwitch.

It is not plugged in. A veth pair is, and redirections join the other end of the pair to the cable.
The datapath in user space needs this twice: it reads packets before the kernel's tc hooks, so that
penstockd could not rewrite its ACKs, and where a queue refuses a packet it drops the rest of a
batch with it, which no counter shows.

What the switch sends is copied to the cable, and the original ends in the namespace, where no one
has its address: until it is freed, a packet fills the send buffer of Open vSwitch's socket
(net.core.wmem_default), which holds 92 packets, fewer than a queue; a copy belongs to no socket.
"""

from collections.abc import Iterator


def plugged(cable: str) -> str:
    """The interface that Open vSwitch has as its port."""
    return f"o{cable[1:]}"


def _joined(cable: str) -> str:
    return f"j{cable[1:]}"


def pair(cable: str) -> Iterator[str]:
    """Makes the veth pair, as lines for `ip -batch`; the port is to be set up with the others."""
    yield f"link add name {plugged(cable)} type veth peer name {_joined(cable)}"
    yield f"link set dev {_joined(cable)} up"


def redirections(cable: str) -> Iterator[str]:
    """Sends what arrives by the cable or its pair out by the other, as lines for `tc -batch`."""
    pair = _joined(cable)
    for near, far, how in ((cable, pair, "redirect"), (pair, cable, "mirror")):
        yield f"qdisc add dev {near} clsact"
        yield (
            f"filter add dev {near} ingress protocol all u32 match u32 0 0 "
            f"action mirred egress {how} dev {far}"
        )
