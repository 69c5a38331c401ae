// SPDX-License-Identifier: Apache-2.0
//! SICC (SICC §4): `core/sicc.h` decides; here are the messages between switches, controller and
//! shims, each late by the channel's latency and perhaps lost.

use super::{Controller, ControllerCounters};
use crate::network::{Network, Report};
use crate::packet::{FlowId, Packet, SynOptions, flag};
use crate::rng::Rng;
use penstock_core::sicc::SiccOrder;
use penstock_core::tcp_rewrite::AckKind;
use penstock_core::{Params, SiccPort, SiccShim};
use penstock_scenario::units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// How messages travel between controller and switches or shims.
#[derive(Clone, Debug)]
pub struct Channel {
    /// One way.
    pub latency: Time,
    /// Share of messages that are lost, 0 to 1.
    pub loss: f64,
    /// Draws the losses.
    pub rng: Rng,
}

/// A message on its way; ordered so that simultaneous ones are taken in the same order on every
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    /// A switch port (by its place among the ports) forwarded a SYN or FIN: flow, flags, options.
    Copy(u32, FlowId, u8, u32),
    /// INCAST_ON for a pair: MSS and scale.
    On(u32, u16, Option<u8>),
    /// INCAST_OFF for a pair.
    Off(u32),
}

/// A switch port as the controller sees it.
struct Port {
    link: u32,
    core: SiccPort,
    /// Flows with a SYN and no FIN so far: the sources behind the port's destinations.
    flows: BTreeSet<FlowId>,
}

/// What is known of the flows with one number.
#[derive(Clone, Copy, Default)]
struct Flow {
    pair: u32,
    /// Options of the SYN that this flow sent, as the controller learned them.
    learned: Option<SynOptions>,
    /// The same, as the shim of its destination saw them pass.
    passed: Option<SynOptions>,
}

/// Controller and shims.
pub struct Sicc {
    params: Params,
    interval: Time,
    /// For flows whose own was not seen, bytes.
    mss_bytes: u16,
    ports: Vec<Port>,
    port_of_link: HashMap<u32, u32>,
    flows: Vec<Flow>,
    pair_of: HashMap<(u32, u32), u32>,
    shims: Vec<SiccShim>,
    messages: BinaryHeap<Reverse<(Time, Message)>>,
    channel: Channel,
    next_look: Time,
    counters: ControllerCounters,
}

impl Sicc {
    /// A controller of the ports of these links, each with its parameters; `params` are those of the
    /// shims.
    pub fn new(
        params: Params,
        links: impl IntoIterator<Item = (u32, Params)>,
        channel: Channel,
    ) -> Sicc {
        let port = |(link, params): (u32, Params)| Port {
            link,
            core: SiccPort::new(&params),
            flows: BTreeSet::new(),
        };
        let ports: Vec<Port> = links.into_iter().map(port).collect();
        let interval = Time::from_nanos(params.field("interval_ns"));
        let numbered = ports.iter().enumerate();
        Sicc {
            interval,
            mss_bytes: params.field("mss_bytes") as u16,
            params,
            port_of_link: numbered
                .map(|(number, port)| (port.link, number as u32))
                .collect(),
            ports,
            flows: Vec::new(),
            pair_of: HashMap::new(),
            shims: Vec::new(),
            messages: BinaryHeap::new(),
            channel,
            next_look: interval,
            counters: ControllerCounters::default(),
        }
    }

    fn send(&mut self, now: Time, message: Message) {
        if self.channel.loss > 0.0 && self.channel.rng.unit() < self.channel.loss {
            self.counters.messages_lost += 1;
        } else {
            self.messages
                .push(Reverse((now + self.channel.latency, message)));
        }
    }

    /// Takes a message that has arrived.
    fn receive(&mut self, now: Time, message: Message) {
        match message {
            Message::Copy(port, flow, flags, options) => {
                self.counters.reports_received += 1;
                let port = &mut self.ports[port as usize];
                port.core.on_packet(flags);
                if u16::from(flags) & flag::SYN != 0 {
                    port.flows.insert(flow);
                    self.flows[flow.0 as usize].learned = Some(SynOptions::unpack(options));
                } else {
                    port.flows.remove(&flow);
                }
            }
            Message::On(pair, mss, scale) => {
                self.shims[pair as usize].on(mss, scale, now.as_nanos())
            }
            Message::Off(pair) => self.shims[pair as usize].off(),
        }
    }

