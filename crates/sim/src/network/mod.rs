// SPDX-License-Identifier: Apache-2.0
//! Links, switches and what their ports do to packets.
//!
//! A packet's way: [`Network::send`] gives it to an output port, whose queue policy keeps or loses
//! it; the calendar brings it out of the link with [`Network::arrive`]; a switch looks the next
//! link up in the flow's path and sends it on, a host gets it.

mod edge;
mod link;
mod measure;
mod paths;
mod policies;
mod sacks;

pub(crate) use link::InFlight;
pub use paths::Paths;
pub(crate) use sacks::SackList;

use crate::engine::Calendar;
use crate::fabric::Fabric;
use crate::packet::{FlowId, Packet, SackBlock, flag};
use crate::queue::{Admission, DropReason, Scheduler};
use crate::rng::Rng;
use crate::window::{FlowEntry, Shims, Window, WindowCounters};
use link::{End, Link, feature};
use penstock_scenario::units::Time;
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

impl PortCounters {
    /// Packets lost, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }
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
    /// The path of every flow.
    paths: Paths,
    /// What window policies know of each flow at each hop; empty where no port has one.
    flows: Vec<FlowEntry>,
    sacks: Sacks,
    shims: Option<Shims>,
    rng: Rng,
    /// Flows that lost a packet since the caller last looked, once a packet.
    pub losses: Vec<FlowId>,
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

    /// When the next event is due.
    pub fn next_time(&self) -> Time {
        self.calendar.first().0
    }

    /// The earliest event.
    #[inline(always)]
    pub fn next(&self) -> (Time, Event) {
        let (time, source) = self.calendar.first();
        let past_ports = source.wrapping_sub(self.first_link);
        if self.links.len() > MANY_LINKS {
            self.foresee(source);
        }
        let event = if past_ports < self.links.len() {
            Event::Arrival(past_ports as u32)
        } else {
            self.other_event(source)
        };
        (time, event)
    }

    /// Asks for the packets of the events that are likely to follow that of `source`.
    #[inline(always)]
    fn foresee(&self, source: usize) {
        for depth in 1..=3 {
            let likely = self.calendar.runner_up(source, depth);
            if let Some(link) = self.links.get(likely.wrapping_sub(self.first_link)) {
                link.ring.prefetch();
            }
        }
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
                if self.links[link as usize].end == End::Away {
                    return;
                }
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
        policies::account_loss(
            &mut self.ports[link as usize].counters,
            &mut self.sacks,
            &mut self.losses,
            &packet,
            reason,
        );
    }
}
