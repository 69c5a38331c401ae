// SPDX-License-Identifier: Apache-2.0
//! What the clients do when something happens.
//!
//! All is written as if both ends of a client were in one place. In a fabric of several shards the
//! shards of both ends run the same code: what happens at one end is sent to the other as a
//! [`Message`], which [`Shard::send`] drops where both ends are in one shard.

mod turns;

use super::client::{Barrier, Client, ClientProfile, ENDLESS, EventLoop, Step, Transfer};
use super::connections::{Connections, Opening};
use super::jobs::{Due, JobRecord, Jobs};
use super::records::{Record, TransferCounters, WaitsOf};
use super::{Context, Message};
use crate::packet::FlowId;
use crate::parallel::Shard;
use crate::simulation::WindowPlan;
use crate::simulation::hosts::{Hosts, NONE, SocketCommand};
use crate::simulation::schedule::Action;
use crate::tcp::{Events, Info};
use penstock_scenario::units::Time;

/// The clients, their connections, and the records of their transfers.
pub struct Transfers {
    profiles: Vec<ClientProfile>,
    clients: Vec<Client>,
    /// By profile.
    barriers: Vec<Barrier>,
    /// By profile.
    loops: Vec<EventLoop>,
    connections: Connections,
    jobs: Jobs,
    /// Clients whose windows are sampled, in the order of their indices.
    sampled: Vec<u32>,
    plan: Option<WindowPlan>,
    /// In order of their start; those that are received here.
    records: Vec<Record>,
    /// Transfers begun here.
    begun: u64,
    /// Transfers with an end that are received here and not finished, those not begun included.
    awaited: u64,
}

impl Transfers {
    /// No clients yet.
    pub fn new(profiles: Vec<ClientProfile>, connections: Connections) -> Transfers {
        Transfers {
            barriers: vec![Barrier::default(); profiles.len()],
            loops: vec![EventLoop::default(); profiles.len()],
            profiles,
            clients: Vec::new(),
            connections,
            jobs: Jobs::default(),
            sampled: Vec::new(),
            plan: None,
            records: Vec::new(),
            begun: 0,
            awaited: 0,
        }
    }

    /// Adds a client that makes `transfers` transfers, the `number`th of its profile; returns its
    /// index.
    pub fn add(
        &mut self,
        shard: &Shard<Message>,
        (profile, number): (u32, u32),
        transfer: Transfer,
        transfers: u32,
    ) -> u32 {
        let opener = self.profiles[profile as usize].opener(&transfer);
        self.barriers[profile as usize].add_client();
        let is_here = |host| shard.has_host(host);
        let is_awaited = is_here(transfer.destination) && transfer.bytes < ENDLESS;
        let awaited = if is_awaited { transfers } else { 0 };
        self.awaited += u64::from(awaited);
        self.clients.push(Client {
            profile,
            number,
            transfer,
            sends_here: is_here(transfer.source),
            receives_here: is_here(transfer.destination),
            remaining: if is_here(opener) { transfers } else { 0 },
            begun: 0,
            ticket: NONE,
            awaited,
            is_last: false,
            is_stopped: false,
            data: None,
            record: NONE,
            base: TransferCounters::default(),
            step: Step::Begin,
            server_think: None,
        });
        let index = self.clients.len() as u32 - 1;
        self.note_sampled(index);
        index
    }

    /// Has the windows of `plan` sampled; to be called before clients are added.
    pub fn set_plan(&mut self, plan: Option<WindowPlan>) {
        self.plan = plan;
    }

    /// Notes a client whose number has been set, if its windows are sampled.
    fn note_sampled(&mut self, index: u32) {
        let Some(plan) = &self.plan else { return };
        let client = &self.clients[index as usize];
        let traffic = self.profiles[client.profile as usize].traffic;
        if traffic == plan.traffic
            && client.number < plan.flows
            && client.sends_here
            && let Err(place) = self.sampled.binary_search(&index)
        {
            self.sampled.insert(place, index);
        }
    }

