// SPDX-License-Identifier: Apache-2.0
//! Loss detection by time (RFC 8985 §6): what was sent a reordering window before something that
//! has arrived is lost.

use super::scoreboard::{EVER_RESENT, LOST, RESENT, SACKED, Scoreboard, Segment};
use penstock_scenario::units::Time;

/// Rounds or recoveries for which a widened reordering window lasts (RFC 8985 §6.2 step 4).
const PERSIST: u8 = 16;

/// What arrived last, and how much reordering is expected.
#[derive(Debug)]
pub(super) struct Rack {
    /// When the most recently sent of the delivered segments was sent, and its end.
    sent: Time,
    end: u32,
    /// Its round trip.
    rtt: Time,
    /// Highest end delivered, and whether something below it was delivered later.
    highest: Option<u32>,
    reordering: bool,
    /// Quarters of the smallest round trip to wait.
    quarters: u8,
    persist: u8,
    /// No second widening before this is acknowledged.
    widened_until: u64,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            sent: Time::ZERO,
            end: 0,
            rtt: Time::ZERO,
            highest: None,
            reordering: false,
            quarters: 1,
            persist: 0,
            widened_until: 0,
        }
    }

    /// A segment was delivered; `min`: the smallest round trip so far (RFC 8985 §6.2 steps 1 to 3).
    #[inline]
    pub fn on_delivered(&mut self, segment: &Segment, now: Time, min: Time) {
        let end = segment.end();
        let rtt = now.saturating_sub(segment.sent);
        if segment.is(EVER_RESENT) {
            // Faster than any round trip: the ACK is for an earlier transmission.
            if rtt < min {
                return;
            }
        } else if self
            .highest
            .is_some_and(|high| (end.wrapping_sub(high) as i32) < 0)
        {
            self.reordering = true;
        }
        if self
            .highest
            .is_none_or(|high| end.wrapping_sub(high) as i32 > 0)
        {
            self.highest = Some(end);
        }
        if is_after(segment.sent, end, self.sent, self.end) {
            self.sent = segment.sent;
            self.end = end;
        }
        self.rtt = rtt;
    }

    /// The peer reported a needless retransmission: wait longer (RFC 8985 §6.2 step 4), if reordering
    /// explains it (`tcp_dsack_seen`).
    pub fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if self.reordering && una >= self.widened_until {
            self.quarters = self.quarters.saturating_add(1);
            self.persist = PERSIST;
            self.widened_until = nxt;
        }
    }

    /// A recovery has ended.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// How much reordering is tolerated. None where loss is all but certain and reordering was
    /// never seen.
    fn window(&self, is_certain: bool, min: Time, smoothed: Time) -> Time {
        if !self.reordering && is_certain {
            return Time::ZERO;
        }
        Time(min.0 / 4 * self.quarters as u64).min(smoothed)
    }

    /// How long after a segment was sent it is taken for lost, in recovery.
    pub fn patience_in_recovery(&self, min: Time, smoothed: Time) -> Time {
        self.rtt + self.window(true, min, smoothed)
    }

    /// RFC 8985 §6.2 step 5: marks what is lost; returns the bytes newly lost, and how long until
    /// more may be. `is_certain`: reordering does not explain what is missing.
    #[inline]
    pub fn detect(
        &self,
        board: &mut Scoreboard,
        now: Time,
        is_certain: bool,
        min: Time,
        smoothed: Time,
    ) -> (u32, Time) {
        let patience = self.rtt + self.window(is_certain, min, smoothed);
        let (mut newly, mut wait) = (0, Time::ZERO);
        for index in 0..board.len() {
            let segment = board.segment(index);
            if !is_after(self.sent, self.end, segment.sent, segment.end()) {
                if segment.is(EVER_RESENT) {
                    continue;
                }
                // What follows was sent even later.
                break;
            }
            if segment.is(SACKED) || (segment.is(LOST) && !segment.is(RESENT)) {
                continue;
            }
            let due = segment.sent + patience;
            if due <= now {
                newly += segment.len as u32;
                board.mark_lost(index);
            } else {
                wait = wait.max(due - now);
            }
        }
        (newly, wait)
    }
}

/// Whether the first of two transmissions was later; by order of sequence where the clock is equal.
fn is_after(sent: Time, end: u32, other_sent: Time, other_end: u32) -> bool {
    sent > other_sent || (sent == other_sent && end.wrapping_sub(other_end) as i32 > 0)
}
