// SPDX-License-Identifier: Apache-2.0
//! A simulation: the network, the hosts at its edge, the applications that drive them, and what is
//! measured. [`Simulation::run_until`] is the event loop, the place to start reading.
//!
//! - `hosts`: sockets, their TCP end points and timers.
//! - `apps`: what applications do when a turn or an event of a socket comes.
//! - `schedule`: everything rare, by time.
//! - `probes`: queues sampled over time; `results`: all that was counted.
//! - `watch`: what sockets do over time, on request.
//! - `traffic_sink`: how traffic is put into a simulation.
//!
//! A large fabric is several simulations, each with a [`Shard`] of it ([`crate::parallel`]).

mod apps;
mod hosts;
mod probes;
mod results;
mod schedule;
mod traffic_sink;
mod watch;

pub use apps::{
    Barrier, ClientProfile, Datagrams, Due, ENDLESS, Gaps, Gate, Generator, JobGraph, JobRecord,
    JobRow, JobSource, JobTransfer, Jobs, KernelTimes, LoopTimes, Record, ServerThink, Transfer,
    TransferCounters, WaitsOf,
};
pub use probes::{Sample, WindowPlan, WindowSample};
pub use results::Results;
pub use schedule::{Action, Schedule};
pub use traffic_sink::TrafficSink;
pub use watch::{Happening, HostEvent};

use crate::controller::Controller;
use crate::fabric::Fabric;
use crate::network::{Event, Network, Source, TracePlan};
use crate::packet::FlowId;
use crate::parallel::{Batch, LogicalProcess, Partition, Shard};
use crate::rng::Rng;
use crate::tcp::{Config, Events};
use apps::{Apps, Context, Message};
use hosts::Hosts;
use penstock_scenario::Ecmp;
use penstock_scenario::units::Time;
use probes::Probes;
use std::sync::Arc;
use watch::Watch;

/// Everything that moves in a fabric, or in one shard of it.
pub struct Simulation {
    /// Links, switches and their policies.
    pub network: Network,
    hosts: Hosts,
    apps: Apps,
    schedule: Schedule,
    probes: Probes,
    /// The controller, if there is one.
    pub controller: Option<Box<dyn Controller>>,
    shard: Shard<Message>,
}

impl Simulation {
    /// Shard number `shard` of a fabric, at rest. `configs`: the TCP configurations that profiles
    /// refer to; `profiles`: those that clients refer to.
    pub fn new(
        fabric: &Fabric,
        partition: &Arc<Partition>,
        shard: u16,
        configs: Vec<Config>,
        profiles: Vec<ClientProfile>,
        seed: u64,
    ) -> Simulation {
        let mut network = Network::new(fabric, Rng::new(seed, u64::from(shard) << 40));
        if fabric.ecmp == Ecmp::Packet {
            network.spray(Rng::new(seed, 3 << 40 | u64::from(shard)));
        }
        let shard = Shard::new(fabric, partition.clone(), shard, &mut network);
        Simulation {
            network,
            hosts: Hosts::new(configs),
            apps: Apps::new(fabric, profiles, seed),
            schedule: Schedule::default(),
            probes: Probes::default(),
            controller: None,
            shard,
        }
    }

    /// Whether the port of this link belongs to this shard.
    pub fn has_port(&self, link: u32) -> bool {
        self.shard.has_port(link)
    }

    /// Makes the calendar and begins to sample the queues of those of `links` that are here, one
    /// sample of each every `period`, and the windows of `plan`. To be called when all policies are
    /// set.
    pub fn start(&mut self, links: &[u32], period: Time, plan: Option<WindowPlan>) {
        self.network.start();
        let is_here = |link: &&u32| self.shard.has_port(**link);
        let links = links.iter().filter(is_here).copied().collect();
        self.probes = Probes::new(links, period, plan);
        self.apps.transfers.set_plan(plan);
        self.at(Time::ZERO, Action::Sample);
        if plan.is_some() {
            self.at(Time::ZERO, Action::SampleWindows);
        }
    }

