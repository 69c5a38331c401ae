// SPDX-License-Identifier: Apache-2.0
//! What ports do to packets beyond drop-tail, and what they keep for it: the slower way.

use super::counters::PortCounters;
use super::link::{End, feature};
use super::losses::{Failures, Shared};
use super::paths::Paths;
use super::pfc::{Ingress, Pfc};
use super::scheduled::ScheduledPort;
use super::wires::Wires;
use crate::packet::{FlowId, Packet, flag};
use crate::queue::{Admission, Arrival, DropReason, Scheduler, Verdict};
use crate::rng::Rng;
use crate::window::{Credit, Flows, Policy, Shims};
use penstock_core::scheme::DataFate;
use penstock_scenario::units::Time;

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

/// Where credit is: at a port, or where its link ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Port,
    Behind,
}

/// The policies of a port; few ports have any.
#[derive(Default)]
struct Port {
    admission: Option<Box<dyn Admission>>,
    /// Number of the scheduled port that it is.
    scheduled: Option<u32>,
    window: Option<Box<Policy>>,
    credit: Option<(Box<Credit>, Place)>,
    failures: Option<Box<Failures>>,
    /// Number of the buffer that it shares with others.
    shared: Option<u32>,
    marks: u64,
}

/// The policies of all ports.
pub(super) struct Policies {
    ports: Vec<Port>,
    scheduled: Vec<ScheduledPort>,
    shared: Vec<Shared>,
    flows: Flows,
    shims: Option<Shims>,
    pfc: Pfc,
    /// What admission policies draw from.
    rng: Rng,
    /// SYN and FIN copied for the controller.
    reports: Vec<Report>,
    /// There are reports, or pause frames: asked after each event.
    has_news: bool,
}

/// Putting policies on ports.
impl Policies {
    /// No policy on any of `ports` ports.
    pub fn new(ports: usize, rng: Rng) -> Policies {
        let mut policies = Policies {
            ports: Vec::new(),
            scheduled: Vec::new(),
            shared: Vec::new(),
            flows: Flows::default(),
            shims: None,
            pfc: Pfc::default(),
            rng,
            reports: Vec::new(),
            has_news: false,
        };
        policies.ports.resize_with(ports, Port::default);
        policies
    }

    pub fn set_admission(&mut self, link: u32, policy: Box<dyn Admission>, wires: &mut Wires) {
        wires.link_mut(link).features |= feature::ADMISSION;
        self.ports[link as usize].admission = Some(policy);
    }

    pub fn set_scheduler(&mut self, link: u32, queue: Box<dyn Scheduler>, wires: &mut Wires) {
        wires.link_mut(link).features |= feature::SCHEDULER;
        let number = self.scheduled.len() as u32;
        self.ports[link as usize].scheduled = Some(number);
        let port = ScheduledPort::new(number, link, queue);
        self.scheduled.push(port);
    }

    /// Packets that come in by `link` are under flow control.
    pub fn set_pfc(&mut self, link: u32, rules: Ingress) {
        self.pfc.set(link, rules);
    }

    /// What waits at the port of `link` counts for the port by which it came in.
    pub fn count_ingress(&mut self, link: u32, wires: &mut Wires) {
        wires.link_mut(link).features |= feature::PFC;
    }

    pub fn set_failures(&mut self, link: u32, failures: Failures, wires: &mut Wires) {
        wires.link_mut(link).features |= feature::LOSS;
        self.ports[link as usize].failures = Some(Box::new(failures));
    }

    pub fn set_shared(&mut self, shared: Shared, wires: &mut Wires) {
        let number = self.shared.len() as u32;
        for link in shared.ports() {
            wires.link_mut(*link).features |= feature::LOSS;
            self.ports[*link as usize].shared = Some(number);
        }
        self.shared.push(shared);
    }

    pub fn set_window(&mut self, link: u32, policy: Box<Policy>, wires: &mut Wires) {
        self.ports[link as usize].window = Some(policy);
        show_windows(link, wires);
    }

