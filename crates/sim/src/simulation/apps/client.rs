// SPDX-License-Identifier: Apache-2.0
//! Clients: each moves a number of transfers, one after the other, from one host to another, over
//! one connection or a new one each time.

use std::collections::VecDeque;

use super::{Context, TransferCounters};
use crate::distribution::Draws;
use crate::packet::FlowId;
use penstock_scenario::units::Time;

/// Endless, as a number of bytes.
pub const ENDLESS: u64 = u64::MAX / 2;

/// How a client works; shared by all clients of a traffic.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    /// Index of the traffic.
    pub traffic: u32,
    /// Index of the TCP configuration.
    pub config: u32,
    /// The receiver opens the connection and requests the data with so many bytes; `None`: the
    /// sender opens and sends without a request.
    pub request: Option<Draws>,
    /// Time between a request's arrival and the answer, picoseconds.
    pub server_think: Draws,
    /// Each transfer has a connection of its own.
    pub reconnects: bool,
    /// Lengths of all transfers of a client but the first; `None`: as the first.
    pub sizes: Option<Draws>,
    /// Time between the end of a transfer and the next, picoseconds.
    pub think: Draws,
    /// The next transfers of all its clients begin one after another with this gap, picoseconds, when
    /// each has completed the last; `None`: each client's begins on its own.
    pub barrier: Option<Draws>,
    /// One program is behind all its clients and servers, which takes this time for each thing that it
    /// does; `None`: it does all at once.
    pub event_loop: Option<LoopTimes>,
}

/// What the program behind the clients of a profile takes, picoseconds.
#[derive(Clone, Debug)]
pub struct LoopTimes {
    /// To open a connection.
    pub connect: Draws,
    /// For all else.
    pub other: Draws,
}

impl ClientProfile {
    /// Whether the receiver opens the connection and requests the data.
    pub const fn pulls(&self) -> bool {
        self.request.is_some()
    }

    /// The host that opens the connection of `transfer`.
    pub fn opener(&self, transfer: &Transfer) -> u32 {
        match self.request {
            Some(_) => transfer.destination,
            None => transfer.source,
        }
    }

    /// The host that it is opened to.
    pub fn listener(&self, transfer: &Transfer) -> u32 {
        match self.request {
            Some(_) => transfer.source,
            None => transfer.destination,
        }
    }
}

/// A server's pause between a request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct ServerThink {
    /// When the request had arrived.
    pub from: Time,
    /// When the answer is due.
    pub until: Time,
}

impl ServerThink {
    /// How long it has lasted at `now`.
    pub fn lasted(&self, now: Time) -> Time {
        self.until.min(now).saturating_sub(self.from)
    }
}

/// What the program behind a client has to do for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Begin the next transfer.
    Begin,
    /// Write to a connection that is open now: the data, or the request.
    Write,
    /// Answer.
    Answer,
}

/// The program behind the clients of a profile. It begins the transfers and sends the answers that are
/// due, then it goes through the sockets that are ready, and so on; each time those that there are by then.
#[derive(Clone, Debug, Default)]
pub struct EventLoop {
    /// Clients whose transfer is due, or an answer after a pause.
    due: VecDeque<u32>,
    /// Clients that it has something else to do for.
    ready: VecDeque<u32>,
    /// It does what is due now.
    is_at_due: bool,
    /// How many clients it goes through before it turns to the others.
    left: usize,
    /// It does something.
    pub is_busy: bool,
    /// Things that it has done.
    pub turns: u32,
}

impl EventLoop {
    /// It has something to do for a client.
    pub fn add(&mut self, client: u32, is_due: bool) {
        match is_due {
            true => self.due.push_back(client),
            false => self.ready.push_back(client),
        }
    }

