// SPDX-License-Identifier: Apache-2.0
//! What an ACK delivered.

use super::scoreboard::{EVER_RESENT, Segment};
use penstock_scenario::units::Time;

/// Sums over the segments that an ACK newly reports as received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// Bytes newly acknowledged or SACKed.
    pub bytes: u32,
    /// Segments newly acknowledged to their end, or SACKed.
    pub segments: u32,
    /// Bytes newly SACKed.
    pub sacked: u32,
    /// When the oldest of the segments sent once was sent; `None` where there is none.
    pub oldest: Option<Time>,
    /// Low half of the offset after that of them which ends first.
    least_end: u32,
    /// When the newest of them was sent.
    pub newest: Option<Time>,
    /// When the newest of those sent more than once was sent; zero where there is none.
    pub newest_resent: Time,
    /// Something sent more than once was acknowledged: it shows no round trip (Karn).
    pub is_ambiguous: bool,
    /// The ACK reported a duplicate (RFC 2883).
    pub has_duplicate: bool,
}

impl Delivery {
    /// Adds `bytes` of a segment.
    #[inline]
    pub fn add(&mut self, segment: &Segment, bytes: u32) {
        self.bytes += bytes;
        self.segments += (bytes == segment.len as u32) as u32;
        if segment.is(EVER_RESENT) {
            self.is_ambiguous = true;
            self.newest_resent = self.newest_resent.max(segment.sent);
        } else {
            let sent = segment.sent;
            let end = segment.end();
            if self.oldest.is_none() || (end.wrapping_sub(self.least_end) as i32) < 0 {
                self.least_end = end;
            }
            self.oldest = Some(self.oldest.map_or(sent, |t| t.min(sent)));
            self.newest = Some(self.newest.map_or(sent, |t| t.max(sent)));
        }
    }

    /// Whether a segment sent once arrived that ends at `offset` or below.
    pub fn has_original_up_to(&self, offset: u64) -> bool {
        let beyond = self.least_end.wrapping_sub(offset as u32) as i32;
        self.oldest.is_some() && beyond <= 0
    }
}
