// SPDX-License-Identifier: Apache-2.0
//! Windows as credit (`core/grant.h`): a policy that sends window updates of its own.
//!
//! It is next to the packets of a link, at its port or where it ends, and numbers the flows for
//! `core/`. What it sends is an ACK like the last one that passed, with another window.

use super::{WindowCounters, Wscale};
use crate::packet::{Packet, SynOptions, flag};
use penstock_core::{Grant, GrantAction, GrantOpening, GrantPacket, Params};
use penstock_scenario::units::{Rate, Time};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a segment's timestamps option with its padding.
const TIMESTAMPS_BYTES: u16 = 12;

/// Hashes slots: they are looked up for each packet, and no one chooses them to collide.
#[derive(Default)]
struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_usize(&mut self, slot: usize) {
        let product = u128::from(self.0 ^ slot as u64) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A connection whose SYN has passed.
#[derive(Clone, Copy, Debug, Default)]
struct Followed {
    /// Once the handshake is over.
    number: Option<u32>,
    opening: GrantOpening,
    /// The last packet that passed in the ACK direction.
    last: Packet,
    /// What the ends offered, the sender of the data first.
    offers: [Option<SynOptions>; 2],
}

impl Followed {
    /// Shift of the windows in the ACK direction, if both SYNs have passed.
    fn scale(&self) -> Option<u8> {
        match self.offers {
            [Some(data), Some(acks)] => match (data.window_scale, acks.window_scale) {
                (Some(_), Some(scale)) => Some(scale),
                _ => Some(0),
            },
            _ => None,
        }
    }

    /// Size of the segments of the data, as far as it is known.
    fn mss(&self) -> u16 {
        let offers = self.offers.iter().flatten();
        let mss = offers.clone().map(|offer| offer.mss).min().unwrap_or(0);
        let has_timestamps = self
            .offers
            .iter()
            .all(|offer| offer.is_some_and(|offer| offer.timestamps));
        match has_timestamps {
            true => mss.saturating_sub(TIMESTAMPS_BYTES),
            false => mss,
        }
    }
}

/// Credit for the data of one link.
pub struct Credit {
    core: Grant,
    wscale: Wscale,
    /// By the slot of their data at this link.
    flows: HashMap<usize, Followed, BuildHasherDefault<SlotHasher>>,
    /// Of them, those whose handshake is under way.
    half_open: u32,
    /// The slot of each number.
    slots: Vec<usize>,
    /// ACKs to be sent, each with the hop number of the last of its flow.
    updates: Vec<Packet>,
    learnt: Time,
    counters: WindowCounters,
}

impl Credit {
    /// A link without flows, of this rate.
    pub fn new(params: &Params, rate: Rate, wscale: Wscale, never_shrinks: bool) -> Credit {
        Credit {
            core: Grant::new(params, rate.0, never_shrinks),
            wscale,
            flows: HashMap::default(),
            half_open: 0,
            slots: Vec::new(),
            updates: Vec::new(),
            learnt: Time::ZERO,
            counters: WindowCounters::default(),
        }
    }

    /// `packet` passes in the direction of the data; `slot` is where its flow is found at this link.
    pub fn on_data(&mut self, now: Time, packet: &Packet, slot: usize, queue_bytes: u64) {
        let (now_ns, queue) = (now.as_nanos(), bytes(queue_bytes));
        self.core.on_bytes(packet.size(), now_ns);
        if packet.has(flag::SYN) {
            self.on_syn(packet, slot, 0);
        } else if !packet.has(flag::UDP)
            && let Some((number, seen)) = self.followed(packet, slot, 0, now_ns)
        {
            self.core.on_data(number, &seen);
            self.drop_closed(number, slot);
        }
        self.grant(queue, now_ns);
    }

    /// `packet` passes in the direction of the ACKs; its window may be lowered.
    pub fn on_ack(&mut self, now: Time, packet: &mut Packet, slot: usize, queue_bytes: u64) {
        if packet.has(flag::UDP) {
            return;
        }
        let (now_ns, queue) = (now.as_nanos(), bytes(queue_bytes));
        let mut window = packet.window;
        if packet.has(flag::SYN) {
            self.wscale.on_syn(packet);
            self.on_syn(packet, slot, 1);
            window = self.lower_syn(now_ns, packet, slot, queue);
        } else if let Some((number, seen)) = self.followed(packet, slot, 1, now_ns) {
            window = self.core.on_ack(number, &seen, queue);
            self.drop_closed(number, slot);
        }
        self.counters.acks += u64::from(packet.has(flag::ACK));
        self.counters.acks_rewritten += u64::from(window != packet.window);
        packet.window = window;
        self.grant(queue, now_ns);
    }

    /// How often [`Credit::tick`] wants to be called.
    pub fn period(&self) -> Time {
        Time::from_nanos(self.core.tick_ns())
    }

    /// Periodic work.
    pub fn tick(&mut self, now: Time, queue_bytes: u64) {
        if now >= self.learnt + Time::from_nanos(Grant::learn_ns()) {
            self.learnt = now;
            self.core.learn();
        }
        for _ in 0..Grant::burst() {
            let Some(action) = self.core.on_timer(bytes(queue_bytes), now.as_nanos()) else {
                return;
            };
            self.send(action);
        }
    }

    /// Takes the ACKs to be sent, each with the hop number of the last one of its flow.
    pub fn take_updates(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.updates)
    }

    /// Takes the vector back, empty again.
    pub fn reuse(&mut self, spare: Vec<Packet>) {
        if self.updates.is_empty() {
            self.updates = spare;
        }
    }

    /// What it did so far.
    pub fn counters(&self) -> WindowCounters {
        let (grants, resends, lapses) = self.core.counts();
        WindowCounters {
            grants,
            grants_resent: resends,
            grants_lapsed: lapses,
            ..self.counters
        }
    }

    /// A SYN begins a connection, one with ACK answers it.
    fn on_syn(&mut self, packet: &Packet, slot: usize, direction: usize) {
        if !packet.has(flag::ACK) {
            self.close(slot);
            self.flows.insert(slot, Followed::default());
            self.half_open += 1;
        }
        if let Some(flow) = self.flows.get_mut(&slot) {
            flow.offers[direction] = Some(SynOptions::unpack(packet.options));
        }
    }

    /// The window of a SYN-ACK to the sender of the data.
    fn lower_syn(&mut self, now_ns: u64, packet: &Packet, slot: usize, queue: u32) -> u16 {
        let others = self.half_open.saturating_sub(1);
        let Some(flow) = self.flows.get_mut(&slot) else {
            return packet.window;
        };
        if !packet.has(flag::ACK) || flow.number.is_some() {
            return packet.window;
        }
        let bytes = self
            .core
            .syn_window(flow.mss().into(), others, queue, now_ns);
        let window = packet.window.min(u16::try_from(bytes).unwrap_or(u16::MAX));
        flow.last = *packet;
        // A sender takes no window of a second SYN-ACK, if it has had the first.
        let shown = match flow.opening.by_sender {
            0 => window,
            _ => window.min(flow.opening.shown),
        };
        flow.opening = GrantOpening {
            seq: packet.ack,
            window: packet.window,
            shown,
            by_sender: 1,
        };
        window
    }

    /// The number of the flow of a packet, and what the core has to know of that; the packet may be the
    /// first after the handshake.
    fn followed(
        &mut self,
        packet: &Packet,
        slot: usize,
        direction: usize,
        now_ns: u64,
    ) -> Option<(u32, GrantPacket)> {
        let flow = self.flows.get_mut(&slot)?;
        if direction == 1 {
            flow.last = *packet;
        }
        let seen = GrantPacket {
            now_ns,
            seq: packet.seq,
            ack: packet.ack,
            payload: packet.payload.into(),
            ts_val: packet.ts_val,
            ts_ecr: packet.ts_ecr,
            window: packet.window,
            mss: flow.mss(),
            scale: flow.scale().unwrap_or(0),
            flags: packet.flags as u8,
            ..GrantPacket::default()
        };
        if flow.number.is_none() {
            let opening = match direction {
                0 => flow.opening,
                _ => GrantOpening::default(),
            };
            if flow.scale().is_none() || (direction == 0 && opening.by_sender == 0) {
                return None;
            }
            let number = self.core.begin(&seen, &opening)?;
            flow.number = Some(number);
            self.half_open -= 1;
            if number as usize >= self.slots.len() {
                self.slots.resize(number as usize + 1, 0);
            }
            self.slots[number as usize] = slot;
        }
        Some((flow.number?, seen))
    }

    fn close(&mut self, slot: usize) {
        let Some(flow) = self.flows.remove(&slot) else {
            return;
        };
        match flow.number {
            Some(number) => self.core.close(number),
            None => self.half_open -= 1,
        }
    }

    fn drop_closed(&mut self, number: u32, slot: usize) {
        if !self.core.is_open(number) {
            self.flows.remove(&slot);
        }
    }

    fn grant(&mut self, queue: u32, now_ns: u64) {
        for _ in 0..Grant::burst() {
            match self.core.next(queue, now_ns) {
                Some(action) => self.send(action),
                None => return,
            }
        }
    }

    fn send(&mut self, action: GrantAction) {
        let Some(flow) = self.flows.get(&self.slots[action.flow as usize]) else {
            return;
        };
        self.updates.push(Packet {
            seq: action.seq,
            ack: action.ack,
            ts_val: action.ts_val,
            ts_ecr: action.ts_ecr,
            window: action.window,
            payload: 0,
            options: 0,
            flags: flag::ACK | flow.last.flags & flag::TIMESTAMPS,
            ..flow.last
        });
    }
}

fn bytes(backlog: u64) -> u32 {
    u32::try_from(backlog).unwrap_or(u32::MAX)
}
