// SPDX-License-Identifier: Apache-2.0
//! What is in flight, segment by segment, and what the peer said about it.

use super::probe::Probe;
use super::prr::Prr;
use super::rack::Rack;
use crate::tcp::config::{Config, Recovery};
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
    pub(super) sent: Time,
    /// Low half of its offset.
    pub(super) seq: u32,
    pub(super) len: u16,
    pub(super) marks: u8,
}

const _: () = assert!(size_of::<Segment>() == 16);

impl Segment {
    pub(super) fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub(super) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len as u32)
    }
}

/// What an ACK delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// Bytes newly acknowledged or SACKed.
    pub(super) bytes: u32,
    /// Bytes newly SACKed.
    pub(super) sacked: u32,
    /// When the oldest of the segments sent once was sent; `None` where there is none.
    pub(super) oldest: Option<Time>,
    /// When the newest of them was sent.
    pub(super) newest: Option<Time>,
    /// Something sent more than once was acknowledged: no round trip can be told (Karn).
    pub(super) ambiguous: bool,
    /// The ACK reported a duplicate (RFC 2883).
    pub(super) duplicate: bool,
}

/// The segments from SND.UNA to SND.NXT, in order and without gaps.
#[derive(Debug)]
pub(in crate::tcp) struct Scoreboard {
    pub(super) segments: VecDeque<Segment>,
    pub(super) sacked: u32,
    pub(super) sacked_segments: u32,
    pub(super) lost: u32,
    pub(super) resent: u32,
    /// No segment before this index waits for retransmission.
    first_lost: usize,
    /// The next retransmission leaves whatever the window says: it opens the recovery.
    pub(super) force: bool,
    pub(super) rescued: bool,
    pub(super) rack: Option<Rack>,
    pub(super) prr: Option<Prr>,
    pub(super) probe: Probe,
}

impl Scoreboard {
    pub(in crate::tcp) fn new(cfg: &Config) -> Scoreboard {
        Scoreboard {
            segments: VecDeque::new(),
            sacked: 0,
            sacked_segments: 0,
            lost: 0,
            resent: 0,
            first_lost: 0,
            force: false,
            rescued: false,
            rack: (cfg.recovery == Recovery::Rack).then(Rack::new),
            prr: cfg.prr.then(Prr::default),
            probe: Probe::default(),
        }
    }

    /// Bytes in the network by RFC 6675 §4 (SetPipe), from the bytes between SND.UNA and SND.NXT.
    #[inline]
    pub(in crate::tcp) fn pipe(&self, flight: u32) -> u32 {
        (flight + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Whether nothing is SACKED, lost, sent again or probed.
    #[inline]
    pub(in crate::tcp) fn is_quiet(&self) -> bool {
        self.sacked | self.lost | self.resent == 0 && self.probe.end == 0
    }

    /// A segment left for the first time.
    #[inline]
    pub(in crate::tcp) fn push(&mut self, seq: u64, len: u16, now: Time) {
        self.segments.push_back(Segment {
            sent: now,
            seq: seq as u32,
            len,
            marks: 0,
        });
        self.note_sent(len as u32);
    }

    pub(super) fn note_sent(&mut self, len: u32) {
        if let Some(prr) = &mut self.prr {
            prr.sent(len);
        }
    }

    /// Lets go of what lies below `una`.
    #[inline]
    pub(super) fn acknowledge(&mut self, una: u64, now: Time, min: Time, out: &mut Delivery) {
        while let Some(front) = self.segments.front_mut() {
            let covered = (una as u32).wrapping_sub(front.seq) as i32;
            if covered <= 0 {
                break;
            }
            let whole = covered >= front.len as i32;
            let bytes = if whole {
                front.len as u32
            } else {
                covered as u32
            };
            let segment = *front;
            if !whole {
                front.seq = una as u32;
                front.len -= bytes as u16;
            }
            self.forget(segment.marks, bytes, whole);
            if !segment.is(SACKED) {
                out.bytes += bytes;
                self.note_delivered(&segment, now, min, out);
            }
            if !whole {
                break;
            }
            self.segments.pop_front();
            self.first_lost = self.first_lost.saturating_sub(1);
        }
    }

    /// Takes `bytes` of a segment with `marks` off the sums.
    fn forget(&mut self, marks: u8, bytes: u32, whole: bool) {
        if marks == 0 {
            return;
        }
        if marks & SACKED != 0 {
            self.sacked -= bytes;
            self.sacked_segments -= whole as u32;
        }
        if marks & LOST != 0 {
            self.lost -= bytes;
        }
        if marks & RESENT != 0 {
            self.resent -= bytes;
        }
    }

    fn note_delivered(&mut self, segment: &Segment, now: Time, min: Time, out: &mut Delivery) {
        if segment.is(EVER_RESENT) {
            out.ambiguous = true;
        } else {
            out.oldest = Some(out.oldest.map_or(segment.sent, |t| t.min(segment.sent)));
            out.newest = Some(out.newest.map_or(segment.sent, |t| t.max(segment.sent)));
        }
        if let Some(rack) = &mut self.rack {
            rack.on_delivered(segment, now, min);
        }
    }

    /// Marks what lies wholly within `left..right` as received.
    pub(super) fn sack(&mut self, left: u64, right: u64, now: Time, min: Time, out: &mut Delivery) {
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
            out.bytes += bytes;
            out.sacked += bytes;
            self.note_delivered(&segment, now, min, out);
        }
    }

    /// The peer has dropped what it reported, as it may (RFC 2018 §8).
    pub(super) fn forget_sacked(&mut self) {
        for segment in &mut self.segments {
            segment.marks &= !SACKED;
        }
        (self.sacked, self.sacked_segments) = (0, 0);
    }

    /// Takes the segment at `index` for lost; true if it was not before.
    pub(super) fn mark_lost(&mut self, index: usize) -> bool {
        let segment = &mut self.segments[index];
        let len = segment.len as u32;
        if segment.is(LOST) && !segment.is(RESENT) {
            return false;
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
        true
    }

    /// The first segment lost and not sent again.
    pub(super) fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let found = self
            .segments
            .iter()
            .skip(self.first_lost)
            .position(|s| s.is(LOST) && !s.is(RESENT));
        self.first_lost = found.map_or(self.segments.len(), |ahead| self.first_lost + ahead);
        found.map(|_| self.first_lost)
    }

    /// The segment at `index` leaves again.
    pub(super) fn mark_resent(&mut self, index: usize, now: Time) {
        let segment = &mut self.segments[index];
        segment.sent = now;
        let len = segment.len as u32;
        if !segment.is(RESENT) {
            self.resent += len;
        }
        segment.marks |= RESENT | EVER_RESENT;
        self.note_sent(len);
    }

    /// When the first segment was last sent.
    pub(super) fn head_sent(&self) -> Option<Time> {
        self.segments.front().map(|segment| segment.sent)
    }
}
