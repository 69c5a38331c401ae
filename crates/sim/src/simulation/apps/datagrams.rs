// SPDX-License-Identifier: Apache-2.0
//! UDP background traffic.

use crate::distribution::Poisson;
use crate::network::Network;
use crate::packet::{FlowId, Packet, flag};
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// IP and UDP headers, bytes.
const HEADER: u8 = 28;

/// When datagrams are sent, and how large they are.
pub struct Datagrams {
    /// Bytes of a datagram on the wire, headers included.
    pub size: u16,
    /// Time between two datagrams.
    pub gaps: Gaps,
    /// No more from here on.
    pub stop: Time,
    /// Draws the gaps.
    pub rng: Rng,
}

/// Times between datagrams.
pub enum Gaps {
    /// Always the same; the first datagram comes at a time uniform in the first gap.
    Constant(Time),
    /// Those of a Poisson process.
    Poisson(Poisson),
}

impl Datagrams {
    /// Time from the start to the first datagram.
    pub fn first_gap(&mut self) -> Time {
        match &self.gaps {
            Gaps::Constant(gap) => Time(self.rng.below(gap.0.max(1))),
            Gaps::Poisson(_) => self.next_gap(),
        }
    }

    /// Time to the next datagram.
    pub fn next_gap(&mut self) -> Time {
        match &self.gaps {
            Gaps::Constant(gap) => *gap,
            Gaps::Poisson(process) => process.gap(&mut self.rng),
        }
    }
}

/// A source of datagrams in the network. No end point answers its flow.
pub(super) struct DatagramFlow {
    pub flow: FlowId,
    pub datagrams: Datagrams,
}

impl DatagramFlow {
    /// Sends the datagram that is due; returns when to send the next, `None` once it has stopped.
    pub fn send(&mut self, network: &mut Network, now: Time) -> Option<Time> {
        if now >= self.datagrams.stop {
            return None;
        }
        let packet = Packet {
            flow: self.flow,
            payload: self.datagrams.size - HEADER as u16,
            header: HEADER,
            flags: flag::UDP,
            ..Packet::default()
        };
        network.inject(now, packet, &[]);
        Some(now.saturating_add(self.datagrams.next_gap()))
    }
}
