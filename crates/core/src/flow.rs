// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Which flows exist and can still send through a port (`core/flow.h`, `core/handshake.h`).

use crate::tcp_rewrite::{AckKind, known_scale};

/// Direction of a packet as a port sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// Leaves by the port, carries the data.
    #[default]
    Data = 0,
    /// Comes back with the ACKs.
    Acks = 1,
}

/// [`FlowPacket::scale`] of a SYN without the window scale option.
pub const SCALE_NONE: u8 = 0xfe;

/// TCP flags as on the wire.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// The end of an application's write.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement field is valid.
    pub const ACK: u8 = 0x10;
}

/// What has to be known of a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowPacket {
    /// The instant, nanoseconds.
    pub now_ns: u64,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// TCP payload, bytes.
    pub payload: u32,
    /// On a SYN the MSS option, 0 if absent; else the size of a super-packet's segments, 0 if it is
    /// one segment.
    pub mss: u16,
    /// On a SYN the scale option, [`SCALE_NONE`] if absent.
    pub scale: u8,
    /// Bits of [`flag`]; others are ignored.
    pub flags: u8,
    /// Which way it goes.
    pub direction: Direction,
    /// Nothing.
    pub reserved: [u8; 7],
}

/// One connection at one output port, once the other side has acknowledged it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowEntry([u64; 4]);

/// What a port has seen of a connection that no one has acknowledged yet: it counts nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake([u64; 3]);

/// By how much a packet changes numbers of flows: -1, 0 or 1 each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowChange {
    /// Of those that count.
    pub flows: i32,
    /// Of handshakes under way.
    pub half_open: i32,
}

/// What a port has to know of a flow when one of its ACKs passes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowAck {
    /// By how much the numbers of flows change.
    pub change: FlowChange,
    /// Which kind of ACK it is.
    pub kind: AckKind,
    scale: u32,
    /// Largest segment to expect of the data direction, bytes; 0 unknown.
    pub mss_bytes: u32,
}

impl FlowAck {
    /// Shift of the ACK's window, `None` before both ends are known to have offered one.
    pub fn scale(&self) -> Option<u8> {
        known_scale(self.scale)
    }
}

unsafe extern "C" {
    safe fn core_flow_follow(
        flow: &mut FlowEntry,
        handshake: &mut Handshake,
        packet: &FlowPacket,
    ) -> FlowChange;
    safe fn core_flow_expire(flow: &mut FlowEntry, now_ns: u64, idle_ns: u64) -> i32;
    safe fn core_flow_follow_ack(
        flow: &mut FlowEntry,
        handshake: &mut Handshake,
        packet: &FlowPacket,
        first_acks: u32,
        port_bytes: u32,
    ) -> FlowAck;
    safe fn core_flow_sweep(flow: &mut FlowEntry, now_ns: u64, idle_ns: u64) -> i32;
    safe fn core_flow_is_counted(flow: &FlowEntry) -> u32;
    safe fn core_flow_scale(flow: &FlowEntry, direction: u32) -> u32;
    safe fn core_flow_mss(flow: &FlowEntry, port_bytes: u32) -> u32;
    safe fn core_flow_ack_kind(flow: &FlowEntry, flags: u32, first_acks: u32) -> AckKind;
    safe fn core_handshake_mss(handshake: &Handshake, port_bytes: u32) -> u32;
    safe fn core_handshake_is_half_open(handshake: &Handshake) -> bool;
}

impl FlowEntry {
    /// Follows the flow by one packet.
    pub fn follow(&mut self, handshake: &mut Handshake, packet: &FlowPacket) -> FlowChange {
        core_flow_follow(self, handshake, packet)
    }

    /// Uncounts a flow silent for `idle_ns`; returns -1 if it was counted, else 0.
    pub fn expire(&mut self, now_ns: u64, idle_ns: u64) -> i32 {
        core_flow_expire(self, now_ns, idle_ns)
    }

    /// [`FlowEntry::follow`], [`FlowEntry::ack_kind`], [`FlowEntry::scale`] and
    /// [`FlowEntry::mss`] in one call, for a packet of the ACKs' direction.
    pub fn follow_ack(
        &mut self,
        handshake: &mut Handshake,
        packet: &FlowPacket,
        first_acks: u32,
        port_bytes: u32,
    ) -> FlowAck {
        core_flow_follow_ack(self, handshake, packet, first_acks, port_bytes)
    }

    /// [`FlowEntry::expire`] and [`FlowEntry::is_counted`] in one call: -1 if it was counted until
    /// now, 0 if it was not, 1 if it still is.
    pub fn sweep(&mut self, now_ns: u64, idle_ns: u64) -> i32 {
        core_flow_sweep(self, now_ns, idle_ns)
    }

    /// Whether it is counted now.
    pub fn is_counted(&self) -> bool {
        core_flow_is_counted(self) == 1
    }

    /// Shift of the windows in packets of a direction, `None` before both ends are known to have
    /// offered one.
    pub fn scale(&self, direction: Direction) -> Option<u8> {
        known_scale(core_flow_scale(self, direction as u32))
    }

    /// Largest segment to expect of the data direction, bytes; 0 unknown. `port_bytes` is
    /// [`PortSegments::bytes`](crate::PortSegments::bytes), which stands for flows that have shown
    /// no full segment yet.
    pub fn mss(&self, port_bytes: u32) -> u32 {
        core_flow_mss(self, port_bytes)
    }

    /// Which kind of ACK the packet just given to [`FlowEntry::follow`] is, where the first
    /// `first_acks` after the handshake count as first.
    pub fn ack_kind(&self, flags: u8, first_acks: u32) -> AckKind {
        core_flow_ack_kind(self, flags.into(), first_acks)
    }
}

impl Handshake {
    /// As [`FlowEntry::mss`], before there is an entry.
    pub fn mss(&self, port_bytes: u32) -> u32 {
        core_handshake_mss(self, port_bytes)
    }

    /// Whether a handshake is under way.
    pub fn is_half_open(&self) -> bool {
        core_handshake_is_half_open(self)
    }
}
