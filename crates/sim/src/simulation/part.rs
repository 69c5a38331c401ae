// SPDX-License-Identifier: Apache-2.0
//! A simulation as one of the parts of a large one, and what the parts tell each other.
//!
//! Every part knows all clients and draws all transfers of the generators; a host's sockets work in
//! its own part only, and the other end of a connection is a stand-in that never acts. The opener's
//! part gives a connection its number and path. The receiver's part keeps the record of a transfer;
//! what the sender's part counted of it is added when the run is over.

use super::{Record, Simulation};
use crate::fabric::Fabric;
use crate::network::Crossings;
use crate::packet::FlowId;
use crate::parallel::Partition;
use crate::tcp::{Endpoint, State};
use penstock_scenario::units::Time;

/// Which part of the fabric a simulation is.
#[derive(Default)]
pub(super) struct Part {
    own: u16,
    /// By node; empty where there is one part only.
    owner: Vec<u16>,
    /// By port.
    ports: Vec<u16>,
    /// For each part, in the order of the events.
    outbox: Vec<Vec<Note>>,
    halves: Vec<SenderHalf>,
}

impl Part {
    /// Whether the node belongs to this part.
    pub fn owns(&self, node: u32) -> bool {
        self.owner.is_empty() || self.owner[node as usize] == self.own
    }

    /// Whether there is no other part.
    pub fn is_whole(&self) -> bool {
        self.owner.is_empty()
    }

    fn count(&self) -> usize {
        self.outbox.len().max(1)
    }

    /// The first connection number of this part from `least` on.
    pub fn number_from(&self, least: usize) -> usize {
        let parts = self.count();
        least + (usize::from(self.own) + parts - least % parts) % parts
    }

    /// A number for the `count`th of something, which no other part has.
    pub fn stream(&self, count: u64) -> u64 {
        count * self.count() as u64 + u64::from(self.own)
    }

    /// Whether this part gave the number of a connection.
    pub fn numbered(&self, flow: FlowId) -> bool {
        flow.connection() % self.count() == usize::from(self.own)
    }

    fn tell(&mut self, node: u32, note: Note) {
        let to = usize::from(self.owner[node as usize]);
        self.outbox[to].push(note);
    }
}

/// What one part tells another.
#[derive(Clone, Copy)]
enum Note {
    /// A client has opened a connection.
    Opened {
        client: u32,
        data: FlowId,
        hash: u64,
        time: Time,
    },
    /// A client has begun a transfer on its connection.
    Begun { client: u32, time: Time },
    /// The receiver counts no more for this record.
    Ended {
        data: FlowId,
        record: u32,
        from: u16,
    },
    /// The end point that sends this flow is closed.
    Closed { flow: FlowId },
    /// A packet of this flow was lost.
    Lost { flow: FlowId },
}

/// What the sender's part counted of a transfer.
struct SenderHalf {
    part: u16,
    record: u32,
    retransmits: u64,
    timeouts: u64,
    syn_timeouts: u64,
}

/// What one part has for another.
#[derive(Default)]
pub struct Mail {
    notes: Vec<Note>,
    packets: Crossings,
}

impl Mail {
    /// When the first of its packets arrives; [`Time::NEVER`] for none.
    pub fn first(&self) -> Time {
        self.packets.first()
    }

    /// Whether a note is in it.
    pub fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }
}

impl Simulation {
    /// Makes this simulation part number `own`; to be called before anything is added to it.
    pub fn set_part(&mut self, fabric: &Fabric, partition: &Partition, own: u16, seed: u64) {
        self.part.own = own;
        self.part.owner.clone_from(&partition.nodes);
        self.part.ports.clone_from(&partition.ports);
        self.part.outbox.resize_with(partition.parts, Vec::new);
        self.network.set_part(fabric, partition, own, seed);
    }

    /// Whether the host belongs to this part.
    pub fn owns(&self, host: u32) -> bool {
        self.part.owns(host)
    }

    /// Whether the port of this link does.
    pub fn owns_port(&self, link: u32) -> bool {
        let part = &self.part;
        part.is_whole() || part.ports[link as usize] == part.own
    }

    /// Puts what is for part number `part` into `mail`, which is empty.
    pub fn post(&mut self, part: usize, mail: &mut Mail) {
        std::mem::swap(&mut self.part.outbox[part], &mut mail.notes);
        self.network.exchange(part, &mut mail.packets);
    }

    /// Takes in what another part posted; `now`: the time that all parts have reached.
    pub fn receive(&mut self, now: Time, mail: &mut Mail) {
        for note in mail.notes.drain(..) {
            match note {
                Note::Opened {
                    client,
                    data,
                    hash,
                    time,
                } => self.open(time, client, data, hash),
                Note::Begun { client, time } => self.begun(now, time, client),
                Note::Ended { data, record, from } => self.tell_half(data, record, from),
                Note::Closed { flow } => self.closed_elsewhere(now, flow),
                Note::Lost { flow } => self.lose(flow),
            }
        }
        self.network.receive(&mut mail.packets);
    }

    /// Whether this part opens the client's connections.
    pub(super) fn opens(&self, index: u32) -> bool {
        let client = &self.clients[index as usize];
        let pulls = self.profiles[client.profile as usize]
            .request_bytes
            .is_some();
        self.owns(if pulls {
            client.destination
        } else {
            client.source
        })
    }

    fn both_here(&self, index: u32) -> bool {
        let client = &self.clients[index as usize];
        self.owns(client.source) && self.owns(client.destination)
    }

