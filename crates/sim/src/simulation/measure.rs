// SPDX-License-Identifier: Apache-2.0
//! What is counted of transfers and ports, and when.

use super::{Simulation, TransferCounters};
use crate::network::Network;
use crate::packet::FlowId;
use penstock_scenario::units::Time;

/// A queue at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The port's link.
    pub link: u32,
    /// When.
    pub time: Time,
    /// Bytes not yet sent.
    pub bytes: u64,
    /// Packets not yet sent.
    pub packets: u32,
}

/// Queue lengths of some ports over time.
#[derive(Default)]
pub struct Queues {
    /// Ports to sample.
    pub links: Vec<u32>,
    /// Time between samples.
    pub period: Time,
    /// Samples taken, by time, then in the order of `links`.
    pub samples: Vec<Sample>,
}

impl Queues {
    /// Takes a sample of each port; returns when to take the next.
    pub(super) fn sample(&mut self, now: Time, network: &mut Network) -> Time {
        for link in &self.links {
            let bytes = network.backlog_bytes(now, *link);
            let packets = network.backlog_packets(now, *link);
            self.samples.push(Sample {
                link: *link,
                time: now,
                bytes,
                packets,
            });
        }
        now + self.period
    }
}

impl Simulation {
    /// What has been counted at both ends of the connection whose data is `flow`.
    pub(super) fn counters(&self, flow: FlowId) -> TransferCounters {
        let (sender, receiver) = (self.hosts.get(flow), self.hosts.get(flow.reverse()));
        let sent = sender.endpoint.stats();
        TransferCounters {
            delivered: receiver.endpoint.delivered(),
            packets: receiver.packets,
            retransmits: sent.retransmits.into(),
            timeouts: sent.rtos.into(),
            syn_timeouts: (sent.syn_timeouts + receiver.endpoint.stats().syn_timeouts).into(),
            drops: 0,
        }
    }

    /// The client's transfer begins now: what its connection did before is not its own.
    pub(super) fn mark_start(&mut self, now: Time, index: u32, flow: FlowId) {
        self.clients[index as usize].base = self.counters(flow);
        let receiver = self.hosts.get_mut(flow.reverse());
        receiver.last_arrival = now;
        receiver.silence = Time::ZERO;
    }

    /// Brings the record of the client's transfer up to date.
    pub(super) fn settle(&mut self, now: Time, index: u32) {
        let client = &self.clients[index as usize];
        let (Some(flow), Some(record)) = (client.flow, self.records.get(client.record as usize))
        else {
            return;
        };
        if record.end.is_some() {
            return;
        }
        let drops = record.total.drops;
        let total = TransferCounters {
            drops,
            ..self.counters(flow).since(&client.base)
        };
        let receiver = self.hosts.get(flow.reverse());
        let silence = receiver.silence.max(now - receiver.last_arrival);
        let record = &mut self.records[client.record as usize];
        record.total = total;
        record.silence = silence;
    }

    fn settle_all(&mut self, now: Time) {
        for index in 0..self.clients.len() as u32 {
            self.settle(now, index);
        }
    }

    /// What was counted before now is not part of the results.
    pub(super) fn start_measuring(&mut self, now: Time) {
        self.settle_all(now);
        for record in &mut self.records {
            record.before = record.total;
        }
        self.network.start_measuring(now);
    }

    /// The run is over.
    pub fn finish(&mut self, now: Time) {
        self.settle_all(now);
    }
}
