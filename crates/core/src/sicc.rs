// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! SICC: a controller foresees incast, shims clamp the windows (`core/sicc.h`).

use std::ffi::c_void;

use crate::definitions;
use crate::memory::Memory;
use crate::params::Params;
use crate::tcp_rewrite::{AckKind, TcpWindow, raw_scale};

/// What the controller sends to the sources behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SiccOrder {
    /// Send nothing.
    Keep = 0,
    /// Send INCAST_ON.
    On = 1,
    /// Send INCAST_OFF.
    Off = 2,
    /// Send INCAST_OFF, then INCAST_ON.
    OffOn = 3,
    /// Send INCAST_ON to the source of the new connection alone; the others have it.
    OnOne = 4,
}

impl SiccOrder {
    /// INCAST_OFF is to be sent.
    pub fn ends(self) -> bool {
        matches!(self, SiccOrder::Off | SiccOrder::OffOn)
    }

    /// INCAST_ON is to be sent, after an OFF if both are.
    pub fn starts(self) -> bool {
        matches!(self, SiccOrder::On | SiccOrder::OffOn)
    }
}

/// `enum sicc_new_connections` and `enum sicc_end`.
const COUNTS_SYN_ACK: u64 = 1;
const OF_SENDER: u64 = 1;

/// Whether SYN-ACKs count, in both directions of a port (`counts`).
pub fn counts_answers(params: &Params) -> bool {
    params.field("counts") == COUNTS_SYN_ACK
}

/// Whether an ON has the options of the sender, not of the receiver (`options_of`).
pub fn sends_own_options(params: &Params) -> bool {
    params.field("options_of") == OF_SENDER
}

// The pointers are to `struct sicc_port` and `struct sicc_params`.
unsafe extern "C" {
    fn core_sicc_on_packet(
        port: *mut c_void,
        params: *const c_void,
        flags: u32,
        now_ns: u64,
    ) -> SiccOrder;
    fn core_sicc_on_interval(
        port: *mut c_void,
        params: *const c_void,
        queue_bytes: u32,
        now_ns: u64,
    ) -> SiccOrder;
    fn core_sicc_pair_on(
        pair: &mut Pair,
        params: *const c_void,
        mss_bytes: u16,
        scale: u32,
        now_ns: u64,
    );
    safe fn core_sicc_pair_off(pair: &mut Pair);
    safe fn core_sicc_pair_is_on(pair: &Pair, now_ns: u64) -> bool;
    fn core_sicc_pair_on_ack(
        pair: &Pair,
        params: *const c_void,
        window: u16,
        scale: u32,
        kind: AckKind,
        now_ns: u64,
    ) -> TcpWindow;
}

/// `struct sicc_pair`: what a shim knows of a pair of source and destination.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Pair([u64; 2]);

/// Whether the ACKs of a pair are clamped now; `pair` is a `struct sicc_pair`, byte by byte. Bytes of
/// another size are of none.
pub fn pair_is_on(pair: &[u8], now_ns: u64) -> bool {
    let (words, rest) = pair.as_chunks();
    match (words, rest) {
        ([first, second], []) => {
            let pair = Pair([first, second].map(|word| u64::from_ne_bytes(*word)));
            core_sicc_pair_is_on(&pair, now_ns)
        }
        _ => false,
    }
}

/// The controller's logic for one switch port (SICC Algorithm 1).
#[derive(Clone, Debug)]
pub struct SiccPort {
    params: Memory,
    state: Memory,
}

/// The memory of SICC's parameters.
fn memory(params: &Params) -> Memory {
    assert_eq!(params.definition().name, "sicc");
    params.memory.clone()
}

impl SiccPort {
    /// A port of which nothing is known.
    ///
    /// # Panics
    /// The parameters are not SICC's.
    pub fn new(params: &Params) -> SiccPort {
        SiccPort {
            params: memory(params),
            state: Memory::new(definitions::of("sicc").state_bytes),
        }
    }

    /// A copy of a SYN or FIN that passed the port; `flags` as on the wire. Returns what to send now, which
    /// is something with `at_once` only.
    pub fn on_packet(&mut self, flags: u8, now_ns: u64) -> SiccOrder {
        let (port, params) = (self.state.at_mut(0), self.params.at(0));
        // SAFETY: as large as the structs, and C keeps no pointer.
        unsafe { core_sicc_on_packet(port, params, flags.into(), now_ns) }
    }

    /// Every `interval`, with the length of the port's queue.
    pub fn on_interval(&mut self, queue_bytes: u32, now_ns: u64) -> SiccOrder {
        let (port, params) = (self.state.at_mut(0), self.params.at(0));
        // SAFETY: as large as the structs, and C keeps no pointer.
        unsafe { core_sicc_on_interval(port, params, queue_bytes, now_ns) }
    }

    /// The state, byte by byte, as `struct sicc_port` has it.
    pub fn state(&self) -> &[u8] {
        self.state.bytes()
    }
}

/// The shim's logic for one pair of source and destination (SICC Algorithm 2).
#[derive(Clone, Debug)]
pub struct SiccShim {
    params: Memory,
    pair: Pair,
}

impl SiccShim {
    /// A pair without incast.
    ///
    /// # Panics
    /// The parameters are not SICC's.
    pub fn new(params: &Params) -> SiccShim {
        SiccShim {
            params: memory(params),
            pair: Pair::default(),
        }
    }

    /// INCAST_ON arrived. A message with an MSS of 0 is malformed and ignored.
    pub fn on(&mut self, mss_bytes: u16, scale: Option<u8>, now_ns: u64) {
        let (params, scale) = (self.params.at(0), raw_scale(scale));
        // SAFETY: the struct of the parameters, and C keeps no pointer.
        unsafe { core_sicc_pair_on(&mut self.pair, params, mss_bytes, scale, now_ns) }
    }

    /// INCAST_OFF arrived.
    pub fn off(&mut self) {
        core_sicc_pair_off(&mut self.pair);
    }

    /// The window field for an ACK that reaches the source; `scale` is its flow's, or `None` for
    /// the pair's.
    pub fn on_ack(&self, window: u16, scale: Option<u8>, kind: AckKind, now_ns: u64) -> TcpWindow {
        let (params, scale) = (self.params.at(0), raw_scale(scale));
        // SAFETY: the struct of the parameters, and C keeps no pointer.
        unsafe { core_sicc_pair_on_ack(&self.pair, params, window, scale, kind, now_ns) }
    }
}
