// SPDX-License-Identifier: Apache-2.0
//! SICC (SICC §4): `core/sicc.h` decides; here are the messages between switches, controller and
//! shims, which take time and may be lost.

use super::{Channel, Controller, ControllerCounters, FRAME_BYTES, HEADER_BYTES, Way};
use crate::network::{Network, Report};
use crate::packet::{FlowId, Packet, SynOptions, flag};
use penstock_core::sicc::{self, SiccOrder};
use penstock_core::tcp_rewrite::AckKind;
use penstock_core::{Params, SiccPort, SiccShim};
use penstock_scenario::units::Time;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A port's queue in a report, bytes (SICC §5.4).
const QUEUE_BYTES: u64 = 2;

/// How the controller learns queues: the words of `queue_reports`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueReports {
    /// It reads them; reports are only counted.
    Instant,
    /// Switches send them.
    Sent,
    /// It asks for them.
    Polled,
}

/// What switches, controller and shims send each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Message {
    /// A switch forwarded a SYN or FIN that leaves by a link: flow, flags, options.
    Copy(u32, FlowId, u8, u32),
    /// INCAST_ON for a pair: MSS and scale.
    On(u32, u16, Option<u8>),
    /// INCAST_OFF for a pair.
    Off(u32),
    /// A switch (by its place) is asked for its queues.
    Poll(usize),
    /// The queues of a switch's ports, bytes.
    Queues(usize, Vec<u32>),
}

impl Message {
    fn way(&self) -> Way {
        match self {
            Message::Copy(..) | Message::Queues(..) => Way::ToController,
            Message::On(..) | Message::Off(..) | Message::Poll(..) => Way::FromController,
        }
    }
}

/// A switch port as the controller sees it.
struct Port {
    link: u32,
    core: SiccPort,
    /// Flows with a SYN and no FIN so far: the sources behind the port's destinations.
    flows: BTreeSet<FlowId>,
    /// The pairs that were sent an ON by this port, and no OFF since.
    clamped: BTreeSet<u32>,
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
    /// SYN-ACKs count, in both directions of a port (`counts`).
    counts_answers: bool,
    /// An ON has the options of the sender (`options_of`).
    sends_own_options: bool,
    /// The OFF of a port ends the clamps of others, too (`off_always`).
    ends_others: bool,
    /// For flows whose own was not seen, bytes.
    mss_bytes: u16,
    ports: Vec<Port>,
    /// Places of the ports of each switch.
    switches: Vec<Vec<usize>>,
    port_of_link: HashMap<u32, u32>,
    flows: Vec<Flow>,
    pair_of: HashMap<(u32, u32), u32>,
    shims: Vec<SiccShim>,
    channel: Channel<Message>,
    queue_reports: QueueReports,
    next_look: Time,
    counters: ControllerCounters,
}

impl Sicc {
    /// Links whose SYN and FIN the network is to report for a port with these parameters: its own,
    /// and that by which SYN-ACKs enter next to it, if these count.
    pub fn reported_links(link: u32, params: &Params) -> impl Iterator<Item = u32> {
        let back = sicc::counts_answers(params).then_some(link ^ 1);
        std::iter::once(link).chain(back)
    }

    /// A controller of the ports of these links, each with its switch and its parameters; `params`
    /// are those of the shims.
    pub fn new(
        params: Params,
        links: impl IntoIterator<Item = (u32, u32, Params)>,
        channel: Channel<Message>,
        queue_reports: QueueReports,
    ) -> Sicc {
        let (mut ports, mut switches) = (Vec::new(), BTreeMap::<u32, Vec<usize>>::new());
        for (switch, link, params) in links {
            switches.entry(switch).or_default().push(ports.len());
            ports.push(Port {
                link,
                core: SiccPort::new(&params),
                flows: BTreeSet::new(),
                clamped: BTreeSet::new(),
            });
        }
        let interval = Time::from_nanos(params.field("interval_ns"));
        let numbered = ports.iter().enumerate();
        Sicc {
            interval,
            counts_answers: sicc::counts_answers(&params),
            sends_own_options: sicc::sends_own_options(&params),
            ends_others: params.field("off_always") != 0,
            mss_bytes: params.field("mss_bytes") as u16,
            params,
            port_of_link: numbered
                .map(|(number, port)| (port.link, number as u32))
                .collect(),
            ports,
            switches: switches.into_values().collect(),
            flows: Vec::new(),
            pair_of: HashMap::new(),
            shims: Vec::new(),
            channel,
            queue_reports,
            next_look: interval,
            counters: ControllerCounters::default(),
        }
    }

