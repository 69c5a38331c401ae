# SPDX-License-Identifier: Apache-2.0
"""Recordings of other programs as scenarios: `penstock import FILE`.

    flows        transfers between addresses, and what splits a connection into transfers
    capture      pcap and pcapng files: the packets and when they passed
    packets      a packet's addresses, ports and TCP fields
    connections  transfers of a capture, by its packets
    sockets      transfers of `ss -ti`, by what its snapshots count
    rows         transfers of CSV: NetFlow and IPFIX, Millisampler
    recording    any of these files as a scenario with recorded traffic

A file may be damaged or hostile: whatever it holds, reading ends with transfers or a ScenarioError.
"""

from penstock.imports.recording import FORMATS, Recording, read, write

__all__ = ["FORMATS", "Recording", "read", "write"]