    pub fn set_credit(
        &mut self,
        link: u32,
        credit: Box<Credit>,
        is_behind: bool,
        wires: &mut Wires,
    ) {
        let place = match is_behind {
            true => Place::Behind,
            false => Place::Port,
        };
        self.ports[link as usize].credit = Some((credit, place));
        let (data, acks) = (link, link ^ 1);
        match place {
            Place::Port => show_windows(data, wires),
            Place::Behind => {
                wires.link_mut(acks).features |= feature::CREDIT;
                let there = wires.link_mut(data);
                there.end = match there.end {
                    End::Host => End::CreditHost,
                    _ => End::CreditSwitch,
                };
            }
        }
    }

    pub fn set_shims(&mut self, shims: Shims, wires: &mut Wires) {
        self.shims = Some(shims);
        for link in 0..self.ports.len() as u32 {
            if wires.link(link).end == End::Host {
                wires.link_mut(link).end = End::Shim;
                wires.link_mut(link ^ 1).features |= feature::SHIM;
            }
        }
    }

    /// Ports whose departures are events.
    pub fn scheduled_ports(&self) -> usize {
        self.scheduled.len()
    }

    /// Draws the salt of the calendar.
    pub fn draw_salt(&mut self) -> u64 {
        self.rng.bits()
    }
}

/// Has the policies of a port see its data, and the ACKs that enter next to it.
fn show_windows(link: u32, wires: &mut Wires) {
    wires.link_mut(link).features |= feature::WINDOW;
    let back = wires.link_mut(link ^ 1);
    if back.end == End::Switch {
        back.end = End::Window;
    }
}

/// What happens to packets.
impl Policies {
    /// A packet wants to leave by `link`, whose port does more than drop-tail.
    #[inline(never)]
    pub fn send(
        &mut self,
        now: Time,
        link: u32,
        mut packet: Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        if wires.link(link).features & feature::CREDIT != 0 {
            let came = packet;
            self.pass_credit(now, link ^ 1, &mut packet, wires, paths);
            self.trace_ack(now, link ^ 1, &came, packet.window, wires);
        }
        self.send_on(now, link, packet, wires, paths);
    }

    /// The same behind a credit policy.
    fn send_on(
        &mut self,
        now: Time,
        link: u32,
        mut packet: Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        let features = wires.link(link).features;
        if wires.is_traced(link) {
            let backlog = self.backlog_bytes(now, link, wires);
            wires.trace_arrival(now, &packet, link, backlog);
        }
        if features & feature::SHIM != 0
            && let Some(shims) = &mut self.shims
        {
            shims.on_departure(&mut packet);
        }
        if features & feature::REPORT != 0 && packet.has_any(flag::SYN | flag::FIN) {
            self.has_news = true;
            self.reports.push(Report {
                link,
                time: now,
                packet,
            });
        }
        if features & feature::WINDOW != 0 {
            self.see_data(now, link, &packet, wires, paths);
            match self.fate(now, link, &packet, wires, paths) {
                DataFate::Passes => {}
                DataFate::Dropped => return wires.lose(link, packet, DropReason::Reserved),
                DataFate::Cut => {
                    wires.count_loss(link, packet.flow, DropReason::Reserved);
                    packet.payload = 0;
                }
            }
        }
        if features & feature::LOSS != 0
            && let Some(reason) = self.loss(now, link, &packet, wires)
        {
            return wires.lose(link, packet, reason);
        }
        let port = &mut self.ports[link as usize];
        let scheduled = port.scheduled;
        if let (Some(number), None) = (scheduled, &port.admission) {
            return self.schedule(now, number, packet, wires, paths);
        }
        if let Some(policy) = &mut port.admission {
            let fifo = wires.link_mut(link);
            let mut arrival = Arrival {
                now,
                backlog_bytes: fifo.backlog_bytes(now),
                backlog_packets: fifo.held_packets(now).saturating_sub(1),
                free_at: fifo.free_at,
            };
            if let Some(number) = scheduled {
                let queue = self.scheduled[number as usize].queue();
                arrival.backlog_bytes += queue.backlog_bytes();
                arrival.backlog_packets += queue.backlog_packets();
            }
            if scheduled.is_some() || fifo.has_room(now, &packet) {
                match policy.admit(&arrival, &packet, &mut self.rng) {
                    Verdict::Pass => {}
                    Verdict::Mark => {
                        packet.flags |= flag::CE;
                        port.marks += 1;
                    }
                    Verdict::Drop(reason) => return wires.lose(link, packet, reason),
                }
            } else {
                policy.overflow(&arrival, &packet);
            }
        }
        if let Some(number) = scheduled {
            return self.schedule(now, number, packet, wires, paths);
        }
        let onward = paths.onward(packet.flow, packet.hop);
        match wires.is_traced(link) {
            false => wires.transmit(now, link, packet, packet.hop, onward),
            true => wires.transmit_traced(now, link, packet, onward),
        }
    }

