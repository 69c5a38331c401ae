// SPDX-License-Identifier: Apache-2.0
//! A packet as it travels: 32 bytes, stored by value in the links' rings.
//!
//! Only what a switch or a TCP end point reads is here; the addresses are implied by the flow.

/// One direction of a connection: `connection << 1 | direction`, where direction 0 leaves the
/// opener (the side that sends the SYN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The opposite direction of the same connection.
    pub const fn reverse(self) -> FlowId {
        FlowId(self.0 ^ 1)
    }

    /// Index of the connection.
    pub const fn connection(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether packets of this flow leave the side that opened the connection.
    pub const fn is_opener(self) -> bool {
        self.0 & 1 == 0
    }
}

/// Bits of [`Packet::flags`]: the TCP flags as on the wire, then the IP ECN code point and the protocol.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u16 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u16 = 0x02;
    /// Reset the connection.
    pub const RST: u16 = 0x04;
    /// Push: the end of an application write.
    pub const PSH: u16 = 0x08;
    /// The acknowledgement field is valid.
    pub const ACK: u16 = 0x10;
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: u16 = 0x40;
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: u16 = 0x80;
    /// IP: ECN-capable transport, ECT(0).
    pub const ECT: u16 = 0x100;
    /// IP: congestion experienced; set by a queue on an ECT packet.
    pub const CE: u16 = 0x200;
    /// Not TCP: a UDP datagram.
    pub const UDP: u16 = 0x400;
    /// Carries the timestamps option (RFC 7323 §3).
    pub const TIMESTAMPS: u16 = 0x800;
    /// The four reserved bits of the TCP header, in which a shim may write the window scale.
    pub const RESERVED: u16 = 0xf000;
}

/// One packet, data or ACK.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The flow it belongs to; sent by that flow's end point.
    pub flow: FlowId,
    /// Sequence number of the first payload byte (or of the SYN or FIN).
    pub seq: u32,
    /// Next sequence number expected from the peer; valid with [`flag::ACK`].
    pub ack: u32,
    /// Timestamp value (RFC 7323), valid with [`flag::TIMESTAMPS`].
    pub ts_val: u32,
    /// Timestamp echo reply (RFC 7323), valid with [`flag::TIMESTAMPS`].
    pub ts_ecr: u32,
    /// On a SYN the options offered, as [`SynOptions::pack`] writes them; else a handle of the
    /// SACK blocks carried, 0 for none (owned by the network while the packet travels).
    pub options: u32,
    /// TCP or UDP payload, bytes.
    pub payload: u16,
    /// Receive window as on the wire: unscaled.
    pub window: u16,
    /// Bits of [`flag`].
    pub flags: u16,
    /// Bytes of all headers on the wire; payload + header is what a link carries.
    pub header: u8,
    /// Links behind it; kept by the network.
    pub hop: u8,
}

const _: () = assert!(size_of::<Packet>() == 32);

impl Packet {
    /// Bytes on the wire.
    pub const fn size(&self) -> u32 {
        self.payload as u32 + self.header as u32
    }

    /// Whether all of `bits` are set.
    pub const fn has(&self, bits: u16) -> bool {
        self.flags & bits == bits
    }

    /// Whether any of `bits` is set.
    pub const fn has_any(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }
}

/// A SACK block: `left` is the first sequence number received, `right` the one after the last
/// (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: u32,
    /// The sequence number after the block.
    pub right: u32,
}

/// SACK blocks a segment can carry (RFC 2018 §3: 4 without timestamps, 3 with).
pub const MAX_SACK_BLOCKS: usize = 4;

/// What a SYN or SYN-ACK offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// Largest segment the sender of the SYN takes, payload bytes.
    pub mss: u16,
    /// Window scale (RFC 7323 §2), `None` where not offered.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 §2).
    pub sack: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: bool,
}

impl SynOptions {
    /// As held in [`Packet::options`]: MSS in the low 16 bits, scale + 1 above it, then two flags.
    pub const fn pack(self) -> u32 {
        let scale = match self.window_scale {
            Some(shift) => shift as u32 + 1,
            None => 0,
        };
        self.mss as u32 | scale << 16 | (self.sack as u32) << 24 | (self.timestamps as u32) << 25
    }

    /// The inverse of [`SynOptions::pack`].
    pub const fn unpack(bits: u32) -> SynOptions {
        let scale = (bits >> 16) as u8;
        SynOptions {
            mss: bits as u16,
            window_scale: if scale == 0 { None } else { Some(scale - 1) },
            sack: bits & 1 << 24 != 0,
            timestamps: bits & 1 << 25 != 0,
        }
    }
}
