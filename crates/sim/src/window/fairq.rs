// SPDX-License-Identifier: Apache-2.0
//! FairQ at a port of the simulator (`core/fairq.h`, `core/flow_count.h`).

use super::count::Count;
use super::{Carrier, Counting, FIRST_ACKS, FlowEntry, Window, WindowCounters, flow_packet};
use crate::packet::{Packet, flag};
use penstock_core::flow_count::Direction;
use penstock_scenario::units::Time;

/// The policy, its count of flows and where it finds window scales.
pub struct Fairq {
    core: penstock_core::Fairq,
    count: Count,
    carrier: Carrier,
    counters: WindowCounters,
}

impl Fairq {
    /// A port without flows.
    pub fn new(core: penstock_core::Fairq, counting: Counting, carrier: Carrier) -> Fairq {
        Fairq {
            core,
            count: Count::new(counting),
            carrier,
            counters: WindowCounters::default(),
        }
    }
}

impl Window for Fairq {
    fn on_departure(
        &mut self,
        now: Time,
        packet: &Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        _backlog_bytes: u64,
    ) -> bool {
        let seen = flow_packet(now, packet, Direction::Data);
        let delta = flows[slot].on_packet(&seen);
        self.count.on_packet(&mut self.core, &seen, slot, delta);
        // Datagrams tell nothing of the size of segments.
        if packet.payload > 0 && !packet.has(flag::UDP) {
            self.core.on_data(packet.payload.into());
        }
        true
    }

    fn on_ack(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        _backlog_bytes: u64,
    ) {
        let flow = &mut flows[slot];
        let seen = flow_packet(now, packet, Direction::Acks);
        let delta = flow.on_packet(&seen);
        self.count.on_packet(&mut self.core, &seen, slot, delta);
        if !packet.has(flag::ACK) {
            return;
        }
        let kind = flow.ack_kind(packet.flags as u8, FIRST_ACKS);
        let (window, scale) = self.carrier.read(packet, flow);
        let lowered = self.core.on_ack(window, scale, flow.mss(), kind);
        self.carrier.write(packet, lowered.window);
        self.counters.count(lowered);
    }

    fn period(&self) -> Option<Time> {
        Some(Time::from_nanos(self.core.params().interval_ns))
    }

    fn tick(&mut self, now: Time, flows: &mut [FlowEntry], backlog_bytes: u64) {
        self.count.expire(&mut self.core, flows, now.as_nanos());
        let backlog = u32::try_from(backlog_bytes).unwrap_or(u32::MAX);
        self.core.on_sample(backlog);
        self.core.on_tick(backlog);
    }

    fn counters(&self) -> WindowCounters {
        self.counters
    }
}
