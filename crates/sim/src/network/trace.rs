// SPDX-License-Identifier: Apache-2.0
//! A port's packets one by one: what is sent by it, and the ACKs that come back next to it.

use crate::packet::{FlowId, Packet, SackBlock, flag};
use crate::queue::DropReason;
use penstock_scenario::units::Time;
use std::collections::{HashMap, HashSet};

/// One packet at the traced port.
#[derive(Clone, Debug)]
pub struct TracedPacket {
    /// When it came.
    pub time: Time,
    /// When its last bit left the port; of one that the port does not send, when it came.
    pub left: Option<Time>,
    /// Why it was lost, if it was.
    pub lost: Option<DropReason>,
    /// As it came.
    pub packet: Packet,
    /// Its window as the port has left it.
    pub window: u16,
    /// Whether it was marked here.
    pub is_marked: bool,
    /// Whether it leaves by the port; else it came in next to it.
    pub is_forward: bool,
    /// Whether a policy made it up.
    pub is_own: bool,
    /// Bytes in the queue that it met.
    pub queue: u64,
    /// The SACK blocks that it carries.
    pub sack: Vec<SackBlock>,
}

/// A connection whose packets may be traced.
#[derive(Clone, Copy, Debug)]
pub struct TracedConnection {
    /// When it was opened.
    pub time: Time,
    /// The flow of its data.
    pub data: FlowId,
    /// Host that sends the data.
    pub source: u32,
    /// Host that receives it.
    pub destination: u32,
    /// Index of its client; `u32::MAX` for datagrams.
    pub client: u32,
    /// Index of the client's traffic.
    pub traffic: u32,
}

/// What is traced of a port, and from when.
#[derive(Clone, Copy, Debug)]
pub struct TracePlan {
    /// The port.
    pub link: u32,
    /// Nothing before is kept.
    pub from: Time,
    /// Packets at most.
    pub most: usize,
    /// Index of the traffic of which as many again are kept after that.
    pub traffic: Option<u32>,
}

/// The packets of a port.
pub(super) struct Trace {
    plan: TracePlan,
    packets: Vec<TracedPacket>,
    connections: Vec<TracedConnection>,
    /// Those in the queue, by what identifies them.
    waiting: HashMap<(FlowId, u32, u32), Vec<u32>>,
    /// Connections of the traffic of which more is kept.
    chosen: HashSet<usize>,
}

impl Trace {
    pub fn new(plan: TracePlan) -> Trace {
        Trace {
            plan,
            packets: Vec::new(),
            connections: Vec::new(),
            waiting: HashMap::new(),
            chosen: HashSet::new(),
        }
    }

    pub fn link(&self) -> u32 {
        self.plan.link
    }

    /// Whether a packet that comes now is kept.
    pub fn takes(&self, now: Time, flow: FlowId) -> bool {
        let (count, most) = (self.packets.len(), self.plan.most);
        let is_chosen = || count < 2 * most && self.chosen.contains(&flow.connection());
        now >= self.plan.from && (count < most || is_chosen())
    }

    pub fn open(&mut self, connection: TracedConnection) {
        let is_chosen =
            self.plan.traffic == Some(connection.traffic) && connection.client != u32::MAX;
        let number = connection.data.connection();
        match is_chosen {
            true => self.chosen.insert(number),
            false => self.chosen.remove(&number),
        };
        self.connections.push(connection);
    }

    /// A packet comes to the port, to be sent by it.
    pub fn arrive(&mut self, now: Time, packet: &Packet, queue: u64, sack: &[SackBlock]) {
        let place = self.packets.len() as u32;
        self.waiting.entry(key(packet)).or_default().push(place);
        self.push(now, packet, queue, sack, true);
    }

    /// A packet that came in next to the port, and how its window is rewritten.
    pub fn pass(
        &mut self,
        now: Time,
        packet: &Packet,
        window: u16,
        queue: u64,
        sack: &[SackBlock],
    ) {
        self.push(now, packet, queue, sack, false);
        if let Some(row) = self.packets.last_mut() {
            row.left = Some(now);
            row.window = window;
        }
    }

    /// A policy sends a packet of its own.
    pub fn make(&mut self, now: Time, packet: &Packet, queue: u64) {
        self.pass(now, packet, packet.window, queue, &[]);
        if let Some(row) = self.packets.last_mut() {
            row.is_own = true;
        }
    }

    /// A packet has begun to leave; its last bit does so at `left`.
    pub fn depart(&mut self, packet: &Packet, left: Time) {
        if let Some(row) = self.take(packet) {
            row.left = Some(left);
            row.is_marked = (packet.flags ^ row.packet.flags) & flag::CE != 0;
        }
    }

    /// A packet is lost, in the queue or before it.
    pub fn lose(&mut self, packet: &Packet, reason: DropReason) {
        if let Some(row) = self.take(packet) {
            row.lost = Some(reason);
        }
    }

    fn take(&mut self, packet: &Packet) -> Option<&mut TracedPacket> {
        let places = self.waiting.get_mut(&key(packet))?;
        let place = (!places.is_empty()).then(|| places.remove(0))?;
        if places.is_empty() {
            self.waiting.remove(&key(packet));
        }
        self.packets.get_mut(place as usize)
    }

    fn push(&mut self, now: Time, packet: &Packet, queue: u64, sack: &[SackBlock], forward: bool) {
        self.packets.push(TracedPacket {
            time: now,
            left: None,
            lost: None,
            packet: *packet,
            window: packet.window,
            is_marked: false,
            is_forward: forward,
            is_own: false,
            queue,
            sack: sack.to_vec(),
        });
    }

    pub fn into_parts(self) -> (Vec<TracedPacket>, Vec<TracedConnection>) {
        (self.packets, self.connections)
    }
}

fn key(packet: &Packet) -> (FlowId, u32, u32) {
    (packet.flow, packet.seq, packet.ack)
}
