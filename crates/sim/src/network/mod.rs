// SPDX-License-Identifier: Apache-2.0
//! Links, switches and what their ports do to packets.
//!
//! A packet's way: [`Network::send`] gives it to an output port, whose queue policy keeps or loses
//! it; the calendar brings it out of the link with [`Network::arrive`]; a switch looks the next
//! link up in the flow's path and sends it on, a host gets it.

mod link;
mod paths;
mod sacks;

pub use paths::Paths;

use crate::engine::Calendar;
use crate::fabric::Fabric;
use crate::packet::{FlowId, Packet, SackBlock, flag};
use crate::queue::{Admission, Arrival, DropReason, Scheduler, Verdict};
use crate::rng::Rng;
use crate::units::Time;
use crate::window::{FlowEntry, Shims, Window, WindowCounters};
use link::{End, Link, feature};
use sacks::Sacks;

/// What a port did, since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Packets lost, by reason.
    pub drops: [u64; DropReason::ALL.len()],
    /// Packets marked congestion experienced.
    pub marks: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes sent since [`Network::start_measuring`].
    pub measured_bytes: u64,
    /// Longest queue met by a packet, itself included, bytes.
    pub peak_bytes: u64,
    /// What the window policy did.
    pub window: WindowCounters,
}

/// A packet that did not get through, for whoever accounts for it.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The flow that lost it.
    pub flow: FlowId,
    /// Whether it carried payload.
    pub data: bool,
}

/// A port whose policy holds the packets itself.
struct Scheduled {
    link: u32,
    queue: Box<dyn Scheduler>,
    /// A departure is in the calendar.
    waiting: bool,
}

/// The policies of a port beyond drop-tail, and what they count; few ports have any.
#[derive(Default)]
struct Port {
    admission: Option<Box<dyn Admission>>,
    scheduled: Option<u32>,
    window: Option<Box<dyn Window>>,
    counters: PortCounters,
    sent_before: u64,
}

/// A copy of a SYN or FIN for the controller.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The port (link) it leaves by.
    pub link: u32,
    /// When.
    pub time: Time,
    /// The packet.
    pub packet: Packet,
}

/// All links with their ports, and the packets on them.
pub struct Network {
    links: Vec<Link>,
    ports: Vec<Port>,
    scheduled: Vec<Scheduled>,
    calendar: Calendar,
    /// Number of link 0 among the calendar's sources; even, so that the links of a cable are
    /// neighbours there too.
    first_link: usize,
    /// A link whose packet is being delivered: its next arrival is not in force yet.
    delivering: Option<u32>,
    /// The way of every flow.
    pub paths: Paths,
    /// What window policies know of each flow at each hop; empty where no port has one.
    flows: Vec<FlowEntry>,
    sacks: Sacks,
    shims: Option<Shims>,
    rng: Rng,
    /// Packets lost since the caller last looked.
    pub losses: Vec<Loss>,
    /// SYN and FIN copied to the controller since the caller last looked.
    pub reports: Vec<Report>,
}

/// Sources of events that are not the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The end points' timers.
    Timers = 0,
    /// The schedule of everything rare.
    Schedule = 1,
    /// The controller.
    Controller = 2,
}

/// With more links than this they do not fit the first cache: what is likely to be needed next is
/// asked for in time.
const MANY_LINKS: usize = 1024;

/// The next event.
pub enum Event {
    /// A port has finished a transmission and may send again.
    Departure(u32),
    /// A packet comes out of this link.
    Arrival(u32),
    /// One of the other sources is due.
    Other(Source),
}

impl Network {
    /// The fabric's links, all ports drop-tail.
    pub fn new(fabric: &Fabric, rng: Rng) -> Network {
        let links = fabric.links.iter().map(|spec| {
            let end = if fabric.is_host(spec.to) {
                End::Host
            } else {
                End::Switch
            };
            Link::new(spec.rate, spec.delay, spec.buffer, end)
        });
        let mut network = Network {
            links: links.collect(),
            ports: Vec::new(),
            scheduled: Vec::new(),
            calendar: Calendar::new(0, 0),
            first_link: 0,
            delivering: None,
            paths: Paths::new(fabric.longest_path()),
            flows: Vec::new(),
            sacks: Sacks::default(),
            shims: None,
            rng,
            losses: Vec::new(),
            reports: Vec::new(),
        };
        network
            .ports
            .resize_with(network.links.len(), Port::default);
        network
    }

