// SPDX-License-Identifier: Apache-2.0
//! What is counted of a port.

use crate::queue::DropReason;
use crate::window::WindowCounters;
use penstock_scenario::units::Time;

/// What a port did, since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Packets lost, by reason.
    pub drops: [u64; DropReason::ALL.len()],
    /// Packets marked congestion experienced.
    pub marks: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes sent since [`Network::start_measuring`](super::Network::start_measuring).
    pub measured_bytes: u64,
    /// Longest queue met by a packet, itself included, bytes.
    pub peak_bytes: u64,
    /// How often it has paused for the switch at its far end, and for how long; `None` without flow control there.
    pub paused: Option<(u64, Time)>,
    /// What the window policy did.
    pub window: WindowCounters,
}

impl PortCounters {
    /// Packets lost, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }
}
