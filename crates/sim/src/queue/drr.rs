// SPDX-License-Identifier: Apache-2.0
//! DRR, deficit round robin (Shreedhar and Varghese 1995): a queue per flow, each sends up to its
//! quantum of bytes a round and keeps what it could not use; a full buffer steals from the longest.
//!
//! Flows are distinguished exactly (the paper hashes them); only flows with packets waiting are held.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZeroU32;

use super::fair::{FairQueues, Left, Measure, Turn};
use super::{DropReason, Limit, Scheduler};
use crate::packet::{FlowId, Packet};
use penstock_scenario::units::Time;

/// Parameters of [`Drr`]; start from [`Config::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes a flow may send each round; no less than the largest packet, or departures take longer
    /// than constant time.
    pub quantum_bytes: NonZeroU32,
    /// The buffer, shared by all flows.
    pub limit: Limit,
}

impl Config {
    /// A quantum of 1500 bytes, an Ethernet frame's payload.
    pub const fn new(limit: Limit) -> Config {
        const FRAME: NonZeroU32 = NonZeroU32::new(1500).expect("not zero");
        Config {
            quantum_bytes: FRAME,
            limit,
        }
    }
}

/// The state of one port under DRR.
#[derive(Clone, Debug)]
pub struct Drr {
    queues: FairQueues,
    /// Queue of each flow that has packets waiting. Never iterated: its order is unspecified.
    queue_of: HashMap<FlowId, u32, BuildHasherDefault<FlowHasher>>,
    /// Empty queues.
    spare: Vec<u32>,
}

impl Drr {
    /// An empty port.
    pub fn new(config: Config) -> Drr {
        Drr {
            queues: FairQueues::new(
                config.limit,
                Turn::Bytes(config.quantum_bytes),
                Measure::Bytes,
            ),
            queue_of: HashMap::default(),
            spare: Vec::new(),
        }
    }

    fn queue_for(&mut self, flow: FlowId) -> u32 {
        let Drr {
            queues,
            queue_of,
            spare,
        } = self;
        *queue_of
            .entry(flow)
            .or_insert_with(|| spare.pop().unwrap_or_else(|| queues.add()))
    }

    fn forget_if_empty(&mut self, left: Left) -> Packet {
        if left.is_empty {
            self.queue_of.remove(&left.packet.flow);
            self.spare.push(left.queue);
        }
        left.packet
    }
}

impl Scheduler for Drr {
    fn enqueue(&mut self, _now: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason)) {
        let queue = self.queue_for(packet.flow);
        self.queues.push(queue, packet);
        while self.queues.is_over_limit()
            && let Some(left) = self.queues.steal()
        {
            lost(self.forget_if_empty(left), DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, _now: Time, _lost: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let left = self.queues.pop()?;
        Some(self.forget_if_empty(left))
    }

    fn backlog_bytes(&self) -> u64 {
        self.queues.bytes()
    }

    fn backlog_packets(&self) -> u32 {
        self.queues.packets()
    }
}

/// Multiplication by 2^64 / golden ratio; the standard hasher costs more than the rest of DRR.
#[derive(Clone, Copy, Debug, Default)]
struct FlowHasher(u64);

impl Hasher for FlowHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, value: u32) {
        let product = (self.0 ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[cfg(test)]
#[path = "drr_tests.rs"]
mod tests;