    /// Every T: looks at each port and notifies the sources behind it (SICC Algorithm 1).
    fn look(&mut self, now: Time, network: &mut Network) {
        for number in 0..self.ports.len() {
            let port = &mut self.ports[number];
            let queue = network.backlog_bytes(now, port.link);
            let order = port
                .core
                .on_interval(u32::try_from(queue).unwrap_or(u32::MAX), now.as_nanos());
            if order != SiccOrder::Keep {
                self.counters.incasts += u64::from(order == SiccOrder::On);
                for message in self.orders(number, order) {
                    self.counters.messages_sent += 1;
                    self.send(now, message);
                }
            }
        }
    }

    /// One message for each pair with a flow through the port.
    fn orders(&self, port: usize, order: SiccOrder) -> BTreeSet<Message> {
        let message = |flow: &FlowId| {
            let pair = self.flows[flow.0 as usize].pair;
            if order == SiccOrder::Off {
                return Message::Off(pair);
            }
            let receiver = self.flows[flow.reverse().0 as usize].learned;
            let mss = receiver.map_or(self.mss_bytes, |options| options.mss);
            Message::On(pair, mss, receiver.and_then(|options| options.window_scale))
        };
        self.ports[port].flows.iter().map(message).collect()
    }
}

impl Controller for Sicc {
    fn on_connect(&mut self, data: FlowId, source: u32, destination: u32) {
        let needed = (data.0 | 1) as usize + 1;
        if self.flows.len() < needed {
            self.flows.resize(needed, Flow::default());
        }
        for (flow, ends) in [
            (data, (source, destination)),
            (data.reverse(), (destination, source)),
        ] {
            let pair = *self.pair_of.entry(ends).or_insert_with(|| {
                self.shims.push(SiccShim::new(&self.params));
                self.shims.len() as u32 - 1
            });
            let before = std::mem::replace(
                &mut self.flows[flow.0 as usize],
                Flow {
                    pair,
                    ..Flow::default()
                },
            );
            if before.learned.is_some() {
                // The number is used again, and a connection that was reset left no FIN.
                for port in &mut self.ports {
                    port.flows.remove(&flow);
                }
            }
        }
    }

    fn on_report(&mut self, report: &Report) {
        if let Some(port) = self.port_of_link.get(&report.link) {
            let packet = &report.packet;
            let copy = Message::Copy(*port, packet.flow, packet.flags as u8, packet.options);
            self.send(report.time, copy);
        }
    }

    fn on_delivery(&mut self, now: Time, packet: &mut Packet) {
        let kind = if packet.has(flag::SYN) {
            AckKind::Syn
        } else {
            AckKind::Later
        };
        if kind == AckKind::Syn {
            self.flows[packet.flow.0 as usize].passed = Some(SynOptions::unpack(packet.options));
        }
        if !packet.has(flag::ACK) {
            return;
        }
        // The guest that gets this ACK sends the reverse flow.
        let pair = self.flows[packet.flow.reverse().0 as usize].pair;
        let passed = self.flows[packet.flow.0 as usize].passed;
        let scale = passed.map(|options| options.window_scale.unwrap_or(0));
        let window = self.shims[pair as usize].on_ack(packet.window, scale, kind, now.as_nanos());
        self.counters.acks_rewritten += u64::from(window.changed);
        packet.window = window.window;
    }

    fn next(&self) -> Time {
        let message = self
            .messages
            .peek()
            .map_or(Time::NEVER, |Reverse((time, _))| *time);
        message.min(self.next_look)
    }

    fn act(&mut self, now: Time, network: &mut Network) {
        while let Some(Reverse((time, message))) = self.messages.peek().copied() {
            if time > now {
                break;
            }
            self.messages.pop();
            self.receive(now, message);
        }
        if self.next_look <= now {
            self.look(now, network);
            self.next_look = now + self.interval;
        }
    }

    fn counters(&self) -> ControllerCounters {
        self.counters
    }
}
