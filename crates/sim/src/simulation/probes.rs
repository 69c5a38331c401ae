// SPDX-License-Identifier: Apache-2.0
//! Probes: queue lengths over time.

use crate::network::Network;
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

/// Samples the queues of some ports.
#[derive(Default)]
pub(super) struct Probes {
    links: Vec<u32>,
    period: Time,
    samples: Vec<Sample>,
}

impl Probes {
    /// Samples the queues of `links` every `period`.
    pub fn new(links: Vec<u32>, period: Time) -> Probes {
        Probes {
            links,
            period,
            samples: Vec::new(),
        }
    }

    /// Takes a sample of each port; returns when to take the next.
    pub fn sample(&mut self, now: Time, network: &mut Network) -> Time {
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

    /// The samples taken, by time, then in the order of the links.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}
