// SPDX-License-Identifier: Apache-2.0
//! The window seam: what window may an ACK grant its sender?
//!
//! A port's window policy watches what leaves by the port and lowers the receive window of the ACKs
//! that enter next to it. The schemes themselves are in `core/`; [`Policy`] brings any of them to the
//! packets. [`Credit`] is for windows as credit: it also sends window updates of its own, and it may be
//! where a port's link ends, behind the queue that it protects.

mod count;
mod credit;
mod flows;
mod held;
mod policy;
mod wscale;

pub use credit::Credit;
pub use flows::Flows;
pub use policy::{Policy, PortParams};
pub use wscale::{Shims, Wscale};

use crate::packet::{Packet, SynOptions, flag};
use penstock_core::flow::{Direction, FlowPacket, SCALE_NONE};
use penstock_scenario::units::Time;
use serde::Serialize;

/// What a window policy did, by the names of `core/counters.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowCounters {
    /// ACKs that passed.
    pub acks: u64,
    /// ACKs whose window was lowered.
    pub acks_rewritten: u64,
    /// ACKs whose window would have been lowered further but for the floor.
    pub acks_floored: u64,
    /// Rewritten SYN-ACKs and first ACKs of a flow.
    pub acks_first_rewritten: u64,
    /// ACKs whose window was left higher, not to take back what was offered.
    pub acks_edge_kept: u64,
    /// Times that the scheme began to clamp all flows.
    pub clamps: u64,
    /// Grants of credit.
    pub grants: u64,
    /// Reminders of grants without effect.
    pub grants_resent: u64,
    /// Grants given up after all reminders.
    pub grants_lapsed: u64,
}

/// The packet as `core/` follows flows by it.
fn flow_packet(now: Time, packet: &Packet, direction: Direction) -> FlowPacket {
    let mut seen = FlowPacket {
        now_ns: now.as_nanos(),
        seq: packet.seq,
        ack: packet.ack,
        payload: packet.payload.into(),
        flags: packet.flags as u8,
        direction,
        ..FlowPacket::default()
    };
    if packet.has(flag::SYN) {
        let options = SynOptions::unpack(packet.options);
        seen.mss = options.mss;
        seen.scale = options.window_scale.unwrap_or(SCALE_NONE);
    }
    seen
}
