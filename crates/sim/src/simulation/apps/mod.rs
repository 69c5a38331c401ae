// SPDX-License-Identifier: Apache-2.0
//! The applications: clients that move transfers, generators that add clients as the run goes, and
//! sources of datagrams.
//!
//! `transfers` is where to start: how a client begins, answers, completes and stops.
//! `jobs` has those that wait for others; `connections` opens its connections, `records` is what is kept of each transfer, `message`
//! what the shards of a large fabric send each other about them.

mod client;
mod connections;
mod datagrams;
mod jobs;
mod message;
mod records;
mod transfers;

pub use client::{Barrier, ClientProfile, ENDLESS, Generator, LoopTimes, ServerThink, Transfer};
pub use datagrams::{Datagrams, Gaps};
pub use jobs::{Due, Gate, JobGraph, JobRecord, JobRow, JobSource, JobTransfer, Jobs};
pub use message::Message;
pub use records::{KernelTimes, Record, TransferCounters, WaitsOf};

use super::hosts::{Hosts, NONE, SocketCommand};
use super::schedule::{Action, Schedule};
use crate::controller::Controller;
use crate::fabric::Fabric;
use crate::network::{Network, Source};
use crate::packet::FlowId;
use crate::parallel::Shard;
use connections::{Connections, Opening};
use datagrams::DatagramFlow;
use penstock_scenario::units::Time;
pub use transfers::Transfers;

/// What the applications act upon.
pub(super) struct Context<'a> {
    pub now: Time,
    pub network: &'a mut Network,
    pub hosts: &'a mut Hosts,
    pub schedule: &'a mut Schedule,
    pub controller: &'a mut Option<Box<dyn Controller>>,
    pub shard: &'a mut Shard<Message>,
}

impl Context<'_> {
    /// Passes a command to the socket of `flow`.
    fn command(&mut self, flow: FlowId, command: SocketCommand) {
        self.hosts.command(self.network, self.now, flow, command);
    }

    /// Schedules an action while the events of sockets are handled.
    fn at(&mut self, time: Time, action: Action) {
        self.schedule.add(time, action);
        let next = self.schedule.next();
        self.network.set_source(Source::Schedule, next);
    }
}

/// A generator of transfers and the transfer it will make next.
struct Arrivals {
    /// Index of the profile that its transfers follow.
    profile: u32,
    generator: Box<dyn Generator>,
    /// Transfers begun: the number of the next.
    made: u32,
    pending: Option<Transfer>,
}

/// All applications.
pub(super) struct Apps {
    pub transfers: Transfers,
    arrivals: Vec<Arrivals>,
    datagrams: Vec<DatagramFlow>,
}

impl Apps {
    /// No applications yet. `profiles`: those that clients refer to.
    pub fn new(fabric: &Fabric, profiles: Vec<ClientProfile>, seed: u64) -> Apps {
        Apps {
            transfers: Transfers::new(profiles, Connections::new(fabric, seed)),
            arrivals: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    /// Adds a generator whose transfers follow profile number `profile`.
    pub fn add_generator(
        &mut self,
        schedule: &mut Schedule,
        profile: u32,
        mut generator: Box<dyn Generator>,
    ) {
        let first = generator.next();
        if let Some((time, _)) = first {
            schedule.add(time, Action::Generate(self.arrivals.len() as u32));
        }
        self.arrivals.push(Arrivals {
            profile,
            generator,
            made: 0,
            pending: first.map(|(_, transfer)| transfer),
        });
    }

    /// Adds jobs that follow each other.
    pub fn add_jobs(&mut self, schedule: &mut Schedule, row: JobRow) {
        let (start, action) = self.transfers.jobs().add(row);
        schedule.add(start, action);
    }

    /// Whether all transfers with an end are over, and no more will begin.
    pub fn are_done(&self) -> bool {
        let mut arrivals = self.arrivals.iter();
        self.transfers.are_done() && arrivals.all(|arrivals| arrivals.pending.is_none())
    }

    /// Adds a source of datagrams from one host to another, whose first is due a gap after `start`.
    pub fn add_datagrams(
        &mut self,
        context: &mut Context,
        (source, destination): (u32, u32),
        start: Time,
        mut datagrams: Datagrams,
    ) {
        let flow = FlowId(2 * context.hosts.connections() as u32);
        let connections = self.transfers.connections();
        let opening = Opening {
            data: flow,
            hash: connections.hash(u64::MAX - u64::from(flow.0)),
            time: start,
        };
        connections.open(context, opening, (source, destination), (NONE, 0));
        let first = start.saturating_add(datagrams.first_gap());
        if context.shard.has_host(source) {
            let index = self.datagrams.len() as u32;
            context.schedule.add(first, Action::Datagram(index));
        }
        self.datagrams.push(DatagramFlow { flow, datagrams });
    }

    /// A source of datagrams sends; returns when it sends the next one.
    pub fn send_datagram(&mut self, context: &mut Context, index: u32) -> Option<Time> {
        self.datagrams[index as usize].send(context.network, context.now)
    }

    /// The transfer that a generator has made is due; returns when the one after it is.
    pub fn generate(&mut self, context: &mut Context, index: u32) -> Option<Time> {
        let arrivals = &mut self.arrivals[index as usize];
        let due = arrivals.pending.take();
        let next = arrivals.generator.next();
        arrivals.pending = next.map(|(_, transfer)| transfer);
        if let Some(transfer) = due {
            let of_profile = (arrivals.profile, arrivals.made);
            arrivals.made += 1;
            let client = self.transfers.add(context.shard, of_profile, transfer, 1);
            self.transfers.begin(context, client);
        }
        next.map(|(time, _)| time.max(context.now))
    }
}