    fn send(&mut self, now: Time, bytes: u64, message: Message) {
        self.channel.send(now, message.way(), bytes, message);
    }

    /// Takes a message that has arrived.
    fn receive(&mut self, now: Time, message: Message, network: &mut Network) {
        match message {
            Message::Copy(link, flow, flags, options) => {
                self.counters.reports_received += 1;
                if u16::from(flags) & flag::SYN != 0 {
                    self.flows[flow.0 as usize].learned = Some(SynOptions::unpack(options));
                }
                self.count(now, link, flow, flags);
                if self.counts_answers && is_answer(flags.into()) {
                    self.count(now, link ^ 1, flow.reverse(), flags);
                }
            }
            Message::On(pair, mss, scale) => {
                self.shims[pair as usize].on(mss, scale, now.as_nanos())
            }
            Message::Off(pair) => self.shims[pair as usize].off(),
            Message::Poll(switch) => self.report_queues(now, switch, network),
            Message::Queues(switch, queues) => self.decide(now, switch, &queues),
        }
    }

    /// A SYN or FIN passed the port of `link`, which data of `flow` leaves by.
    fn count(&mut self, now: Time, link: u32, flow: FlowId, flags: u8) {
        let Some(&number) = self.port_of_link.get(&link) else {
            return;
        };
        let port = &mut self.ports[number as usize];
        let order = port.core.on_packet(flags, now.as_nanos());
        if u16::from(flags) & flag::SYN != 0 {
            port.flows.insert(flow);
        } else {
            port.flows.remove(&flow);
        }
        match order {
            SiccOrder::On => self.start(now, number as usize),
            SiccOrder::OnOne => self.clamp(now, number as usize, &[flow]),
            _ => {}
        }
    }

    /// Every T: has the queues of each switch reported.
    fn look(&mut self, now: Time, network: &mut Network) {
        for switch in 0..self.switches.len() {
            match self.queue_reports {
                QueueReports::Instant => {
                    let queues = self.queues(now, switch, network);
                    self.counters.queue_reports += 1;
                    self.channel.count(Way::ToController, report_bytes(&queues));
                    self.decide(now, switch, &queues);
                }
                QueueReports::Sent => self.report_queues(now, switch, network),
                QueueReports::Polled => {
                    self.send(now, HEADER_BYTES, Message::Poll(switch));
                }
            }
        }
    }

