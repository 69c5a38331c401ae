// SPDX-License-Identifier: Apache-2.0
//! What ports with a policy do to packets: the slower way of those that are more than drop-tail.

use super::link::feature;
use super::{Network, PortCounters, Report, Sacks, Scheduled};
use crate::packet::{FlowId, Packet, flag};
use crate::queue::{Arrival, DropReason, Scheduler, Verdict};
use crate::window::FlowEntry;
use penstock_scenario::units::Time;

impl Network {
    /// A packet passes the shim on its way up to its host.
    #[inline(never)]
    pub(super) fn through_shim(&mut self, packet: &mut Packet) {
        if let Some(shims) = &mut self.shims {
            shims.on_delivery(packet);
        }
    }

    /// The way through a port that does more than drop-tail.
    #[inline(never)]
    pub(super) fn send_by_policy(&mut self, now: Time, link: u32, mut packet: Packet) {
        let features = self.links[link as usize].features;
        if let Some(shims) = self
            .shims
            .as_mut()
            .filter(|_| features & feature::SHIM != 0)
        {
            shims.on_departure(&mut packet);
        }
        if features & feature::REPORT != 0 && packet.has_any(flag::SYN | flag::FIN) {
            self.reports.push(Report {
                link,
                time: now,
                packet,
            });
        }
        if features & feature::WINDOW != 0 && !self.on_departure(now, link, &packet) {
            return self.lose(link, packet, DropReason::Reserved);
        }
        if features & feature::SCHEDULER != 0 {
            return self.schedule(now, link, packet);
        }
        let extra = &mut self.ports[link as usize];
        if let Some(policy) = &mut extra.admission {
            let port = &mut self.links[link as usize];
            let arrival = Arrival {
                now,
                backlog_bytes: port.backlog_bytes(now),
                backlog_packets: port.held_packets(now).saturating_sub(1),
                free_at: port.free_at,
            };
            if port.has_room(now, &packet) {
                match policy.admit(&arrival, &packet, &mut self.rng) {
                    Verdict::Pass => {}
                    Verdict::Mark => {
                        packet.flags |= flag::CE;
                        extra.counters.marks += 1;
                    }
                    Verdict::Drop(reason) => return self.lose(link, packet, reason),
                }
            } else {
                policy.overflow(&arrival, &packet);
            }
        }
        self.transmit(now, link, packet, packet.hop);
    }
}

/// Ports whose policy holds the packets: a departure is an event.
impl Network {
    fn schedule(&mut self, now: Time, link: u32, packet: Packet) {
        let Some(port) = self.ports[link as usize].scheduled else {
            return;
        };
        if self.scheduled[port as usize].waiting && self.links[link as usize].free_at <= now {
            // A departure and this arrival are simultaneous: what leaves makes room first.
            self.depart(now, port);
        }
        self.with_queue(port, |queue, lost| queue.enqueue(now, packet, lost));
        let peak = self.backlog_bytes(now, link);
        let counters = &mut self.ports[link as usize].counters;
        counters.peak_bytes = counters.peak_bytes.max(peak);
        if !self.scheduled[port as usize].waiting && self.links[link as usize].free_at <= now {
            self.depart(now, port);
        } else if !self.scheduled[port as usize].waiting {
            self.scheduled[port as usize].waiting = true;
            self.calendar
                .set(port as usize, self.links[link as usize].free_at);
        }
    }

    /// The transmitter of scheduled port number `port` is free: it sends the next packet.
    pub fn depart(&mut self, now: Time, port: u32) {
        let next = self.with_queue(port, |queue, lost| queue.dequeue(now, lost));
        let link = self.scheduled[port as usize].link;
        if let Some(packet) = next {
            self.transmit(now, link, packet, packet.hop);
        }
        let waiting = self.scheduled[port as usize].queue.backlog_packets() > 0;
        self.scheduled[port as usize].waiting = waiting;
        let next = if waiting {
            self.links[link as usize].free_at
        } else {
            Time::NEVER
        };
        self.calendar.set(port as usize, next);
    }

