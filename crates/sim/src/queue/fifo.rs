// SPDX-License-Identifier: Apache-2.0
//! Drop-tail as a [`Scheduler`]: for ports that must be able to pause.

use super::{DropReason, Limit, Scheduler};
use crate::packet::Packet;
use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// Packets in the order of their arrival.
pub struct Fifo {
    limit: Limit,
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Fifo {
    /// Empty; `limit`: what may wait.
    pub fn new(limit: Limit) -> Fifo {
        Fifo {
            limit,
            packets: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl Scheduler for Fifo {
    fn enqueue(&mut self, _: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason)) {
        let bytes = self.bytes + u64::from(packet.size());
        if self.limit.holds(bytes, self.packets.len() as u32 + 1) {
            self.bytes = bytes;
            self.packets.push_back(packet);
        } else {
            lost(packet, DropReason::Full);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.bytes
    }

    fn backlog_packets(&self) -> u32 {
        self.packets.len() as u32
    }
}