    /// The client that it comes to now; `None`: it has nothing to do.
    pub fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            self.is_at_due = !self.is_at_due && !self.due.is_empty() || self.ready.is_empty();
            self.left = self.queue().len();
        }
        self.left = self.left.checked_sub(1)?;
        self.turns = self.turns.wrapping_add(1);
        self.queue().pop_front()
    }

    fn queue(&mut self) -> &mut VecDeque<u32> {
        match self.is_at_due {
            true => &mut self.due,
            false => &mut self.ready,
        }
    }
}

/// Where the clients of a profile wait for each other.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    clients: usize,
    arrived: Vec<u32>,
}

impl Barrier {
    /// One client more waits here.
    pub fn add_client(&mut self) {
        self.clients += 1;
    }

    /// This client has arrived: all clients in the order of their numbers, once the last of them
    /// has; none before.
    pub fn arrive(&mut self, client: u32) -> Vec<u32> {
        self.arrived.push(client);
        if self.arrived.len() < self.clients {
            return Vec::new();
        }
        self.arrived.sort_unstable();
        std::mem::take(&mut self.arrived)
    }
}

/// A transfer to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Host that sends.
    pub source: u32,
    /// Host that receives.
    pub destination: u32,
    /// Bytes to move.
    pub bytes: u64,
}

/// Transfers that are made up as the run goes.
pub trait Generator: Send {
    /// The next transfer and its time, never earlier than the one before; `None`: no more.
    fn next(&mut self) -> Option<(Time, Transfer)>;
}

/// A client as one shard knows it. Every shard knows all clients; an end that is simulated elsewhere
/// does nothing here.
pub(super) struct Client {
    /// Index of its profile.
    pub profile: u32,
    /// Its number within the traffic, from 0.
    pub number: u32,
    /// Each of its transfers.
    pub transfer: Transfer,
    /// Whether the sender is simulated here.
    pub sends_here: bool,
    /// Whether the receiver is; the records of the transfers are kept where it is.
    pub receives_here: bool,
    /// Transfers to begin here: 0 where the opener is elsewhere.
    pub remaining: u32,
    /// Transfers begun: the number of the next.
    pub begun: u32,
    /// The ticket of the job's transfer under way, if it is one.
    pub ticket: u32,
    /// Transfers with an end that are not finished, where they are received here.
    pub awaited: u32,
    /// The transfer under way is the last on its connection.
    pub is_last: bool,
    /// It was stopped.
    pub is_stopped: bool,
    /// The flow that carries the data, once connected.
    pub data: Option<FlowId>,
    /// Index of the record of the transfer under way, if it is kept here.
    pub record: u32,
    /// What its connection had counted before this transfer.
    pub base: TransferCounters,
    /// What it waits for its program to do.
    pub step: Step,
    /// The server's pause in the transfer under way, where the server is simulated here.
    pub server_think: Option<ServerThink>,
}

impl Client {
    /// What both ends have counted of the transfer under way, whose data is `data`.
    pub fn counted(&self, context: &Context, data: FlowId) -> TransferCounters {
        let all = context.hosts.counters(data, context.now);
        let mut counted = all.since(&self.base);
        if let Some(think) = &self.server_think {
            counted.waits.server = think.lasted(context.now);
        }
        counted
    }

    /// Whether the server's pause ends at `now`.
    pub fn has_thought(&self, now: Time) -> bool {
        self.server_think.is_some_and(|think| think.until == now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes due or ready while the program goes through the others waits for the next time.
    #[test]
    fn what_is_due_and_sockets_that_are_ready_take_turns() {
        let mut program = EventLoop::default();
        assert_eq!(program.next(), None);
        program.add(0, true);
        assert_eq!(program.next(), Some(0));
        for (client, is_due) in [(1, true), (2, true), (0, false)] {
            program.add(client, is_due);
        }
        assert_eq!(program.next(), Some(0));
        assert_eq!(program.next(), Some(1));
        program.add(3, true);
        program.add(1, false);
        let order: Vec<_> = std::iter::from_fn(|| program.next()).collect();
        assert_eq!(order, [2, 1, 3]);
    }
}