    /// Gives `link` a policy that decides on arrival.
    pub fn set_admission(&mut self, link: u32, policy: Box<dyn Admission>) {
        self.links[link as usize].features |= feature::ADMISSION;
        self.ports[link as usize].admission = Some(policy);
    }

    /// Gives `link` a policy that holds the packets; the buffer's size is the policy's.
    pub fn set_scheduler(&mut self, link: u32, queue: Box<dyn Scheduler>) {
        self.links[link as usize].features |= feature::SCHEDULER;
        self.ports[link as usize].scheduled = Some(self.scheduled.len() as u32);
        self.scheduled.push(Scheduled {
            link,
            queue,
            waiting: false,
        });
    }

    /// Gives `link` a window policy: it sees what leaves by the link and what enters beside it.
    pub fn set_window(&mut self, link: u32, policy: Box<dyn Window>) {
        self.links[link as usize].features |= feature::WINDOW;
        self.ports[link as usize].window = Some(policy);
        let back = &mut self.links[link as usize ^ 1];
        if back.end == End::Switch {
            back.end = End::Window;
        }
    }

    /// Puts shims below all hosts; to be called once, before any packet is sent.
    pub fn set_shims(&mut self, shims: Option<Shims>) {
        self.shims = shims;
        for link in 0..self.links.len() {
            if self.shims.is_some() && self.links[link].end == End::Host {
                self.links[link].end = End::Shim;
                self.links[link ^ 1].features |= feature::SHIM;
            }
        }
    }

    /// Copies SYN and FIN that leave by `link` to [`Network::reports`].
    pub fn report_syn_fin(&mut self, link: u32) {
        self.links[link as usize].features |= feature::REPORT;
    }

    /// Makes the calendar; to be called once, when all policies are set.
    pub fn start(&mut self) {
        self.first_link = self.scheduled.len().next_multiple_of(2);
        let sources = self.first_link + self.links.len() + 3;
        self.calendar = Calendar::new(sources, self.rng.bits());
    }

    /// The last instant a run can reach with this many links.
    pub fn horizon(&self) -> Time {
        self.calendar.horizon()
    }

    /// The earliest event.
    #[inline(always)]
    pub fn next(&self) -> (Time, Event) {
        let (time, source) = self.calendar.first();
        let past_ports = source.wrapping_sub(self.first_link);
        if self.links.len() > MANY_LINKS {
            let likely = self.calendar.runner_up().wrapping_sub(self.first_link);
            if let Some(link) = self.links.get(likely) {
                link.ring.prefetch(0);
            }
        }
        let event = if past_ports < self.links.len() {
            Event::Arrival(past_ports as u32)
        } else {
            self.other_event(source)
        };
        (time, event)
    }

    fn other_event(&self, source: usize) -> Event {
        match source.checked_sub(self.first_link + self.links.len()) {
            None => Event::Departure(source as u32),
            Some(0) => Event::Other(Source::Timers),
            Some(1) => Event::Other(Source::Schedule),
            Some(_) => Event::Other(Source::Controller),
        }
    }

    /// Sets the next event of a source that is not the network's.
    #[inline(always)]
    pub fn set_source(&mut self, source: Source, time: Time) {
        self.calendar
            .set(self.first_link + self.links.len() + source as usize, time);
    }

    /// Sends a segment from its end point: the first step of the flow's path.
    #[inline(always)]
    pub fn inject(&mut self, now: Time, mut packet: Packet, sack: &[SackBlock]) {
        if !sack.is_empty() {
            packet.options = self.sacks.put(sack);
        }
        let link = self.paths.step(packet.flow, 0).link();
        self.send(now, link, packet, 0);
    }

