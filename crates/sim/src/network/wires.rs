// SPDX-License-Identifier: Apache-2.0
//! Links with FIFO ports, the packets on them, and which of these comes next.

use super::counters::PortCounters;
use super::events::{Event, Events};
use super::link::{End, InFlight, Link, feature};
use super::paths::Step;
use super::sacks::{SackList, Sacks, are_carried};
use super::trace::{Trace, TracePlan};
use crate::engine::prefetch;
use crate::fabric::{Fabric, LinkSpec};
use crate::packet::{FlowId, MAX_SACK_BLOCKS, Packet, SackBlock};
use crate::queue::DropReason;
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// With more links than this they do not fit the first cache: what is likely to be needed next is
/// prefetched.
const MANY_LINKS: usize = 1024;

/// All links, and the packets on them.
pub(super) struct Wires {
    links: Vec<Link>,
    events: Events,
    sacks: Sacks,
    /// Of each port.
    drops: Vec<[u64; DropReason::ALL.len()]>,
    /// Bytes that each port had sent when the measured time began.
    sent_before: Vec<u64>,
    /// Flows that lost a packet since they were last taken, once a packet.
    losses: Vec<FlowId>,
    /// The packets of one port, where they are recorded.
    trace: Option<Box<Trace>>,
}

impl Wires {
    /// The fabric's links.
    pub fn new(fabric: &Fabric) -> Wires {
        let links = fabric.links.iter().map(|spec| {
            let end = if fabric.is_host(spec.to) {
                End::Host
            } else {
                End::Switch
            };
            Link::new(spec, end)
        });
        Wires {
            links: links.collect(),
            events: Events::new(0, 0, 0),
            sacks: Sacks::default(),
            drops: vec![[0; _]; fabric.links.len()],
            sent_before: vec![0; fabric.links.len()],
            losses: Vec::new(),
            trace: None,
        }
    }

    /// Makes the calendar, with `schedulers` ports whose departures are events. `salt` decides about ties
    /// and jitter.
    pub fn start(&mut self, schedulers: usize, salt: u64) {
        for (number, link) in (0..).zip(&mut self.links) {
            link.noise = Rng::new(salt, number).bits();
        }
        self.events = Events::new(schedulers, self.links.len(), salt);
    }

    /// The calendar's sources.
    #[inline(always)]
    pub fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    /// The last instant a run can reach.
    pub fn horizon(&self) -> Time {
        self.events.horizon()
    }

    #[inline(always)]
    pub fn link(&self, link: u32) -> &Link {
        &self.links[link as usize]
    }

    #[inline(always)]
    pub fn link_mut(&mut self, link: u32) -> &mut Link {
        &mut self.links[link as usize]
    }

    /// When the earliest event is due.
    pub fn next_time(&self) -> Time {
        self.events.first().0
    }

    /// The earliest event.
    #[inline(always)]
    pub fn next(&self) -> (Time, Event) {
        let (time, source) = self.events.first();
        if self.links.len() > MANY_LINKS {
            self.prefetch();
        }
        (time, self.events.event(source))
    }

    /// Prefetches the packets of the events that are likely to follow, and the link that the likeliest
    /// one leads to.
    #[inline(always)]
    fn prefetch(&self) {
        let likely = self.events.likely_links();
        if let Some(link) = self.links.get(likely[0])
            && let Some(entry) = link.ring.peek()
        {
            let onward = self
                .links
                .as_ptr()
                .wrapping_add(entry.onward.link() as usize);
            prefetch(onward);
            prefetch(onward.cast::<u8>().wrapping_add(64));
        }
        for likely in likely {
            if let Some(link) = self.links.get(likely) {
                link.ring.prefetch();
            }
        }
    }

    /// Puts the SACK blocks of a new packet aside.
    #[inline(always)]
    pub fn put_sack(&mut self, packet: &mut Packet, sack: &[SackBlock]) {
        if !sack.is_empty() {
            packet.options = self.sacks.put(sack);
        }
    }

    /// Takes the SACK blocks of a delivered packet.
    #[inline(always)]
    pub fn take_sack(&mut self, packet: &Packet) -> ([SackBlock; MAX_SACK_BLOCKS], usize) {
        self.sacks.take_from(packet)
    }

