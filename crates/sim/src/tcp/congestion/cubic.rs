// SPDX-License-Identifier: Apache-2.0
//! CUBIC (RFC 9438) in integers: time in 1/1024 s, windows in segments.

use super::newreno;
use super::window::{Acked, Window};
use crate::tcp::config::Config;
use penstock_scenario::units::Time;

/// beta = 0.7 as Linux rounds it: 717/1024.
const BETA: u64 = 717;
/// C = 0.4 segments/s^3, in 1/1024.
const C: u64 = 410;
/// alpha = 3 (1 - beta) / (1 + beta) = 0.529 (RFC 9438 §4.3), in 1/1024. Linux's `bictcp_update`
/// keeps it once the estimate has passed the last window, where the RFC goes on with 1.
const ALPHA: u32 = 542;
/// C t^3 with t in 1/1024 s: 30 bits of time, 10 of C.
const SHIFT: u32 = 40;
/// The curve is followed again this often while the window stands still (Linux: HZ/32).
const REFRESH: Time = Time::from_micros(31_250);

#[derive(Clone, Debug)]
pub(super) struct Cubic {
    /// Window before the last decrease, segments, after fast convergence.
    w_max: u32,
    /// Start of the current curve; NEVER before its first ACK.
    epoch: Time,
    /// Time from the epoch to the plateau, 1/1024 s.
    k: u64,
    /// Bytes to acknowledge per segment of growth by the curve, and what it was computed for.
    per_curve: u32,
    computed_for: u32,
    computed_at: Time,
    /// The Reno-friendly window, bytes, and its credit (RFC 9438 §4.3).
    friendly: u32,
    friendly_credit: u32,
    hystart: Option<HyStart>,
}

impl Cubic {
    pub(super) fn new(hystart: bool) -> Cubic {
        Cubic {
            w_max: 0,
            epoch: Time::NEVER,
            k: 0,
            per_curve: u32::MAX,
            computed_for: 0,
            computed_at: Time::ZERO,
            friendly: 0,
            friendly_credit: 0,
            hystart: hystart.then(HyStart::default),
        }
    }

    pub(super) fn grow(&mut self, cfg: &Config, window: &mut Window, ack: &Acked) {
        if window.in_slow_start() {
            if let Some(hystart) = &mut self.hystart
                && hystart.found(window, ack)
            {
                window.ssthresh = window.cwnd;
            } else {
                newreno::grow(cfg, window, ack.bytes, ack.mss);
                return;
            }
        }
        let per_segment = self.follow(window, ack);
        // As Linux's tcp_cong_avoid_ai: what was saved up at a slower pace counts once, and what is
        // left over is kept.
        let mut segments = 0;
        if window.credit >= per_segment {
            window.credit = 0;
            segments = 1;
        }
        window.credit = window.credit.saturating_add(ack.bytes);
        segments += window.credit / per_segment;
        window.credit %= per_segment;
        window.cwnd = window.cwnd.saturating_add(segments * ack.mss);
    }

    /// Bytes to acknowledge per segment of growth, by the curve or the Reno-friendly window,
    /// whichever is ahead.
    fn follow(&mut self, window: &Window, ack: &Acked) -> u32 {
        let cwnd = window.cwnd / ack.mss;
        if self.epoch == Time::NEVER {
            self.start_epoch(window, ack, cwnd);
        }
        self.friendly_credit += ((ack.bytes as u64 * ALPHA as u64) >> 10) as u32;
        if self.friendly_credit >= window.cwnd {
            self.friendly_credit -= window.cwnd;
            self.friendly += ack.mss;
        }
        if window.cwnd != self.computed_for || ack.now >= self.computed_at + REFRESH {
            self.computed_for = window.cwnd;
            self.computed_at = ack.now;
            let target = self.target(cwnd, ack);
            self.per_curve = if target > cwnd {
                window.cwnd / (target - cwnd)
            } else {
                window.cwnd.saturating_mul(100)
            };
        }
        let mut per_segment = self.per_curve;
        if self.friendly > window.cwnd {
            let ahead = (self.friendly - window.cwnd).div_ceil(ack.mss);
            per_segment = per_segment.min(window.cwnd / ahead);
        }
        // No more than half a segment per segment acknowledged: 1.5 cwnd in an RTT (§4.4).
        per_segment.max(2 * ack.mss)
    }

    fn start_epoch(&mut self, window: &Window, ack: &Acked, cwnd: u32) {
        self.epoch = ack.now;
        self.friendly = window.cwnd;
        self.friendly_credit = 0;
        self.computed_for = 0;
        self.k = if self.w_max > cwnd {
            cube_root((((self.w_max - cwnd) as u128) << SHIFT) as u64 / C)
        } else {
            self.w_max = cwnd;
            0
        };
    }

