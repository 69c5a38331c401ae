// SPDX-License-Identifier: Apache-2.0
//! Recording of a port.

use std::time::Duration;

use anyhow::Result;

use super::bursts::Line;
use super::fan_in::Transfer;
use super::report::Look;
use crate::host::clock::monotonic_ns;
use crate::port::pins::PinsLock;
use crate::port::records::{EventKind, Sample, add_up};
use crate::port::rings::{Records, Rings, set_flow_events};
use crate::port::{PinsArg, Port};
use crate::status::sight::{self, Sight};

/// Turns on the programs' flow events, until dropped.
struct FlowEvents<'a>(&'a PinsArg, &'a Port);

impl<'a> FlowEvents<'a> {
    fn of(pins: &'a PinsArg, port: &'a Port) -> Result<FlowEvents<'a>> {
        set_flow_events(&pins.lock()?, port, true)?;
        Ok(FlowEvents(pins, port))
    }
}

impl Drop for FlowEvents<'_> {
    fn drop(&mut self) {
        // A failure is harmless: events that are not read cost a little time, no memory.
        let off = |lock: PinsLock| set_flow_events(&lock, self.1, false);
        let _ = self.0.lock().and_then(off);
    }
}

/// What is to be recorded.
pub struct Recording {
    /// The scheme attached to the port.
    pub scheme: String,
    /// Its rate, if known.
    pub rate_bps: Option<u64>,
    /// Size of its queue, if not as attached.
    pub buffer_bytes: Option<u32>,
    /// For how long.
    pub length: Duration,
}

/// Records `port` for the length of the recording, or until `tick` returns false, which is called several times a second
/// with the recording so far.
///
/// # Errors
/// Another process records, or the kernel refuses.
pub fn look(
    pins: &PinsArg,
    port: &Port,
    recording: Recording,
    mut tick: impl FnMut(&Look) -> bool,
) -> Result<Look> {
    let rings = Rings::open(port)?;
    // Before the events: a transfer that begins as soon as they are on belongs to the recording.
    let began_ns = monotonic_ns();
    let flow_events = FlowEvents::of(pins, port)?;
    let before = port.counters()?;
    let sight = Sight::of(&port.interface, &before)?;
    let attached_bytes = port.config()?.buffer_bytes;
    let mut look = Look {
        interface: port.interface.clone(),
        scheme: recording.scheme,
        began_ns,
        ended_ns: began_ns,
        line: Line {
            buffer_bytes: recording.buffer_bytes.unwrap_or(attached_bytes),
            rate_bps: recording.rate_bps,
        },
        ..Look::default()
    };
    let until_ns = began_ns.saturating_add(recording.length.as_nanos() as u64);
    while look.ended_ns < until_ns && tick(&look) {
        take(&mut look, rings.take()?);
        look.ended_ns = monotonic_ns();
    }
    look.ended_ns = monotonic_ns(); // `tick` may have waited
    look.transfers
        .extend(super::open::transfers(port, began_ns)?);
    let after = port.counters()?;
    look.timeouts_seen = after.timeouts_seen.saturating_sub(before.timeouts_seen);
    if let (Some(earlier), Some(now)) = (sight, Sight::of(&port.interface, &after)?) {
        look.blind = sight::names(now.blind_since(&earlier));
    }
    drop(flow_events);
    take(&mut look, rings.take()?);
    look.samples = add_up(std::mem::take(&mut look.samples));
    look.transfers
        .sort_by_key(|transfer| (transfer.begun_ns, transfer.flow));
    Ok(look)
}

/// Takes over records, without those from before the recording began.
fn take(look: &mut Look, records: Records) {
    let is_new = |sample: &Sample| sample.time_ns >= look.began_ns;
    look.samples
        .extend(records.samples.into_iter().filter(is_new));
    look.unreadable += records.unreadable;
    let transfers = records
        .events
        .into_iter()
        .filter(|event| event.kind == EventKind::Transfer);
    look.transfers.extend(transfers.map(|event| Transfer {
        begun_ns: event.begun_ns.max(look.began_ns),
        ended_ns: event.time_ns.max(look.began_ns),
        bytes: event.bytes,
        flow: event.flow,
        is_finished: true,
    }));
}
