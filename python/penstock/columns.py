# SPDX-License-Identifier: Apache-2.0
"""The columns of the tables of a run: of flows, jobs, queues, windows, packets and events."""

FLOWS: dict[str, type] = {
    "traffic": str,  # the name of its [traffic.*] table
    "flow": int,
    "source": str,
    "destination": str,
    "start_s": float,
    "end_s": float,  # null: unfinished
    "bytes": int,  # null: endless
    "delivered_bytes": int,
    "fct_s": float,
    "goodput_bps": float,  # in the measured time; null: not under way in it
    "packets": int,  # data packets that arrived in the measured time
    "retransmits": int,
    "timeouts": int,
    "syn_timeouts": int,
    "drops": int,  # either direction
    "longest_silence_s": float,
    "missed_deadline": bool,  # null: no deadline
    "ideal_s": float,  # alone on the empty network; null: endless, or unknown
    "rto_wait_s": float,  # before retransmission timeouts; null: unknown, as the next four
    "syn_wait_s": float,  # before timeouts of the handshake
    "ack_wait_s": float,  # an ACK was delayed while its receiver waited for more
    "window_wait_s": float,  # with data to send, none in flight, and no window
    "server_wait_s": float,  # before the server answered a request
    "busy_s": float,  # with data in flight, as the kernel counts it, and of that:
    "rwnd_limited_s": float,  # limited by the receiver's window
    "sndbuf_limited_s": float,  # limited by the send buffer
}
JOBS: dict[str, type] = {
    "traffic": str,
    "job": int,  # the `flow` of its transfers
    "client": str,  # null: jobs without one
    "start_s": float,
    "end_s": float,  # null: unfinished
    "time_s": float,
    "transfers": int,
    "bytes": int,
    "missed_deadline": bool,  # null: no deadline
}
QUEUES: dict[str, type] = {"port": str, "time_s": float, "bytes": int, "packets": int}
WINDOWS: dict[str, type] = {
    "traffic": str,
    "flow": int,
    "time_s": float,
    "cwnd_bytes": int,
    "rwnd_bytes": int,  # what the receiver offers, as the network has left it
    "swnd_bytes": int,  # the lesser of both
    "recovering": bool,  # a loss is being repaired
}

PACKETS: dict[str, type] = {
    "time_s": float,  # when it came to the port
    "left_s": float,  # when its last bit had left; null: lost, or still there
    "lost": str,  # why; null: it was not
    "traffic": str,  # null: datagrams
    "flow": int,
    "connection": int,
    "source": str,
    "destination": str,
    "forward": bool,  # leaves by the port; else it came in next to it
    "opener": bool,  # sent by the side that opened the connection
    "seq": int,
    "ack": int,
    "payload": int,
    "header": int,
    "flags": int,  # of TCP in the low eight bits, then ECT, CE, UDP, timestamps
    "window": int,  # the field as it came, unscaled
    "window_after": int,  # as it went on
    "ts_val": int,
    "ts_ecr": int,
    "syn_options": int,
    "sack": str,
    "queue_bytes": int,  # that it met
    "marked": bool,  # with ECN CE, here
    "own": bool,  # the port made it
}
EVENTS: dict[str, type] = {
    "time_s": float,
    "connection": int,
    "host": str,
    "event": str,  # window, rto, syn_timeout, probe, window_probe, delayed_ack, retransmit
    "cwnd_bytes": int,
    "window_bytes": int,  # that the peer offers, as the network has left it
    "in_flight_bytes": int,
}
