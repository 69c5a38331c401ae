# SPDX-License-Identifier: Apache-2.0
"""SICC's control traffic (SICC §5.4), as a sum."""

from collections.abc import Mapping

SWITCHES = 1000
PORTS = 48
INTERVAL_S = 5e-3
QUEUE_BYTES = 2
"""A queue length in the message, one for each port."""
HEADER_BYTES = 54
"""Ethernet 14, IP 20, TCP 20, as the paper counts."""
WIRE_BYTES = 24
"""What it leaves out: frame check sequence 4, preamble 8, gap between frames 12."""


def message_bytes() -> int:
    """The message of one switch: 48 * 2 + 54 = 150 bytes."""
    return PORTS * QUEUE_BYTES + HEADER_BYTES


def control_traffic(_runs: Mapping[str, object]) -> float:
    """The paper's sum, bit/s: switches * (ports * 2 B + 54 B) * 8 / interval."""
    return SWITCHES * message_bytes() * 8 / INTERVAL_S


def on_the_wire(_runs: Mapping[str, object]) -> float:
    """The same with all that takes time on a link, bit/s."""
    return SWITCHES * (message_bytes() + WIRE_BYTES) * 8 / INTERVAL_S
