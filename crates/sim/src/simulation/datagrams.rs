// SPDX-License-Identifier: Apache-2.0
//! UDP background traffic.

use super::{Action, Simulation};
use crate::distribution::Poisson;
use crate::packet::{FlowId, Packet, flag};
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// IP and UDP headers, bytes.
const HEADER: u8 = 28;

/// A source of datagrams, from one host to another.
pub struct Datagrams {
    /// Its flow; no end point answers it.
    pub flow: FlowId,
    /// Bytes of a datagram on the wire, headers included.
    pub size: u16,
    /// Time between two datagrams.
    pub gaps: Gaps,
    /// No more from here on.
    pub stop: Time,
    /// Draws the gaps.
    pub rng: Rng,
}

/// Times between datagrams.
pub enum Gaps {
    /// Always the same; the first datagram comes at a time uniform in the first gap.
    Constant(Time),
    /// Those of a Poisson process.
    Poisson(Poisson),
}

impl Datagrams {
    /// A source that no network knows yet.
    pub fn new(size: u16, gaps: Gaps, stop: Time, rng: Rng) -> Datagrams {
        Datagrams {
            flow: FlowId(u32::MAX),
            size,
            gaps,
            stop,
            rng,
        }
    }

    /// Time from the start to the first datagram.
    pub fn first_gap(&mut self) -> Time {
        match &self.gaps {
            Gaps::Constant(gap) => Time(self.rng.below(gap.0.max(1))),
            Gaps::Poisson(_) => self.next_gap(),
        }
    }

    /// Time to the next datagram.
    pub fn next_gap(&mut self) -> Time {
        match &self.gaps {
            Gaps::Constant(gap) => *gap,
            Gaps::Poisson(process) => process.gap(&mut self.rng),
        }
    }
}

impl Simulation {
    /// Adds a source of datagrams of `size` bytes on the wire, working from and until the times of
    /// `span`.
    pub fn add_datagrams(
        &mut self,
        source: u32,
        destination: u32,
        size: u16,
        gaps: Gaps,
        (start, stop): (Time, Time),
        rng: Rng,
    ) {
        let flow = FlowId(self.hosts.len() as u32);
        self.hosts.open(flow, u32::MAX, 0, start);
        let hash = Rng::new(self.hash_seed, u64::MAX - u64::from(flow.0)).bits();
        self.routes.path(source, destination, hash, &mut self.path);
        self.network.paths.set(flow, &self.path);
        if let Some(controller) = &mut self.controller {
            controller.on_connect(flow, source, destination);
        }
        let mut source_of_data = Datagrams {
            flow,
            ..Datagrams::new(size, gaps, stop, rng)
        };
        let first = start.saturating_add(source_of_data.first_gap());
        self.datagrams.push(source_of_data);
        if self.owns(source) {
            self.at(first, Action::Datagram(self.datagrams.len() as u32 - 1));
        }
    }

    pub(super) fn send_datagram(&mut self, now: Time, index: u32) {
        let source = &mut self.datagrams[index as usize];
        let packet = Packet {
            flow: source.flow,
            payload: source.size - HEADER as u16,
            header: HEADER,
            flags: flag::UDP,
            ..Packet::default()
        };
        if now >= source.stop {
            return;
        }
        let next = now.saturating_add(source.next_gap());
        self.network.inject(now, packet, &[]);
        self.schedule.add(next, Action::Datagram(index));
    }
}
