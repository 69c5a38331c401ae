// SPDX-License-Identifier: Apache-2.0
//! HCF at a port of the simulator: `core/hcf.h` decides, the packets wait here.

use super::{DropReason, Scheduler};
use crate::engine::Ring;
use crate::packet::Packet;
use penstock_core::hcf::flow_key;
use penstock_scenario::units::Time;

/// Two FIFO queues that swap roles.
pub struct Hcf {
    core: penstock_core::Hcf,
    backlog_bytes: u64,
    queues: [Ring<Packet>; 2],
    /// Length of the fixed period, if there is one (HCF §IV-C).
    period: Option<Time>,
}

impl Hcf {
    /// An empty port.
    pub fn new(core: penstock_core::Hcf, period: Option<Time>) -> Hcf {
        Hcf {
            core,
            backlog_bytes: 0,
            queues: Default::default(),
            period,
        }
    }
}

impl Scheduler for Hcf {
    fn enqueue(&mut self, _now: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason)) {
        let key = flow_key(0, packet.flow.0, 0, 0, 0);
        match self.core.on_enqueue(key, packet.size()) {
            Some(queue) => {
                self.backlog_bytes += u64::from(packet.size());
                self.queues[queue].push(packet);
            }
            None => lost(packet, DropReason::Full),
        }
    }

    fn dequeue(&mut self, _now: Time, _lost: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let queue = self.core.on_dequeue()?;
        let packet = self.queues[queue].pop();
        self.backlog_bytes -= u64::from(packet.size());
        self.core.departed(queue, packet.size());
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    fn backlog_packets(&self) -> u32 {
        self.queues.iter().map(Ring::len).sum()
    }

    fn period(&self) -> Option<Time> {
        self.period
    }

    fn tick(&mut self, _now: Time) {
        self.core.on_tick();
    }
}