    /// A packet joins the queue of a scheduled port, if flow control has room for it.
    fn schedule(
        &mut self,
        now: Time,
        number: u32,
        packet: Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        let port = &mut self.scheduled[number as usize];
        let link = port.link();
        if wires.link(link).features & feature::PFC != 0 && packet.hop > 0 {
            let came_by = paths.step(packet.flow, u32::from(packet.hop) - 1).link();
            if !self.pfc.enter(now, came_by, packet.size().into()) {
                return wires.lose(link, packet, DropReason::Full);
            }
        }
        port.arrive(now, packet, wires, paths, &mut self.pfc);
        self.has_news |= self.pfc.has_frames();
    }

    /// A pause frame arrives at the port of `link`.
    pub fn receive_pause(&mut self, now: Time, link: u32, wires: &mut Wires, paths: &Paths) {
        let may_send = self.pfc.receive(now, link);
        if let Some(number) = self.ports[link as usize].scheduled
            && may_send
        {
            self.scheduled[number as usize].go_on(now, wires, paths, &mut self.pfc);
            self.has_news |= self.pfc.has_frames();
        }
    }

    /// The pause frames sent since the last call: when each arrives, and at the port of which link.
    pub fn take_pauses(&mut self) -> Vec<(Time, u32)> {
        self.has_news = !self.reports.is_empty();
        self.pfc.take_frames()
    }

    /// Why `packet` does not even get to the queue of `link`.
    fn loss(&mut self, now: Time, link: u32, packet: &Packet, wires: &Wires) -> Option<DropReason> {
        let port = &mut self.ports[link as usize];
        let shared = port.shared;
        if let Some(failures) = &mut port.failures
            && let Some(reason) = failures.strike(now)
        {
            return Some(reason);
        }
        let shared = &self.shared[shared? as usize];
        let queue = |link: u32| self.backlog_bytes(now, link, wires);
        (!shared.holds(queue(link), packet.size().into(), queue)).then_some(DropReason::Full)
    }

    /// `packet` is about to join the queue of `link`; what the window policy makes of it.
    fn fate(
        &mut self,
        now: Time,
        link: u32,
        packet: &Packet,
        wires: &Wires,
        paths: &Paths,
    ) -> DataFate {
        let backlog = self.backlog_bytes(now, link, wires);
        let slot = paths.data_slot(packet.flow, packet.hop.into());
        match &mut self.ports[link as usize].window {
            Some(policy) => {
                self.flows.reserve(slot);
                policy.on_departure(now, packet, &mut self.flows, slot, backlog);
                policy.drops(packet, backlog)
            }
            None => DataFate::Passes,
        }
    }

    /// `packet` has entered by `link`, next to the port whose policy may lower its window.
    pub fn on_ack(
        &mut self,
        now: Time,
        link: u32,
        packet: &mut Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        let port = link ^ 1;
        let came = *packet;
        self.pass_credit(now, port, packet, wires, paths);
        let backlog = self.backlog_bytes(now, port, wires);
        let slot = paths.ack_slot(packet.flow, packet.hop.into(), port);
        if let Some(policy) = &mut self.ports[port as usize].window {
            self.flows.reserve(slot);
            policy.on_ack(now, packet, &mut self.flows, slot, backlog);
        }
        self.trace_ack(now, port, &came, packet.window, wires);
    }

