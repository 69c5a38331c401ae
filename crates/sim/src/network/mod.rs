// SPDX-License-Identifier: Apache-2.0
//! The network: links, switches, and what their ports do to packets.
//!
//! A packet's way: [`Network::inject`] gives it to the first output port of its path, whose policies
//! keep or lose it; the calendar brings it out of the link with [`Network::arrive`]; a switch looks
//! up the next link of the flow's path and sends it on, a host gets it.
//!
//! - `wires`: links with FIFO ports (`link`), which are all that most packets meet; the packets on
//!   them, and which comes next (`events`).
//! - `policies`: ports that do more than drop-tail: admission, scheduling (`scheduled`), windows,
//!   shims; links that fail and buffers that ports share (`losses`); ports that pause (`pfc`).
//! - `trace`: the packets of one port, recorded.
//! - `paths`: the links that each flow takes. `sacks`: SACK blocks of packets on the way.

mod counters;
mod events;
mod link;
mod losses;
mod paths;
mod pfc;
mod policies;
mod sacks;
mod scheduled;
mod trace;
mod wires;

pub use counters::PortCounters;
pub use events::{Event, Source};
pub(crate) use link::InFlight;
pub use losses::{Failures, Shared};
pub(crate) use paths::Paths;
pub use pfc::Ingress;
pub use policies::Report;
pub(crate) use sacks::SackList;
pub use trace::{TracePlan, TracedConnection, TracedPacket};

use crate::fabric::{Fabric, LinkSpec};
use crate::packet::{FlowId, MAX_SACK_BLOCKS, Packet, SackBlock, flag};
use crate::queue::{Admission, Scheduler};
use crate::rng::Rng;
use crate::window::{Credit, Policy, Shims};
use link::{End, feature};
use penstock_scenario::units::Time;
use policies::Policies;
use wires::Wires;

/// All links with their ports, and the packets on them.
pub struct Network {
    wires: Wires,
    policies: Policies,
    paths: Paths,
}

/// Setting it up.
impl Network {
    /// The fabric's links, all ports drop-tail. `rng`: what policies draw from.
    pub fn new(fabric: &Fabric, rng: Rng) -> Network {
        Network {
            wires: Wires::new(fabric),
            policies: Policies::new(fabric.links.len(), rng),
            paths: Paths::new(fabric.longest_path(), fabric.is_symmetric),
        }
    }

    /// Gives `link` a policy that decides on arrival.
    pub fn set_admission(&mut self, link: u32, policy: Box<dyn Admission>) {
        self.policies.set_admission(link, policy, &mut self.wires);
    }

    /// Gives `link` a policy that holds the packets; the buffer's size is the policy's.
    pub fn set_scheduler(&mut self, link: u32, queue: Box<dyn Scheduler>) {
        self.policies.set_scheduler(link, queue, &mut self.wires);
    }

    /// Has the link of a port lose packets.
    pub fn set_failures(&mut self, link: u32, failures: Failures) {
        self.policies.set_failures(link, failures, &mut self.wires);
    }

    /// Puts packets that come in by `link` under flow control: its port pauses when the switch has too many of them. It
    /// has a scheduler.
    pub fn set_pfc(&mut self, link: u32, rules: Ingress) {
        self.policies.set_pfc(link, rules);
    }

    /// What waits at the port of `link`, which has a scheduler, counts for the port by which it came in.
    pub fn count_ingress(&mut self, link: u32) {
        self.policies.count_ingress(link, &mut self.wires);
    }

    /// Has ports share a buffer.
    pub fn set_shared(&mut self, shared: Shared) {
        self.policies.set_shared(shared, &mut self.wires);
    }

    /// Gives `link` a window policy: it sees what leaves by the link and what enters next to it.
    pub fn set_window(&mut self, link: u32, policy: Box<Policy>) {
        self.policies.set_window(link, policy, &mut self.wires);
    }

    /// Puts credit on what leaves by `link`: at its port, or `is_behind` it, where the link ends.
    pub fn set_credit(&mut self, link: u32, credit: Box<Credit>, is_behind: bool) {
        self.policies
            .set_credit(link, credit, is_behind, &mut self.wires);
    }

    /// Records the packets of a port.
    pub fn set_trace(&mut self, plan: TracePlan) {
        self.wires.set_trace(plan);
    }

    /// Where packets are recorded, notes whose they are.
    pub(crate) fn trace_connection(&mut self, connection: TracedConnection) {
        if let Some(trace) = self.wires.trace() {
            trace.open(connection);
        }
    }

    /// The packets recorded, and all connections.
    pub fn take_trace(&mut self) -> (Vec<TracedPacket>, Vec<TracedConnection>) {
        let trace = self.wires.trace().take();
        trace.map_or_else(Default::default, |trace| trace.into_parts())
    }