    fn queues(&self, now: Time, switch: usize, network: &Network) -> Vec<u32> {
        let queue = |port: &usize| {
            let bytes = network.backlog_bytes(now, self.ports[*port].link);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        self.switches[switch].iter().map(queue).collect()
    }

    fn report_queues(&mut self, now: Time, switch: usize, network: &Network) {
        let queues = self.queues(now, switch, network);
        self.counters.queue_reports += 1;
        let bytes = report_bytes(&queues);
        self.send(now, bytes, Message::Queues(switch, queues));
    }

    /// The queues of a switch are known: notifies the sources behind its ports (SICC Algorithm 1).
    fn decide(&mut self, now: Time, switch: usize, queues: &[u32]) {
        for (place, &queue) in queues.iter().enumerate() {
            let number = self.switches[switch][place];
            let order = self.ports[number].core.on_interval(queue, now.as_nanos());
            if order.ends() {
                self.release(now, number);
            }
            if order.starts() {
                self.start(now, number);
            }
        }
    }

    /// Incast begins at a port: INCAST_ON for each pair with a flow through it.
    fn start(&mut self, now: Time, port: usize) {
        self.counters.incasts += 1;
        let flows: Vec<FlowId> = self.ports[port].flows.iter().copied().collect();
        self.clamp(now, port, &flows);
    }

    /// INCAST_ON for the pairs of flows through a port.
    fn clamp(&mut self, now: Time, port: usize, flows: &[FlowId]) {
        let pairs = flows.iter().map(|flow| self.flows[flow.0 as usize].pair);
        self.ports[port].clamped.extend(pairs);
        self.notify(now, flows.iter().map(|flow| self.on(*flow)).collect());
    }

    /// Incast ends at a port: INCAST_OFF for each pair that was sent an ON or has a flow through it, but
    /// not for those that other ports have clamped. As printed, it is sent to these too.
    fn release(&mut self, now: Time, port: usize) {
        let port = &mut self.ports[port];
        let mut pairs = std::mem::take(&mut port.clamped);
        let flows = port.flows.iter();
        pairs.extend(flows.map(|flow| self.flows[flow.0 as usize].pair));
        if !self.ends_others {
            let others = self.ports.iter().filter(|port| !port.clamped.is_empty());
            let others: Vec<_> = others.map(|port| &port.clamped).collect();
            pairs.retain(|pair| !others.iter().any(|clamped| clamped.contains(pair)));
        }
        self.notify(now, pairs.into_iter().map(Message::Off).collect());
    }

    fn notify(&mut self, now: Time, orders: BTreeSet<Message>) {
        for message in orders {
            self.counters.messages_sent += 1;
            self.send(now, FRAME_BYTES, message);
        }
    }

    /// INCAST_ON for the pair of a flow.
    fn on(&self, flow: FlowId) -> Message {
        let pair = self.flows[flow.0 as usize].pair;
        let end = if self.sends_own_options {
            flow
        } else {
            flow.reverse()
        };
        let learned = self.flows[end.0 as usize].learned;
        let mss = learned.map_or(self.mss_bytes, |options| options.mss);
        let scale = learned.map(|options| options.window_scale.unwrap_or(0));
        Message::On(pair, mss, scale)
    }
}

/// Of a report of a switch's queues (SICC §5.4).
fn report_bytes(queues: &[u32]) -> u64 {
    HEADER_BYTES + QUEUE_BYTES * queues.len() as u64
}

fn is_answer(flags: u16) -> bool {
    flags & flag::SYN != 0 && flags & flag::ACK != 0
}

impl Controller for Sicc {
    fn on_connect(&mut self, data: FlowId, source: u32, destination: u32) {
        let needed = (data.0 | 1) as usize + 1;
        if self.flows.len() < needed {
            self.flows.resize(needed, Flow::default());
        }
        let learned = |flow: FlowId| self.flows[flow.0 as usize].learned;
        let is_used = learned(data).or(learned(data.reverse())).is_some();
        for (flow, ends) in [
            (data, (source, destination)),
            (data.reverse(), (destination, source)),
        ] {
            let pair = *self.pair_of.entry(ends).or_insert_with(|| {
                self.shims.push(SiccShim::new(&self.params));
                self.shims.len() as u32 - 1
            });
            self.flows[flow.0 as usize] = Flow {
                pair,
                ..Flow::default()
            };
            if is_used {
                // The number is used again, and a connection that was reset left no FIN.
                for port in &mut self.ports {
                    port.flows.remove(&flow);
                }
            }
        }
    }

    fn on_report(&mut self, report: &Report) {
        let (link, packet) = (report.link, &report.packet);
        let is_wanted = self.port_of_link.contains_key(&link)
            || self.counts_answers
                && is_answer(packet.flags)
                && self.port_of_link.contains_key(&(link ^ 1));
        if is_wanted {
            let copy = Message::Copy(link, packet.flow, packet.flags as u8, packet.options);
            let bytes = HEADER_BYTES + u64::from(packet.size());
            self.send(report.time, bytes, copy);
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
        self.channel.next().min(self.next_look)
    }

    fn act(&mut self, now: Time, network: &mut Network) {
        while let Some(message) = self.channel.receive(now) {
            self.receive(now, message, network);
        }
        if self.next_look <= now {
            self.look(now, network);
            self.next_look = now + self.interval;
        }
    }

    fn counters(&self) -> ControllerCounters {
        self.channel.counters(self.counters)
    }
}

#[cfg(test)]
#[path = "sicc_tests.rs"]
mod tests;