    /// The traffic of a client, and its number within it; `None` for datagrams.
    pub fn client_number(&self, client: u32) -> Option<(u32, u32)> {
        let client = self.clients.get(client as usize)?;
        let traffic = self.profiles[client.profile as usize].traffic;
        Some((traffic, client.number))
    }

    /// The connections, of which datagrams have some too.
    pub fn connections(&mut self) -> &mut Connections {
        &mut self.connections
    }

    /// The jobs, of which transfers may be parts.
    pub fn jobs(&mut self) -> &mut Jobs {
        &mut self.jobs
    }

    /// The records of all transfers that were received here, and of all jobs.
    pub fn into_records(self) -> (Vec<Record>, Vec<JobRecord>) {
        (self.records, self.jobs.into_records())
    }

    /// Whether all transfers with an end that are received here have finished or were stopped.
    pub fn are_done(&self) -> bool {
        self.awaited == 0 && self.jobs.are_done()
    }

    /// The windows of the sampled clients that have a connection. A job's client may have got another
    /// number since.
    pub fn windows(&self, hosts: &Hosts, flows: u32) -> Vec<(u32, Info)> {
        let sampled = self.sampled.iter();
        let clients = sampled.map(|index| &self.clients[*index as usize]);
        let chosen = clients.filter(|client| client.number < flows);
        chosen
            .filter_map(|client| Some((client.number, hosts.info(client.data?))))
            .collect()
    }

    /// The client's connection comes to be.
    fn open(&mut self, context: &mut Context, index: u32, opening: Opening) {
        let client = &mut self.clients[index as usize];
        client.data = Some(opening.data);
        let config = self.profiles[client.profile as usize].config;
        let ends = (client.transfer.source, client.transfer.destination);
        let owner = (index, config);
        self.connections.open(context, opening, ends, owner);
    }

    /// A transfer begins on the client's connection: both ends know what they wait for.
    fn start(
        &mut self,
        context: &mut Context,
        index: u32,
        data: FlowId,
        is_last: bool,
        time: Time,
    ) {
        let client = &mut self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        let number = client.begun;
        client.begun += 1;
        if let Some(sizes) = profile.sizes.as_ref().filter(|_| number > 0) {
            client.transfer.bytes = sizes.draw(index, number);
        }
        let Transfer {
            source,
            destination,
            bytes,
        } = client.transfer;
        client.is_last = is_last;
        if client.receives_here {
            client.record = self.records.len() as u32;
            self.records.push(Record {
                traffic: profile.traffic,
                number: client.number,
                source,
                destination,
                start: time,
                end: None,
                stopped: None,
                bytes,
                total: TransferCounters::default(),
                before: TransferCounters::default(),
                silence: Time::ZERO,
                request: profile.request.as_ref().map(|of| of.draw(index, number)),
                is_opening: false,
                ideal: None,
                waits_of: WaitsOf::Simulator,
            });
        }
        context.hosts.start_record(data, client.record, time);
        client.base = context.hosts.counters(data, time);
        client.server_think = None;
        if let Some(record) = self.records.get_mut(client.record as usize)
            && client.receives_here
        {
            record.is_opening = client.base.delivered == 0;
        }
        if let Some(request) = &profile.request {
            context.hosts.expect(data, request.draw(index, number));
        }
        context.hosts.expect(data.reverse(), bytes);
    }

