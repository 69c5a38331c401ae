// SPDX-License-Identifier: Apache-2.0
//! What loses packets before the queue of a port: a link that fails, a buffer that others have filled.

use crate::queue::DropReason;
use crate::rng::Rng;
use penstock_scenario::units::Time;
use penstock_scenario::{PortChange, SharedBuffer, Span};

/// How a link fails.
pub struct Failures {
    loss: f64,
    down: Vec<Span>,
    rng: Rng,
}

impl Failures {
    /// As the scenario has it for this port; `None` if it does not fail.
    pub fn new(change: &PortChange, rng: Rng) -> Option<Failures> {
        change.fails().then(|| Failures {
            loss: change.loss.0,
            down: change.down.clone(),
            rng,
        })
    }

    /// Why a packet is lost, if it is.
    pub(super) fn strike(&mut self, now: Time) -> Option<DropReason> {
        if self.down.iter().any(|span| span.contains(now)) {
            return Some(DropReason::Down);
        }
        (self.rng.unit() < self.loss).then_some(DropReason::Lossy)
    }
}

/// A buffer that ports share, as [`SharedBuffer`] explains.
pub struct Shared {
    bytes: u64,
    alpha: f64,
    ports: Vec<u32>,
    /// The queues together hold at most so much: what they held when last counted, and what has come
    /// since.
    most_held: u64,
}

impl Shared {
    /// The buffer that the ports (links) of a switch share.
    pub fn new(buffer: &SharedBuffer, packet_bytes: u64, ports: Vec<u32>) -> Shared {
        Shared {
            bytes: buffer.size.bytes(packet_bytes),
            alpha: buffer.alpha,
            ports,
            most_held: 0,
        }
    }

    pub(super) fn ports(&self) -> &[u32] {
        &self.ports
    }

    /// Whether a packet of `size` bytes may join `queue` bytes of one of the ports, as far as it shows
    /// without counting: the less is held, the more may join.
    pub(super) fn surely_holds(&self, queue: u64, size: u64) -> Option<bool> {
        if self.has_room(self.most_held, queue, size) {
            return Some(true);
        }
        (!self.has_room(queue, queue, size)).then_some(false)
    }

    /// The same, where all queues together hold `held` bytes.
    pub(super) fn holds(&mut self, held: u64, queue: u64, size: u64) -> bool {
        self.most_held = held;
        self.has_room(held, queue, size)
    }

    /// A packet of `size` bytes may have joined a queue.
    pub(super) fn add(&mut self, size: u64) {
        self.most_held += size;
    }

    /// Whether there is room for it if all queues together hold `held` bytes.
    pub(super) fn has_room(&self, held: u64, queue: u64, size: u64) -> bool {
        let free = self.bytes.saturating_sub(held);
        size <= free && (queue + size) as f64 <= self.alpha * free as f64
    }
}
