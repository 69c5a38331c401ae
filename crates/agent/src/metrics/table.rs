// SPDX-License-Identifier: Apache-2.0
//! The metrics by name: the one place where one is added.

use prometheus_client::registry::Unit;

use crate::skel::port::types::port_counters;
use crate::status::reading::Reading;

/// A number that only grows, as counted by the programs.
pub struct Counter {
    /// Without prefix, unit and `_total`.
    pub name: &'static str,
    /// Part of its name too.
    pub unit: Option<Unit>,
    /// What it counts.
    pub help: &'static str,
    /// Its value.
    pub value: fn(&port_counters) -> u64,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&port_counters) -> u64,
) -> Counter {
    Counter {
        name,
        unit: None,
        help,
        value,
    }
}

/// All of `struct port_counters` but `passed`, which has a label.
pub const COUNTERS: [Counter; 17] = [
    counter("egress_packets", "Packets that left by the port", |c| {
        c.egress_packets
    }),
    Counter {
        name: "egress",
        unit: Some(Unit::Bytes),
        help: "Bytes that left by the port",
        value: |c| c.egress_bytes,
    },
    counter("ingress_packets", "Packets that came in by the port", |c| {
        c.ingress_packets
    }),
    counter("acks", "ACKs that came in by the port", |c| c.acks),
    counter("acks_rewritten", "ACKs whose window was lowered", |c| {
        c.rewritten
    }),
    counter(
        "acks_floored",
        "ACKs rewritten to the floor of one segment",
        |c| c.floored,
    ),
    counter(
        "acks_first_rewritten",
        "Rewritten SYN-ACKs and first ACKs of a flow",
        |c| c.first_rewritten,
    ),
    counter(
        "acks_edge_kept",
        "ACKs whose window was left higher, not to take back what was offered",
        |c| c.kept_edge,
    ),
    counter("ecn_marks", "Packets marked with ECN CE", |c| c.marked),
    counter("syns", "SYNs and SYN-ACKs in both directions", |c| c.syns),
    counter(
        "flows_begun",
        "Flows that began, or sent again after idleness",
        |c| c.flows_begun,
    ),
    counter("flows_ended", "Flows that ended or idled", |c| {
        c.flows_ended
    }),
    counter("zero_windows", "ACKs whose receiver offered nothing", |c| {
        c.zero_windows
    }),
    counter("clamps", "Times that HSCC began to clamp", |c| c.clamps),
    counter(
        "stalls",
        "Data or SYNs repeated after 190 ms without a packet of their flow",
        |c| c.stalls,
    ),
    counter(
        "acks_fairq_would_rewrite",
        "ACKs that FairQ would have lowered, while observed",
        |c| c.would_rewrite[1],
    ),
    counter(
        "acks_hscc_would_rewrite",
        "ACKs that HSCC would have lowered, while observed",
        |c| c.would_rewrite[2],
    ),
];

/// A number that goes up and down; without a value it is left out.
pub struct Gauge {
    /// Without prefix and unit.
    pub name: &'static str,
    /// Part of its name too.
    pub unit: Option<Unit>,
    /// What it is.
    pub help: &'static str,
    /// Its value.
    pub value: fn(&Reading) -> Option<f64>,
}

const fn gauge(
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    value: fn(&Reading) -> Option<f64>,
) -> Gauge {
    Gauge {
        name,
        unit,
        help,
        value,
    }
}

/// What is so now.
pub const GAUGES: [Gauge; 7] = [
    gauge(
        "acting",
        None,
        "1: a scheme is on the port and its agent alive",
        |r| Some(f64::from(u8::from(r.is_acting()))),
    ),
    gauge("flows", None, "Flows counted now", |r| {
        Some(r.state.flows.into())
    }),
    gauge(
        "flows_tracked",
        None,
        "Entries in the tables of flows",
        |r| Some(r.state.tracked.into()),
    ),
    gauge(
        "window",
        Some(Unit::Bytes),
        "Window that a flow may have; absent if any",
        |r| r.window_bytes().map(f64::from),
    ),
    gauge(
        "queue",
        Some(Unit::Bytes),
        "Queue as last seen by a packet",
        |r| Some(r.state.queue_bytes.into()),
    ),
    gauge(
        "buffer",
        Some(Unit::Bytes),
        "What the port's queue can hold",
        |r| Some(r.config.buffer_bytes.into()),
    ),
    gauge(
        "heartbeat_age",
        Some(Unit::Seconds),
        "Since the agent last was alive; packets pass untouched if it is too long",
        |r| Some(r.heartbeat_age_s),
    ),
];
