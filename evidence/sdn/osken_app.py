# SPDX-License-Identifier: Apache-2.0
"""The least that SICC needs of a controller, on os-ken: it counts SYNs and FINs by port.

It is for `controller_load --against`: each copy is read by hand, as os-ken's own parser of packets
would be slower, and a barrier follows each thousandth copy, and each SYN from port 60000 on.

    python3 -m venv osken && osken/bin/pip install os-ken==4.2.2
    osken/bin/python evidence/sdn/osken_app.py --ofp-tcp-listen-port 6677
"""

import struct
import sys
from collections import Counter

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

SYN, EACH, SINGLE = 2, 1000, 60_000


class Counting(app_manager.OSKenApp):
    """Counts new connections by the port where they enter."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.copies, self.new = 0, Counter()

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def on_switch(self, event: ofp_event.EventOFPStateChange) -> None:
        self.answer(event.datapath)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_copy(self, event: ofp_event.EventOFPPacketIn) -> None:
        message = event.msg
        data = message.data
        source, flags = struct.unpack_from("!H", data, 34)[0], data[47]
        self.new[message.match["in_port"]] += 1 if flags & SYN else -1
        self.copies += 1
        if self.copies % EACH == 0 or (flags & SYN and source >= SINGLE):
            self.answer(message.datapath)

    @staticmethod
    def answer(datapath: Datapath) -> None:
        datapath.send_msg(datapath.ofproto_parser.OFPBarrierRequest(datapath))


if __name__ == "__main__":
    cfg.CONF(sys.argv[1:], project="os_ken")
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", "osken_app"])
