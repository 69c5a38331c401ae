// SPDX-License-Identifier: Apache-2.0
//! What window policies know of each flow at each hop (`core/flow.h`, `core/handshake.h`).

use penstock_core::flow::{FlowAck, FlowChange, FlowPacket};
use penstock_core::{FlowEntry, Handshake};
use std::ops::Range;

/// The flows of all ports, by slot; empty where no port has a window policy.
#[derive(Debug, Default)]
pub struct Flows {
    entries: Vec<FlowEntry>,
    /// Apart, as they are read at the begin of a flow only.
    handshakes: Vec<Handshake>,
}

impl Flows {
    /// Makes room for `slot`.
    #[inline(always)]
    pub fn reserve(&mut self, slot: usize) {
        if slot >= self.entries.len() {
            self.entries.resize(slot + 1, FlowEntry::default());
            self.handshakes.resize(slot + 1, Handshake::default());
        }
    }

    /// Follows a flow by one packet.
    #[inline(always)]
    pub fn follow(&mut self, slot: usize, packet: &FlowPacket) -> FlowChange {
        self.entries[slot].follow(&mut self.handshakes[slot], packet)
    }

    /// The same for an ACK, of which more has to be known.
    #[inline(always)]
    pub fn follow_ack(
        &mut self,
        slot: usize,
        packet: &FlowPacket,
        first_acks: u32,
        port_bytes: u32,
    ) -> FlowAck {
        self.entries[slot].follow_ack(&mut self.handshakes[slot], packet, first_acks, port_bytes)
    }

    /// As [`FlowEntry::sweep`].
    pub fn sweep(&mut self, slot: usize, now_ns: u64, idle_ns: u64) -> i32 {
        self.entries[slot].sweep(now_ns, idle_ns)
    }

    /// Forgets the flows in `slots`, as far as there are any.
    pub fn forget(&mut self, slots: Range<usize>) {
        // The table ends with the last entry ever used, which may be one of these.
        let slots = slots.start.min(self.entries.len())..slots.end.min(self.entries.len());
        self.entries[slots.clone()].fill(FlowEntry::default());
        self.handshakes[slots].fill(Handshake::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_the_table_is_forgotten_too() {
        let mut flows = Flows::default();
        flows.reserve(2);
        let mut packet = FlowPacket {
            flags: penstock_core::flow::flag::ACK,
            payload: 1,
            ..FlowPacket::default()
        };
        flows.follow(2, &packet);
        packet.direction = penstock_core::flow::Direction::Acks;
        packet.ack = 1;
        flows.follow(2, &packet);
        assert!(flows.entries[2].is_counted());
        flows.forget(1..9);
        assert!(!flows.entries[2].is_counted());
        flows.forget(7..9);
    }
}
