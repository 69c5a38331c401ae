// SPDX-License-Identifier: Apache-2.0
//! SFQ, stochastic fairness queueing (McKenney 1990): flows hashed into few FIFO queues served in
//! turn; a full buffer takes from the longest; the hash is perturbed so that no two flows collide
//! forever.
//!
//! When the hash changes, waiting packets move to their new queues in order (as Linux does), so that
//! a flow is never reordered. That takes time in proportion to the packets waiting.

use std::num::NonZeroU32;

use super::fair::{FairQueues, Measure, Turn};
use super::{DropReason, Limit, Scheduler};
use crate::packet::{FlowId, Packet};
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// Parameters of [`Sfq`]; start from [`Config::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Queues that flows are hashed into.
    pub buckets: NonZeroU32,
    /// Bytes a queue may send each turn (deficit round robin); `None` for one packet (McKenney).
    pub quantum_bytes: Option<NonZeroU32>,
    /// How often the hash changes, above 0; `None` for never.
    pub perturbation: Option<Time>,
    /// The buffer, shared by all queues.
    pub limit: Limit,
}

impl Config {
    /// 128 queues, a packet each turn, a new hash every 10 s.
    pub const fn new(limit: Limit) -> Config {
        Config {
            buckets: NonZeroU32::new(128).expect("not zero"),
            quantum_bytes: None,
            perturbation: Some(Time::from_secs(10)),
            limit,
        }
    }
}

/// The state of one port under SFQ.
#[derive(Clone, Debug)]
pub struct Sfq {
    config: Config,
    queues: FairQueues,
    key: u64,
    rng: Rng,
}

impl Sfq {
    /// An empty port; the hash keys are drawn from `rng`.
    pub fn new(config: Config, mut rng: Rng) -> Sfq {
        Sfq {
            config,
            queues: empty(config),
            key: rng.bits(),
            rng,
        }
    }

    fn bucket(&self, flow: FlowId) -> u32 {
        let buckets = u64::from(self.config.buckets.get());
        let mixed = (u64::from(flow.0) ^ self.key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (((mixed >> 32) * buckets) >> 32) as u32
    }
}

fn empty(config: Config) -> FairQueues {
    let (turn, measure) = match config.quantum_bytes {
        None => (Turn::Packet, Measure::Packets),
        Some(quantum) => (Turn::Bytes(quantum), Measure::Bytes),
    };
    let mut queues = FairQueues::new(config.limit, turn, measure);
    for _ in 0..config.buckets.get() {
        queues.add();
    }
    queues
}

impl Scheduler for Sfq {
    fn enqueue(&mut self, _now: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason)) {
        self.queues.push(self.bucket(packet.flow), packet);
        while self.queues.is_over_limit()
            && let Some(left) = self.queues.steal()
        {
            lost(left.packet, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, _now: Time, _lost: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        self.queues.pop().map(|left| left.packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.queues.bytes()
    }

    fn backlog_packets(&self) -> u32 {
        self.queues.packets()
    }

    fn period(&self) -> Option<Time> {
        self.config.perturbation
    }

    /// Changes the hash.
    fn tick(&mut self, _now: Time) {
        self.key = self.rng.bits();
        let mut old = std::mem::replace(&mut self.queues, empty(self.config));
        while let Some(left) = old.pop() {
            self.queues.push(self.bucket(left.packet.flow), left.packet);
        }
    }
}

#[cfg(test)]
#[path = "sfq_tests.rs"]
mod tests;