    /// Records a packet that came in next to `port`, if it is the port whose packets are recorded.
    fn trace_ack(&self, now: Time, port: u32, came: &Packet, window: u16, wires: &mut Wires) {
        if wires.is_traced(port) {
            let backlog = self.backlog_bytes(now, port, wires);
            wires.trace_ack(now, came, window, port, backlog);
        }
    }

    /// `packet` comes out of `link`, where a credit policy is.
    #[inline(never)]
    pub fn on_arrival(
        &mut self,
        now: Time,
        link: u32,
        packet: &Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        self.see_data(now, link, packet, wires, paths);
    }

    /// `packet` passes the credit policy of `link`, if it has one, in the direction of the data.
    #[inline]
    fn see_data(
        &mut self,
        now: Time,
        link: u32,
        packet: &Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        self.with_credit(now, link, wires, paths, |credit, backlog| {
            let slot = paths.data_slot(packet.flow, packet.hop.into());
            credit.on_data(now, packet, slot, backlog);
        });
    }

    /// `packet` passes the credit policy of `port`, if it has one, in the direction of the ACKs.
    fn pass_credit(
        &mut self,
        now: Time,
        port: u32,
        packet: &mut Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        self.with_credit(now, port, wires, paths, |credit, backlog| {
            let slot = paths.ack_slot(packet.flow, packet.hop.into(), port);
            credit.on_ack(now, packet, slot, backlog);
        });
    }

    /// Has the credit policy of `port`, if there is one, do something with the queue that it has, and
    /// sends the updates that follow.
    #[inline]
    fn with_credit<T>(
        &mut self,
        now: Time,
        port: u32,
        wires: &mut Wires,
        paths: &Paths,
        act: impl FnOnce(&mut Credit, u64) -> T,
    ) -> Option<T> {
        self.ports[port as usize].credit.as_ref()?;
        let backlog = self.backlog_bytes(now, port, wires);
        let (credit, _) = self.ports[port as usize].credit.as_mut()?;
        let done = act(credit, backlog);
        self.send_updates(now, port, wires, paths);
        Some(done)
    }

    /// Sends what a credit policy has to send: from where it is, towards the senders of the data.
    fn send_updates(&mut self, now: Time, port: u32, wires: &mut Wires, paths: &Paths) {
        let Some((credit, place)) = &mut self.ports[port as usize].credit else {
            return;
        };
        let place = *place;
        let updates = credit.take_updates();
        let is_traced = wires.is_traced(port);
        for mut update in updates {
            if is_traced {
                let backlog = self.backlog_bytes(now, port, wires);
                if let Some(trace) = wires
                    .trace_at(port)
                    .filter(|trace| trace.takes(now, update.flow))
                {
                    trace.make(now, &update, backlog);
                }
            }
            match place {
                Place::Behind => self.send_on(now, port ^ 1, update, wires, paths),
                Place::Port => {
                    update.hop += 1;
                    let link = paths.step(update.flow, update.hop.into()).link();
                    self.send(now, link, update, wires, paths);
                }
            }
        }
    }

    /// A packet passes the shim on its way up to its host.
    #[inline(never)]
    pub fn on_delivery(&mut self, packet: &mut Packet) {
        if let Some(shims) = &mut self.shims {
            shims.on_delivery(packet);
        }
    }

    /// The transmitter of a scheduled port is free.
    pub fn depart(&mut self, now: Time, port: u32, wires: &mut Wires, paths: &Paths) {
        self.scheduled[port as usize].depart(now, wires, paths, &mut self.pfc);
        self.has_news |= self.pfc.has_frames();
    }

    /// A connection has got a number that another may have had.
    pub fn forget(&mut self, paths: &Paths, connection: FlowId) {
        let first = paths.slot(FlowId(connection.0 & !1), 0);
        let end = paths.slot(FlowId(connection.0 | 1), 0) + paths.stride();
        self.flows.forget(first..end);
    }

