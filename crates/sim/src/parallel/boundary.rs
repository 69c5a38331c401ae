// SPDX-License-Identifier: Apache-2.0
//! The links between shards: the port belongs to one shard, the arrivals to another.
//!
//! A port at the boundary works as any other, but nothing arrives by its link in its own shard. What
//! was sent during a round is handed over at its end.

use super::Partition;
use crate::fabric::Fabric;
use crate::network::{InFlight, Network, SackList};
use penstock_scenario::units::Time;

/// The links that lead out of a shard, and what has left by them.
#[derive(Default)]
pub(super) struct Boundary {
    links: Vec<Leaving>,
    /// For each shard; for the own one, what comes back from a shared switch.
    outboxes: Vec<Crossings>,
}

struct Leaving {
    link: u32,
    /// The shard at its far end, or [`Partition::SHARED`].
    to: u16,
    /// The entrance by which packets come back to this shard from a shared switch.
    back: u32,
    /// Packets handed over, by the numbering of the link's ring.
    handed: u32,
}

/// Packets on their way from one shard to another.
pub(super) struct Crossings {
    packets: Vec<Crossing>,
    /// SACK blocks of those that carry some, in the same order.
    sacks: Vec<SackList>,
    /// The first arrival.
    first: Time,
}

struct Crossing {
    link: u32,
    packet: InFlight,
}

impl Default for Crossings {
    fn default() -> Crossings {
        Crossings {
            packets: Vec::new(),
            sacks: Vec::new(),
            first: Time::NEVER,
        }
    }
}

impl Crossings {
    /// The first arrival; [`Time::NEVER`] for none.
    pub fn first(&self) -> Time {
        self.first
    }

    fn push(&mut self, link: u32, packet: InFlight, sack: Option<SackList>) {
        self.sacks.extend(sack);
        self.first = self.first.min(packet.arrives);
        self.packets.push(Crossing { link, packet });
    }

    /// Puts all packets on their links in `network`, where they arrive in time.
    pub fn enter(&mut self, network: &mut Network) {
        let mut sacks = self.sacks.iter();
        for Crossing { link, packet } in self.packets.drain(..) {
            network.enter(link, packet, &mut sacks);
        }
        self.sacks.clear();
        self.first = Time::NEVER;
    }
}

impl Boundary {
    /// Cuts the links of shard number `own` that lead elsewhere.
    pub fn cut(
        fabric: &Fabric,
        partition: &Partition,
        own: u16,
        network: &mut Network,
    ) -> Boundary {
        let mut boundary = Boundary::default();
        let shards = partition.shards();
        boundary.outboxes.resize_with(shards, Crossings::default);
        for (link, spec) in (0..).zip(&fabric.links) {
            let to = partition.of_node(spec.to);
            if partition.of_port(link) == own && to != own {
                network.cut(link);
                let back = match to {
                    Partition::SHARED => network.add_entrance(spec),
                    _ => link,
                };
                boundary.links.push(Leaving {
                    link,
                    to,
                    back,
                    handed: 0,
                });
            }
        }
        boundary
    }

    /// Gathers what was sent to other shards since the last round. All shards have reached `now`.
    pub fn gather(&mut self, now: Time, partition: &Partition, own: u16, network: &mut Network) {
        for leaving in &mut self.links {
            let outboxes = &mut self.outboxes;
            network.take_sent(
                now,
                leaving.link,
                &mut leaving.handed,
                |paths, packet, sack| {
                    let mut to = leaving.to;
                    if to == Partition::SHARED {
                        let hop = u32::from(packet.packet.hop) + 1;
                        let onward = paths.step(packet.packet.flow, hop);
                        to = partition.of_port(onward.link());
                    }
                    // Chosen without a branch, which would be mispredicted half of the time.
                    let link = [leaving.link, leaving.back][usize::from(to == own)];
                    outboxes[usize::from(to)].push(link, packet, sack);
                },
            );
        }
        if let Some(back) = self.outboxes.get_mut(usize::from(own)) {
            back.enter(network);
        }
    }

    /// Exchanges what was gathered for shard number `to` for something empty.
    pub fn exchange(&mut self, to: usize, other: &mut Crossings) {
        std::mem::swap(&mut self.outboxes[to], other);
    }
}