    /// Takes the SACK blocks of a delivered packet.
    #[inline(always)]
    pub fn take_sack(&mut self, packet: &Packet) -> ([SackBlock; 4], usize) {
        self.sacks.take_from(packet)
    }

    /// A packet comes out of `link`. A switch sends it on; one for a host is returned.
    #[inline(always)]
    pub fn arrive(&mut self, now: Time, link: u32) -> Option<Packet> {
        let source = self.first_link + link as usize;
        let from = &mut self.links[link as usize];
        let (mut packet, next) = from.arrival();
        let end = from.end;
        if matches!(end, End::Host | End::Shim) {
            // The host will probably answer by the link's neighbour.
            self.calendar.set_beside(source, next);
            self.delivering = Some(link);
            if end == End::Shim {
                self.through_shim(&mut packet);
            }
            return Some(packet);
        }
        self.calendar.set(source, next);
        if end == End::Window && packet.has_any(flag::ACK | flag::SYN | flag::RST) {
            self.on_ack(now, link, &mut packet);
        }
        let hop = packet.hop + 1;
        let onward = self.paths.step(packet.flow, hop.into()).link();
        self.send(now, onward, packet, hop);
        None
    }

    /// The packet that [`Network::arrive`] returned has been dealt with. To be called before
    /// [`Network::next`].
    #[inline(always)]
    pub fn delivered(&mut self) {
        if let Some(link) = self.delivering.take() {
            let next = self.links[link as usize].next_arrival();
            self.calendar.set(self.first_link + link as usize, next);
        }
    }

    /// A packet passes the shim on its way up to its host.
    #[inline(never)]
    fn through_shim(&mut self, packet: &mut Packet) {
        if let Some(shims) = &mut self.shims {
            shims.on_delivery(packet);
        }
    }

    /// Gives a packet to the output port of `link`.
    #[inline(always)]
    fn send(&mut self, now: Time, link: u32, mut packet: Packet, hop: u8) {
        if self.links[link as usize].features == 0 {
            self.transmit(now, link, packet, hop);
        } else {
            packet.hop = hop;
            self.send_by_policy(now, link, packet);
        }
    }

    /// Queues a packet at a FIFO port, if the buffer takes it.
    #[inline(always)]
    fn transmit(&mut self, now: Time, link: u32, packet: Packet, hop: u8) {
        match self.links[link as usize].offer(now, &packet, hop) {
            Some((arrives, true)) => {
                self.calendar.set(self.first_link + link as usize, arrives);
                if self.delivering == Some(link ^ 1) {
                    self.delivering = None;
                }
            }
            Some((_, false)) => {}
            None => self.lose(link, packet, DropReason::Full),
        }
    }

    #[cold]
    #[inline(never)]
    fn lose(&mut self, link: u32, packet: Packet, reason: DropReason) {
        account_loss(
            &mut self.ports[link as usize].counters,
            &mut self.sacks,
            &mut self.losses,
            &packet,
            reason,
        );
    }

    /// The way through a port that does more than drop-tail by bytes.
    #[inline(never)]
    fn send_by_policy(&mut self, now: Time, link: u32, mut packet: Packet) {
        let features = self.links[link as usize].features;
        if let Some(shims) = self
            .shims
            .as_mut()
            .filter(|_| features & feature::SHIM != 0)
        {
            shims.on_departure(&mut packet);
        }
        if features & feature::REPORT != 0 && packet.has_any(flag::SYN | flag::FIN) {
            self.reports.push(Report {
                link,
                time: now,
                packet,
            });
        }
        if features & feature::WINDOW != 0 && !self.on_departure(now, link, &mut packet) {
            return self.lose(link, packet, DropReason::Reserved);
        }
        if features & feature::SCHEDULER != 0 {
            return self.schedule(now, link, packet);
        }
        let port = &mut self.links[link as usize];
        let has_room = port.has_room(now, &packet);
        let extra = &mut self.ports[link as usize];
        if let Some(policy) = &mut extra.admission {
            let arrival = Arrival {
                now,
                backlog_bytes: port.backlog_bytes(now),
                backlog_packets: port.held_packets(now).saturating_sub(1),
                free_at: port.free_at,
            };
            if has_room {
                match policy.admit(&arrival, &packet, &mut self.rng) {
                    Verdict::Pass => {}
                    Verdict::Mark => {
                        packet.flags |= flag::CE;
                        extra.counters.marks += 1;
                    }
                    Verdict::Drop(reason) => return self.lose(link, packet, reason),
                }
            } else {
                policy.overflow(&arrival, &packet);
            }
        }
        self.transmit(now, link, packet, packet.hop);
    }
}

