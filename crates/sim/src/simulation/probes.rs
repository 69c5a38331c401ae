// SPDX-License-Identifier: Apache-2.0
//! Probes: queue lengths and windows of flows over time.

use super::apps::Transfers;
use super::hosts::Hosts;
use crate::network::Network;
use crate::tcp::Info;
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

/// The windows of a flow's sender at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSample {
    /// Index of the traffic.
    pub traffic: u32,
    /// The client's number within the traffic.
    pub flow: u32,
    /// When.
    pub time: Time,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// The window that the receiver offers, bytes.
    pub rwnd: u64,
    /// Whether the sender repairs a loss, after duplicate ACKs or a timeout.
    pub is_recovering: bool,
}

/// Which windows are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPlan {
    /// Index of the traffic.
    pub traffic: u32,
    /// The first so many flows of it.
    pub flows: u32,
    /// Time between samples.
    pub every: Time,
}

/// Samples the queues of some ports, and the windows of some flows.
#[derive(Default)]
pub(super) struct Probes {
    links: Vec<u32>,
    period: Time,
    samples: Vec<Sample>,
    plan: Option<WindowPlan>,
    windows: Vec<WindowSample>,
}

impl Probes {
    /// Samples the queues of `links` every `period`, and the windows of `plan`.
    pub fn new(links: Vec<u32>, period: Time, plan: Option<WindowPlan>) -> Probes {
        Probes {
            links,
            period,
            samples: Vec::new(),
            plan,
            windows: Vec::new(),
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

    /// Takes a sample of the windows of each chosen flow that has a connection; returns when to take
    /// the next.
    pub fn sample_windows(
        &mut self,
        now: Time,
        transfers: &Transfers,
        hosts: &Hosts,
    ) -> Option<Time> {
        let WindowPlan {
            traffic,
            flows,
            every,
        } = self.plan?;
        let seen = transfers.windows(hosts, flows).into_iter();
        let sample = |(flow, info): (u32, Info)| WindowSample {
            traffic,
            flow,
            time: now,
            cwnd: info.cwnd.into(),
            rwnd: info.send_window.into(),
            is_recovering: info.is_recovering,
        };
        self.windows.extend(seen.map(sample));
        Some(now + every)
    }

    /// The samples taken: of queues, by time, then in the order of the links; of windows, by time,
    /// then by flow.
    pub fn into_samples(self) -> (Vec<Sample>, Vec<WindowSample>) {
        (self.samples, self.windows)
    }
}
