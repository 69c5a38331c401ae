// SPDX-License-Identifier: Apache-2.0
//! Sequence numbers as 64-bit offsets from the initial one: the SYN is 0, the first payload byte 1.
//!
//! They wrap to 32 bits on the wire only, so that inside an end point comparisons are plain.

/// The offset nearest to `near` whose low half is `wire`, where `initial` stands for offset 0. A
/// number before the initial one becomes a huge offset, see [`is_before_start`].
#[inline]
pub(super) fn offset(near: u64, initial: u32, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(initial).wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(distance as i64)
}

/// The number on the wire of `offset`.
#[inline]
pub(super) fn wire(offset: u64, initial: u32) -> u32 {
    initial.wrapping_add(offset as u32)
}

/// Whether `offset` lies before the initial sequence number.
#[inline]
pub(super) fn is_before_start(offset: u64) -> bool {
    offset > u64::MAX / 2
}
