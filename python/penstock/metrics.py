# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary: its unit, heading, better end, tolerance and meaning.

A name ends with its unit: `fct_s`, `goodput_bps`, `queue_bytes`. `GROUPS` and `PORTS` describe the
numbers of a traffic and of a port by their dotted paths in `summary.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock import units

Result = Mapping[str, Any]
"""One scheme's part of a summary, of one seed or the mean of several."""

OF_SEEDS = "of_seeds"
"""In a group's mean over several seeds, what the mean does not show (see `penstock.missing`)."""

CLOSE, NEAR = 0.15, 0.25
"""How far apart means and what finished, and tails and what failed, may be and still agree."""


LATE_S = 0.19
"""A flow that takes longer waited for a timeout of Linux: 200 ms or more. `LATE` in crates/sim."""


@dataclass(frozen=True)
class Metric:
    """What there is to know of a number."""

    heading: str
    better: Literal["less", "more", "neither"]
    meaning: str
    tolerance: float | None = None
    """Most that two runs may differ, as a share of the first; None: it is not compared."""
    kind: Literal["", "share", "index", "factor"] = ""
    """Of a number without a unit that is no count."""

    def text(self, quantity: str, value: float | None) -> str:
        """The number as tables show it."""
        plain = {
            "": units.count,
            "share": units.percent,
            "index": units.ratio,
            "factor": units.factor,
        }
        return units.FORMS.get(quantity, plain[self.kind])(value)


@dataclass(frozen=True)
class Cause:
    """What the slow flows of a group spent their time on."""

    name: str
    """Its key below `slow` in `summary.json`."""
    words: str
    meaning: str
    column: str
    """Of the table of flows, in seconds; empty for the rest."""


CAUSES = (
    Cause("rto", "RTO", "before retransmission timeouts", "rto_wait_s"),
    Cause("syn_timeout", "SYN timeout", "before timeouts of the handshake", "syn_wait_s"),
    Cause("delayed_ack", "delayed ACK", "with an ACK delayed by the receiver", "ack_wait_s"),
    Cause("zero_window", "zero window", "with data to send, and no window", "window_wait_s"),
    Cause("queueing", "queueing", "in queues, at a share of the rate, below a window", ""),
    Cause("ideal", "ideal", "as long as on the empty network", "ideal_s"),
    Cause("server_think", "server's think time", "before the server answers", "server_wait_s"),
)
"""In the order of charts; their shares add up to 1."""

# A flow's own drops are not compared: a kernel does not report whose packet a queue has lost.
GROUPS = {
    "flows": Metric("flows", "neither", "flows that began", CLOSE),
    "finished": Metric("finished", "more", "flows that ended, of all that were to", CLOSE),
    "unfinished": Metric(
        "unfinished",
        "less",
        "flows with an end that did not reach it, those not begun included",
        NEAR,
    ),
    "fct_s.mean": Metric("FCT mean", "less", "completion time of the finished flows", CLOSE),
    "fct_s.sd": Metric("FCT SD", "less", "standard deviation of the completion times"),
    "fct_s.p50": Metric("FCT p50", "less", "half of the flows took less", CLOSE),
    "fct_s.p90": Metric("FCT p90", "less", "90 % of the flows took less"),
    "fct_s.p95": Metric("FCT p95", "less", "95 % of the flows took less"),
    "fct_s.p99": Metric("FCT p99", "less", "99 % of the flows that finished took less", NEAR),
    "fct_s.p999": Metric("FCT p99.9", "less", "99.9 % of the flows that finished took less"),
    "fct_s.max": Metric("FCT max", "less", "the slowest finished flow", NEAR),
    "slowdown.mean": Metric(
        "slowdown",
        "less",
        "completion time over the least possible on the empty network",
        kind="factor",
    ),
    "slowdown.p50": Metric("slowdown p50", "less", "half of the flows had less", kind="factor"),
    "slowdown.p99": Metric("slowdown p99", "less", "99 % of the flows had less", kind="factor"),
    "slowdown.p999": Metric(
        "slowdown p99.9", "less", "99.9 % of the flows had less", kind="factor"
    ),
    "slowdown.max": Metric("slowdown max", "less", "the largest slowdown", kind="factor"),
    "flows_per_second": Metric("flows/s", "more", "flows (requests) finished by the second", NEAR),
    **{
        f"slow.{name}": Metric(f"slow: {words}", "neither", meaning, kind="share")
        for name, words, meaning in (
            (cause.name, cause.words, f"the slow flows' time: {cause.meaning}") for cause in CAUSES
        )
    },
    "slow.lasted_s": Metric("slow: time", "less", "mean time that the slow flows were under way"),
    "missed_deadlines": Metric("missed deadlines", "less", "flows that took too long"),
    "stalled": Metric("stalled", "less", "flows with at least one retransmission timeout"),
    "late": Metric(
        "late", "less", f"flows of more than {units.seconds(LATE_S)}: a timeout of Linux", NEAR
    ),
    "timeouts": Metric("timeouts", "less", "retransmission timeouts", NEAR),
    "syn_timeouts": Metric("SYN timeouts", "less", "timeouts of handshakes", NEAR),
    "retransmits": Metric("retransmits", "less", "segments sent again"),
    "resent": Metric("resent", "less", "flows with at least one segment sent again"),
    "drops": Metric("drops", "less", "packets lost, in either direction"),
    "goodput_bps.mean": Metric("goodput", "more", "what arrived, mean of the flows", CLOSE),
    "goodput_bps.min": Metric("goodput min", "more", "the slowest flow"),
    "goodput_bps.max": Metric("goodput max", "neither", "the fastest flow"),
    "jain": Metric(
        "Jain", "more", "fairness of the goodputs: 1 is equal shares", CLOSE, kind="index"
    ),
    "starved": Metric("starved", "less", "share of the flows without a packet", kind="share"),
    "packets_variance": Metric("variance", "less", "variance of the flows' packets"),
    "flows_in_lowest_decile": Metric(
        "lowest decile", "less", "flows with less than a tenth of the packets of the largest"
    ),
    "longest_silence_s.mean": Metric("silence", "less", "longest time between two packets"),
    "loss_cycle_s": Metric("loss cycle", "more", "time between two losses of a sampled flow"),
    "share.flows": Metric("flows of all", "neither", "share of a class in the flows", kind="share"),
    "share.bytes": Metric("bytes of all", "neither", "share of a class in the bytes", kind="share"),
    "jobs.begun": Metric("jobs begun", "neither", "jobs that began"),
    "jobs.finished": Metric("jobs", "more", "jobs that were over before the end of the run", CLOSE),
    "jobs.unfinished": Metric(
        "jobs unfinished", "less", "jobs that were not, or never began", NEAR
    ),
    "jobs.time_s.mean": Metric("JCT mean", "less", "completion time of the finished jobs", CLOSE),
    "jobs.time_s.sd": Metric("JCT SD", "less", "standard deviation of these times"),
    "jobs.time_s.p50": Metric("JCT p50", "less", "half of the jobs took less", CLOSE),
    "jobs.time_s.p90": Metric("JCT p90", "less", "90 % of the jobs took less"),
    "jobs.time_s.p95": Metric("JCT p95", "less", "95 % of the jobs took less"),
    "jobs.time_s.p99": Metric("JCT p99", "less", "99 % of the jobs took less", NEAR),
    "jobs.time_s.max": Metric("JCT max", "less", "the slowest finished job", NEAR),
    "jobs.missed_deadlines": Metric("late jobs", "less", "jobs that took too long"),
    "jobs.per_second": Metric("jobs/s", "more", "jobs finished in a second", CLOSE),
    "block_goodput_bps": Metric("block goodput", "more", "bytes of an epoch over its time"),
}
PORTS = {
    "drops": Metric("drops", "less", "packets lost at this port", NEAR),
    "utilization": Metric(
        "utilization", "more", "share of the link's time in use", CLOSE, kind="share"
    ),
    "queue_bytes.mean": Metric("queue mean", "less", "mean of the queue over time", CLOSE),
    "queue_bytes.p99": Metric("queue p99", "less", "the queue was shorter 99 % of the time", CLOSE),
    "queue_bytes.max": Metric("queue max", "less", "the longest queue seen"),
    "egress_packets": Metric("packets", "neither", "packets that left by the port"),
    "egress_bytes": Metric("bytes", "neither", "bytes that left by the port"),
    "ecn_marks": Metric("ECN marks", "neither", "packets marked with ECN CE"),
    "pauses": Metric("pauses", "less", "times that the port paused for the next switch (PFC)"),
    "paused_s": Metric("paused", "less", "time that the port paused for the next switch (PFC)"),
    "acks": Metric("ACKs", "neither", "ACKs that a window scheme has seen"),
    "acks_rewritten": Metric("ACKs rewritten", "neither", "ACKs whose window was lowered"),
    "acks_floored": Metric("ACKs floored", "neither", "ACKs held at the floor"),
    "acks_first_rewritten": Metric("first ACKs", "neither", "rewritten first ACKs of a flow"),
    "acks_edge_kept": Metric("edges kept", "neither", "ACKs left higher than the scheme's window"),
    "clamps": Metric("clamps", "neither", "times that the scheme began to clamp all flows"),
    "grants": Metric("grants", "neither", "grants of credit"),
    "grants_resent": Metric("grants resent", "neither", "reminders of grants without effect"),
    "grants_lapsed": Metric("grants lapsed", "neither", "grants given up after all reminders"),
}

PORT_COUNTERS = (
    "ecn_marks",
    "acks",
    "acks_rewritten",
    "acks_floored",
    "acks_first_rewritten",
    "acks_edge_kept",
    "clamps",
)
"""Numbers of a port that penstockd counts, by the names of `core/counters.h`."""

CREDIT_COUNTERS = ("grants", "grants_resent", "grants_lapsed")
"""Likewise, of a port that grants credit."""