    /// Something happened at the socket of `flow`.
    pub fn on_events(&mut self, context: &mut Context, flow: FlowId, events: Events) {
        let index = context.hosts.client(flow);
        if events.has(Events::CONNECTED) && flow.is_opener() && self.has_loop(index) {
            self.await_turn(context, index, Step::Write);
        }
        if context.hosts.has_delivered(flow) {
            let client = &self.clients[index as usize];
            let pulls = self.profiles[client.profile as usize].pulls();
            if flow.is_opener() || !pulls {
                self.complete(context, index);
            } else if client.data == Some(flow) {
                self.receive_request(context, index);
            }
        }
        if events.has(Events::PEER_CLOSED) {
            context.command(flow, SocketCommand::Close);
        }
        if events.has(Events::CLOSED) {
            let client = &self.clients[index as usize];
            let profile = &self.profiles[client.profile as usize];
            let other_end = match flow.is_opener() {
                true => profile.listener(&client.transfer),
                false => profile.opener(&client.transfer),
            };
            self.detach(context, index, flow);
            context.shard.send(other_end, Message::Closed { flow });
            self.connections.release(context, flow);
        }
    }

    /// The last byte of the transfer is with the receiving application.
    fn complete(&mut self, context: &mut Context, index: u32) {
        self.settle(context, index);
        self.report_end(context, index);
        let client = &mut self.clients[index as usize];
        self.records[client.record as usize].end = Some(context.now);
        if client.awaited > 0 {
            client.awaited -= 1;
            self.awaited -= 1;
        }
        let profile = &self.profiles[client.profile as usize];
        if profile.reconnects {
            client.data = None;
        }
        if client.ticket != NONE {
            let ticket = std::mem::replace(&mut client.ticket, NONE);
            let due = self.jobs.finish(context.now, ticket);
            self.follow(context, due);
        } else if client.remaining > 0 {
            let think = profile.think.draw(index, client.begun);
            let mut next = context.now.saturating_add(Time(think));
            if let Some(gap) = &profile.barrier {
                for all in self.barriers[client.profile as usize].arrive(index) {
                    context.at(next, Action::Begin(all));
                    next = next.saturating_add(Time(gap.draw(all, client.begun)));
                }
            } else {
                context.at(next, Action::Begin(index));
            }
        }
    }

    /// The next job of a row starts.
    pub fn start_job(&mut self, context: &mut Context, row: u32) {
        let due = self.jobs.start(context.now, row);
        self.follow(context, due);
    }

    /// A pause in a job is over.
    pub fn open_gate(&mut self, context: &mut Context, ticket: u32) {
        let due = self.jobs.finish(context.now, ticket);
        self.follow(context, due);
    }

    /// Does what is due in jobs. A fabric with jobs is one shard: both ends are here.
    fn follow(&mut self, context: &mut Context, due: Vec<Due>) {
        for due in due {
            match due {
                Due::At(time, action) => context.at(time, action),
                Due::Begin {
                    ticket,
                    profile,
                    number,
                    transfer,
                    client,
                    is_shared,
                } => {
                    let index = client.unwrap_or_else(|| {
                        let of_profile = (profile, number);
                        let index = self.add(context.shard, of_profile, transfer, 0);
                        self.jobs.set_client(ticket, index);
                        index
                    });
                    let client = &mut self.clients[index as usize];
                    client.number = number;
                    client.transfer = transfer;
                    client.ticket = ticket;
                    // A shared connection never has its last transfer.
                    client.remaining = if is_shared { 2 } else { 1 };
                    client.awaited += 1;
                    self.awaited += 1;
                    self.note_sampled(index);
                    context.at(context.now, Action::Begin(index));
                }
            }
        }
    }

    /// The connection of `flow` is gone, perhaps given up: the counts of the client's transfer end
    /// here, before others count under the same number.
    fn detach(&mut self, context: &mut Context, index: u32, flow: FlowId) {
        let data = self.clients[index as usize].data;
        if let Some(data) = data.filter(|data| data.connection() == flow.connection()) {
            self.settle(context, index);
            self.report_end(context, index);
            self.clients[index as usize].data = None;
            // What is still on its way arrives too late.
            context.hosts.expect_nothing(data.reverse());
        }
    }

