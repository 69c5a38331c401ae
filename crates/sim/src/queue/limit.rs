// SPDX-License-Identifier: Apache-2.0
//! How much a queue may hold.

/// The most that may wait in a queue; whichever bound is met first holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes waiting, headers included.
    pub bytes: u64,
    /// Packets waiting.
    pub packets: u32,
}

impl Limit {
    /// At most `bytes` bytes, of any number of packets.
    pub const fn bytes(bytes: u64) -> Limit {
        Limit {
            bytes,
            packets: u32::MAX,
        }
    }

    /// At most `packets` packets, of any size.
    pub const fn packets(packets: u32) -> Limit {
        Limit {
            bytes: u64::MAX,
            packets,
        }
    }

    /// Whether a queue of `bytes` and `packets` is within both bounds.
    pub const fn holds(self, bytes: u64, packets: u32) -> bool {
        bytes <= self.bytes && packets <= self.packets
    }
}
