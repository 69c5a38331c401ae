// SPDX-License-Identifier: Apache-2.0
//! CUBIC (RFC 9438) with windows in bytes. As Linux has it today, in segments, it is in `linux.rs`.

mod curve;
mod hystart;
mod linux;

use super::newreno;
use super::window::{Acked, Window};
use crate::tcp::config::Config;
use hystart::{HyStart, Version};
pub(super) use linux::LinuxCubic;
use penstock_scenario::units::Time;

/// alpha = 3 (1 - beta) / (1 + beta) = 0.529 (RFC 9438 §4.3), in 1/1024. Linux's `bictcp_update`
/// keeps it once the estimate has passed the last window, where the RFC goes on with 1.
const ALPHA: u32 = 542;
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
    /// Smallest round trip seen in slow start; zero for none.
    smallest: Time,
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
            smallest: Time::ZERO,
        }
    }

    pub(super) fn grow(&mut self, cfg: &Config, window: &mut Window, ack: &Acked) {
        if window.in_slow_start() {
            if self.ends_slow_start(window, ack) {
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

    fn ends_slow_start(&mut self, window: &Window, ack: &Acked) -> bool {
        let Some(hystart) = &mut self.hystart else {
            return false;
        };
        if ack.rtt != Time::ZERO && (self.smallest == Time::ZERO || ack.rtt < self.smallest) {
            self.smallest = ack.rtt;
        }
        let cwnd = window.cwnd / ack.mss;
        hystart.ends_slow_start(Version::Old, cwnd, self.smallest, ack)
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
            curve::time_to_plateau(self.w_max - cwnd)
        } else {
            self.w_max = cwnd;
            0
        };
    }

    /// W_cubic one round trip ahead, segments, not above 1.5 cwnd (RFC 9438 §4.2).
    fn target(&self, cwnd: u32, ack: &Acked) -> u32 {
        let ahead = ack.now.saturating_sub(self.epoch) + ack.smoothed;
        let t = (ahead.as_micros() << 10) / 1_000_000;
        let curve = curve::window_at(t, self.k, self.w_max);
        curve.min(cwnd + cwnd / 2)
    }

    /// beta cwnd, remembering where the window stood (fast convergence, RFC 9438 §4.7).
    pub(super) fn decrease(&mut self, window: &Window, base: u32, mss: u32) -> u32 {
        self.w_max = curve::next_plateau(window.cwnd / mss, self.w_max);
        self.epoch = Time::NEVER;
        self.restart_slow_start();
        curve::decreased(base)
    }

    fn restart_slow_start(&mut self) {
        if let Some(hystart) = &mut self.hystart {
            hystart.restart();
        }
        self.smallest = Time::ZERO;
    }

    /// The next epoch starts at the window in force then, which is its plateau (RFC 9438 §4.8).
    pub(super) fn on_rto(&mut self) {
        self.w_max = 0;
        self.epoch = Time::NEVER;
        self.restart_slow_start();
    }

    /// Silence is no growth: the curve is shifted by it (RFC 9438 §5.8).
    pub(super) fn on_idle(&mut self, idle: Time) {
        if self.epoch != Time::NEVER {
            self.epoch += idle;
        }
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
            segments: bytes.div_ceil(mss),
            mss,
            una: 1,
            nxt: 1,
            rtt: Time::from_millis(1),
            smoothed: Time::from_millis(1),
        }
    }
}
