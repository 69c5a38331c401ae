// SPDX-License-Identifier: Apache-2.0
//! What is in flight, segment by segment, and what the peer reported of it (RFC 6675 §3).

use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// The peer reported it.
pub(super) const SACKED: u8 = 1;
/// It is taken for lost.
pub(super) const LOST: u8 = 1 << 1;
/// Its retransmission is in flight.
pub(super) const RESENT: u8 = 1 << 2;
/// It was sent more than once.
pub(super) const EVER_RESENT: u8 = 1 << 3;

/// A segment in flight: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// When it was last sent.
    pub sent: Time,
    /// Low half of its offset.
    pub seq: u32,
    pub len: u16,
    marks: u8,
}

const _: () = assert!(size_of::<Segment>() == 16);

impl Segment {
    /// Whether it has any of `marks`.
    #[inline]
    pub fn is(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }

    /// Low half of the offset after it.
    #[inline]
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len as u32)
    }
}

/// The segments from SND.UNA to SND.NXT, in order and without gaps, and sums over them.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    /// Bytes SACKed, lost, and sent again.
    sacked: u32,
    lost: u32,
    resent: u32,
    sacked_segments: u32,
    /// No segment before this index waits for retransmission.
    first_lost: usize,
}

impl Scoreboard {
    /// Bytes in the network by RFC 6675 §4 (SetPipe), from the bytes between SND.UNA and SND.NXT.
    #[inline]
    pub fn pipe(&self, flight: u32) -> u32 {
        (flight + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Whether nothing is SACKed, lost or sent again.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.sacked | self.lost | self.resent == 0
    }

    /// Whether anything is SACKed.
    pub fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// Segments SACKed.
    #[inline]
    pub fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Whether anything is lost.
    pub fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Number of segments.
    #[inline]
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Segment number `index` of those in flight.
    #[inline]
    pub fn segment(&self, index: usize) -> Segment {
        self.segments[index]
    }

    /// The last segment, and its index.
    pub fn last(&self) -> Option<(usize, Segment)> {
        let last = self.segments.back()?;
        Some((self.segments.len() - 1, *last))
    }

    /// When the first segment was last sent.
    pub fn head_sent(&self) -> Option<Time> {
        self.segments.front().map(|segment| segment.sent)
    }

    /// A segment left for the first time.
    #[inline]
    pub fn push(&mut self, seq: u64, len: u16, now: Time) {
        self.segments.push_back(Segment {
            sent: now,
            seq: seq as u32,
            len,
            marks: 0,
        });
    }

    /// Forgets what lies below `una`; reports each segment that was not SACKed before, with the bytes
    /// of it that are acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, mut on_delivered: impl FnMut(&Segment, u32)) {
        while let Some(front) = self.segments.front_mut() {
            let covered = (una as u32).wrapping_sub(front.seq) as i32;
            if covered <= 0 {
                break;
            }
            let is_whole = covered >= front.len as i32;
            let bytes = if is_whole {
                front.len as u32
            } else {
                covered as u32
            };
            let segment = *front;
            if !is_whole {
                front.seq = una as u32;
                front.len -= bytes as u16;
            }
            self.forget(segment.marks, bytes, is_whole);
            if !segment.is(SACKED) {
                on_delivered(&segment, bytes);
            }
            if !is_whole {
                break;
            }
            self.segments.pop_front();
            self.first_lost = self.first_lost.saturating_sub(1);
        }
    }

    /// Takes `bytes` of a segment with `marks` off the sums.
    fn forget(&mut self, marks: u8, bytes: u32, is_whole: bool) {
        if marks == 0 {
            return;
        }
        if marks & SACKED != 0 {
            self.sacked -= bytes;
            self.sacked_segments -= is_whole as u32;
        }
        if marks & LOST != 0 {
            self.lost -= bytes;
        }
        if marks & RESENT != 0 {
            self.resent -= bytes;
        }
    }

    /// Marks what lies wholly within `left..right` as received, and reports each segment of it that
    /// was not SACKed before.
    pub fn sack(&mut self, left: u64, right: u64, mut on_delivered: impl FnMut(&Segment)) {
        let Some(front) = self.segments.front() else {
            return;
        };
        let base = front.seq;
        let (left, right) = (
            (left as u32).wrapping_sub(base),
            (right as u32).wrapping_sub(base),
        );
        let first = self
            .segments
            .partition_point(|s| s.seq.wrapping_sub(base) < left);
        for index in first..self.segments.len() {
            let segment = self.segments[index];
            if segment.end().wrapping_sub(base) > right {
                break;
            }
            if segment.is(SACKED) {
                continue;
            }
            let bytes = segment.len as u32;
            self.forget(segment.marks, bytes, true);
            let marks = &mut self.segments[index].marks;
            *marks = (*marks & !(LOST | RESENT)) | SACKED;
            self.sacked += bytes;
            self.sacked_segments += 1;
            on_delivered(&segment);
        }
    }

