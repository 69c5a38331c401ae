// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! HCF: two FIFO queues, flows that were served little go first (`core/hcf.h`).

use std::ffi::c_void;

use crate::definitions;
use crate::memory::Memory;
use crate::params::Params;

// The pointers are to `struct hcf_state` and `struct hcf_params`.
unsafe extern "C" {
    safe fn core_hcf_flow_key(seed: u32, src: u32, dst: u32, src_port: u16, dst_port: u16) -> u32;
    fn core_hcf_key_seed(state: *const c_void) -> u32;
    fn core_hcf_init(state: *mut c_void, params: *const c_void, seed: u32);
    fn core_hcf_on_enqueue(s: *mut c_void, p: *const c_void, key: u32, size_bytes: u32) -> u32;
    fn core_hcf_on_dequeue(state: *const c_void) -> u32;
    fn core_hcf_departed(s: *mut c_void, p: *const c_void, queue: u32, size_bytes: u32);
    fn core_hcf_on_tick(state: *mut c_void, params: *const c_void);
}

/// One number from a 4-tuple, the same for each packet of a flow in periods with the same `seed`; 0 if
/// keys need not change.
pub fn flow_key(
    seed: u32,
    source: u32,
    destination: u32,
    source_port: u16,
    destination_port: u16,
) -> u32 {
    core_hcf_flow_key(seed, source, destination, source_port, destination_port)
}

/// HCF at one output port. The caller stores the packets, in two FIFO queues numbered 0 and 1.
#[derive(Clone, Debug)]
pub struct Hcf {
    params: Memory,
    state: Memory,
}

// Each call hands over the structs as `new` made them, and C keeps no pointer.
impl Hcf {
    /// An empty port. Ports with different seeds use different hashes.
    ///
    /// # Panics
    /// The parameters are not HCF's.
    pub fn new(params: &Params, seed: u32) -> Hcf {
        assert_eq!(params.definition().name, "hcf");
        let mut hcf = Hcf {
            params: params.memory.clone(),
            state: Memory::new(definitions::of("hcf").state_bytes),
        };
        // SAFETY: see the head of this block.
        unsafe { core_hcf_init(hcf.state.at_mut(0), hcf.params.at(0), seed) };
        hcf
    }

    /// A packet of the flow `key` arrives: the queue to put it into, or `None` to drop it.
    pub fn on_enqueue(&mut self, key: u32, size_bytes: u32) -> Option<usize> {
        let (s, p) = (self.state.at_mut(0), self.params.at(0));
        // SAFETY: see the head of this block.
        let queue = unsafe { core_hcf_on_enqueue(s, p, key, size_bytes) };
        (queue < 2).then_some(queue as usize)
    }

    /// The seed of this period's keys.
    pub fn key_seed(&self) -> u32 {
        // SAFETY: see the head of this block.
        unsafe { core_hcf_key_seed(self.state.at(0)) }
    }

    /// The queue to send from, `None` if both are empty. Then call [`Hcf::departed`].
    pub fn on_dequeue(&self) -> Option<usize> {
        // SAFETY: see the head of this block.
        let queue = unsafe { core_hcf_on_dequeue(self.state.at(0)) };
        (queue < 2).then_some(queue as usize)
    }

    /// The head of `queue` has left.
    pub fn departed(&mut self, queue: usize, size_bytes: u32) {
        let (s, p) = (self.state.at_mut(0), self.params.at(0));
        // SAFETY: see the head of this block.
        unsafe { core_hcf_departed(s, p, queue as u32, size_bytes) }
    }

    /// The end of a fixed period; nothing with a dynamic one.
    pub fn on_tick(&mut self) {
        // SAFETY: see the head of this block.
        unsafe { core_hcf_on_tick(self.state.at_mut(0), self.params.at(0)) }
    }

    /// The state, byte by byte, as `struct hcf_state` has it.
    pub fn state(&self) -> &[u8] {
        self.state.bytes()
    }
}
