// SPDX-License-Identifier: Apache-2.0
//! A controller that counts the flows of each port (FairQ §III-B, flow tracking).
//!
//! Switches copy each SYN and FIN that leaves by a port; the controller keeps the set of the port's
//! flows and sends the port each new number. A repeated SYN or FIN changes nothing, and a number is
//! that of all flows, so that the next one repairs the loss of one. The loss of a copy is not: the
//! flow of a lost SYN does not count, that of a lost FIN counts until its addresses and ports are
//! used again.

use super::{Channel, Controller, ControllerCounters, FRAME_BYTES, HEADER_BYTES, Way};
use crate::network::{Network, Report};
use crate::packet::{FlowId, Packet, flag};
use penstock_scenario::units::Time;
use std::collections::{BTreeSet, HashMap};

/// What switches and controller send each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Message {
    /// To the controller: a SYN of this flow left by the port of the link.
    Begin(u32, FlowId),
    /// A FIN did.
    End(u32, FlowId),
    /// To the switch: so many flows has the port of the link.
    Count(u32, u32),
}

/// The controller.
pub struct FlowCounts {
    /// The flows of each port, by its link.
    flows: HashMap<u32, BTreeSet<FlowId>>,
    channel: Channel<Message>,
    counters: ControllerCounters,
}

impl FlowCounts {
    /// A controller of ports without flows.
    pub fn new(channel: Channel<Message>) -> FlowCounts {
        FlowCounts {
            flows: HashMap::new(),
            channel,
            counters: ControllerCounters::default(),
        }
    }

    fn receive(&mut self, now: Time, message: Message, network: &mut Network) {
        let (link, is_changed) = match message {
            Message::Count(link, flows) => return network.set_flows(link, flows),
            Message::Begin(link, flow) => (link, self.flows.entry(link).or_default().insert(flow)),
            Message::End(link, flow) => (link, self.flows.entry(link).or_default().remove(&flow)),
        };
        self.counters.reports_received += 1;
        if is_changed {
            self.counters.messages_sent += 1;
            let flows = self.flows[&link].len() as u32;
            let message = Message::Count(link, flows);
            self.channel
                .send(now, Way::FromController, FRAME_BYTES, message);
        }
    }
}

impl Controller for FlowCounts {
    fn on_connect(&mut self, _: FlowId, _: u32, _: u32) {}

    fn on_report(&mut self, report: &Report) {
        let Report { link, time, packet } = *report;
        let message = if packet.has(flag::SYN) {
            Message::Begin(link, packet.flow)
        } else {
            Message::End(link, packet.flow)
        };
        let bytes = HEADER_BYTES + u64::from(packet.size());
        self.channel.send(time, Way::ToController, bytes, message);
    }

    fn on_delivery(&mut self, _: Time, _: &mut Packet) {}

    fn next(&self) -> Time {
        self.channel.next()
    }

    fn act(&mut self, now: Time, network: &mut Network) {
        while let Some(message) = self.channel.receive(now) {
            self.receive(now, message, network);
        }
    }

    fn counters(&self) -> ControllerCounters {
        self.channel.counters(self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Cable, Fabric, NO_MTU};
    use crate::rng::Rng;
    use crate::window::{Policy, PortParams, Wscale};
    use penstock_core::{Params, WindowScheme, definitions};
    use penstock_scenario::units::{Buffer, Rate};

    const LINK: u32 = 0;
    const LATENCY: Time = Time::from_micros(100);
    const FLOWS: u32 = 200;

    fn channel(loss: f64) -> Channel<Message> {
        Channel::new(LATENCY, None, loss, Rng::new(1, 1))
    }

    struct Bed {
        network: Network,
        controller: FlowCounts,
        now: Time,
        /// The number of flows from each of these times on.
        truth: Vec<(Time, u32)>,
    }

    impl Bed {
        fn new(loss: f64) -> Bed {
            let cable = Cable {
                rate: Rate(1_000_000_000),
                delay: Time(1),
                jitter: Time::ZERO,
                mtu: NO_MTU,
            };
            let port = (cable, Buffer::Packets(10));
            let fabric = Fabric::dumbbell([1, 1, 0], Buffer::Packets(10), [port; 3]);
            let mut network = Network::new(&fabric, Rng::new(1, 0));
            let scheme = WindowScheme::new(&Params::new(definitions::of("fairq"), 100_000));
            let params = PortParams {
                first_acks: 1,
                wscale: Wscale::default(),
                idle: Time::from_secs(1),
                never_shrink: false,
                counted_by_controller: true,
                sampled: None,
            };
            network.set_window(LINK, Box::new(Policy::new(scheme, params)));
            Bed {
                network,
                controller: FlowCounts::new(channel(loss)),
                now: Time::ZERO,
                truth: Vec::new(),
            }
        }

        /// After some time a SYN or FIN of the flow leaves by the port, perhaps twice; then there are so
        /// many flows.
        fn pass(&mut self, flow: u32, flags: u16, flows: u32, rng: &mut Rng) {
            for copy in 0..=rng.below(2) {
                self.wait(Time::from_nanos(1 + rng.below(40_000)));
                let (link, time) = (LINK, self.now);
                let packet = Packet {
                    flow: FlowId(2 * flow),
                    flags,
                    ..Packet::default()
                };
                self.controller.on_report(&Report { link, time, packet });
                if copy == 0 {
                    self.truth.push((time, flows));
                }
            }
        }

        fn wait(&mut self, time: Time) {
            let until = self.now + time;
            while self.controller.next() <= until {
                let now = self.controller.next();
                self.controller.act(now, &mut self.network);
            }
            self.now = until;
        }

        /// Flows that the port knows, beyond those that passed it two latencies ago.
        fn excess(&self) -> i64 {
            let passed = |(time, _): &&(Time, u32)| *time + LATENCY + LATENCY <= self.now;
            let before = self.truth.iter().rev().find(passed);
            i64::from(self.network.flows(LINK)) - before.map_or(0, |(_, flows)| (*flows).into())
        }

        /// Flows come, and go in another order; `check` sees the bed after each.
        fn churn(&mut self, check: impl Fn(&Bed)) {
            let mut rng = Rng::new(1, 2);
            for flow in 0..FLOWS {
                self.pass(flow, flag::SYN, flow + 1, &mut rng);
                check(self);
            }
            for gone in 0..FLOWS {
                let left = FLOWS - 1 - gone;
                self.pass(gone * 7 % FLOWS, flag::FIN | flag::ACK, left, &mut rng);
                check(self);
            }
            self.wait(Time::from_millis(1));
        }
    }

    #[test]
    fn the_port_knows_its_flows_two_latencies_later() {
        let mut bed = Bed::new(0.0);
        bed.churn(|bed| assert_eq!(bed.excess(), 0));
        assert_eq!(bed.network.flows(LINK), 0);
        let most = bed.truth.iter().map(|(_, flows)| *flows).max();
        assert_eq!(most, Some(FLOWS));
    }

    #[test]
    fn the_error_is_no_more_than_what_was_lost() {
        let mut bed = Bed::new(0.1);
        bed.churn(|bed| {
            let lost = bed.controller.counters().messages_lost as i64;
            assert!(bed.excess().abs() <= lost, "{} of {lost}", bed.excess());
        });
        assert!(bed.excess() > 0, "some FIN was lost with its repetition");
        // The same addresses and ports once more.
        bed.controller.channel = channel(0.0);
        bed.churn(|_| {});
        assert_eq!(bed.excess(), 0);
    }
}
