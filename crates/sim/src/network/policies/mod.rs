// SPDX-License-Identifier: Apache-2.0
//! What ports do to packets beyond drop-tail, and what they keep for it: the slower way.
//!
//! | module | contents |
//! |---|---|
//! | this one | the way of a packet through a port |
//! | `placing` | putting policies on ports |
//! | `windows` | window policies, credit and shims on the way of data and ACKs |
//! | `reading` | periodic work, and what is read of ports |

mod placing;
mod reading;
mod windows;

use super::link::feature;
use super::losses::{Failures, Shared};
use super::paths::Paths;
use super::pfc::Pfc;
use super::scheduled::ScheduledPort;
use super::wires::Wires;
use crate::packet::{Packet, flag};
use crate::queue::{Admission, Arrival, DropReason, Verdict};
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
            match self.fate(now, link, &mut packet, wires, paths) {
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
                // Paused, not idle.
                if queue.backlog_packets() > 0 {
                    arrival.free_at = arrival.free_at.max(now);
                }
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
        let number = shared? as usize;
        let (queue, size) = (self.backlog_bytes(now, link, wires), packet.size().into());
        let holds = match self.shared[number].surely_holds(queue, size) {
            Some(holds) => holds,
            None => {
                let held = self.shared_bytes(now, number, wires);
                self.shared[number].holds(held, queue, size)
            }
        };
        debug_assert_eq!(holds, {
            let held = self.shared_bytes(now, number, wires);
            self.shared[number].has_room(held, queue, size)
        });
        if holds {
            self.shared[number].add(size);
        }
        (!holds).then_some(DropReason::Full)
    }

    /// Bytes that the ports of a shared buffer hold together.
    fn shared_bytes(&self, now: Time, number: usize, wires: &Wires) -> u64 {
        let ports = self.shared[number].ports().iter();
        ports
            .map(|port| self.backlog_bytes(now, *port, wires))
            .sum()
    }

    /// The transmitter of a scheduled port is free.
    pub fn depart(&mut self, now: Time, port: u32, wires: &mut Wires, paths: &Paths) {
        self.scheduled[port as usize].depart(now, wires, paths, &mut self.pfc);
        self.has_news |= self.pfc.has_frames();
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
