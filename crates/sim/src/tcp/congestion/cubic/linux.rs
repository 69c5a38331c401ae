// SPDX-License-Identifier: Apache-2.0
//! CUBIC as Linux has it (tcp_cubic of 6.18): windows in whole segments, time in jiffies. It departs
//! from RFC 9438 in that
//!
//! - the Reno-friendly window keeps its slope of 1 segment per 1.875 windows (§4.3 goes on with 1 once
//!   it has passed the last plateau), and it alone is looked at with each ACK: the curve when the
//!   window has changed and the clock has ticked, or after a 32nd of a second;
//! - the curve is looked at one smallest round trip ahead, rounded up to a jiffy (§4.2: a smoothed one);
//! - while no plateau is known, after a timeout or HyStart, the window grows by at least 5 % in a round
//!   trip;
//! - growth is limited to a segment for every two (§4.2 limits the target to 1.5 windows).

use super::curve;
use super::hystart::{HyStart, Version};
use crate::tcp::config::Config;
use crate::tcp::congestion::window::{Acked, Window};
use penstock_scenario::units::Time;

/// Segments per segment of growth while no plateau is known: 5 % in a round trip.
const EXPLORING: u32 = 20;
/// At the fastest.
const FASTEST: u32 = 2;
/// At the plateau, in windows.
const LEVEL: u32 = 100;
/// Eighths of a window per segment of the Reno-friendly window: 8/3 (1 + beta) / (1 - beta), rounded
/// down (RFC 9438 §4.3).
const FRIENDLY: u64 = 15;
/// A jiffy where the configuration has none: HZ = 1000.
const JIFFY: Time = Time::from_millis(1);

/// The state of CUBIC. Windows are in segments, instants in jiffies.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp::congestion) struct LinuxCubic {
    /// Segments to deliver per segment of growth, by the curve.
    per_segment: u32,
    /// The window and the instant it was computed for.
    computed_for: u32,
    computed_at: u64,
    /// The window to come back to; 0 for unknown.
    last_max: u32,
    /// The curve's start, if it has begun; its plateau, and the time to it in 1/1024 s.
    epoch: Option<u64>,
    plateau: u32,
    k: u64,
    /// The Reno-friendly window, and what was delivered towards its next segment.
    friendly: u32,
    delivered: u64,
    /// Smallest round trip since the last timeout; zero for none.
    smallest: Time,
    hystart: Option<HyStart>,
    /// HyStart has ended slow start; no more of it before a timeout.
    is_found: bool,
}

impl LinuxCubic {
    pub(in crate::tcp::congestion) fn new(hystart: bool) -> LinuxCubic {
        LinuxCubic {
            hystart: hystart.then(HyStart::default),
            ..LinuxCubic::default()
        }
    }

    /// An ACK showed a round trip, whether or not the window may grow. Those in the first second of an
    /// epoch still hold the queue of the loss before it and do not count.
    pub(in crate::tcp::congestion) fn on_round_trip(
        &mut self,
        cfg: &Config,
        window: &mut Window,
        ack: &Acked,
    ) {
        let now = jiffies(cfg, ack.now);
        if self
            .epoch
            .is_some_and(|epoch| now.saturating_sub(epoch) < hz(cfg))
        {
            return;
        }
        if self.smallest == Time::ZERO || ack.rtt < self.smallest {
            self.smallest = ack.rtt;
        }
        if self.is_found || !window.in_slow_start() {
            return;
        }
        let cwnd = window.cwnd / ack.mss;
        if let Some(hystart) = &mut self.hystart
            && hystart.ends_slow_start(Version::New, cwnd, self.smallest, ack)
        {
            self.is_found = true;
            window.ssthresh = window.cwnd;
        }
    }

    /// Grows the window for what an ACK delivered.
    pub(in crate::tcp::congestion) fn grow(
        &mut self,
        cfg: &Config,
        window: &mut Window,
        ack: &Acked,
    ) {
        let mut segments = ack.segments;
        if window.in_slow_start() {
            segments = window.grow_to_threshold(segments, ack.mss);
            if segments == 0 {
                return;
            }
        }
        let cwnd = (window.cwnd / ack.mss).max(1);
        let per_segment = self.follow(cfg, cwnd, segments, ack.now);
        window.grow_by_credit(segments, per_segment, ack.mss);
    }