    /// Queues a packet at a FIFO port, if the buffer takes it. `hop`: links behind it then.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, link: u32, packet: Packet, hop: u8, onward: Step) {
        let port = &mut self.links[link as usize];
        match port.offer(now, &packet, hop, onward) {
            Some((arrives, true)) => {
                if port.end != End::Away {
                    port.leaf = self.events.set_first_arrival(link, arrives);
                }
            }
            Some((_, false)) => {}
            None => self.lose(link, packet, DropReason::Full),
        }
    }

    /// As [`Wires::transmit`] at a port whose packets are recorded.
    #[inline(never)]
    pub fn transmit_traced(&mut self, now: Time, link: u32, packet: Packet, onward: Step) {
        let sent = self.link(link).sent_packets;
        self.transmit(now, link, packet, packet.hop, onward);
        let port = self.link(link);
        let (is_sent, left) = (port.sent_packets > sent, port.free_at);
        if let Some(trace) = self.trace_at(link).filter(|_| is_sent) {
            trace.depart(&packet, left);
        }
    }

    /// Records the packets of a port from now on.
    pub fn set_trace(&mut self, plan: TracePlan) {
        self.link_mut(plan.link).features |= feature::LOSS;
        let acks = self.link_mut(plan.link ^ 1);
        // A credit policy behind the port sees them where they set out.
        if acks.end == End::Switch && acks.features & feature::CREDIT == 0 {
            acks.end = End::Window;
        }
        self.trace = Some(Box::new(Trace::new(plan)));
    }

    /// Whether the packets of `link` are recorded.
    #[inline]
    pub fn is_traced(&self, link: u32) -> bool {
        self.trace
            .as_deref()
            .is_some_and(|trace| trace.link() == link)
    }

    /// The record of the packets of `link`, if it is the one.
    pub fn trace_at(&mut self, link: u32) -> Option<&mut Trace> {
        let trace = self.trace.as_deref_mut()?;
        (trace.link() == link).then_some(trace)
    }

    /// The record of the packets of any port.
    pub fn trace(&mut self) -> &mut Option<Box<Trace>> {
        &mut self.trace
    }

    /// Records a packet that comes to `link`, to be sent by it.
    pub fn trace_arrival(&mut self, now: Time, packet: &Packet, link: u32, queue: u64) {
        let sack = self.sacks.of(packet).to_vec();
        if let Some(trace) = self
            .trace_at(link)
            .filter(|trace| trace.takes(now, packet.flow))
        {
            trace.arrive(now, packet, queue, &sack);
        }
    }

    /// Records a packet that came in next to `link`, which has rewritten its window.
    pub fn trace_ack(&mut self, now: Time, came: &Packet, window: u16, link: u32, queue: u64) {
        let sack = self.sacks.of(came).to_vec();
        if let Some(trace) = self
            .trace_at(link)
            .filter(|trace| trace.takes(now, came.flow))
        {
            trace.pass(now, came, window, queue, &sack);
        }
    }

    /// The port of `link` loses a packet.
    #[cold]
    #[inline(never)]
    pub fn lose(&mut self, link: u32, packet: Packet, reason: DropReason) {
        if let Some(trace) = self.trace_at(link) {
            trace.lose(&packet, reason);
        }
        self.count_loss(link, packet.flow, reason);
        self.sacks.take_list(&packet);
    }

    /// A packet of `flow` loses its payload, or all.
    pub fn count_loss(&mut self, link: u32, flow: FlowId, reason: DropReason) {
        self.drops[link as usize][reason as usize] += 1;
        self.losses.push(flow);
    }

    /// Whether a packet was lost since [`Wires::take_losses`].
    #[inline(always)]
    pub fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    /// Takes the flows that lost a packet, once a packet.
    pub fn take_losses(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.losses)
    }

    /// From now on [`PortCounters::measured_bytes`] counts.
    pub fn start_measuring(&mut self, now: Time) {
        for (before, link) in self.sent_before.iter_mut().zip(&self.links) {
            *before = link.sent_bytes - link.backlog_bytes(now);
        }
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.drops.len()
    }

    /// What the port of `link` did until `now`, its policies aside.
    pub fn counters(&self, link: u32, now: Time) -> PortCounters {
        let index = link as usize;
        let link = &self.links[index];
        PortCounters {
            drops: self.drops[index],
            sent_packets: link.sent_packets,
            sent_bytes: link.sent_bytes,
            // Packets are booked when they are queued; what waits has not been sent.
            measured_bytes: link.sent_bytes - link.backlog_bytes(now) - self.sent_before[index],
            peak_bytes: link.peak_bytes(),
            ..PortCounters::default()
        }
    }

    /// Packets sent on all links so far: the packet-hops of the run.
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|link| link.sent_packets).sum()
    }
}

/// Where the wires end: links whose packets arrive in another network.
impl Wires {
    /// Cuts `link`: its port works on, but what it sends is to be taken by [`Wires::take_sent`].
    pub fn cut(&mut self, link: u32) {
        self.links[link as usize].end = End::Away;
    }

    /// Adds a link without a port, by which packets [`Wires::enter`] at a switch; returns its number.
    pub fn add_entrance(&mut self, spec: &LinkSpec) -> u32 {
        self.links.push(Link::new(spec, End::Switch));
        self.links.len() as u32 - 1
    }

    /// Hands the packets that the cut `link` was given since the last call to `each`, with their SACK
    /// blocks, oldest first. `handed` counts them for this link, from 0.
    #[inline]
    pub fn take_sent(
        &mut self,
        now: Time,
        link: u32,
        handed: &mut u32,
        mut each: impl FnMut(InFlight, Option<SackList>),
    ) {
        let port = &mut self.links[link as usize];
        let taken = port.ring.taken();
        for index in handed.wrapping_sub(taken)..port.ring.len() {
            let entry = *port.ring.get(index);
            each(entry, self.sacks.take_list(&entry.packet));
        }
        *handed = taken.wrapping_add(port.ring.len());
        port.forget_sent(now);
    }

    /// A packet comes in by `link` from another network, to arrive later than anything done so far.
    /// `sacks`: the SACK blocks of the packets that carry some, those of this one first.
    #[inline]
    pub fn enter<'a>(
        &mut self,
        link: u32,
        mut entry: InFlight,
        sacks: &mut impl Iterator<Item = &'a SackList>,
    ) {
        if are_carried(&entry.packet)
            && let Some(list) = sacks.next()
        {
            entry.packet.options = self.sacks.put(list.blocks());
        }
        let entrance = &mut self.links[link as usize];
        if entrance.ring.is_empty() {
            entrance.leaf = self.events.set_first_arrival(link, entry.arrives);
        }
        entrance.ring.push(entry);
    }
}
