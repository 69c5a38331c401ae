// SPDX-License-Identifier: Apache-2.0
//! Putting policies on ports.

use super::{Place, Policies, Port};
use crate::network::link::{End, feature};
use crate::network::losses::{Failures, Shared};
use crate::network::pfc::{Ingress, Pfc};
use crate::network::scheduled::ScheduledPort;
use crate::network::wires::Wires;
use crate::queue::{Admission, Scheduler};
use crate::rng::Rng;
use crate::window::{Credit, Flows, Policy, Shims};

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