    /// W_cubic one round trip ahead, segments, not above 1.5 cwnd (RFC 9438 §4.2).
    fn target(&self, cwnd: u32, ack: &Acked) -> u32 {
        let ahead = ack.now.saturating_sub(self.epoch) + ack.smoothed;
        let t = ((ahead.as_micros() << 10) / 1_000_000).min(1 << 19);
        let off = t.abs_diff(self.k);
        let delta = ((C as u128 * (off as u128).pow(3)) >> SHIFT).min(1 << 30) as u32;
        let curve = if t < self.k {
            self.w_max.saturating_sub(delta)
        } else {
            self.w_max.saturating_add(delta)
        };
        curve.min(cwnd + cwnd / 2)
    }

    /// beta cwnd, remembering where the window stood (fast convergence, RFC 9438 §4.7).
    pub(super) fn decrease(&mut self, window: &Window, base: u32, mss: u32) -> u32 {
        let cwnd = window.cwnd / mss;
        self.w_max = if cwnd < self.w_max {
            ((cwnd as u64 * (1024 + BETA)) >> 11) as u32
        } else {
            cwnd
        };
        self.epoch = Time::NEVER;
        if let Some(hystart) = &mut self.hystart {
            hystart.restart();
        }
        ((base as u64 * BETA) >> 10) as u32
    }

    /// The next epoch starts at the window in force then, which is its plateau (RFC 9438 §4.8).
    pub(super) fn on_rto(&mut self) {
        self.w_max = 0;
        self.epoch = Time::NEVER;
        if let Some(hystart) = &mut self.hystart {
            hystart.restart();
        }
    }

    /// Silence is no growth: the curve is shifted by it (RFC 9438 §5.8).
    pub(super) fn on_idle(&mut self, idle: Time) {
        if self.epoch != Time::NEVER {
            self.epoch += idle;
        }
    }
}

/// The largest `r` with `r^3 <= n`, digit by digit.
fn cube_root(n: u64) -> u64 {
    let (mut rest, mut root) = (n, 0u64);
    for digit in (0..=63 / 3).rev() {
        root <<= 1;
        let step = 3 * root * (root + 1) + 1;
        if rest >> (3 * digit) >= step {
            rest -= step << (3 * digit);
            root += 1;
        }
    }
    root
}

/// HyStart as Linux has it: slow start ends when a round's ACK train is as long as half the
/// smallest round trip, or when the round trips of a round have grown.
#[derive(Clone, Debug, Default)]
struct HyStart {
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    smallest: Time,
    round_smallest: Time,
    samples: u8,
}

impl HyStart {
    /// Below this many segments HyStart is silent.
    const LOW_WINDOW: u32 = 16;
    /// ACKs closer than this make a train.
    const SPACING: Time = Time::from_millis(2);
    /// Samples of a round that are compared.
    const SAMPLES: u8 = 8;

    fn restart(&mut self) {
        self.round_end = 0;
        self.smallest = Time::ZERO;
    }

