// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Functions of `core/` that only the datapath and these tests call.

use penstock_core::tcp_rewrite::{SCALE_UNKNOWN, TcpWindow};
use penstock_core::{Hcf, Params};
use std::ffi::c_void;
use std::net::Ipv6Addr;

unsafe extern "C" {
    safe fn core_tcp_lower_window(window: u16, scale: u32, limit: u32, floor: u32) -> TcpWindow;
    safe fn core_tcp_release_window(
        wanted: TcpWindow,
        window: u16,
        scale: u32,
        mss: u32,
        since_ns: u64,
    ) -> TcpWindow;
    safe fn core_tcp_checksum_update(checksum: u16, old_word: u16, new_word: u16) -> u16;
    safe fn core_tcp_checksum_update_byte(sum: u16, offset: u32, old: u8, new: u8) -> u16;
    safe fn core_hcf_fold6(seed: u32, address: &[u32; 4]) -> u32;
    fn core_hcf_bin_of(state: *const c_void, params: *const c_void, key: u32, index: u32) -> u32;
    fn core_hcf_credits_left(state: *const c_void, params: *const c_void, bin: u32) -> u32;
}

pub fn lower_window(window: u16, scale: Option<u8>, limit: u32, floor: u32) -> TcpWindow {
    let scale = scale.map_or(SCALE_UNKNOWN, |shift| u32::from(shift).min(14));
    core_tcp_lower_window(window, scale, limit, floor)
}

#[allow(dead_code)] // of the properties
pub fn release_window(
    wanted: TcpWindow,
    window: u16,
    scale: u8,
    mss: u32,
    since_ns: u64,
) -> TcpWindow {
    core_tcp_release_window(wanted, window, u32::from(scale), mss, since_ns)
}

pub fn checksum_update(checksum: u16, old_word: u16, new_word: u16) -> u16 {
    core_tcp_checksum_update(checksum, old_word, new_word)
}

#[allow(dead_code)] // of the vectors
pub fn checksum_update_byte(checksum: u16, offset: u32, old: u8, new: u8) -> u16 {
    core_tcp_checksum_update_byte(checksum, offset, old, new)
}

#[allow(dead_code)] // of the properties
pub fn fold6(seed: u32, address: Ipv6Addr) -> u32 {
    let octets = address.octets();
    let (words, _) = octets.as_chunks();
    let words: [u32; 4] = std::array::from_fn(|at| u32::from_ne_bytes(words[at]));
    core_hcf_fold6(seed, &words)
}

#[allow(dead_code)] // of the properties
pub fn bin_of(hcf: &Hcf, params: &Params, key: u32, index: u32) -> u32 {
    let (state, params) = (hcf.state().as_ptr(), params.bytes().as_ptr());
    // SAFETY: HCF's structs, aligned as the library keeps them.
    unsafe { core_hcf_bin_of(state.cast(), params.cast(), key, index) }
}

pub fn credits_left(hcf: &Hcf, params: &Params, bin: u32) -> u32 {
    let (state, params) = (hcf.state().as_ptr(), params.bytes().as_ptr());
    // SAFETY: as above.
    unsafe { core_hcf_credits_left(state.cast(), params.cast(), bin) }
}