/// Ports whose policy holds the packets: a departure is an event.
impl Network {
    fn schedule(&mut self, now: Time, link: u32, packet: Packet) {
        let Some(port) = self.ports[link as usize].scheduled else {
            return;
        };
        if self.scheduled[port as usize].waiting && self.links[link as usize].free_at <= now {
            // A departure and this arrival are simultaneous: what leaves makes room first.
            self.depart(now, port);
        }
        self.with_queue(port, |queue, lost| queue.enqueue(now, packet, lost));
        let peak = self.queue(now, link).0;
        let counters = &mut self.ports[link as usize].counters;
        counters.peak_bytes = counters.peak_bytes.max(peak);
        if !self.scheduled[port as usize].waiting && self.links[link as usize].free_at <= now {
            self.depart(now, port);
        } else if !self.scheduled[port as usize].waiting {
            self.scheduled[port as usize].waiting = true;
            self.calendar
                .set(port as usize, self.links[link as usize].free_at);
        }
    }

    /// The transmitter of scheduled port number `port` is free: it sends the next packet.
    pub fn depart(&mut self, now: Time, port: u32) {
        let next = self.with_queue(port, |queue, lost| queue.dequeue(now, lost));
        let link = self.scheduled[port as usize].link;
        if let Some(packet) = next {
            self.transmit(now, link, packet, packet.hop);
        }
        let waiting = self.scheduled[port as usize].queue.backlog_packets() > 0;
        self.scheduled[port as usize].waiting = waiting;
        let next = if waiting {
            self.links[link as usize].free_at
        } else {
            Time::NEVER
        };
        self.calendar.set(port as usize, next);
    }

    fn with_queue<T>(
        &mut self,
        port: u32,
        act: impl FnOnce(&mut dyn Scheduler, &mut dyn FnMut(Packet, DropReason)) -> T,
    ) -> T {
        let Scheduled { link, queue, .. } = &mut self.scheduled[port as usize];
        let (counters, sacks, losses) = (
            &mut self.ports[*link as usize].counters,
            &mut self.sacks,
            &mut self.losses,
        );
        act(queue.as_mut(), &mut |packet, reason| {
            account_loss(counters, sacks, losses, &packet, reason)
        })
    }
}

/// Ports with a window policy.
impl Network {
    /// `packet` is about to join the queue of `link`; false: the policy drops it.
    fn on_departure(&mut self, now: Time, link: u32, packet: &mut Packet) -> bool {
        let backlog = self.links[link as usize].backlog_bytes(now);
        let slot = self.paths.slot(packet.flow, packet.hop.into());
        match &mut self.ports[link as usize].window {
            Some(policy) => {
                make_room(&mut self.flows, slot);
                policy.on_departure(now, packet, &mut self.flows, slot, backlog)
            }
            None => true,
        }
    }

    /// `packet` entered over `link`, beside the port whose policy may lower its window.
    fn on_ack(&mut self, now: Time, link: u32, packet: &mut Packet) {
        let port = (link ^ 1) as usize;
        let backlog = self.links[port].backlog_bytes(now);
        // The port's place on the way of the data is the ACK's, counted from the other end.
        let hop = self.paths.step(packet.flow, packet.hop.into()).remaining();
        let slot = self.paths.slot(packet.flow.reverse(), hop);
        if let Some(policy) = &mut self.ports[port].window {
            make_room(&mut self.flows, slot);
            policy.on_ack(now, packet, &mut self.flows, slot, backlog);
        }
    }