    /// Puts shims below all hosts; to be called once, before any packet is sent.
    pub fn set_shims(&mut self, shims: Shims) {
        self.policies.set_shims(shims, &mut self.wires);
    }

    /// Copies SYN and FIN that leave by `link` for [`Network::take_reports`].
    pub fn report_syn_fin(&mut self, link: u32) {
        self.wires.link_mut(link).features |= feature::REPORT;
    }

    /// Makes the calendar; to be called once, when all policies are set.
    pub fn start(&mut self) {
        let salt = self.policies.draw_salt();
        self.wires.start(self.policies.scheduled_ports(), salt);
    }

    /// The last instant a run can reach with this many links.
    pub fn horizon(&self) -> Time {
        self.wires.horizon()
    }

    /// Sets the path of a new connection whose data is the flow `data`, and of its reverse: of several
    /// that packets may take, number `variant`. Another connection may have had its number: what the
    /// ports know of that is forgotten.
    pub fn set_paths(&mut self, data: FlowId, variant: usize, links: &[u32], back: &[u32]) {
        self.paths.set(data, variant, links);
        self.paths.set(data.reverse(), variant, back);
        if variant == 0 {
            self.policies.forget(&self.paths, data);
        }
    }

    /// Has each packet take one of the paths of its flow at random; to be called before any path is set.
    pub fn spray(&mut self, rng: Rng) {
        self.paths.spray(rng);
    }

    /// Most paths that a flow may have.
    pub fn most_variants(&self) -> usize {
        self.paths.most_variants()
    }
}

/// The packet's way.
impl Network {
    /// When the next event is due.
    pub fn next_time(&self) -> Time {
        self.wires.next_time()
    }

    /// The earliest event.
    #[inline(always)]
    pub fn next(&self) -> (Time, Event) {
        self.wires.next()
    }

    /// Sets the next event of a source that is not the network's.
    #[inline(always)]
    pub fn set_source(&mut self, source: Source, time: Time) {
        self.wires.events().set_source(source, time);
    }

    /// Sends a segment from its end point: the first step of the flow's path.
    #[inline(always)]
    pub fn inject(&mut self, now: Time, mut packet: Packet, sack: &[SackBlock]) {
        self.wires.put_sack(&mut packet, sack);
        let hop = self.paths.first_hop(packet.flow);
        let link = self.paths.step(packet.flow, hop.into()).link();
        self.send(now, link, packet, hop);
    }

    /// How long the first link of a flow's path would need for what it has been given and `bytes` more.
    pub fn first_wait(&self, now: Time, flow: FlowId, bytes: u32) -> Time {
        let number = self.paths.step(flow, 0).link();
        let link = self.wires.link(number);
        let queued = match link.features & feature::SCHEDULER {
            0 => 0,
            _ => self.policies.scheduled_bytes(number),
        };
        let more = (queued + bytes as u64).saturating_mul(link.byte_time_q16) >> 16;
        link.free_at.saturating_sub(now) + Time(more)
    }

    /// Gives a packet to the output port of `link`.
    #[inline(always)]
    fn send(&mut self, now: Time, link: u32, mut packet: Packet, hop: u8) {
        if self.wires.link(link).features == 0 {
            let onward = self.paths.onward(packet.flow, hop);
            self.wires.transmit(now, link, packet, hop, onward);
        } else {
            packet.hop = hop;
            self.policies
                .send(now, link, packet, &mut self.wires, &self.paths);
        }
    }

    /// A packet comes out of `link`. A switch sends it on; one for a host is returned.
    #[inline(always)]
    pub fn arrive(&mut self, now: Time, link: u32) -> Option<Packet> {
        let from = self.wires.link_mut(link);
        let (entry, next) = from.arrival(now);
        let mut packet = entry.packet;
        let (end, leaf) = (from.end, from.leaf);
        self.wires.events().set_next_arrival(link, leaf, next);
        if matches!(end, End::Host | End::Shim | End::CreditHost) {
            if end == End::Shim {
                self.policies.on_delivery(&mut packet);
            } else if end == End::CreditHost {
                self.policies
                    .on_arrival(now, link, &packet, &mut self.wires, &self.paths);
            }
            return Some(packet);
        }
        if end == End::Window && packet.has_any(flag::ACK | flag::SYN | flag::RST) {
            self.policies
                .on_ack(now, link, &mut packet, &mut self.wires, &self.paths);
        } else if end == End::CreditSwitch {
            self.policies
                .on_arrival(now, link, &packet, &mut self.wires, &self.paths);
        }
        let hop = packet.hop + 1;
        self.send(now, entry.onward.link(), packet, hop);
        None
    }

