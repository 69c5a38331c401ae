// SPDX-License-Identifier: Apache-2.0
//! Payload received ahead of order, and how SACK blocks report it.

use crate::packet::SackBlock;
use crate::tcp::sequence;

/// What was received ahead of order.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Disjoint, sorted, never touching each other.
    ranges: Vec<Range>,
    /// Counts arrivals, so that blocks can be reported latest first.
    clock: u32,
    /// A segment received twice, to be reported once (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// RCV.NXT when ACKs that repeat it were last counted, and how many were since.
    repeated: u64,
    repeats: u8,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    touched: u32,
}

impl Reassembly {
    /// `start..end` was received before: the next SACK reports it first.
    pub fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    /// Counts an ACK that repeats RCV.NXT `nxt`; returns how many do.
    pub fn count_repeat(&mut self, nxt: u64) -> u8 {
        if self.repeated != nxt {
            self.repeated = nxt;
            self.repeats = 0;
        }
        self.repeats = self.repeats.saturating_add(1);
        self.repeats
    }

    /// Whether no payload waits for what comes before it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Keeps `start..end`; false where all of it was there already.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        self.clock += 1;
        let first = self.ranges.partition_point(|r| r.end < start);
        let last = self.ranges.partition_point(|r| r.start <= end);
        let mut merged = Range {
            start,
            end,
            touched: self.clock,
        };
        if first < last {
            let (low, high) = (self.ranges[first], self.ranges[last - 1]);
            if last == first + 1 && low.start <= start && end <= low.end {
                self.ranges[first].touched = self.clock;
                return false;
            }
            merged.start = start.min(low.start);
            merged.end = end.max(high.end);
        }
        self.ranges.splice(first..last, [merged]);
        true
    }

    /// The offset up to which everything from `next` on is there; what lies below is forgotten.
    pub fn take(&mut self, next: u64) -> u64 {
        let mut reached = next;
        let mut taken = 0;
        for range in &self.ranges {
            if range.start > reached {
                break;
            }
            reached = reached.max(range.end);
            taken += 1;
        }
        self.ranges.drain(..taken);
        reached
    }

    /// Writes SACK blocks for a peer that started at `irs`: a duplicate (RFC 2883 §4), then the
    /// ranges, latest first (RFC 2018 §4). Returns how many.
    pub fn blocks(&mut self, irs: u32, out: &mut [SackBlock]) -> usize {
        let block = |start: u64, end: u64| SackBlock {
            left: sequence::wire(start, irs),
            right: sequence::wire(end, irs),
        };
        let mut count = 0;
        if let Some((start, end)) = self.duplicate.take() {
            out[0] = block(start, end);
            count = 1;
        }
        let mut before = u32::MAX;
        while count < out.len() {
            let latest = self
                .ranges
                .iter()
                .filter(|r| r.touched < before)
                .max_by_key(|r| r.touched);
            let Some(range) = latest else { break };
            before = range.touched;
            out[count] = block(range.start, range.end);
            count += 1;
        }
        count
    }
}
