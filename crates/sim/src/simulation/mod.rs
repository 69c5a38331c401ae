// SPDX-License-Identifier: Apache-2.0
//! A run: the network, the end points, the applications that drive them and what is measured.

mod applications;
mod clients;
mod datagrams;
mod hosts;
mod measure;
mod part;
mod schedule;

pub use clients::{Client, ClientProfile, ENDLESS, Generator, Record, Transfer, TransferCounters};
pub use datagrams::{Datagrams, Gaps};
pub use measure::{Queues, Sample};
pub use part::{Mail, gather};
pub use schedule::{Action, Schedule};

use crate::controller::Controller;
use crate::fabric::{Fabric, Routes};
use crate::network::{Event, Network, Source};
use crate::packet::FlowId;
use crate::rng::Rng;
use crate::tcp::Config;
use clients::Arrivals;
use hosts::Hosts;
use part::Part;
use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// Everything that moves.
pub struct Simulation {
    /// Links, switches and their policies.
    pub network: Network,
    routes: Routes,
    hosts: Hosts,
    schedule: Schedule,
    profiles: Vec<ClientProfile>,
    clients: Vec<Client>,
    arrivals: Vec<Arrivals>,
    datagrams: Vec<Datagrams>,
    /// Transfers begun, in order of their start.
    pub records: Vec<Record>,
    /// Connections that are over, oldest first: their numbers are used again.
    closed: VecDeque<(Time, FlowId)>,
    /// The controller, if there is one.
    pub controller: Option<Box<dyn Controller>>,
    /// Queue lengths over time.
    pub queues: Queues,
    path: Vec<u32>,
    part: Part,
    /// Transfers begun by this part.
    begun: u64,
    /// Seed of the choices among equal paths.
    hash_seed: u64,
}

impl Simulation {
    /// A network at rest. `configs`: the TCP configurations that profiles refer to.
    pub fn new(
        fabric: &Fabric,
        configs: Vec<Config>,
        profiles: Vec<ClientProfile>,
        seed: u64,
    ) -> Simulation {
        Simulation {
            network: Network::new(fabric, Rng::new(seed, 0)),
            routes: Routes::new(fabric),
            hosts: Hosts::new(configs),
            schedule: Schedule::default(),
            profiles,
            clients: Vec::new(),
            arrivals: Vec::new(),
            datagrams: Vec::new(),
            records: Vec::new(),
            closed: VecDeque::new(),
            controller: None,
            queues: Queues::default(),
            path: Vec::new(),
            part: Part::default(),
            begun: 0,
            hash_seed: Rng::new(seed, 1).bits(),
        }
    }

    /// Makes the calendar and begins to sample the queues of `links`, one sample of each every
    /// `period`. To be called when all policies are set.
    pub fn start(&mut self, links: Vec<u32>, period: Time) {
        self.network.start();
        self.queues = Queues {
            links,
            period,
            samples: Vec::new(),
        };
        self.at(Time::ZERO, Action::Sample);
    }

    /// Adds a generator whose transfers follow profile number `profile`.
    pub fn add_generator(&mut self, profile: u32, mut generator: Box<dyn Generator>) {
        let first = generator.next();
        let index = self.arrivals.len() as u32;
        self.arrivals.push(Arrivals {
            profile,
            generator,
            made: 0,
            pending: first.map(|(_, transfer)| transfer),
        });
        if let Some((time, _)) = first {
            self.at(time, Action::Generate(index));
        }
    }

    /// Adds something to be done at `time`.
    pub fn at(&mut self, time: Time, action: Action) {
        self.schedule.add(time, action);
    }

    /// Runs until nothing is left to do up to and at `end`.
    pub fn run_until(&mut self, end: Time) {
        self.network
            .set_source(Source::Schedule, self.schedule.next());
        self.schedule_controller();
        loop {
            let (now, event) = self.network.next();
            if now > end {
                return;
            }
            match event {
                Event::Arrival(link) => {
                    if let Some(mut packet) = self.network.arrive(now, link) {
                        if let Some(controller) = &mut self.controller {
                            controller.on_delivery(now, &mut packet);
                        }
                        let to = packet.flow.reverse();
                        if let Some(events) = self.hosts.deliver(&mut self.network, now, packet) {
                            self.react(now, to, events);
                        }
                        self.network.delivered();
                    }
                }
                Event::Departure(port) => self.network.depart(now, port),
                Event::Other(Source::Timers) => {
                    if let Some((flow, events)) = self.hosts.wake(&mut self.network, now) {
                        self.react(now, flow, events);
                    }
                }
                Event::Other(Source::Schedule) => self.act(now),
                Event::Other(Source::Controller) => {
                    if let Some(controller) = &mut self.controller {
                        controller.act(now, &mut self.network);
                    }
                    self.schedule_controller();
                }
            }
            if self.network.has_news() {
                self.account();
            }
        }
    }

    fn act(&mut self, now: Time) {
        if let Some((_, action)) = self.schedule.pop() {
            match action {
                Action::MeasureStart => self.start_measuring(now),
                Action::QueueTick(link) => {
                    if let Some(period) = self.network.tick_queue(now, link) {
                        self.schedule.add(now + period, action);
                    }
                }
                Action::WindowTick(link) => {
                    if let Some(period) = self.network.tick_window(now, link) {
                        self.schedule.add(now + period, action);
                    }
                }
                Action::Generate(index) => self.generate(now, index),
                Action::Begin(client) => self.begin(now, client),
                Action::Stop(client) => self.stop(now, client),
                Action::Datagram(index) => self.send_datagram(now, index),
                Action::Sample => {
                    let next = self.queues.sample(now, &mut self.network);
                    self.schedule.add(next, action);
                }
            }
        }
        self.network
            .set_source(Source::Schedule, self.schedule.next());
    }

    fn schedule_controller(&mut self) {
        let next = self
            .controller
            .as_ref()
            .map_or(Time::NEVER, |controller| controller.next());
        self.network.set_source(Source::Controller, next);
    }

    /// Books what the network lost to the transfers it was lost from, and what it copied to the
    /// controller.
    #[cold]
    fn account(&mut self) {
        if let Some(controller) = &mut self.controller {
            for report in self.network.reports.drain(..) {
                controller.on_report(&report);
            }
            self.schedule_controller();
        }
        for flow in std::mem::take(&mut self.network.losses) {
            self.lose(flow);
        }
    }
}
