// SPDX-License-Identifier: Apache-2.0
//! TCP by the RFCs: one side of one connection as a pure state machine.
//!
//! It has no clock, no queue and no idea of the network. Time comes in with every call, segments
//! leave through a [`Wire`], and [`Endpoint::deadline`] says when it wants to be called next.
//!
//! Where to find what:
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the settings and the profiles `newreno_ns2` and `linux` |
//! | `endpoint.rs`, `api.rs` | the state; the application's calls |
//! | `handshake.rs`, `teardown.rs` | opening (RFC 9293 §3.5), FIN, RST and TIME-WAIT (§3.6) |
//! | `fast.rs` | the common case of what follows, for connections without options |
//! | `input.rs` | an arriving segment: the checks of RFC 9293 §3.10.7 |
//! | `ack.rs` | what an acknowledgement does to the sender |
//! | `receive.rs` | reassembly, SACK blocks, when to acknowledge, the window offered |
//! | `output.rs` | what may be sent now: windows, Nagle, silly windows; building of segments |
//! | `timers.rs`, `rto.rs` | the timers; round-trip estimate and timeout (RFC 6298) |
//! | `recovery/` | NewReno (RFC 6582), scoreboard and SACK (6675), RACK-TLP (8985), PRR (6937) |
//! | `congestion/` | NewReno (RFC 5681), CUBIC (9438), DCTCP (8257) |
//! | `ecn.rs` | ECN (RFC 3168) |
//!
//! Sequence numbers are held as 64-bit offsets from the initial one (the SYN is 0, the first
//! payload byte 1) and wrap to 32 bits on the wire only, so that comparisons are plain.

mod ack;
mod api;
mod config;
mod congestion;
mod ecn;
mod endpoint;
mod fast;
mod handshake;
mod input;
mod output;
mod receive;
mod recovery;
mod rto;
mod stats;
mod teardown;
mod timers;

use crate::packet::{Packet, SackBlock};

pub use config::{
    Algorithm, Config, Counting, DecreaseFrom, Idle, InitialSequence, Nagle, Recovery, RtoFloor,
};
pub use endpoint::{Endpoint, State};
pub use stats::Stats;

/// Where segments leave.
pub trait Wire {
    /// Sends `segment` (its `hop` is 0) with `sack` blocks. The network keeps the blocks and sets
    /// the segment's `options` handle where there are any.
    fn send(&mut self, segment: Packet, sack: &[SackBlock]);
}

/// What happened during a call, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u8);

impl Events {
    /// Nothing.
    pub const NONE: Events = Events(0);
    /// The handshake is complete.
    pub const CONNECTED: Events = Events(1);
    /// Payload became available in order ([`Endpoint::delivered`], [`Endpoint::readable`]).
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

    pub(crate) fn add(&mut self, other: Events) {
        self.0 |= other.0;
    }
}