    /// Records the packets of a port, if it is here, and what all sockets here do. To be called once,
    /// when all policies are set.
    pub fn trace(&mut self, plan: TracePlan) {
        if self.shard.has_port(plan.link) {
            self.network.set_trace(plan);
        }
        self.hosts
            .set_watch(Watch::new(plan.from, 2 * plan.most, plan.traffic));
    }

    /// The applications, and what they act upon.
    fn apps(&mut self, now: Time) -> (&mut Apps, Context<'_>) {
        let context = Context {
            now,
            network: &mut self.network,
            hosts: &mut self.hosts,
            schedule: &mut self.schedule,
            controller: &mut self.controller,
            shard: &mut self.shard,
        };
        (&mut self.apps, context)
    }

    /// Runs until nothing is left to do up to and at `end`.
    pub fn run_until(&mut self, end: Time) {
        self.run::<false>(end);
    }

    /// As [`LogicalProcess::run_until`] or, if `STOPS`, as [`LogicalProcess::run_until_done`].
    fn run<const STOPS: bool>(&mut self, end: Time) -> Time {
        if STOPS && self.apps.are_done() {
            return Time::ZERO;
        }
        self.network
            .set_source(Source::Schedule, self.schedule.next());
        self.schedule_controller();
        loop {
            let (now, event) = self.network.next();
            if now > end {
                return Time::NEVER;
            }
            let mut may_be_done = false;
            match event {
                Event::Arrival(link) => {
                    if let Some(mut packet) = self.network.arrive(now, link) {
                        if let Some(controller) = &mut self.controller {
                            controller.on_delivery(now, &mut packet);
                        }
                        let to = packet.flow.reverse();
                        if let Some(events) = self.hosts.deliver(&mut self.network, now, packet) {
                            self.on_events(now, to, events);
                            may_be_done = true;
                        }
                    }
                }
                Event::Departure(port) => self.network.depart(now, port),
                Event::Other(Source::Timers) => {
                    if let Some((flow, events)) = self.hosts.wake(&mut self.network, now) {
                        self.on_events(now, flow, events);
                        may_be_done = true;
                    }
                }
                Event::Other(Source::Schedule) => {
                    self.act(now);
                    may_be_done = true;
                }
                Event::Other(Source::Controller) => {
                    if let Some(controller) = &mut self.controller {
                        controller.act(now, &mut self.network);
                    }
                    self.schedule_controller();
                }
            }
            if self.network.has_news() {
                self.account(now);
            }
            if STOPS && may_be_done && self.apps.are_done() {
                return now;
            }
        }
    }

    /// Something happened at the socket of `flow` that its application has to act on.
    fn on_events(&mut self, now: Time, flow: FlowId, events: Events) {
        let (apps, mut context) = self.apps(now);
        apps.transfers.on_events(&mut context, flow, events);
    }