    fn with_queue<T>(
        &mut self,
        port: u32,
        act: impl FnOnce(&mut dyn Scheduler, &mut dyn FnMut(Packet, DropReason)) -> T,
    ) -> T {
        let Scheduled { link, queue, .. } = &mut self.scheduled[port as usize];
        let (counters, sacks, losses) = (
            &mut self.ports[*link as usize].counters,
            &mut self.sacks,
            &mut self.losses,
        );
        act(queue.as_mut(), &mut |packet, reason| {
            account_loss(counters, sacks, losses, &packet, reason)
        })
    }
}

/// Ports with a window policy.
impl Network {
    /// `packet` is about to join the queue of `link`; false: the policy drops it.
    fn on_departure(&mut self, now: Time, link: u32, packet: &Packet) -> bool {
        let backlog = self.backlog_bytes(now, link);
        let slot = self.paths.slot(packet.flow, packet.hop.into());
        match &mut self.ports[link as usize].window {
            Some(policy) => {
                make_room(&mut self.flows, slot);
                policy.on_departure(now, packet, &mut self.flows, slot, backlog)
            }
            None => true,
        }
    }

    /// `packet` entered over `link`, beside the port whose policy may lower its window.
    pub(super) fn on_ack(&mut self, now: Time, link: u32, packet: &mut Packet) {
        let backlog = self.backlog_bytes(now, link ^ 1);
        // The port's place on the way of the data is the ACK's, counted from the other end.
        let hop = self.paths.step(packet.flow, packet.hop.into()).remaining();
        let slot = self.paths.slot(packet.flow.reverse(), hop);
        if let Some(policy) = &mut self.ports[link as usize ^ 1].window {
            make_room(&mut self.flows, slot);
            policy.on_ack(now, packet, &mut self.flows, slot, backlog);
        }
    }

    /// Sets the path of a new connection whose data is the flow `data`, and of its reverse. Another
    /// connection may have had its number: what the ports know of that is forgotten.
    pub fn set_path(&mut self, data: FlowId, links: &[u32]) {
        self.paths.set(data, links);
        let first = self.paths.slot(FlowId(data.0 & !1), 0);
        let last = self.paths.slot(FlowId(data.0 | 1), 0) + self.paths.stride();
        // The table ends with the last entry ever used, which may be one of these.
        let last = last.min(self.flows.len());
        if let Some(entries) = self.flows.get_mut(first..last) {
            entries.fill(FlowEntry::default());
        }
    }

    /// Periodic work of a window policy; returns when it is due again.
    pub fn tick_window(&mut self, now: Time, link: u32) -> Option<Time> {
        let backlog = self.backlog_bytes(now, link);
        let policy = self.ports[link as usize].window.as_mut()?;
        policy.tick(now, &mut self.flows, backlog);
        policy.period().map(|period| now + period)
    }
}

fn make_room(flows: &mut Vec<FlowEntry>, slot: usize) {
    if slot >= flows.len() {
        flows.resize(slot + 1, FlowEntry::default());
    }
}

pub(super) fn account_loss(
    counters: &mut PortCounters,
    sacks: &mut Sacks,
    losses: &mut Vec<FlowId>,
    packet: &Packet,
    reason: DropReason,
) {
    counters.drops[reason as usize] += 1;
    sacks.take_from(packet);
    losses.push(packet.flow);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Cable, Fabric};
    use crate::rng::Rng;
    use penstock_scenario::units::{Buffer, Rate};

    #[test]
    fn the_last_entry_of_the_table_is_forgotten_too() {
        let cable = Cable {
            rate: Rate(1_000_000_000),
            delay: Time::ZERO,
        };
        let buffer = Buffer::Packets(10);
        let port = (cable, buffer);
        let fabric = Fabric::dumbbell([1, 1, 0], buffer, [port; 3]);
        let mut network = Network::new(&fabric, Rng::new(1, 0));
        let slot = network.paths.slot(FlowId(2), 1);
        make_room(&mut network.flows, slot);
        let syn = penstock_core::flow_count::FlowPacket {
            flags: flag::SYN as u8,
            ..Default::default()
        };
        network.flows[slot].on_packet(&syn);
        assert!(network.flows[slot].is_counted());
        network.set_path(FlowId(2), &[0]);
        assert!(!network.flows[slot].is_counted());
    }
}