    fn found(&mut self, window: &Window, ack: &Acked) -> bool {
        if ack.una > self.round_end {
            self.round_end = ack.nxt;
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.round_smallest = Time::NEVER;
            self.samples = 0;
        }
        if ack.rtt != Time::ZERO && (self.smallest == Time::ZERO || ack.rtt < self.smallest) {
            self.smallest = ack.rtt;
        }
        if window.cwnd < Self::LOW_WINDOW * ack.mss || self.smallest == Time::ZERO {
            return false;
        }
        if ack.now.saturating_sub(self.last_ack) <= Self::SPACING {
            self.last_ack = ack.now;
            if ack.now.saturating_sub(self.round_start).0 > self.smallest.0 / 2 {
                return true;
            }
        }
        if ack.rtt == Time::ZERO {
            return false;
        }
        if self.samples < Self::SAMPLES {
            self.samples += 1;
            self.round_smallest = self.round_smallest.min(ack.rtt);
            return false;
        }
        let margin = (self.smallest.0 / 8).clamp(Time::from_millis(4).0, Time::from_millis(16).0);
        self.round_smallest.0 > self.smallest.0 + margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip: each segment of the window is acknowledged; returns SND.UNA after it.
    fn acknowledge_window(
        cubic: &mut Cubic,
        window: &mut Window,
        (mut una, now, rtt, mss): (u64, Time, Time, u32),
    ) -> u64 {
        for _ in 0..window.cwnd / mss {
            una += mss as u64;
            let nxt = una + window.cwnd as u64;
            let ack = Acked {
                now,
                una,
                nxt,
                rtt,
                smoothed: rtt,
                ..acked(mss, mss)
            };
            cubic.grow(&Config::linux(), window, &ack);
        }
        una
    }

    /// After a loss at 100 segments the window follows 0.4 (t - K)^3 + 100 with K = 4.217 s.
    #[test]
    fn the_window_follows_the_curve() {
        let (mss, rtt) = (1_000, Time::from_millis(200));
        let mut cubic = Cubic::new(false);
        let mut window = Window {
            cwnd: 100 * mss,
            ssthresh: 1,
            credit: 0,
        };
        window.cwnd = cubic.decrease(&window, window.cwnd, mss);
        window.ssthresh = window.cwnd;
        assert_eq!(window.cwnd / mss, 70);
        let (mut now, mut una) = (Time::from_secs(1), 0);
        for round in 0..40 {
            una = acknowledge_window(&mut cubic, &mut window, (una, now, rtt, mss));
            now += rtt;
            let t = (round + 1) as f64 * 0.2;
            let curve = 0.4 * (t - 4.217).powi(3) + 100.0;
            let got = window.cwnd as f64 / mss as f64;
            assert!((got - curve).abs() < 4.0, "t {t}: {got}, not {curve}");
        }
    }

    /// With a short round trip growth is that of the Reno estimate, 0.529 segments a round, and
    /// stays so.
    #[test]
    fn short_round_trips_are_reno_friendly() {
        let (mss, rtt) = (1_000, Time::from_micros(100));
        let mut cubic = Cubic::new(false);
        let mut window = Window {
            cwnd: 20 * mss,
            ssthresh: 1,
            credit: 0,
        };
        window.cwnd = cubic.decrease(&window, window.cwnd, mss);
        window.ssthresh = window.cwnd;
        let (mut now, mut una) = (Time::from_secs(1), 0);
        for _ in 0..20 {
            una = acknowledge_window(&mut cubic, &mut window, (una, now, rtt, mss));
            now += rtt;
        }
        // 14 segments and 20 rounds.
        assert!((24..=25).contains(&(window.cwnd / mss)), "{}", window.cwnd);
    }

    /// After a timeout K is 0 and the plateau is where congestion avoidance begins (RFC 9438 §4.8).
    #[test]
    fn a_timeout_forgets_the_plateau() {
        let mss = 1_000;
        let mut cubic = Cubic::new(false);
        let mut window = Window {
            cwnd: 100 * mss,
            ssthresh: 1,
            credit: 0,
        };
        window.ssthresh = cubic.decrease(&window, window.cwnd, mss);
        cubic.on_rto();
        window.cwnd = window.ssthresh;
        let ack = acked(mss, mss);
        cubic.grow(&Config::linux(), &mut window, &ack);
        assert_eq!((cubic.k, cubic.w_max), (0, window.ssthresh / mss));
    }

    /// ACKs of two segments open the window as fast as twice as many of one.
    #[test]
    fn what_an_ack_leaves_over_counts() {
        let mss = 1_000;
        let [one, two] = [1, 2].map(|stretch| {
            let mut cubic = Cubic::new(false);
            let mut window = Window {
                cwnd: 100 * mss,
                ssthresh: 1,
                credit: 0,
            };
            (cubic.epoch, cubic.w_max, cubic.computed_for) = (Time::ZERO, 100, window.cwnd);
            cubic.computed_at = Time::NEVER.saturating_sub(Time::from_secs(1));
            cubic.per_curve = 2_500;
            for _ in 0..100 / stretch {
                cubic.computed_for = window.cwnd;
                cubic.grow(&Config::linux(), &mut window, &acked(mss, stretch * mss));
            }
            window.cwnd
        });
        assert_eq!(two, one);
        assert_eq!(one, 140 * mss);
    }

    fn acked(mss: u32, bytes: u32) -> Acked {
        Acked {
            now: Time::from_secs(1),
            bytes,
            mss,
            una: 1,
            nxt: 1,
            rtt: Time::from_millis(1),
            smoothed: Time::from_millis(1),
        }
    }

    #[test]
    fn cube_roots_are_exact() {
        for n in (0..5000).chain([u64::MAX, u64::MAX - 1, 1 << 60, (1 << 60) - 1]) {
            let root = cube_root(n) as u128;
            assert!(
                root.pow(3) <= n as u128 && (root + 1).pow(3) > n as u128,
                "{n}: {root}"
            );
        }
    }
}