    /// Tells the parts on the way of a connection of it.
    pub(super) fn tell_opened(&mut self, client: u32, data: FlowId, hash: u64, time: Time) {
        let mut told = vec![self.part.own];
        let ports = self.path.iter().map(|link| self.part.ports[*link as usize]);
        let end = self.part.owner[self.clients[client as usize].destination as usize];
        for owner in ports.chain([end]) {
            if !told.contains(&owner) {
                told.push(owner);
                let note = Note::Opened {
                    client,
                    data,
                    hash,
                    time,
                };
                self.part.outbox[usize::from(owner)].push(note);
            }
        }
    }

    /// Tells the part at the other end that the client's transfer has begun.
    pub(super) fn tell_begun(&mut self, index: u32, time: Time) {
        if !self.both_here(index) {
            let node = self.far_end(index);
            let note = Note::Begun {
                client: index,
                time,
            };
            self.part.tell(node, note);
        }
    }

    /// The end of the client's connections that is not here.
    fn far_end(&self, index: u32) -> u32 {
        let client = &self.clients[index as usize];
        if self.owns(client.source) {
            client.destination
        } else {
            client.source
        }
    }

    fn begun(&mut self, now: Time, time: Time, index: u32) {
        let client = &mut self.clients[index as usize];
        let Some(flow) = client.flow else {
            return;
        };
        let stopped = client.remaining == 0;
        client.remaining = client.remaining.saturating_sub(1);
        self.start_transfer(time, index, flow);
        if stopped {
            self.stop(now, index);
        }
    }

    /// The transfer is over for its record, or given up.
    pub(super) fn tell_ended(&mut self, index: u32, data: FlowId) {
        let client = &self.clients[index as usize];
        if self.owns(client.destination) && !self.owns(client.source) {
            let (source, record, from) = (client.source, client.record, self.part.own);
            self.part.tell(source, Note::Ended { data, record, from });
        }
    }

    fn tell_half(&mut self, data: FlowId, record: u32, part: u16) {
        let index = self.hosts.get(data).client;
        let sent = self.counters(data);
        let base = self.clients[index as usize].base;
        self.part.halves.push(SenderHalf {
            part,
            record,
            retransmits: sent.retransmits - base.retransmits,
            timeouts: sent.timeouts - base.timeouts,
            syn_timeouts: sent.syn_timeouts - base.syn_timeouts,
        });
    }

    /// Tells the other end's part that the end point that sends `flow` is closed.
    pub(super) fn tell_closed(&mut self, flow: FlowId) {
        let index = self.hosts.get(flow).client;
        if !self.both_here(index) {
            let node = self.far_end(index);
            self.part.tell(node, Note::Closed { flow });
        }
    }

    fn closed_elsewhere(&mut self, now: Time, flow: FlowId) {
        let socket = self.hosts.get_mut(flow);
        let index = socket.client;
        socket.endpoint = Endpoint::new(flow);
        self.detach(now, index, flow);
        if self.hosts.get(flow.reverse()).endpoint.state() == State::Closed {
            self.release(now, flow);
        }
    }

    /// A packet of `flow` was lost: its transfer's record counts it.
    pub(super) fn lose(&mut self, flow: FlowId) {
        let socket = self.hosts.get(flow);
        let (index, record) = (socket.client, socket.record);
        match self.clients.get(index as usize) {
            Some(client) if !self.part.owns(client.destination) => {
                let destination = client.destination;
                self.part.tell(destination, Note::Lost { flow });
            }
            _ => {
                if let Some(record) = self.records.get_mut(record as usize) {
                    record.total.drops += 1;
                }
            }
        }
    }
}

/// Puts the finished parts together: the first one tells the results of all.
pub fn gather(mut parts: Vec<Simulation>, partition: &Partition) -> Simulation {
    for from in 0..parts.len() {
        for (data, record, sender) in parts[from].open_transfers() {
            parts[usize::from(sender)].tell_half(data, record, from as u16);
        }
    }
    for from in 0..parts.len() {
        for half in std::mem::take(&mut parts[from].part.halves) {
            let records = &mut parts[usize::from(half.part)].records;
            if let Some(record) = records.get_mut(half.record as usize) {
                record.total.retransmits += half.retransmits;
                record.total.timeouts += half.timeouts;
                record.total.syn_timeouts += half.syn_timeouts;
            }
        }
    }
    let mut rest = parts.split_off(1);
    let mut first = parts.remove(0);
    for other in &mut rest {
        let own = other.part.own;
        let is_theirs = |link: usize| partition.ports[link] == own;
        first.network.adopt(&mut other.network, is_theirs);
        first.records.append(&mut other.records);
        first.queues.links.append(&mut other.queues.links);
        first.queues.samples.append(&mut other.queues.samples);
    }
    let order = |record: &Record| (record.start, record.traffic, record.number);
    first.records.sort_by_key(order);
    first.queues.samples.sort_by_key(|s| (s.time, s.link));
    first
}

impl Simulation {
    /// Transfers not over that are received here and sent elsewhere: flow of the data, record, and
    /// the sender's part.
    fn open_transfers(&self) -> Vec<(FlowId, u32, u16)> {
        let here = self.clients.iter().filter_map(|client| {
            let flow = client.flow?;
            let record = self.records.get(client.record as usize)?;
            let is_open = record.end.is_none() && self.owns(client.destination);
            (is_open && !self.owns(client.source)).then(|| {
                let sender = self.part.owner[client.source as usize];
                (flow, client.record, sender)
            })
        });
        here.collect()
    }
}
