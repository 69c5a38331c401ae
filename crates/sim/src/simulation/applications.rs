// SPDX-License-Identifier: Apache-2.0
//! What the clients do when something happens.

use super::clients::{ENDLESS, Record, Tally};
use super::sockets::Order;
use super::{Action, Client, Simulation, Source, Transfer};
use crate::packet::FlowId;
use crate::rng::Rng;
use crate::tcp::{Events, State};
use crate::units::Time;

/// A number of a closed connection is given away again after this time, in which its last packets
/// have surely left the network.
const QUIET: Time = Time::from_secs(2);

impl Simulation {
    /// Adds a client that makes `transfers` transfers; returns its index, for [`Action::Begin`].
    pub fn add_client(
        &mut self,
        plan: u32,
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
            plan,
            number,
            source,
            destination,
            bytes,
            remaining: transfers,
            flow: None,
            record: u32::MAX,
            base: Tally::default(),
        };
        self.clients.push(client);
        self.clients.len() as u32 - 1
    }

    pub(super) fn generate(&mut self, now: Time, index: u32) {
        let arrivals = &mut self.arrivals[index as usize];
        let (plan, number, due) = (arrivals.plan, arrivals.made, arrivals.pending.take());
        if let Some((next, transfer)) = arrivals.generator.next() {
            arrivals.pending = Some(transfer);
            self.schedule.add(next.max(now), Action::Generate(index));
        }
        if let Some(transfer) = due {
            arrivals.made += 1;
            let client = self.add_client(plan, number, transfer, 1);
            self.begin(now, client);
        }
    }

    /// The client starts its next transfer, on a new connection if it has none. One that was
    /// stopped before has none left.
    pub(super) fn begin(&mut self, now: Time, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.remaining == 0 {
            return;
        }
        let plan = &self.plans[client.plan as usize];
        let (request, bytes) = (plan.request_bytes, client.bytes);
        client.remaining -= 1;
        client.record = self.records.len() as u32;
        let is_last = client.remaining == 0 || plan.reconnects;
        self.records.push(Record {
            traffic: plan.traffic,
            number: client.number,
            source: client.source,
            destination: client.destination,
            start: now,
            end: None,
            stopped: None,
            bytes,
            total: Tally::default(),
            before: Tally::default(),
            silence: Time::ZERO,
        });
        let connected = client.flow;
        let flow = connected.unwrap_or_else(|| self.connect(now, index));
        for side in [flow, flow.reverse()] {
            self.sockets.get_mut(side).record = self.clients[index as usize].record;
        }
        self.mark_start(now, index, flow);
        match request {
            None => {
                let receiver = self.sockets.get_mut(flow.reverse());
                receiver.goal = receiver.endpoint.delivered().saturating_add(bytes);
                self.order(now, flow, Order::Write(bytes));
                if is_last && bytes < ENDLESS {
                    self.order(now, flow, Order::Close);
                }
            }
            Some(request) => {
                let sender = self.sockets.get_mut(flow);
                sender.goal = sender.endpoint.delivered() + request;
                let receiver = self.sockets.get_mut(flow.reverse());
                receiver.goal = receiver.endpoint.delivered().saturating_add(bytes);
                self.order(now, flow.reverse(), Order::Write(request));
            }
        }
    }

    /// Opens a connection for the client; returns the flow of its data.
    fn connect(&mut self, now: Time, index: u32) -> FlowId {
        let client = &self.clients[index as usize];
        let plan = &self.plans[client.plan as usize];
        let quiet = self.closed.pop_front_if(|(since, _)| *since + QUIET <= now);
        let opener = quiet.map_or(FlowId(self.sockets.len() as u32), |(_, flow)| flow);
        let data = if plan.request_bytes.is_some() {
            opener.reverse()
        } else {
            opener
        };
        let hash = Rng::new(self.hash_seed, self.records.len() as u64).bits();
        self.routes
            .path(client.source, client.destination, hash, &mut self.path);
        self.network.paths.set(data, &self.path);
        self.network.forget(opener);
        if let Some(controller) = &mut self.controller {
            controller.on_connect(data, client.source, client.destination);
        }
        self.sockets.open(opener, index, plan.config, now);
        self.clients[index as usize].flow = Some(data);
        self.order(now, opener, Order::Connect);
        data
    }

    fn order(&mut self, now: Time, flow: FlowId, order: Order) {
        self.sockets.order(&mut self.network, now, flow, order);
    }

    /// Something happened at the socket of `flow`.
    pub(super) fn react(&mut self, now: Time, flow: FlowId, events: Events) {
        let socket = self.sockets.get_mut(flow);
        let index = socket.client;
        if socket.endpoint.delivered() >= socket.goal {
            socket.goal = u64::MAX;
            if self.clients[index as usize].flow == Some(flow) {
                self.answer(now, index, flow);
            } else {
                self.complete(now, index);
            }
        }
        if events.has(Events::PEER_CLOSED) {
            self.order(now, flow, Order::Close);
        }
        if events.has(Events::CLOSED) {
            self.detach(now, index, flow);
            self.release(now, flow);
        }
    }

    /// The request has arrived at the server: it answers.
    fn answer(&mut self, now: Time, index: u32, flow: FlowId) {
        let client = &self.clients[index as usize];
        let is_last = client.remaining == 0 || self.plans[client.plan as usize].reconnects;
        let bytes = client.bytes;
        self.order(now, flow, Order::Write(bytes));
        if is_last {
            self.order(now, flow, Order::Close);
        }
    }

    /// The last byte of the transfer is with the receiving application.
    fn complete(&mut self, now: Time, index: u32) {
        self.settle(now, index);
        let client = &mut self.clients[index as usize];
        self.records[client.record as usize].end = Some(now);
        let plan = &self.plans[client.plan as usize];
        if plan.reconnects {
            client.flow = None;
        }
        if client.remaining > 0 {
            let again = now + plan.think;
            self.at(again, Action::Begin(index));
            self.network
                .set_source(Source::Schedule, self.schedule.next());
        }
    }

    /// The connection is gone, perhaps given up: the client's counts end here, before others count
    /// under the same number.
    fn detach(&mut self, now: Time, index: u32, flow: FlowId) {
        let own = self.clients[index as usize].flow;
        if own.is_some_and(|own| own.connection() == flow.connection()) {
            self.settle(now, index);
            self.clients[index as usize].flow = None;
        }
    }

    /// Once both sides are closed, the connection's number waits for its next use.
    fn release(&mut self, now: Time, flow: FlowId) {
        if self.sockets.get(flow.reverse()).endpoint.state() == State::Closed {
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
        if let Some(flow) = client.flow.take() {
            self.records[client.record as usize].stopped = Some(now);
            // What is still on its way arrives too late.
            self.sockets.get_mut(flow.reverse()).goal = u64::MAX;
            self.order(now, flow, Order::Abort);
        }
    }
}
