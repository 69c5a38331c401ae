// SPDX-License-Identifier: Apache-2.0
//! Links between two parts of a fabric: the port belongs to the one part, the arrivals to the other.
//!
//! A port works as any other, but nothing arrives by its link; what was sent since the last
//! exchange is handed over at the next one.

use super::link::{End, InFlight, Link};
use super::sacks::Entry;
use super::{Network, Packet};
use crate::fabric::Fabric;
use crate::packet::flag;
use crate::parallel::Partition;
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// The links that lead out of a part.
#[derive(Default)]
pub(super) struct Boundary {
    own: u16,
    links: Vec<Leaving>,
    /// The part of each port.
    owners: Vec<u16>,
    /// For each part; what comes back to this one from a shared switch, too.
    outbox: Vec<Crossings>,
}

struct Leaving {
    link: u32,
    /// The part at its far end, or [`Partition::SHARED`].
    to: u16,
    /// The link, which is no port, by which packets for this part arrive at a shared switch.
    back: u32,
    /// Packets handed over, by the ring's numbering.
    handed: u32,
}

/// Packets that leave for another part.
pub struct Crossings {
    packets: Vec<Crossing>,
    /// SACK blocks of those that carry some, in the same order.
    sacks: Vec<Entry>,
    /// The first arrival.
    first: Time,
}

struct Crossing {
    link: u32,
    entry: InFlight,
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
}

impl Network {
    /// This network is part number `own`: it hands over what leaves for others.
    pub fn set_part(&mut self, fabric: &Fabric, partition: &Partition, own: u16, seed: u64) {
        self.rng = Rng::new(seed, u64::from(own) << 40);
        let boundary = &mut self.boundary;
        boundary.own = own;
        boundary.owners.clone_from(&partition.ports);
        let parts = partition.parts;
        boundary.outbox.resize_with(parts, Crossings::default);
        for (link, spec) in (0..).zip(&fabric.links) {
            let to = partition.nodes[spec.to as usize];
            if partition.ports[link as usize] == own && to != own {
                self.links[link as usize].end = End::Away;
                boundary.links.push(Leaving {
                    link,
                    to,
                    back: self.links.len() as u32,
                    handed: 0,
                });
                if to == Partition::SHARED {
                    let arrivals = Link::new(spec.rate, spec.delay, spec.buffer, End::Switch);
                    self.links.push(arrivals);
                }
            }
        }
    }

    /// Takes out what was sent to other parts since the last time. All parts have reached `now`.
    pub fn hand_over(&mut self, now: Time) {
        let Boundary {
            own,
            links,
            owners,
            outbox,
        } = &mut self.boundary;
        for leaving in links {
            let port = &mut self.links[leaving.link as usize];
            let taken = port.ring.taken();
            for index in leaving.handed.wrapping_sub(taken)..port.ring.len() {
                let entry = *port.ring.get(index);
                let packet = &entry.packet;
                let mut to = leaving.to;
                if to == Partition::SHARED {
                    let onward = self.paths.step(packet.flow, u32::from(packet.hop) + 1);
                    to = owners[onward.link() as usize];
                }
                // Chosen without a branch, which would be mispredicted half of the time.
                let link = [leaving.link, leaving.back][usize::from(to == *own)];
                let outbox = &mut outbox[usize::from(to)];
                if carries_sack(packet) {
                    outbox.sacks.push(self.sacks.take_entry(packet));
                }
                outbox.first = outbox.first.min(entry.arrives);
                outbox.packets.push(Crossing { link, entry });
            }
            leaving.handed = taken.wrapping_add(port.ring.len());
            port.forget_sent(now);
        }
        let own = usize::from(*own);
        if !outbox.is_empty() {
            let mut back = std::mem::take(&mut outbox[own]);
            self.receive(&mut back);
            self.boundary.outbox[own] = back;
        }
    }

    /// What was handed over for part number `part`, in exchange for something empty.
    pub fn exchange(&mut self, part: usize, other: &mut Crossings) {
        std::mem::swap(&mut self.boundary.outbox[part], other);
    }

    /// Packets come in from another part; all arrive later than anything done so far.
    pub fn receive(&mut self, crossings: &mut Crossings) {
        let mut sacks = crossings.sacks.iter();
        for Crossing { link, mut entry } in crossings.packets.drain(..) {
            if carries_sack(&entry.packet)
                && let Some(blocks) = sacks.next()
            {
                entry.packet.options = self.sacks.put(blocks.blocks());
            }
            let ring = &mut self.links[link as usize].ring;
            if ring.is_empty() {
                let source = self.first_link + link as usize;
                self.calendar.set(source, entry.arrives);
            }
            ring.push(entry);
        }
        crossings.sacks.clear();
        crossings.first = Time::NEVER;
    }

    /// Takes the ports that `is_theirs` names out of another part's network, to tell their counts.
    pub fn adopt(&mut self, other: &mut Network, is_theirs: impl Fn(usize) -> bool) {
        for link in (0..self.ports.len()).filter(|link| is_theirs(*link)) {
            std::mem::swap(&mut self.links[link], &mut other.links[link]);
            self.ports[link] = std::mem::take(&mut other.ports[link]);
        }
        let first = self.scheduled.len() as u32;
        self.scheduled.append(&mut other.scheduled);
        for (link, port) in self.ports.iter_mut().enumerate() {
            if is_theirs(link) {
                port.scheduled = port.scheduled.map(|index| first + index);
            }
        }
    }

    /// When something happens next.
    pub fn next_time(&self) -> Time {
        self.calendar.first().0
    }
}

fn carries_sack(packet: &Packet) -> bool {
    packet.options != 0 && !packet.has(flag::SYN)
}
