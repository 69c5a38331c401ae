// SPDX-License-Identifier: Apache-2.0
//! Periodic work of policies, and what is read of ports.

use super::Policies;
use crate::network::counters::PortCounters;
use crate::network::paths::Paths;
use crate::network::wires::Wires;
use crate::queue::Scheduler;
use penstock_scenario::units::Time;

impl Policies {
    pub fn set_flows(&mut self, link: u32, flows: u32) {
        if let Some(policy) = &mut self.ports[link as usize].window {
            policy.set_flows(flows);
        }
    }

    pub fn flows(&self, link: u32) -> u32 {
        let policy = self.ports[link as usize].window.as_ref();
        policy.map_or(0, |policy| policy.flows())
    }

    /// Periodic work of a queue policy; returns when it is due again.
    pub fn tick_queue(&mut self, now: Time, link: u32, wires: &Wires) -> Option<Time> {
        let port = &mut self.ports[link as usize];
        let period = if let Some(policy) = &mut port.admission {
            let held = port.scheduled.map_or(0, |number| {
                self.scheduled[number as usize].queue().backlog_bytes()
            });
            policy.tick(now, wires.link(link).backlog_bytes(now) + held);
            policy.period()
        } else {
            self.scheduled[port.scheduled? as usize].tick(now)
        };
        period.map(|period| now + period)
    }

    /// How often a queue policy wants [`Policies::tick_queue`].
    pub fn queue_period(&self, link: u32) -> Option<Time> {
        match &self.ports[link as usize].admission {
            Some(policy) => policy.period(),
            None => self.scheduler(link)?.period(),
        }
    }

    /// Periodic work of a window policy; returns when it is due again.
    pub fn tick_window(
        &mut self,
        now: Time,
        link: u32,
        wires: &mut Wires,
        paths: &Paths,
    ) -> Option<Time> {
        let credit = self.with_credit(now, link, wires, paths, |credit, backlog| {
            credit.tick(now, backlog);
            credit.period()
        });
        if let Some(period) = credit {
            return Some(now + period);
        }
        let backlog = self.backlog_bytes(now, link, wires);
        let policy = self.ports[link as usize].window.as_mut()?;
        let out = wires.link(link);
        let sent = out.sent_bytes.saturating_sub(out.backlog_bytes(now));
        policy.tick(now, &mut self.flows, backlog, sent);
        policy.period().map(|period| now + period)
    }

    /// Bytes that wait in the scheduler of a port, 0 if it has none.
    pub fn scheduled_bytes(&self, link: u32) -> u64 {
        self.scheduler(link)
            .map_or(0, |queue| queue.backlog_bytes())
    }

    /// Bytes not yet sent by a port.
    pub fn backlog_bytes(&self, now: Time, link: u32, wires: &Wires) -> u64 {
        wires.link(link).backlog_bytes(now) + self.scheduled_bytes(link)
    }

    /// Packets not yet sent by a port.
    pub fn backlog_packets(&self, now: Time, link: u32, wires: &mut Wires) -> u32 {
        let held = self
            .scheduler(link)
            .map_or(0, |queue| queue.backlog_packets());
        wires.link_mut(link).held_packets(now) + held
    }

    /// Adds what the policies of a port have counted to what its wires have.
    pub fn add_counters(&self, link: u32, now: Time, counters: &mut PortCounters) {
        counters.paused = self.pfc.counters(link, now);
        let port = &self.ports[link as usize];
        counters.marks = port.marks;
        if let Some(number) = port.scheduled {
            let scheduled = &self.scheduled[number as usize];
            counters.marks += scheduled.queue().marks();
            counters.peak_bytes = counters.peak_bytes.max(scheduled.peak_bytes());
        }
        if let Some(policy) = &port.window {
            counters.window = policy.counters();
        }
        if let Some((credit, _)) = &port.credit {
            counters.window = credit.counters();
        }
    }

    fn scheduler(&self, link: u32) -> Option<&dyn Scheduler> {
        let number = self.ports[link as usize].scheduled?;
        Some(self.scheduled[number as usize].queue())
    }
}
