// SPDX-License-Identifier: Apache-2.0
//! Pacing: when the next burst may leave. A burst has the size of the segment that Linux would give to
//! segmentation offload at this rate: that of about a millisecond, more on short paths.

use penstock_scenario::units::Time;

/// The largest burst, bytes (`GSO_LEGACY_MAX_SIZE`).
const LARGEST: u64 = 65_536;
/// Below this rate of 1.2 Mb/s, in bytes per second, a burst may be one segment; else at least two.
const SLOW: u64 = 150_000;
/// A path's round trip is short if it is not many of these (`tcp_tso_rtt_log` of 9).
const SHORT: Time = Time::from_micros(512);

/// The clock of what may leave.
#[derive(Debug)]
pub(in crate::tcp::congestion) struct Pacer {
    /// Bytes per second; 0 before the first round trip is known.
    rate: u64,
    /// When the next burst may leave.
    next: Time,
    /// How much later than allowed the last burst left; it shortens the pause after it by half at most.
    credit: Time,
    /// What is left of the burst that is leaving, bytes.
    burst: u32,
    /// When the sender is to be called; NEVER while pacing does not hold it.
    wake: Time,
}

impl Pacer {
    pub fn new() -> Pacer {
        Pacer {
            rate: 0,
            next: Time::ZERO,
            credit: Time::ZERO,
            burst: 0,
            wake: Time::NEVER,
        }
    }

    pub fn rate(&self) -> u64 {
        self.rate
    }

    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate.max(1);
    }

    /// Segments of about a millisecond at this rate, bytes.
    pub fn goal(&self, mss: u32) -> u32 {
        self.segments(self.rate >> 10, mss).min(127) * mss
    }

    fn segments(&self, bytes: u64, mss: u32) -> u32 {
        let least = if self.rate < SLOW { 1 } else { 2 };
        (bytes.min(LARGEST) as u32 / mss).max(least)
    }

    /// How long after now the next burst may leave.
    pub fn ahead(&self, now: Time) -> Time {
        self.next.saturating_sub(now)
    }

    /// When the sender is to be called.
    pub fn wake(&self) -> Time {
        self.wake
    }

    /// A burst ends when the sender has sent all it could.
    pub fn end_burst(&mut self, now: Time, is_waiting: bool) {
        self.burst = 0;
        self.wake = if is_waiting && now < self.next {
            self.next
        } else {
            Time::NEVER
        };
    }

    /// Whether nothing may leave now.
    #[inline]
    pub fn is_held(&self, now: Time) -> bool {
        self.burst == 0 && now < self.next
    }

    /// A segment of `len` bytes leaves, on a path with this least round trip.
    pub fn on_sent(&mut self, now: Time, len: u16, mss: u32, min_rtt: Time) {
        if self.burst == 0 {
            let halvings = (min_rtt.0 / SHORT.0).min(63);
            let bytes = (self.rate >> 10) + (LARGEST >> halvings);
            self.burst = self.segments(bytes, mss) * mss;
        }
        self.burst = self.burst.saturating_sub(len as u32);
        if now >= self.next {
            self.credit = now.saturating_sub(self.next);
            self.next = now;
        }
        let pause = Time(len as u64 * 1_000_000_000_000 / self.rate.max(1));
        let saved = self.credit.min(Time(pause.0 / 2));
        self.credit = self.credit.saturating_sub(saved);
        self.next += pause.saturating_sub(saved);
    }
}