    /// The peer has dropped what it reported, as it may (RFC 2018 §8).
    fn forget_sacked(&mut self) {
        for segment in &mut self.segments {
            segment.marks &= !SACKED;
        }
        (self.sacked, self.sacked_segments) = (0, 0);
    }

    /// Nothing was lost.
    pub fn forget_lost(&mut self) {
        for segment in &mut self.segments {
            segment.marks &= !LOST;
        }
        self.lost = 0;
        self.first_lost = self.segments.len();
    }

    /// Bytes whose retransmission is in flight.
    pub fn resent(&self) -> u32 {
        self.resent
    }

    /// Takes the segment at `index` for lost.
    pub fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        let len = segment.len as u32;
        if segment.is(LOST) && !segment.is(RESENT) {
            return;
        }
        if segment.is(RESENT) {
            segment.marks &= !RESENT;
            self.resent -= len;
        }
        if !segment.is(LOST) {
            segment.marks |= LOST;
            self.lost += len;
        }
        self.first_lost = self.first_lost.min(index);
    }

    /// Lost, but a retransmission in flight is given its chance.
    fn mark_lost_once(&mut self, index: usize) {
        if self.segments[index].is(RESENT) {
            self.segments[index].marks |= LOST;
            self.lost += self.segments[index].len as u32;
        } else {
            self.mark_lost(index);
        }
    }

    /// IsLost of RFC 6675 §4: at least `threshold` segments, or more than `threshold - 1` full ones
    /// in bytes, SACKed above it. `head`: that many duplicate ACKs show the first one lost. Returns
    /// the bytes newly lost.
    pub fn detect_by_count(&mut self, threshold: u8, mss: u32, head: bool) -> u32 {
        let mut newly = 0;
        if self.sacked > 0 {
            let (mut count, mut bytes) = (0u32, 0u32);
            let limit = (threshold as u32 - 1) * mss;
            for index in (0..self.segments.len()).rev() {
                let segment = self.segments[index];
                if segment.is(SACKED) {
                    count += 1;
                    bytes += segment.len as u32;
                } else if (count >= threshold as u32 || bytes > limit) && !segment.is(LOST) {
                    self.mark_lost_once(index);
                    newly += segment.len as u32;
                }
            }
        }
        if head && self.segments.front().is_some_and(|s| !s.is(SACKED | LOST)) {
            newly += self.segments[0].len as u32;
            self.mark_lost_once(0);
        }
        newly
    }

    /// After a timeout the first segment is lost, and all not SACKed that was sent `patience` ago or
    /// earlier. If the first was SACKed, the peer has dropped it.
    pub fn mark_lost_by_timeout(&mut self, now: Time, patience: Time) {
        if self.segments.front().is_some_and(|s| s.is(SACKED)) {
            self.forget_sacked();
        }
        let mut is_first = true;
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            if segment.is(SACKED) {
                continue;
            }
            if is_first || segment.sent + patience <= now {
                self.mark_lost(index);
            }
            is_first = false;
        }
    }

    /// The first segment lost and not sent again.
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let ahead = self
            .segments
            .iter()
            .skip(self.first_lost)
            .position(|s| s.is(LOST) && !s.is(RESENT));
        self.first_lost = ahead.map_or(self.segments.len(), |ahead| self.first_lost + ahead);
        ahead.map(|_| self.first_lost)
    }

    /// The segment at `index`, which is not SACKed, becomes two: its first `len` bytes, and the rest.
    pub fn split(&mut self, index: usize, len: u16) {
        let first = &mut self.segments[index];
        let rest = Segment {
            seq: first.seq.wrapping_add(len as u32),
            len: first.len - len,
            ..*first
        };
        first.len = len;
        self.segments.insert(index + 1, rest);
    }

    /// The segment at `index` leaves again as a probe, which is in no sum (`tcp_send_loss_probe`).
    pub fn mark_probed(&mut self, index: usize, now: Time) {
        let segment = &mut self.segments[index];
        segment.sent = now;
        segment.marks |= EVER_RESENT;
    }

    /// The segment at `index` leaves again.
    pub fn mark_resent(&mut self, index: usize, now: Time) {
        let segment = &mut self.segments[index];
        segment.sent = now;
        if !segment.is(RESENT) {
            self.resent += segment.len as u32;
        }
        segment.marks |= RESENT | EVER_RESENT;
    }
}