    /// The next action of the schedule is due.
    fn act(&mut self, now: Time) {
        if let Some((_, action)) = self.schedule.pop() {
            let (apps, mut context) = self.apps(now);
            let next = match action {
                Action::MeasureStart => {
                    apps.transfers.start_measuring(&context);
                    self.network.start_measuring(now);
                    None
                }
                Action::QueueTick(link) => self.network.tick_queue(now, link),
                Action::WindowTick(link) => self.network.tick_window(now, link),
                Action::Pause(link) => {
                    self.network.receive_pause(now, link);
                    None
                }
                Action::Generate(index) => apps.generate(&mut context, index),
                Action::Job(row) => {
                    apps.transfers.start_job(&mut context, row);
                    None
                }
                Action::Gate(ticket) => {
                    apps.transfers.open_gate(&mut context, ticket);
                    None
                }
                Action::Begin(client) => {
                    apps.transfers.begin(&mut context, client);
                    None
                }
                Action::Turn(profile) => {
                    apps.transfers.go_on(&mut context, profile);
                    None
                }
                Action::Answer(client) => {
                    apps.transfers.end_think(&mut context, client);
                    None
                }
                Action::Stop(client) => {
                    apps.transfers.stop(&mut context, client);
                    None
                }
                Action::Datagram(index) => apps.send_datagram(&mut context, index),
                Action::Sample => Some(self.probes.sample(now, &mut self.network)),
                Action::SampleWindows => {
                    let (transfers, hosts) = (&self.apps.transfers, &self.hosts);
                    self.probes.sample_windows(now, transfers, hosts)
                }
            };
            if let Some(next) = next {
                self.schedule.add(next, action);
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
    fn account(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller {
            for report in self.network.take_reports() {
                controller.on_report(&report);
            }
            self.schedule_controller();
        }
        for (time, link) in self.network.take_pauses() {
            self.schedule.add(time, Action::Pause(link));
            let next = self.schedule.next();
            self.network.set_source(Source::Schedule, next);
        }
        for flow in self.network.take_losses() {
            let (apps, mut context) = self.apps(now);
            apps.transfers.on_loss(&mut context, flow);
        }
    }

    /// The run is over: brings all records up to date.
    pub fn finish(&mut self, now: Time) {
        let (apps, mut context) = self.apps(now);
        apps.transfers.finish(&mut context);
    }

    /// What has been counted until `now`, after [`Simulation::finish`].
    pub fn into_results(mut self, now: Time) -> Results {
        let (samples, windows) = self.probes.into_samples();
        let (packets, connections) = self.network.take_trace();
        let clients = connections.iter().map(|connection| {
            let client = self.apps.transfers.client_number(connection.client);
            (*connection, client)
        });
        let connections = clients.collect();
        let links = 0..self.network.ports() as u32;
        let own = links.filter(|link| self.shard.has_port(*link));
        let (records, jobs) = self.apps.transfers.into_records();
        Results {
            ports: own
                .map(|link| (link, self.network.counters(link, now)))
                .collect(),
            packet_hops: self.network.packet_hops(),
            delayed_acks: self.hosts.delayed_acks(),
            controller: self.controller.map(|controller| controller.counters()),
            records,
            jobs,
            samples,
            windows,
            packets,
            connections,
            events: self.hosts.take_events(),
        }
    }
}

impl TrafficSink for Simulation {
    fn add_client(&mut self, profile: u32, number: u32, transfer: Transfer, transfers: u32) -> u32 {
        let all = &mut self.apps.transfers;
        all.add(&self.shard, (profile, number), transfer, transfers)
    }

    fn add_generator(&mut self, profile: u32, generator: Box<dyn Generator>) {
        self.apps
            .add_generator(&mut self.schedule, profile, generator);
    }

    fn add_jobs(&mut self, row: JobRow) {
        self.apps.add_jobs(&mut self.schedule, row);
    }

    fn add_datagrams(&mut self, source: u32, destination: u32, start: Time, datagrams: Datagrams) {
        let (apps, mut context) = self.apps(Time::ZERO);
        apps.add_datagrams(&mut context, (source, destination), start, datagrams);
    }

    fn at(&mut self, time: Time, action: Action) {
        self.schedule.add(time, action);
    }
}

impl LogicalProcess for Simulation {
    type Message = Message;

    fn next_time(&self) -> Time {
        self.network.next_time()
    }

    fn run_until(&mut self, until: Time) {
        self.run_until(until);
    }

    fn run_until_done(&mut self, until: Time) -> Time {
        self.run::<true>(until)
    }

    fn receive(&mut self, now: Time, batch: &mut Batch<Message>) {
        for message in batch.messages() {
            let (apps, mut context) = self.apps(now);
            apps.transfers.receive(&mut context, message);
        }
        batch.enter(&mut self.network);
    }

    fn gather(&mut self, now: Time) {
        self.shard.gather(now, &mut self.network);
    }

    fn send(&mut self, to: usize, batch: &mut Batch<Message>) {
        self.shard.fill(to, batch);
    }
}
