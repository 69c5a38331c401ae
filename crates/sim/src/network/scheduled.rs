// SPDX-License-Identifier: Apache-2.0
//! Ports whose policy holds the packets: there a departure is an event.

use super::link::feature;
use super::paths::Paths;
use super::pfc::Pfc;
use super::wires::Wires;
use crate::packet::Packet;
use crate::queue::{DropReason, Scheduler};
use penstock_scenario::units::Time;

/// A packet has left the queue of `link`: it counts no longer for the link by which it came in.
#[inline]
fn left(now: Time, link: u32, packet: &Packet, wires: &Wires, paths: &Paths, pfc: &mut Pfc) {
    if wires.link(link).features & feature::PFC != 0 && packet.hop > 0 {
        let came_by = paths.step(packet.flow, u32::from(packet.hop) - 1).link();
        pfc.leave(now, came_by, packet.size().into());
    }
}

/// A port, the link that it feeds, and the packets it holds.
pub(super) struct ScheduledPort {
    link: u32,
    queue: Box<dyn Scheduler>,
    /// Its number among the ports of this kind.
    number: u32,
    /// A departure is in the calendar.
    is_waiting: bool,
    peak_bytes: u64,
}

impl ScheduledPort {
    /// Port number `number` of this kind, empty; it feeds `link`.
    pub fn new(number: u32, link: u32, queue: Box<dyn Scheduler>) -> ScheduledPort {
        ScheduledPort {
            link,
            queue,
            number,
            is_waiting: false,
            peak_bytes: 0,
        }
    }

    /// The link that it feeds.
    pub fn link(&self) -> u32 {
        self.link
    }

    /// The policy that holds the packets.
    pub fn queue(&self) -> &dyn Scheduler {
        self.queue.as_ref()
    }

    /// The port may send again.
    pub fn go_on(&mut self, now: Time, wires: &mut Wires, paths: &Paths, pfc: &mut Pfc) {
        if self.is_waiting || self.queue.backlog_packets() == 0 {
            return;
        }
        let free_at = wires.link(self.link).free_at;
        if free_at <= now {
            self.depart(now, wires, paths, pfc);
        } else {
            self.is_waiting = true;
            wires.events().set_departure(self.number, free_at);
        }
    }

    /// Periodic work of the policy; returns its period.
    pub fn tick(&mut self, now: Time) -> Option<Time> {
        self.queue.tick(now);
        self.queue.period()
    }

    /// Longest queue so far, bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// A packet arrives at the port.
    pub fn arrive(
        &mut self,
        now: Time,
        packet: Packet,
        wires: &mut Wires,
        paths: &Paths,
        pfc: &mut Pfc,
    ) {
        if self.is_waiting && wires.link(self.link).free_at <= now {
            // A departure and this arrival are simultaneous: what leaves makes room first.
            self.depart(now, wires, paths, pfc);
        }
        let link = self.link;
        self.queue.enqueue(now, packet, &mut |packet, reason| {
            left(now, link, &packet, wires, paths, pfc);
            wires.lose(link, packet, reason);
        });
        let port = wires.link(link);
        let backlog = port.backlog_bytes(now) + self.queue.backlog_bytes();
        self.peak_bytes = self.peak_bytes.max(backlog);
        if !self.is_waiting && !pfc.is_paused(link) {
            if port.free_at <= now {
                self.depart(now, wires, paths, pfc);
            } else {
                self.is_waiting = true;
                let departs = port.free_at;
                wires.events().set_departure(self.number, departs);
            }
        }
    }

    /// The transmitter is free: it sends the next packet.
    pub fn depart(&mut self, now: Time, wires: &mut Wires, paths: &Paths, pfc: &mut Pfc) {
        let link = self.link;
        if pfc.is_paused(link) {
            self.is_waiting = false;
            return wires.events().set_departure(self.number, Time::NEVER);
        }
        let mut lose = |packet: Packet, reason: DropReason| {
            left(now, link, &packet, wires, paths, pfc);
            wires.lose(link, packet, reason);
        };
        if let Some(packet) = self.queue.dequeue(now, &mut lose) {
            left(now, link, &packet, wires, paths, pfc);
            let onward = paths.onward(packet.flow, packet.hop);
            match wires.is_traced(link) {
                false => wires.transmit(now, link, packet, packet.hop, onward),
                true => wires.transmit_traced(now, link, packet, onward),
            }
        }
        self.is_waiting = self.queue.backlog_packets() > 0;
        let next = match self.is_waiting {
            true => wires.link(link).free_at,
            false => Time::NEVER,
        };
        wires.events().set_departure(self.number, next);
    }
}