    /// Whether SYN or FIN were copied since [`Policies::take_reports`].
    #[inline(always)]
    pub fn has_reports(&self) -> bool {
        self.has_news
    }

    /// Takes the SYN and FIN that were copied.
    pub fn take_reports(&mut self) -> Vec<Report> {
        self.has_news = self.pfc.has_frames();
        std::mem::take(&mut self.reports)
    }
}

/// Periodic work, and what is read of ports.
impl Policies {
    pub fn set_flows(&mut self, link: u32, flows: u32) {
        if let Some(policy) = &mut self.ports[link as usize].window {
            policy.set_flows(flows);
        }
    }

    pub fn flows(&self, link: u32) -> u32 {
        let policy = self.ports[link as usize].window.as_ref();
        policy.map_or(0, |policy| policy.flows())
    }

    /// Periodic work of a queue policy; returns when it is due again.
    pub fn tick_queue(&mut self, now: Time, link: u32, wires: &Wires) -> Option<Time> {
        let port = &mut self.ports[link as usize];
        let period = if let Some(policy) = &mut port.admission {
            let held = port.scheduled.map_or(0, |number| {
                self.scheduled[number as usize].queue().backlog_bytes()
            });
            policy.tick(now, wires.link(link).backlog_bytes(now) + held);
            policy.period()
        } else {
            self.scheduled[port.scheduled? as usize].tick(now)
        };
        period.map(|period| now + period)
    }

    /// How often a queue policy wants [`Policies::tick_queue`].
    pub fn queue_period(&self, link: u32) -> Option<Time> {
        match &self.ports[link as usize].admission {
            Some(policy) => policy.period(),
            None => self.scheduler(link)?.period(),
        }
    }

    /// Periodic work of a window policy; returns when it is due again.
    pub fn tick_window(
        &mut self,
        now: Time,
        link: u32,
        wires: &mut Wires,
        paths: &Paths,
    ) -> Option<Time> {
        let credit = self.with_credit(now, link, wires, paths, |credit, backlog| {
            credit.tick(now, backlog);
            credit.period()
        });
        if let Some(period) = credit {
            return Some(now + period);
        }
        let backlog = self.backlog_bytes(now, link, wires);
        let policy = self.ports[link as usize].window.as_mut()?;
        policy.tick(now, &mut self.flows, backlog);
        policy.period().map(|period| now + period)
    }

    /// Bytes not yet sent by a port.
    pub fn backlog_bytes(&self, now: Time, link: u32, wires: &Wires) -> u64 {
        let fifo = wires.link(link).backlog_bytes(now);
        match self.scheduler(link) {
            Some(queue) => fifo + queue.backlog_bytes(),
            None => fifo,
        }
    }

    /// Packets not yet sent by a port.
    pub fn backlog_packets(&self, now: Time, link: u32, wires: &mut Wires) -> u32 {
        let held = self
            .scheduler(link)
            .map_or(0, |queue| queue.backlog_packets());
        wires.link_mut(link).held_packets(now) + held
    }

    /// Adds what the policies of a port have counted to what its wires have.
    pub fn add_counters(&self, link: u32, now: Time, counters: &mut PortCounters) {
        counters.paused = self.pfc.counters(link, now);
        let port = &self.ports[link as usize];
        counters.marks = port.marks;
        if let Some(number) = port.scheduled {
            let scheduled = &self.scheduled[number as usize];
            counters.marks += scheduled.queue().marks();
            counters.peak_bytes = counters.peak_bytes.max(scheduled.peak_bytes());
        }
        if let Some(policy) = &port.window {
            counters.window = policy.counters();
        }
        if let Some((credit, _)) = &port.credit {
            counters.window = credit.counters();
        }
    }

    fn scheduler(&self, link: u32) -> Option<&dyn Scheduler> {
        let number = self.ports[link as usize].scheduled?;
        Some(self.scheduled[number as usize].queue())
    }
}
