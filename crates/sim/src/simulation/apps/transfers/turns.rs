// SPDX-License-Identifier: Apache-2.0
//! What clients and servers do on their turn: at once, or when the one program behind them comes to it.

use super::Transfers;
use crate::packet::FlowId;
use crate::simulation::apps::client::{ENDLESS, ServerThink, Step};
use crate::simulation::apps::connections::Opening;
use crate::simulation::apps::{Context, Message};
use crate::simulation::hosts::SocketCommand;
use crate::simulation::schedule::Action;
use penstock_scenario::units::Time;

impl Transfers {
    /// The client starts its next transfer as soon as its program comes to it.
    pub fn begin(&mut self, context: &mut Context, index: u32) {
        self.await_turn(context, index, Step::Begin);
    }

    /// Does something for the client: now, or when its program comes to it.
    pub(super) fn await_turn(&mut self, context: &mut Context, index: u32, step: Step) {
        let client = &mut self.clients[index as usize];
        client.step = step;
        let profile = client.profile;
        if self.profiles[profile as usize].event_loop.is_none() {
            return self.take_turn(context, index);
        }
        let is_due = step == Step::Begin || client.has_thought(context.now);
        let event_loop = &mut self.loops[profile as usize];
        event_loop.add(index, is_due);
        if !event_loop.is_busy {
            self.go_on(context, profile);
        }
    }

    /// The program behind a profile has done what it had to do, and comes to the next client.
    pub fn go_on(&mut self, context: &mut Context, profile: u32) {
        let event_loop = &mut self.loops[profile as usize];
        let next = event_loop.next();
        event_loop.is_busy = next.is_some();
        let times = &self.profiles[profile as usize].event_loop;
        let (Some(index), Some(times)) = (next, times) else {
            return;
        };
        let client = &self.clients[index as usize];
        let took = match client.step {
            Step::Begin if client.data.is_none() => &times.connect,
            _ => &times.other,
        };
        let took = Time(took.draw(0, event_loop.turns));
        context.at(context.now.saturating_add(took), Action::Turn(profile));
        self.take_turn(context, index);
    }

    fn take_turn(&mut self, context: &mut Context, index: u32) {
        match self.clients[index as usize].step {
            Step::Begin => self.begin_now(context, index),
            Step::Write => self.write(context, index),
            Step::Answer => self.answer(context, index),
        }
    }

    /// The client starts its next transfer, on a new connection if it has none. One that was
    /// stopped before has none left.
    fn begin_now(&mut self, context: &mut Context, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.remaining == 0 {
            return;
        }
        self.begun += 1;
        client.remaining -= 1;
        let profile = &self.profiles[client.profile as usize];
        let waits = profile.event_loop.is_some() && client.data.is_none();
        let is_last = client.remaining == 0 || profile.reconnects;
        let listener = profile.listener(&client.transfer);
        let connected = client.data;
        let data = connected.unwrap_or_else(|| self.connect(context, index));
        let time = context.now;
        self.start(context, index, data, is_last, time);
        let begun = Message::Begun {
            client: index,
            is_last,
            time,
        };
        context.shard.send(listener, begun);
        // A program of its own writes while it connects; another comes back to it.
        if !waits {
            self.write(context, index);
        }
    }

    /// Writes the data of the transfer under way, or the request for it.
    fn write(&mut self, context: &mut Context, index: u32) {
        let client = &self.clients[index as usize];
        let Some(data) = client.data else {
            return;
        };
        match &self.profiles[client.profile as usize].request {
            None => {
                let bytes = client.transfer.bytes;
                context.command(data, SocketCommand::Write(bytes));
                if client.is_last && bytes < ENDLESS {
                    context.command(data, SocketCommand::Close);
                }
            }
            Some(request) => {
                let request = request.draw(index, client.begun - 1);
                context.command(data.reverse(), SocketCommand::Write(request));
            }
        }
    }

    /// Opens a connection for the client; returns the flow of its data.
    fn connect(&mut self, context: &mut Context, index: u32) -> FlowId {
        let opener = self.connections.number(context);
        let client = &self.clients[index as usize];
        let data = match self.profiles[client.profile as usize].pulls() {
            true => opener.reverse(),
            false => opener,
        };
        let opening = Opening {
            data,
            hash: self.connections.hash(context.shard.own_number(self.begun)),
            time: context.now,
        };
        self.open(context, index, opening);
        let opened = Message::Opened {
            client: index,
            opening,
        };
        context.shard.send_along(self.connections.path(), &opened);
        context.command(opener, SocketCommand::Connect);
        data
    }

    /// The request has arrived at the server: it answers, now or when it has thought.
    pub(super) fn receive_request(&mut self, context: &mut Context, index: u32) {
        let client = &mut self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        let think = profile.server_think.draw(index, client.begun - 1);
        if think == 0 {
            return self.await_turn(context, index, Step::Answer);
        }
        let from = context.now;
        let until = from.saturating_add(Time(think));
        client.server_think = Some(ServerThink { from, until });
        context.at(until, Action::Answer(index));
    }

    /// The server has thought: it answers, unless the transfer is over.
    pub fn end_think(&mut self, context: &mut Context, index: u32) {
        if self.clients[index as usize].has_thought(context.now) {
            self.await_turn(context, index, Step::Answer);
        }
    }

    /// Whether one program is behind this client and others.
    pub(super) fn has_loop(&self, index: u32) -> bool {
        let profile = self.clients[index as usize].profile;
        self.profiles[profile as usize].event_loop.is_some()
    }

    fn answer(&mut self, context: &mut Context, index: u32) {
        let client = &self.clients[index as usize];
        let Some(data) = client.data else {
            return;
        };
        context.command(data, SocketCommand::Write(client.transfer.bytes));
        if client.is_last {
            context.command(data, SocketCommand::Close);
        }
    }
}
