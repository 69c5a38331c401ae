// SPDX-License-Identifier: Apache-2.0
//! What the kernel tells of a TCP socket: `struct tcp_info` of linux/tcp.h.

/// The kernel's layout up to the counts of timeouts (Linux 6.7). An older kernel fills less of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Raw {
    bytes: [u8; 8],
    words: [u32; 24],
    rates: [u64; 4],
    segments: [u32; 6],
    times: [u64; 4],
    delivered: [u32; 2],
    sent: [u64; 2],
    windows: [u32; 6],
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
}

const _: () = assert!(size_of::<Raw>() == 248);

/// Index of `tcpi_total_retrans` among the words.
const TOTAL_RETRANS: usize = 23;

/// Index of `tcpi_data_segs_in` among the segments.
const DATA_SEGS_IN: usize = 4;

/// Counts of one socket since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again, SYNs and SYN-ACKs included.
    pub retransmits: u32,
    /// Retransmission timeouts, those of the handshake included; `None` before Linux 6.7.
    pub timeouts: Option<u16>,
    /// Data segments that arrived, duplicates included.
    pub data_segments_in: u32,
}

impl TcpInfo {
    /// From what the kernel wrote, `filled` bytes.
    pub(super) fn new(raw: &Raw, filled: usize) -> TcpInfo {
        TcpInfo {
            retransmits: raw.words[TOTAL_RETRANS],
            timeouts: (filled >= size_of::<Raw>()).then_some(raw.total_rto),
            data_segments_in: raw.segments[DATA_SEGS_IN],
        }
    }
}
