// SPDX-License-Identifier: Apache-2.0
//! The window seam: what window may an ACK grant its sender?
//!
//! A port's window policy watches what leaves by the port and lowers the receive window of the ACKs
//! that enter next to it. The schemes themselves are in `core/`; [`Policy`] brings any of them to the
//! packets. A
//! scheme that holds ACKs back or sends window updates of its own would answer from the same two
//! calls: [`Window::on_ack`] is given the whole packet, and the network can inject at any port.

mod count;
mod flows;
mod policy;
mod wscale;

pub use flows::Flows;
pub use policy::{Policy, PortParams};
pub use wscale::{Shims, Wscale};

use crate::packet::{Packet, SynOptions, flag};
use penstock_core::flow::{Direction, FlowPacket, SCALE_NONE};
use penstock_scenario::units::Time;

/// What a window policy did, by the names of `core/counters.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// A window policy of one output port.
pub trait Window: Send {
    /// `packet` is about to join the port's queue of `backlog_bytes`. `slot` is where the table of
    /// flows holds what this port knows of the flow.
    fn on_departure(
        &mut self,
        now: Time,
        packet: &Packet,
        flows: &mut Flows,
        slot: usize,
        backlog_bytes: u64,
    );

    /// Whether to drop `packet`, which finds `backlog_bytes` queued, to keep room for others.
    fn drops(&self, _packet: &Packet, _backlog_bytes: u64) -> bool {
        false
    }

    /// `packet` has entered by the port's link. If it is an ACK its window may be lowered; else it is
    /// a SYN or RST, from which the port only learns.
    fn on_ack(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flows: &mut Flows,
        slot: usize,
        backlog_bytes: u64,
    );

    /// How often [`Window::tick`] wants to be called; `None` for never.
    fn period(&self) -> Option<Time> {
        None
    }

    /// Periodic work.
    fn tick(&mut self, _now: Time, _flows: &mut Flows, _backlog_bytes: u64) {}

    /// What it did so far.
    fn counters(&self) -> WindowCounters;
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
