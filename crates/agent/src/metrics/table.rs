// SPDX-License-Identifier: Apache-2.0
//! The gauges by name; counters have the names and meanings of `core/counters.h`.

use prometheus_client::registry::Unit;

use crate::host::queue_visibility::READ_QUEUES;
use crate::status::reading::Reading;

/// A number that goes up and down; omitted if it has no value.
pub struct Gauge {
    /// Without prefix and unit.
    pub name: &'static str,
    /// Part of its name too.
    pub unit: Option<Unit>,
    /// Its meaning.
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

/// The gauges of a port.
pub const GAUGES: [Gauge; 18] = [
    gauge(
        "acting",
        None,
        "1 if a scheme is attached, sees its port, and its agent is alive",
        |r| Some(f64::from(u8::from(r.is_acting()))),
    ),
    gauge(
        "blind",
        None,
        "1 if packets pass a side of the port unseen, as when another program ends the chain",
        |r| Some(f64::from(u8::from(!r.blind.is_empty()))),
    ),
    gauge(
        "paused",
        None,
        "1 while penstockd pause lets packets pass untouched",
        |r| Some(f64::from(u8::from(r.is_paused()))),
    ),
    gauge(
        "canary_share",
        None,
        "Share of flows that is controlled; absent if all are",
        |r| r.policy.canary,
    ),
    gauge("flows", None, "Flows counted now", |r| {
        Some(r.state.flows.into())
    }),
    gauge(
        "half_open_flows",
        None,
        "Flows whose SYN passed less than 3 s ago and whose handshake is not complete here; they do not count",
        |r| Some(r.state.half_open.into()),
    ),
    gauge(
        "unknown_scale_share",
        None,
        "Share of the latest ACKs whose flow's window scale is unknown; absent without ACKs",
        |r| r.unknown_scale_share,
    ),
    gauge(
        "clamped_pairs",
        None,
        "Pairs of hosts whose ACKs are clamped by a controller's order; absent if its shim is not here",
        |r| r.clamped_pairs.map(|pairs| pairs as f64),
    ),
    gauge(
        "credit_outstanding",
        Some(Unit::Bytes),
        "What flows may send that have been granted it; absent if windows are no credit",
        |r| Some(r.credit.as_ref()?.outstanding_bytes.into()),
    ),
    gauge(
        "credit_waiting_flows",
        None,
        "Flows that wait for a grant; absent if windows are no credit",
        |r| Some(r.credit.as_ref()?.waiting.into()),
    ),
    gauge(
        "credit_active_flows",
        None,
        "Flows that have a grant; absent if windows are no credit",
        |r| Some(r.credit.as_ref()?.active.into()),
    ),
    gauge(
        "credit_short_openers_share",
        None,
        "Share of the last opened connections that began with less than the allowance; absent if windows are no credit",
        |r| Some(r.credit.as_ref()?.short_openers),
    ),
    gauge(
        "flows_tracked",
        None,
        "Entries in the tables of flows",
        |r| Some(r.state.tracked.into()),
    ),
    gauge(
        "window",
        Some(Unit::Bytes),
        "Window that the scheme grants each flow, before the floor: where it is lower, flows get the floor of a segment or two; absent if it grants any",
        |r| r.window_bytes().map(f64::from),
    ),
    gauge(
        "queue",
        Some(Unit::Bytes),
        "Queue as the last packet found it",
        |r| Some(r.state.queue_bytes.into()),
    ),
    gauge(
        "queues_unread",
        None,
        "Transmit queues of the interface beyond those that are read, which count as empty",
        |r| Some(r.state.queues.saturating_sub(READ_QUEUES).into()),
    ),
    gauge(
        "buffer",
        Some(Unit::Bytes),
        "Size of the port's queue",
        |r| Some(r.config.buffer_bytes.into()),
    ),
    gauge(
        "heartbeat_age",
        Some(Unit::Seconds),
        "Age of the heartbeat; packets pass untouched if it is stale",
        |r| Some(r.heartbeat_age_s),
    ),
];