    /// Takes the SACK blocks of a packet that [`Network::arrive`] returned.
    #[inline(always)]
    pub fn take_sack(&mut self, packet: &Packet) -> ([SackBlock; MAX_SACK_BLOCKS], usize) {
        self.wires.take_sack(packet)
    }

    /// The transmitter of a scheduler's port is free: it sends the next packet.
    pub fn depart(&mut self, now: Time, port: u32) {
        self.policies
            .depart(now, port, &mut self.wires, &self.paths);
    }

    /// Whether [`Network::take_losses`], [`Network::take_reports`] or [`Network::take_pauses`] would return something.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        self.wires.has_losses() || self.policies.has_reports()
    }

    /// Takes the flows that lost a packet since the last call, once a packet.
    pub fn take_losses(&mut self) -> Vec<FlowId> {
        self.wires.take_losses()
    }

    /// Takes the pause frames sent since the last call: when each arrives, and at the port of which link.
    pub fn take_pauses(&mut self) -> Vec<(Time, u32)> {
        self.policies.take_pauses()
    }

    /// A pause frame arrives at the port of `link`.
    pub fn receive_pause(&mut self, now: Time, link: u32) {
        let (wires, paths) = (&mut self.wires, &self.paths);
        self.policies.receive_pause(now, link, wires, paths);
    }

    /// Takes the SYN and FIN that were copied for the controller since the last call.
    pub fn take_reports(&mut self) -> Vec<Report> {
        self.policies.take_reports()
    }
}

/// Periodic work, and what is measured of ports.
impl Network {
    /// Gives the window policy of a port the number of its flows, where it does not count them.
    pub fn set_flows(&mut self, link: u32, flows: u32) {
        self.policies.set_flows(link, flows);
    }

    /// The flows of a port as its window policy knows them; 0 without one.
    pub fn flows(&self, link: u32) -> u32 {
        self.policies.flows(link)
    }

    /// Periodic work of a queue policy; returns when it is due again.
    pub fn tick_queue(&mut self, now: Time, link: u32) -> Option<Time> {
        self.policies.tick_queue(now, link, &self.wires)
    }

    /// Periodic work of a window policy; returns when it is due again.
    pub fn tick_window(&mut self, now: Time, link: u32) -> Option<Time> {
        self.policies
            .tick_window(now, link, &mut self.wires, &self.paths)
    }

    /// How often the queue policy of a port wants [`Network::tick_queue`].
    pub fn queue_period(&self, link: u32) -> Option<Time> {
        self.policies.queue_period(link)
    }

    /// Bytes not yet sent by a port.
    pub fn backlog_bytes(&self, now: Time, link: u32) -> u64 {
        self.policies.backlog_bytes(now, link, &self.wires)
    }

    /// Packets not yet sent by a port.
    pub fn backlog_packets(&mut self, now: Time, link: u32) -> u32 {
        self.policies.backlog_packets(now, link, &mut self.wires)
    }

    /// From now on [`PortCounters::measured_bytes`] counts.
    pub fn start_measuring(&mut self, now: Time) {
        self.wires.start_measuring(now);
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.wires.ports()
    }

    /// What the port of `link` did until `now`.
    pub fn counters(&self, link: u32, now: Time) -> PortCounters {
        let mut counters = self.wires.counters(link, now);
        self.policies.add_counters(link, now, &mut counters);
        counters
    }

    /// Packets sent on all links so far: the packet-hops of the run.
    pub fn packet_hops(&self) -> u64 {
        self.wires.packet_hops()
    }
}

/// Where the network ends: links whose packets arrive in another one.
impl Network {
    /// Cuts `link`: its port works on, but what it sends is to be taken by `take_sent`.
    pub fn cut(&mut self, link: u32) {
        self.wires.cut(link);
    }

    /// Adds a link without a port, by which packets `enter` at a switch; returns its number.
    pub fn add_entrance(&mut self, spec: &LinkSpec) -> u32 {
        self.wires.add_entrance(spec)
    }

    /// Hands the packets that the cut `link` was given since the last call to `each`, with their SACK
    /// blocks, oldest first. `handed` counts them for this link, from 0.
    #[inline]
    pub(crate) fn take_sent(
        &mut self,
        now: Time,
        link: u32,
        handed: &mut u32,
        mut each: impl FnMut(&Paths, InFlight, Option<SackList>),
    ) {
        let paths = &self.paths;
        self.wires
            .take_sent(now, link, handed, |entry, sack| each(paths, entry, sack));
    }

    /// A packet comes in by `link` from another network, to arrive later than anything done so far.
    /// `sacks`: the SACK blocks of the packets that carry some, those of this one first.
    #[inline]
    pub(crate) fn enter<'a>(
        &mut self,
        link: u32,
        entry: InFlight,
        sacks: &mut impl Iterator<Item = &'a SackList>,
    ) {
        self.wires.enter(link, entry, sacks);
    }
}
