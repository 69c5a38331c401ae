// SPDX-License-Identifier: Apache-2.0
//! What the clients do when something happens.

use super::clients::{ENDLESS, Record, TransferCounters};
use super::hosts::SocketCommand;
use super::{Action, Client, Simulation, Source, Transfer};
use crate::packet::FlowId;
use crate::rng::Rng;
use crate::tcp::{Events, State};
use penstock_scenario::units::Time;

/// A number of a closed connection is given away again after this time, in which its last packets
/// have surely left the network.
const QUIET: Time = Time::from_secs(2);

impl Simulation {
    /// Adds a client that makes `transfers` transfers; returns its index, for [`Action::Begin`].
    pub fn add_client(
        &mut self,
        profile: u32,
        number: u32,
        transfer: Transfer,
        transfers: u32,
    ) -> u32 {
        let Transfer {
            source,
            destination,
            bytes,
        } = transfer;
        let client = Client {
            profile,
            number,
            source,
            destination,
            bytes,
            remaining: transfers,
            flow: None,
            record: u32::MAX,
            base: TransferCounters::default(),
        };
        self.clients.push(client);
        self.clients.len() as u32 - 1
    }

    pub(super) fn generate(&mut self, now: Time, index: u32) {
        let arrivals = &mut self.arrivals[index as usize];
        let (profile, number, due) = (arrivals.profile, arrivals.made, arrivals.pending.take());
        if let Some((next, transfer)) = arrivals.generator.next() {
            arrivals.pending = Some(transfer);
            self.schedule.add(next.max(now), Action::Generate(index));
        }
        if let Some(transfer) = due {
            arrivals.made += 1;
            let client = self.add_client(profile, number, transfer, 1);
            self.begin(now, client);
        }
    }

    /// The client starts its next transfer, on a new connection if it has none. One that was
    /// stopped before has none left.
    pub(super) fn begin(&mut self, now: Time, index: u32) {
        if self.clients[index as usize].remaining == 0 || !self.opens(index) {
            return;
        }
        self.begun += 1;
        let client = &mut self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        let (request, bytes) = (profile.request_bytes, client.bytes);
        client.remaining -= 1;
        let is_last = client.remaining == 0 || profile.reconnects;
        let connected = client.flow;
        let flow = connected.unwrap_or_else(|| self.connect(now, index));
        self.start_transfer(now, index, flow);
        self.tell_begun(index, now);
        match request {
            None => {
                self.command(now, flow, SocketCommand::Write(bytes));
                if is_last && bytes < ENDLESS {
                    self.command(now, flow, SocketCommand::Close);
                }
            }
            Some(request) => self.command(now, flow.reverse(), SocketCommand::Write(request)),
        }
    }

    /// A transfer begins on the client's connection: both ends know what they wait for.
    pub(super) fn start_transfer(&mut self, now: Time, index: u32, flow: FlowId) {
        let client = &self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        let (request, bytes) = (profile.request_bytes, client.bytes);
        if self.owns(client.destination) {
            let record = Record {
                traffic: profile.traffic,
                number: client.number,
                source: client.source,
                destination: client.destination,
                start: now,
                end: None,
                stopped: None,
                bytes,
                total: TransferCounters::default(),
                before: TransferCounters::default(),
                silence: Time::ZERO,
            };
            self.clients[index as usize].record = self.records.len() as u32;
            self.records.push(record);
        }
        for side in [flow, flow.reverse()] {
            self.hosts.get_mut(side).record = self.clients[index as usize].record;
        }
        self.mark_start(now, index, flow);
        if let Some(request) = request {
            let sender = self.hosts.get_mut(flow);
            sender.goal = sender.endpoint.delivered() + request;
        }
        let receiver = self.hosts.get_mut(flow.reverse());
        receiver.goal = receiver.endpoint.delivered().saturating_add(bytes);
    }

    /// Opens a connection for the client; returns the flow of its data.
    fn connect(&mut self, now: Time, index: u32) -> FlowId {
        let client = &self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        let quiet = self.closed.pop_front_if(|(since, _)| *since + QUIET <= now);
        let opener = quiet.map_or_else(|| self.fresh_number(), |(_, flow)| flow);
        let data = if profile.request_bytes.is_some() {
            opener.reverse()
        } else {
            opener
        };
        let hash = Rng::new(self.hash_seed, self.part.stream(self.begun)).bits();
        self.open(now, index, data, hash);
        if !self.part.is_whole() {
            self.tell_opened(index, data, hash, now);
        }
        self.command(now, opener, SocketCommand::Connect);
        data
    }

    /// A number that no connection has had.
    fn fresh_number(&self) -> FlowId {
        let connection = self.part.number_from(self.hosts.len() / 2);
        FlowId(2 * connection as u32)
    }

