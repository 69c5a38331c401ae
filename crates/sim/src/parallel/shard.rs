// SPDX-License-Identifier: Apache-2.0
//! The seam between a simulation and the other shards of its fabric.

use super::Partition;
use super::boundary::{Boundary, Crossings};
use crate::fabric::Fabric;
use crate::network::Network;
use penstock_scenario::units::Time;
use std::sync::Arc;

/// A simulation's place among the shards: which hosts and ports are its own, and what it has for
/// the others.
pub struct Shard<M> {
    number: u16,
    partition: Arc<Partition>,
    /// Messages for each shard, in the order of the events.
    outboxes: Vec<Vec<M>>,
    boundary: Boundary,
}

/// What one shard sends another at the end of a round.
pub struct Batch<M> {
    messages: Vec<M>,
    packets: Crossings,
}

impl<M> Default for Batch<M> {
    fn default() -> Batch<M> {
        Batch {
            messages: Vec::new(),
            packets: Crossings::default(),
        }
    }
}

impl<M> Batch<M> {
    /// When the first of its packets arrives; [`Time::NEVER`] for none.
    pub fn first_arrival(&self) -> Time {
        self.packets.first()
    }

    /// Whether it has messages.
    pub fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Puts messages in, in exchange for something empty.
    #[cfg(test)]
    pub fn put(&mut self, messages: &mut Vec<M>) {
        std::mem::swap(&mut self.messages, messages);
    }

    /// Takes out the messages, in the order in which they were sent.
    pub fn messages(&mut self) -> impl Iterator<Item = M> {
        self.messages.drain(..)
    }

    /// Puts the packets on their links in `network`.
    pub fn enter(&mut self, network: &mut Network) {
        self.packets.enter(network);
    }
}

impl<M: Clone> Shard<M> {
    /// Shard number `number` of the partition; cuts the links of `network` that lead out of it.
    pub fn new(
        fabric: &Fabric,
        partition: Arc<Partition>,
        number: u16,
        network: &mut Network,
    ) -> Shard<M> {
        let boundary = Boundary::cut(fabric, &partition, number, network);
        let mut outboxes = Vec::new();
        outboxes.resize_with(partition.shards(), Vec::new);
        Shard {
            number,
            partition,
            outboxes,
            boundary,
        }
    }

    /// Whether the host is simulated here.
    pub fn has_host(&self, host: u32) -> bool {
        self.partition.of_node(host) == self.number
    }

    /// Whether the port of this link is.
    pub fn has_port(&self, link: u32) -> bool {
        self.partition.of_port(link) == self.number
    }

    /// The `count`th of a sequence of numbers that no other shard has one of.
    pub fn own_number(&self, count: u64) -> u64 {
        count * self.partition.shards() as u64 + u64::from(self.number)
    }

    /// The first number of that sequence from `least` on.
    pub fn next_own_number(&self, least: usize) -> usize {
        let shards = self.partition.shards();
        least + (usize::from(self.number) + shards - least % shards) % shards
    }

    /// Whether `number` is of that sequence.
    pub fn is_own_number(&self, number: usize) -> bool {
        number % self.partition.shards() == usize::from(self.number)
    }

    /// Sends a message to the shard of `host`, unless that is this one.
    pub fn send(&mut self, host: u32, message: M) {
        let to = self.partition.of_node(host);
        if to != self.number {
            self.outboxes[usize::from(to)].push(message);
        }
    }

    /// Sends a message to each other shard that has a port of `path`.
    pub fn send_along(&mut self, path: &[u32], message: &M) {
        let owner = |link: &u32| self.partition.of_port(*link);
        for (index, link) in path.iter().enumerate() {
            let to = owner(link);
            if to != self.number && !path[..index].iter().any(|link| owner(link) == to) {
                self.outboxes[usize::from(to)].push(message.clone());
            }
        }
    }

    /// The round has ended at `now`: gathers the packets that left for other shards.
    pub fn gather(&mut self, now: Time, network: &mut Network) {
        let Shard {
            number,
            partition,
            boundary,
            ..
        } = self;
        boundary.gather(now, partition, *number, network);
    }

    /// Puts what there is for shard number `to` into `batch`, which is empty.
    pub fn fill(&mut self, to: usize, batch: &mut Batch<M>) {
        std::mem::swap(&mut self.outboxes[to], &mut batch.messages);
        self.boundary.exchange(to, &mut batch.packets);
    }
}
