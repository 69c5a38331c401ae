// SPDX-License-Identifier: Apache-2.0
//! What a call of an end point comes with, and what it returns.

use super::Config;
use crate::packet::{FlowId, Packet, SackBlock};
use penstock_scenario::units::Time;

/// Where segments leave.
pub trait Wire {
    /// Sends `segment` (its `hop` is 0) with `sack` blocks. The network keeps the blocks and sets
    /// the segment's `options` handle where there are any.
    fn send(&mut self, segment: Packet, sack: &[SackBlock]);

    /// How long the host's own link would need for what it was given, and `bytes` of `flow` more.
    fn host_wait(&self, _flow: FlowId, _bytes: u32) -> Time {
        Time::ZERO
    }
}

/// The settings, the time and the wire of one call.
#[derive(Debug)]
pub struct Ctx<'a, W> {
    /// The end point's settings: the same in all calls of a connection.
    pub cfg: &'a Config,
    /// The time of the call; it never runs backwards.
    pub now: Time,
    /// Where segments leave.
    pub wire: &'a mut W,
}

/// What happened during a call, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u8);

impl Events {
    /// Nothing.
    pub const NONE: Events = Events(0);
    /// The handshake is complete.
    pub const CONNECTED: Events = Events(1);
    /// Payload became available in order ([`Endpoint::delivered`](super::Endpoint::delivered)).
    pub const DELIVERED: Events = Events(1 << 1);
    /// All that was written is acknowledged.
    pub const ALL_ACKED: Events = Events(1 << 2);
    /// The peer's FIN arrived in order: it will send no more.
    pub const PEER_CLOSED: Events = Events(1 << 3);
    /// The connection is gone; the end point is CLOSED.
    pub const CLOSED: Events = Events(1 << 4);
    /// It went by a RST or because retransmissions were given up.
    pub const RESET: Events = Events(1 << 5);

    /// Whether any of `other` is in the set.
    pub const fn has(self, other: Events) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing happened.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn add(&mut self, other: Events) {
        self.0 |= other.0;
    }
}
