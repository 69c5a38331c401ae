// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What may change in a TCP header (`core/tcp_rewrite.h`).
//!
//! Header words are in host byte order.

/// The largest shift of a window (RFC 7323 §2.3).
pub const MAX_SCALE: u8 = 14;

/// Largest window a header can express, bytes.
pub const MAX_WINDOW_BYTES: u32 = 65535 << MAX_SCALE;

/// As the C functions take a scale that was not learned.
pub const SCALE_UNKNOWN: u32 = 0xff;

/// A scale as the C functions take it, at most 14; a window of unknown scale is left alone.
pub fn raw_scale(scale: Option<u8>) -> u32 {
    scale.map_or(SCALE_UNKNOWN, |shift| u32::from(shift.min(MAX_SCALE)))
}

/// The inverse of [`raw_scale`].
pub(crate) fn known_scale(raw: u32) -> Option<u8> {
    (raw <= MAX_SCALE.into()).then_some(raw as u8)
}

/// Where in the life of a flow an ACK stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AckKind {
    /// Any other ACK.
    Later = 0,
    /// Among the first ACKs after the handshake.
    First = 1,
    /// A SYN or SYN-ACK: its window is never scaled (RFC 7323 §2.2).
    Syn = 2,
}

/// A window field as it leaves.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpWindow {
    /// The field's value, as on the wire.
    pub window: u16,
    /// Lower than it came: the checksum must follow.
    pub changed: bool,
    /// Changed, and less would have been written but for the floor.
    pub floored: bool,
}

/// The right edge of the window as a sender was shown it; by default, that none was shown.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    seq: u32,
    is_known: u32,
}

unsafe extern "C" {
    safe fn core_tcp_keep_edge(
        edge: &mut Edge,
        ack: u32,
        window: u16,
        scale: u32,
        wanted: TcpWindow,
    ) -> TcpWindow;
    safe fn core_tcp_reserved_put_scale(offset_flags: u16, scale: u32) -> u16;
    safe fn core_tcp_reserved_scale(offset_flags: u16) -> u32;
    safe fn core_tcp_reserved_clear(offset_flags: u16) -> u16;
    safe fn core_tcp_window12_put(window: u16, scale: u32) -> u16;
    safe fn core_tcp_window12_scale(field: u16) -> u32;
    safe fn core_tcp_window12_window(field: u16) -> u16;
    safe fn core_tcp_unify_window(window: u16, own_scale: u32, network_scale: u32) -> u16;
}

impl Edge {
    /// The sequence number just beyond the window that was offered; `None` before the first.
    pub fn seq(&self) -> Option<u32> {
        (self.is_known != 0).then_some(self.seq)
    }

    /// Never-shrink (RFC 9293 §3.8.6.2.1): the `wanted` window, as a scheme lowered `window`, but
    /// no less than what was offered beyond `ack`, rounded up to the scale. The receiver's own
    /// shrinking passes. Begin a connection with a new edge, and its SYN-ACK with a scale of 0.
    pub fn keep(
        &mut self,
        ack: u32,
        window: u16,
        scale: Option<u8>,
        wanted: TcpWindow,
    ) -> TcpWindow {
        core_tcp_keep_edge(self, ack, window, raw_scale(scale), wanted)
    }
}

/// Writes the scale into the four reserved bits of header bytes 12 and 13 (FairQ §III-B, 3rd way).
pub fn reserved_put_scale(offset_flags: u16, scale: u8) -> u16 {
    core_tcp_reserved_put_scale(offset_flags, u32::from(scale))
}

/// Reads the scale from the reserved bits.
pub fn reserved_scale(offset_flags: u16) -> u8 {
    core_tcp_reserved_scale(offset_flags) as u8
}

/// Clears the reserved bits, which makes the checksum right again.
pub fn reserved_clear(offset_flags: u16) -> u16 {
    core_tcp_reserved_clear(offset_flags)
}

/// Writes the scale into the upper four bits of the window field; windows above 4095 become 4095
/// (FairQ §IV-C).
pub fn window12_put(window: u16, scale: u8) -> u16 {
    core_tcp_window12_put(window, u32::from(scale))
}

/// Reads the scale from such a window field.
pub fn window12_scale(field: u16) -> u8 {
    core_tcp_window12_scale(field) as u8
}

/// Reads the window from such a window field.
pub fn window12_window(field: u16) -> u16 {
    core_tcp_window12_window(field)
}

/// Expresses a window of scale `own` in the network's one scale, rounded down (FairQ §III-B, 2nd way).
pub fn unify_window(window: u16, own: u8, network: u8) -> u16 {
    core_tcp_unify_window(window, u32::from(own), u32::from(network))
}
