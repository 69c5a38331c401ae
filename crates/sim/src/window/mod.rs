// SPDX-License-Identifier: Apache-2.0
//! The window seam: what may an ACK tell its sender?
//!
//! A port's window policy watches what leaves by the port and lowers the receive window of the ACKs
//! that enter beside it. The policies themselves are in `core/`; here they meet the packets. A
//! scheme that holds ACKs back or sends window updates of its own would answer from the same two
//! calls: [`Window::on_ack`] is given the whole packet, and the network can inject at any port.

mod carrier;
mod count;
mod fairq;
mod hscc;

pub use carrier::{Carrier, NETWORK_SCALE, Shims};
pub use count::Counting;
pub use fairq::Fairq;
pub use hscc::Hscc;
pub use penstock_core::FlowEntry;

use crate::packet::{Packet, SynOptions, flag};
use penstock_core::flow_count::{Direction, FlowPacket, SCALE_NONE};
use penstock_core::tcp_rewrite::TcpWindow;
use penstock_scenario::units::Time;

/// ACKs after the handshake that count as a flow's first: they decide its first flight.
pub const FIRST_ACKS: u8 = 1;

/// What a window policy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounters {
    /// ACKs that passed.
    pub acks: u64,
    /// Windows lowered.
    pub rewrites: u64,
    /// Windows lowered no further than to the floor of one or two segments.
    pub floors: u64,
    /// Times that clamping began (HSCC).
    pub clamps: u64,
}

impl WindowCounters {
    fn count(&mut self, window: TcpWindow) {
        self.acks += 1;
        self.rewrites += u64::from(window.changed);
        self.floors += u64::from(window.floored);
    }
}

/// A window policy of one output port.
pub trait Window: Send {
    /// `packet` is about to join the port's queue of `backlog_bytes`; false: drop it. `slot` is
    /// where the table of flows holds what this port knows of the flow.
    fn on_departure(
        &mut self,
        now: Time,
        packet: &Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        backlog_bytes: u64,
    ) -> bool;

    /// `packet` has entered beside the port. If it is an ACK its window may be lowered; else it is
    /// a SYN or RST, from which the port only learns.
    fn on_ack(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        backlog_bytes: u64,
    );

    /// How often [`Window::tick`] wants to be called; `None` for never.
    fn period(&self) -> Option<Time> {
        None
    }

    /// Periodic work.
    fn tick(&mut self, _now: Time, _flows: &mut [FlowEntry], _backlog_bytes: u64) {}

    /// What it did so far.
    fn counters(&self) -> WindowCounters;
}

/// The packet as the flow count of `core/` takes it.
fn flow_packet(now: Time, packet: &Packet, direction: Direction) -> FlowPacket {
    let mut seen = FlowPacket {
        now_ns: now.as_nanos(),
        seq: packet.seq,
        payload: packet.payload,
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
