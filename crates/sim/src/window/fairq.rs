// SPDX-License-Identifier: Apache-2.0
//! FairQ at a port of the simulator (`core/fairq.h`, `core/flow_count.h`).

use super::{FIRST_ACKS, FlowEntry, Window, WindowCounters, flow_packet};
use crate::packet::Packet;
use crate::units::Time;
use penstock_core::flow_count::Direction;

/// A flow silent for so long is no longer counted (FairQ §IV-E: 1 s without data).
const IDLE_NS: u64 = 1_000_000_000;
/// Flows looked at for idleness in each interval.
const SWEEP: usize = 16;

/// The policy and its exact count of flows.
pub struct FairQ {
    core: penstock_core::FairQ,
    /// Slots of the flows counted, swept in turn for idle ones.
    counted: Vec<usize>,
    next: usize,
    counters: WindowCounters,
}

impl FairQ {
    /// A port without flows.
    pub fn new(core: penstock_core::FairQ) -> FairQ {
        FairQ {
            core,
            counted: Vec::new(),
            next: 0,
            counters: WindowCounters::default(),
        }
    }
}

impl Window for FairQ {
    fn on_departure(
        &mut self,
        now: Time,
        packet: &Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        _backlog_bytes: u64,
    ) -> bool {
        let delta = flows[slot].on_packet(&flow_packet(now, packet, Direction::Data));
        if delta != 0 {
            self.core.on_flow(delta);
            if delta > 0 {
                self.counted.push(slot);
            }
        }
        if packet.payload > 0 {
            self.core.on_data(packet.payload.into());
        }
        true
    }

    fn on_ack(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flow: &mut FlowEntry,
        _backlog_bytes: u64,
    ) {
        let delta = flow.on_packet(&flow_packet(now, packet, Direction::Acks));
        if delta != 0 {
            self.core.on_flow(delta);
        }
        let kind = flow.ack_kind(packet.flags as u8, FIRST_ACKS);
        let window = self
            .core
            .on_ack(packet.window, flow.scale(Direction::Acks), flow.mss(), kind);
        self.counters.apply(packet, window);
    }

    fn period(&self) -> Option<Time> {
        Some(Time::from_nanos(self.core.params().interval_ns))
    }

    fn tick(&mut self, now: Time, flows: &mut [FlowEntry], backlog_bytes: u64) {
        for _ in 0..SWEEP.min(self.counted.len()) {
            self.next = if self.next < self.counted.len() {
                self.next
            } else {
                0
            };
            let flow = &mut flows[self.counted[self.next]];
            self.core.on_flow(flow.expire(now.as_nanos(), IDLE_NS));
            if flow.is_counted() {
                self.next += 1;
            } else {
                self.counted.swap_remove(self.next);
            }
        }
        let backlog = u32::try_from(backlog_bytes).unwrap_or(u32::MAX);
        self.core.on_sample(backlog);
        self.core.on_tick(backlog);
    }

    fn counters(&self) -> WindowCounters {
        self.counters
    }
}
