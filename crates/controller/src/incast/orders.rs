// SPDX-License-Identifier: Apache-2.0
//! What the shims are to do: ON and OFF for the pairs of a port's flows.

use super::Incast;
use super::port::Pair;
use crate::fabric::Place;
use crate::segment::Flow;
use penstock_core::sicc::SiccOrder;
use penstock_sdn::message::{Notice, Order, QueueReport};
use std::collections::BTreeSet;

impl Incast {
    /// The notices of an order about a port, which a segment of this flow caused.
    pub(super) fn notices_of(&mut self, place: Place, flow: Flow, order: SiccOrder) -> Vec<Notice> {
        match order {
            SiccOrder::OnOne => self.clamp(place, &[flow]),
            order if order.starts() => self.start(place),
            _ => Vec::new(),
        }
    }

    /// Incast begins at a port: an ON for each pair.
    fn start(&mut self, place: Place) -> Vec<Notice> {
        let Some(port) = self.ports.get_mut(&place) else {
            return Vec::new();
        };
        port.seen.incasts += 1;
        let flows: Vec<Flow> = port.known().collect();
        self.clamp(place, &flows)
    }

    /// An ON for the pairs of flows through a port.
    fn clamp(&mut self, place: Place, flows: &[Flow]) -> Vec<Notice> {
        let notices = once(flows.iter().map(|flow| notice(*flow, self.on(*flow))));
        if let Some(port) = self.ports.get_mut(&place) {
            let pairs = notices.iter().map(|one| (one.source, one.destination));
            port.clamp(pairs, &self.limits);
        }
        notices
    }

    /// Incast ends at a port: an OFF for each pair that no other port has clamped.
    fn release(&mut self, place: Place, now_ns: u64) -> Vec<Notice> {
        let Some(port) = self.ports.get_mut(&place) else {
            return Vec::new();
        };
        let pairs = port.release().into_iter();
        let others = self.ports.values();
        let others: Vec<_> = others.filter_map(|port| port.clamped(now_ns)).collect();
        let is_free = |pair: &Pair| !others.iter().any(|clamped| clamped.contains(pair));
        let off = |(source, destination)| Notice {
            source,
            destination,
            order: Order::Off,
        };
        pairs.filter(is_free).map(off).collect()
    }

    /// The queues of a switch: what the shims of the sources are to do (SICC Algorithm 1).
    pub fn on_queues(&mut self, report: &QueueReport, now_ns: u64) -> Vec<Notice> {
        let mut notices = Vec::new();
        for (port, queue_bytes) in &report.queues {
            let place = Place {
                datapath: report.datapath,
                port: *port,
            };
            let Some(port) = self.ports.get_mut(&place) else {
                continue;
            };
            self.counters.queues += 1;
            port.begin_interval(now_ns);
            port.seen.queue_bytes = *queue_bytes;
            if !self.decides {
                continue;
            }
            let order = port.core.on_interval(*queue_bytes, now_ns);
            let begin = notices.len();
            if order.ends() {
                notices.extend(self.release(place, now_ns));
            }
            if order.starts() {
                notices.extend(self.start(place));
            }
            self.counters.notices += (notices.len() - begin) as u64;
        }
        notices
    }

    fn on(&self, flow: Flow) -> Order {
        let end = if self.sends_own_options {
            flow
        } else {
            flow.reverse()
        };
        let learned = self.options.get(&end).map(|(options, _)| options);
        let mss = learned.and_then(|options| options.mss);
        let scale = learned.map(|options| options.scale.unwrap_or(0));
        Order::On(mss.unwrap_or(self.mss_bytes), scale)
    }
}

fn notice(flow: Flow, order: Order) -> Notice {
    Notice {
        source: flow.source.ip(),
        destination: flow.destination.ip(),
        order,
    }
}

/// Each pair once, in a fixed order: several flows of a pair give one notice.
pub(super) fn once(notices: impl Iterator<Item = Notice>) -> Vec<Notice> {
    let sorted: BTreeSet<_> = notices.collect();
    let mut last = None;
    let mut kept = Vec::with_capacity(sorted.len());
    for notice in sorted {
        let pair = (notice.source, notice.destination);
        if last != Some(pair) {
            kept.push(notice);
        }
        last = Some(pair);
    }
    kept
}
