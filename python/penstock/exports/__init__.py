# SPDX-License-Identifier: Apache-2.0
"""The recorded packets of a run in the formats of other programs.

pcapng      for Wireshark and tshark: packets as they came to the port and as they left it
qlog        events as JSON, in the manner of QUIC's qlog
export      chooses what is written: the packets of one scheme, in the format of a file's name
"""

from penstock.exports.export import FORMATS, export

__all__ = ["FORMATS", "export"]