    /// Segments to deliver per segment of growth, by the curve or the Reno-friendly window, whichever
    /// is ahead.
    fn follow(&mut self, cfg: &Config, cwnd: u32, segments: u32, now: Time) -> u32 {
        let (now, hz) = (jiffies(cfg, now), hz(cfg));
        self.delivered += segments as u64;
        if cwnd == self.computed_for && now.saturating_sub(self.computed_at) <= hz / 32 {
            return self.per_segment;
        }
        if self.epoch.is_none() || now != self.computed_at {
            (self.computed_for, self.computed_at) = (cwnd, now);
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => self.start_epoch(cwnd, segments, now),
            };
            let ahead = self.smallest.0.div_ceil(jiffy(cfg).0);
            let t = ((now.saturating_sub(epoch) + ahead) << 10) / hz;
            self.per_segment = self.per_segment_by_curve(cwnd, t);
        }
        self.per_segment = self.per_segment.min(self.per_segment_by_reno(cwnd));
        self.per_segment = self.per_segment.max(FASTEST);
        self.per_segment
    }

    fn start_epoch(&mut self, cwnd: u32, segments: u32, now: u64) -> u64 {
        self.epoch = Some(now);
        self.delivered = segments as u64;
        self.friendly = cwnd;
        self.plateau = self.last_max.max(cwnd);
        self.k = curve::time_to_plateau(self.plateau - cwnd);
        now
    }

    fn per_segment_by_curve(&self, cwnd: u32, t: u64) -> u32 {
        let target = curve::window_at(t, self.k, self.plateau);
        let per_segment = match target.checked_sub(cwnd) {
            None | Some(0) => cwnd.saturating_mul(LEVEL),
            Some(ahead) => cwnd / ahead,
        };
        if self.last_max == 0 {
            per_segment.min(EXPLORING)
        } else {
            per_segment
        }
    }

    /// Moves the Reno-friendly window (RFC 9438 §4.3); how fast to grow to reach it in a round trip.
    fn per_segment_by_reno(&mut self, cwnd: u32) -> u32 {
        let step = ((cwnd as u64 * FRIENDLY) >> 3).max(1);
        // A remainder of at least one, as in Linux.
        let steps = self.delivered.saturating_sub(1) / step;
        self.delivered -= steps * step;
        self.friendly = self.friendly.saturating_add(steps as u32);
        match self.friendly.checked_sub(cwnd) {
            None | Some(0) => u32::MAX,
            Some(ahead) => cwnd / ahead,
        }
    }

    /// The window falls to beta of `base`, bytes: the result is in bytes, of whole segments.
    pub(in crate::tcp::congestion) fn decrease(
        &mut self,
        window: &Window,
        base: u32,
        mss: u32,
    ) -> u32 {
        self.epoch = None;
        self.last_max = curve::next_plateau(window.cwnd / mss, self.last_max);
        curve::decreased(base / mss) * mss
    }

    /// A timeout: nothing is known any more.
    pub(in crate::tcp::congestion) fn on_rto(&mut self) {
        *self = LinuxCubic::new(self.hystart.is_some());
    }

    /// Sending resumes at `now` with nothing in flight: silence is no growth, the curve is shifted by
    /// it (RFC 9438 §5.8).
    pub(in crate::tcp::congestion) fn on_idle(&mut self, cfg: &Config, now: Time, idle: Time) {
        let (now, idle) = (jiffies(cfg, now), jiffies(cfg, idle));
        self.epoch = self.epoch.map(|epoch| (epoch + idle).min(now));
    }
}

fn jiffy(cfg: &Config) -> Time {
    if cfg.jiffy == Time::ZERO {
        JIFFY
    } else {
        cfg.jiffy
    }
}

fn jiffies(cfg: &Config, at: Time) -> u64 {
    at.0 / jiffy(cfg).0
}

/// Jiffies of a second.
fn hz(cfg: &Config) -> u64 {
    Time::from_secs(1).0 / jiffy(cfg).0
}

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