    /// The client ends, finished or not.
    pub fn stop(&mut self, context: &mut Context, index: u32) {
        self.settle(context, index);
        self.report_end(context, index);
        let client = &mut self.clients[index as usize];
        client.remaining = 0;
        client.is_stopped = true;
        self.awaited -= u64::from(std::mem::take(&mut client.awaited));
        if let Some(data) = client.data.take() {
            if let Some(record) = self.records.get_mut(client.record as usize) {
                record.stopped = Some(context.now);
            }
            // What is still on its way arrives too late.
            context.hosts.expect_nothing(data.reverse());
            if client.sends_here {
                context.command(data, SocketCommand::Abort);
            }
        }
    }

    /// A packet of `flow` was lost: the record of its transfer counts it.
    pub fn on_loss(&mut self, context: &mut Context, flow: FlowId) {
        if let Some(client) = self.clients.get(context.hosts.client(flow) as usize) {
            let receiver = client.transfer.destination;
            context.shard.send(receiver, Message::Lost { flow });
        }
        self.count_loss(context, flow);
    }

    fn count_loss(&mut self, context: &Context, flow: FlowId) {
        let record = context.hosts.record(flow) as usize;
        if let Some(record) = self.records.get_mut(record) {
            record.total.drops += 1;
        }
    }

    /// Whether a transfer of the client is under way whose record is kept here.
    fn is_under_way(&self, client: &Client) -> bool {
        let record = self.records.get(client.record as usize);
        record.is_some_and(|record| record.end.is_none())
    }

    /// Brings the record of the client's transfer up to date.
    fn settle(&mut self, context: &Context, index: u32) {
        let client = &self.clients[index as usize];
        let Some(data) = client.data.filter(|_| self.is_under_way(client)) else {
            return;
        };
        let counted = client.counted(context, data);
        let record = &mut self.records[client.record as usize];
        record.total = TransferCounters {
            drops: record.total.drops,
            ..counted
        };
        record.silence = context.hosts.silence(data, context.now);
    }

    /// The receiver counts no more for the transfer under way: requests what the sender has counted.
    fn report_end(&mut self, context: &mut Context, index: u32) {
        let client = &self.clients[index as usize];
        if let Some(data) = client.data.filter(|_| self.is_under_way(client)) {
            let ended = Message::Ended {
                data,
                record: client.record,
            };
            context.shard.send(client.transfer.source, ended);
        }
    }

    /// What was counted before now is not part of the results.
    pub fn start_measuring(&mut self, context: &Context) {
        for index in 0..self.clients.len() as u32 {
            self.settle(context, index);
        }
        for record in &mut self.records {
            record.before = record.total;
        }
    }

    /// The run is over.
    pub fn finish(&mut self, context: &mut Context) {
        for index in 0..self.clients.len() as u32 {
            self.settle(context, index);
            self.report_end(context, index);
        }
    }

    /// Another shard has sent a message.
    pub fn receive(&mut self, context: &mut Context, message: Message) {
        match message {
            Message::Opened { client, opening } => self.open(context, client, opening),
            Message::Begun {
                client,
                is_last,
                time,
            } => {
                let Client {
                    data, is_stopped, ..
                } = self.clients[client as usize];
                if let Some(data) = data {
                    self.start(context, client, data, is_last, time);
                    if is_stopped {
                        self.stop(context, client);
                    }
                }
            }
            Message::Ended { data, record } => {
                let client = &self.clients[context.hosts.client(data) as usize];
                let sent = client.counted(context, data);
                let receiver = client.transfer.destination;
                let counted = Message::Counted { record, sent };
                context.shard.send(receiver, counted);
            }
            Message::Counted { record, sent } => {
                if let Some(record) = self.records.get_mut(record as usize) {
                    record.total.add_sent(&sent);
                }
            }
            Message::Closed { flow } => {
                context.hosts.close_stand_in(flow);
                self.detach(context, context.hosts.client(flow), flow);
                self.connections.release(context, flow);
            }
            Message::Lost { flow } => self.count_loss(context, flow),
        }
    }
}