    /// The client's connection, whose data is the flow `data`, comes to be.
    pub(super) fn open(&mut self, now: Time, index: u32, data: FlowId, hash: u64) {
        let client = &mut self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        self.routes
            .path(client.source, client.destination, hash, &mut self.path);
        self.network.paths.set(data, &self.path);
        let opener = FlowId(data.0 & !1);
        self.network.forget(opener);
        if let Some(controller) = &mut self.controller {
            controller.on_connect(data, client.source, client.destination);
        }
        client.flow = Some(data);
        self.hosts.open(opener, index, profile.config, now);
    }

    fn command(&mut self, now: Time, flow: FlowId, command: SocketCommand) {
        self.hosts.command(&mut self.network, now, flow, command);
    }

    /// Something happened at the socket of `flow`.
    pub(super) fn react(&mut self, now: Time, flow: FlowId, events: Events) {
        let socket = self.hosts.get_mut(flow);
        let index = socket.client;
        if socket.endpoint.delivered() >= socket.goal {
            socket.goal = u64::MAX;
            let client = &self.clients[index as usize];
            let is_asked = self.profiles[client.profile as usize]
                .request_bytes
                .is_some();
            if flow.is_opener() || !is_asked {
                self.complete(now, index);
            } else if client.flow == Some(flow) {
                self.answer(now, index, flow);
            }
        }
        if events.has(Events::PEER_CLOSED) {
            self.command(now, flow, SocketCommand::Close);
        }
        if events.has(Events::CLOSED) {
            self.detach(now, index, flow);
            self.tell_closed(flow);
            self.release(now, flow);
        }
    }

    /// The request has arrived at the server: it answers.
    fn answer(&mut self, now: Time, index: u32, flow: FlowId) {
        let client = &self.clients[index as usize];
        let is_last = client.remaining == 0 || self.profiles[client.profile as usize].reconnects;
        let bytes = client.bytes;
        self.command(now, flow, SocketCommand::Write(bytes));
        if is_last {
            self.command(now, flow, SocketCommand::Close);
        }
    }

    /// The last byte of the transfer is with the receiving application.
    fn complete(&mut self, now: Time, index: u32) {
        self.settle(now, index);
        let client = &mut self.clients[index as usize];
        self.records[client.record as usize].end = Some(now);
        if let Some(flow) = client.flow {
            self.tell_ended(index, flow);
        }
        let client = &mut self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        if profile.reconnects {
            client.flow = None;
        }
        if client.remaining > 0 {
            let again = now + profile.think;
            self.at(again, Action::Begin(index));
            self.network
                .set_source(Source::Schedule, self.schedule.next());
        }
    }

    /// The connection is gone, perhaps given up: the client's counts end here, before others count
    /// under the same number.
    pub(super) fn detach(&mut self, now: Time, index: u32, flow: FlowId) {
        let own = self.clients[index as usize].flow;
        if let Some(own) = own.filter(|own| own.connection() == flow.connection()) {
            self.settle(now, index);
            if self.is_under_way(index) {
                self.tell_ended(index, own);
            }
            self.clients[index as usize].flow = None;
            // What is still on its way arrives too late.
            self.hosts.get_mut(own.reverse()).goal = u64::MAX;
        }
    }

    /// Whether the record of the client's transfer is kept here, and not at its end.
    fn is_under_way(&self, index: u32) -> bool {
        let record = self.clients[index as usize].record;
        let record = self.records.get(record as usize);
        record.is_some_and(|record| record.end.is_none())
    }

    /// Once both sides are closed, the connection's number waits for its next use.
    pub(super) fn release(&mut self, now: Time, flow: FlowId) {
        let other = self.hosts.get(flow.reverse());
        if other.endpoint.state() == State::Closed && self.part.numbered(flow) {
            let opener = if flow.is_opener() {
                flow
            } else {
                flow.reverse()
            };
            self.closed.push_back((now, opener));
        }
    }

    /// The client ends, finished or not.
    pub(super) fn stop(&mut self, now: Time, index: u32) {
        self.settle(now, index);
        let client = &mut self.clients[index as usize];
        client.remaining = 0;
        if let Some(flow) = client.flow {
            let (source, record) = (client.source, client.record);
            if self.is_under_way(index) {
                self.tell_ended(index, flow);
            }
            self.clients[index as usize].flow = None;
            if let Some(record) = self.records.get_mut(record as usize) {
                record.stopped = Some(now);
            }
            // What is still on its way arrives too late.
            self.hosts.get_mut(flow.reverse()).goal = u64::MAX;
            if self.owns(source) {
                self.command(now, flow, SocketCommand::Abort);
            }
        }
    }
}
