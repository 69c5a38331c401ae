// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! The papers' count of the flows of a port (`core/flow_counter.h`).

unsafe extern "C" {
    safe fn core_flow_counter_on_packet(
        counter: &mut FlowCounter,
        flags: u32,
        payload: u32,
        is_out: u32,
        now_ns: u64,
    ) -> u32;
    safe fn core_flow_counter_expire(counter: &mut FlowCounter, now_ns: u64, idle_ns: u64) -> u32;
}

/// The papers' counter of a port: SYN-ACKs minus FINs and RSTs. It drifts under loss.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowCounter([u64; 2]);

impl FlowCounter {
    /// Counts one packet; `is_out`: it leaves by the port. Returns the number of flows.
    pub fn on_packet(&mut self, flags: u8, payload: u32, is_out: bool, now_ns: u64) -> u32 {
        core_flow_counter_on_packet(self, flags.into(), payload, is_out.into(), now_ns)
    }

    /// Restarts the count after `idle_ns` without data. Returns the number of flows.
    pub fn expire(&mut self, now_ns: u64, idle_ns: u64) -> u32 {
        core_flow_counter_expire(self, now_ns, idle_ns)
    }
}
