// SPDX-License-Identifier: Apache-2.0
//! HSCC at a port of the simulator (`core/hscc.h`).

use super::{Carrier, FIRST_ACKS, FlowEntry, Window, WindowCounters, flow_packet};
use crate::packet::{Packet, flag};
use penstock_core::flow_count::Direction;
use penstock_scenario::units::Time;

/// The policy; it looks at the queue on each packet that leaves or enters.
pub struct Hscc {
    core: penstock_core::Hscc,
    carrier: Carrier,
    was_clamping: bool,
    counters: WindowCounters,
}

impl Hscc {
    /// A port in the free state.
    pub fn new(core: penstock_core::Hscc, carrier: Carrier) -> Hscc {
        Hscc {
            core,
            carrier,
            was_clamping: false,
            counters: WindowCounters::default(),
        }
    }

    fn look(&mut self, now: Time, backlog_bytes: u64) {
        self.core.on_queue(
            u32::try_from(backlog_bytes).unwrap_or(u32::MAX),
            now.as_nanos(),
        );
        let is_clamping = self.core.is_clamping(now.as_nanos());
        self.counters.clamps += u64::from(is_clamping && !self.was_clamping);
        self.was_clamping = is_clamping;
    }
}

impl Window for Hscc {
    fn on_departure(
        &mut self,
        now: Time,
        packet: &Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        backlog_bytes: u64,
    ) -> bool {
        flows[slot].on_packet(&flow_packet(now, packet, Direction::Data));
        self.look(now, backlog_bytes + u64::from(packet.size()));
        let is_control = packet.payload == 0 || packet.has_any(flag::SYN | flag::FIN | flag::RST);
        let backlog = u32::try_from(backlog_bytes).unwrap_or(u32::MAX);
        !self.core.drops(backlog, packet.size(), is_control)
    }

    fn on_ack(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flows: &mut [FlowEntry],
        slot: usize,
        backlog_bytes: u64,
    ) {
        let flow = &mut flows[slot];
        self.look(now, backlog_bytes);
        flow.on_packet(&flow_packet(now, packet, Direction::Acks));
        if !packet.has(flag::ACK) {
            return;
        }
        let kind = flow.ack_kind(packet.flags as u8, FIRST_ACKS);
        let (window, scale) = self.carrier.read(packet, flow);
        let lowered = self
            .core
            .on_ack(window, scale, flow.mss(), kind, now.as_nanos());
        self.carrier.write(packet, lowered.window);
        self.counters.count(lowered);
    }

    fn counters(&self) -> WindowCounters {
        self.counters
    }
}
