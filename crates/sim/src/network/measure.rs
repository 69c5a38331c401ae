// SPDX-License-Identifier: Apache-2.0
//! Periodic work of the queue policies, and what is measured of ports.

use super::{Network, PortCounters};
use crate::queue::Scheduler;
use penstock_scenario::units::Time;

impl Network {
    /// Periodic work of a queue policy; returns when it is due again.
    pub fn tick_queue(&mut self, now: Time, link: u32) -> Option<Time> {
        let port = &mut self.ports[link as usize];
        let period = if let Some(policy) = &mut port.admission {
            policy.tick(now, self.links[link as usize].backlog_bytes(now));
            policy.period()
        } else {
            let scheduled = &mut self.scheduled[port.scheduled? as usize];
            scheduled.queue.tick(now);
            scheduled.queue.period()
        };
        period.map(|period| now + period)
    }

    /// How often the queue policy of a port wants [`Network::tick_queue`].
    pub fn queue_period(&self, link: u32) -> Option<Time> {
        match &self.ports[link as usize].admission {
            Some(policy) => policy.period(),
            None => self.scheduler(link)?.period(),
        }
    }

    /// Bytes not yet sent by a port.
    pub fn backlog_bytes(&self, now: Time, link: u32) -> u64 {
        let waiting = self
            .scheduler(link)
            .map_or(0, |queue| queue.backlog_bytes());
        self.links[link as usize].backlog_bytes(now) + waiting
    }

    /// Packets not yet sent by a port.
    pub fn backlog_packets(&mut self, now: Time, link: u32) -> u32 {
        let waiting = self
            .scheduler(link)
            .map_or(0, |queue| queue.backlog_packets());
        self.links[link as usize].held_packets(now) + waiting
    }

    /// The policy that holds the packets of a port, if one does.
    pub(super) fn scheduler(&self, link: u32) -> Option<&dyn Scheduler> {
        let index = self.ports[link as usize].scheduled?;
        Some(self.scheduled[index as usize].queue.as_ref())
    }

    /// Whether [`Network::losses`] or [`Network::reports`] wait for the caller.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        !self.losses.is_empty() || !self.reports.is_empty()
    }

    /// From now on [`PortCounters::measured_bytes`] counts.
    pub fn start_measuring(&mut self, now: Time) {
        for (port, link) in self.ports.iter_mut().zip(&self.links) {
            port.sent_before = link.sent_bytes - link.backlog_bytes(now);
        }
    }

    /// What the port of `link` did until `now`.
    pub fn counters(&self, link: u32, now: Time) -> PortCounters {
        let marked_at_departure = self.scheduler(link).map_or(0, |queue| queue.marks());
        let (port, link) = (&self.ports[link as usize], &self.links[link as usize]);
        PortCounters {
            marks: port.counters.marks + marked_at_departure,
            sent_packets: link.sent_packets,
            sent_bytes: link.sent_bytes,
            // Packets are booked when they are queued; what waits has not been sent.
            measured_bytes: link.sent_bytes - link.backlog_bytes(now) - port.sent_before,
            peak_bytes: link.peak_bytes().max(port.counters.peak_bytes),
            window: port
                .window
                .as_ref()
                .map(|policy| policy.counters())
                .unwrap_or_default(),
            ..port.counters.clone()
        }
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Packets sent on all links so far: the packet-hops of the run.
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|link| link.sent_packets).sum()
    }
}