    /// Forgets a closed connection whose number is given away again.
    pub fn forget(&mut self, flow: FlowId) {
        let first = self.paths.slot(FlowId(flow.0 & !1), 0);
        let last = self.paths.slot(FlowId(flow.0 | 1), 0) + self.paths.stride();
        if let Some(entries) = self.flows.get_mut(first..last) {
            entries.fill(FlowEntry::default());
        }
    }

    /// Periodic work of a window policy; returns its period.
    pub fn tick_window(&mut self, now: Time, link: u32) -> Option<Time> {
        let backlog = self.links[link as usize].backlog_bytes(now);
        let policy = self.ports[link as usize].window.as_mut()?;
        policy.tick(now, &mut self.flows, backlog);
        policy.period()
    }
}

/// Periodic work, and what is measured.
impl Network {
    /// Periodic work of a queue policy; returns its period.
    pub fn tick_queue(&mut self, now: Time, link: u32) -> Option<Time> {
        let port = &mut self.ports[link as usize];
        if let Some(policy) = &mut port.admission {
            policy.tick(now, self.links[link as usize].backlog_bytes(now));
            return policy.period();
        }
        let scheduled = &mut self.scheduled[port.scheduled? as usize];
        scheduled.queue.tick(now);
        scheduled.queue.period()
    }

    /// How often the queue policy of a port wants [`Network::tick_queue`].
    pub fn queue_period(&self, link: u32) -> Option<Time> {
        let port = &self.ports[link as usize];
        let scheduled = || self.scheduled[port.scheduled? as usize].queue.period();
        port.admission
            .as_ref()
            .and_then(|policy| policy.period())
            .or_else(scheduled)
    }

    /// Bytes and packets not yet sent by a port.
    pub fn queue(&mut self, now: Time, link: u32) -> (u64, u32) {
        let port = &mut self.links[link as usize];
        let (bytes, packets) = (port.backlog_bytes(now), port.held_packets(now));
        match self.ports[link as usize].scheduled {
            Some(index) => {
                let queue = &self.scheduled[index as usize].queue;
                (
                    bytes + queue.backlog_bytes(),
                    packets + queue.backlog_packets(),
                )
            }
            None => (bytes, packets),
        }
    }

    /// Whether [`Network::losses`] or [`Network::reports`] wait for the caller.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        !self.losses.is_empty() || !self.reports.is_empty()
    }

    /// From now on [`PortCounters::measured_bytes`] counts.
    pub fn start_measuring(&mut self, now: Time) {
        for (port, link) in self.ports.iter_mut().zip(&self.links) {
            port.sent_before = link.sent_bytes - link.backlog_bytes(now);
        }
    }

    /// What the port of `link` did until `now`.
    pub fn counters(&self, link: u32, now: Time) -> PortCounters {
        let (port, link) = (&self.ports[link as usize], &self.links[link as usize]);
        PortCounters {
            sent_packets: link.sent_packets,
            sent_bytes: link.sent_bytes,
            // Packets are booked when they are queued; what waits has not been sent.
            measured_bytes: link.sent_bytes - link.backlog_bytes(now) - port.sent_before,
            peak_bytes: link.peak_bytes().max(port.counters.peak_bytes),
            window: port
                .window
                .as_ref()
                .map(|policy| policy.counters())
                .unwrap_or_default(),
            ..port.counters.clone()
        }
    }

    /// Packets sent on all links so far: the packet-hops of the run.
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|link| link.sent_packets).sum()
    }
}

fn make_room(flows: &mut Vec<FlowEntry>, slot: usize) {
    if slot >= flows.len() {
        flows.resize(slot + 1, FlowEntry::default());
    }
}

fn account_loss(
    counters: &mut PortCounters,
    sacks: &mut Sacks,
    losses: &mut Vec<Loss>,
    packet: &Packet,
    reason: DropReason,
) {
    counters.drops[reason as usize] += 1;
    sacks.take_from(packet);
    losses.push(Loss {
        flow: packet.flow,
        data: packet.payload > 0,
    });
}
