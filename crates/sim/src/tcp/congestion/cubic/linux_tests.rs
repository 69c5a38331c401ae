// SPDX-License-Identifier: Apache-2.0
//! Linux's CUBIC: values worked out by hand, and what holds for any ACKs.

use super::*;
use proptest::prelude::*;

const MSS: u32 = 1_000;

/// A path, its clock, and the window of a sender that always uses all of it.
struct Path {
    cfg: Config,
    now: Time,
    rtt: Time,
    una: u64,
    cubic: LinuxCubic,
    window: Window,
}

impl Path {
    fn new(segments: u32, rtt: Time) -> Path {
        Path {
            cfg: Config::linux(),
            now: Time::from_secs(1),
            rtt,
            una: 1,
            cubic: LinuxCubic::new(true),
            window: Window {
                cwnd: segments * MSS,
                ssthresh: MSS,
                credit: 0,
            },
        }
    }

    fn segments(&self) -> u32 {
        self.window.cwnd / MSS
    }

    fn ack(&mut self, segments: u32) {
        self.una += (segments * MSS) as u64;
        let ack = Acked {
            now: self.now,
            bytes: segments * MSS,
            segments,
            mss: MSS,
            una: self.una,
            nxt: self.una + self.window.cwnd as u64,
            rtt: self.rtt,
            smoothed: self.rtt,
        };
        self.cubic.on_round_trip(&self.cfg, &mut self.window, &ack);
        self.cubic.grow(&self.cfg, &mut self.window, &ack);
    }

    /// A round trip in which a window is delivered, by ACKs of two segments spread over it.
    fn round(&mut self) {
        let acks = self.segments().div_ceil(2);
        for _ in 0..acks {
            self.now += Time(self.rtt.0 / acks as u64);
            self.ack(2);
        }
    }

    fn lose(&mut self) {
        let threshold = self.cubic.decrease(&self.window, self.window.cwnd, MSS);
        self.window.ssthresh = threshold;
        self.window.cwnd = threshold;
        self.window.credit = 0;
    }
}

#[test]
fn a_loss_leaves_whole_segments() {
    for (before, after) in [(100, 70), (10, 7), (3, 2), (2, 1)] {
        let mut path = Path::new(before, Time::from_millis(1));
        path.lose();
        assert_eq!(path.segments(), after, "{before} * 717 / 1024");
    }
}

/// RFC 9438 §4.2: at 100 segments, after a loss, 0.4 (t - 4.217 s)^3 + 100.
#[test]
fn a_long_path_follows_the_curve() {
    let mut path = Path::new(100, Time::from_millis(200));
    path.lose();
    for round in 1..40 {
        path.round();
        let t = round as f64 * 0.2;
        let curve = 0.4 * (t - 4.217_f64).powi(3) + 100.0;
        let got = path.segments() as f64;
        assert!((got - curve).abs() < 4.0, "{t} s: {got}, not {curve}");
    }
}

/// With no plateau to come back to, a segment for every 20 delivered: 5 % in a round trip.
#[test]
fn an_unknown_path_is_explored_by_a_twentieth() {
    let mut path = Path::new(100, Time::from_micros(500));
    path.cubic.is_found = true;
    path.round();
    assert_eq!(path.segments(), 105);
    for _ in 0..10 {
        path.round();
    }
    assert!(
        (168..=172).contains(&path.segments()),
        "{}",
        path.segments()
    );
}

/// Beyond the curve the window stands still for a 32nd of a second; then it makes up for what a
/// Reno-friendly one has gained meanwhile, a segment for every two delivered, up to a jiffy longer.
#[test]
fn a_short_path_catches_up_with_reno_in_steps() {
    let mut path = Path::new(100, Time::from_micros(1_000));
    path.lose();
    let mut windows = vec![path.segments()];
    for _ in 0..60 {
        path.round();
        windows.push(path.segments());
    }
    // One a round trip within the first jiffy, as the curve is a segment ahead.
    assert_eq!(windows[0], 70);
    assert!((72..=75).contains(&windows[4]), "{windows:?}");
    let still = windows.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(still >= 20, "{windows:?}");
    let leap = windows.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(leap > Some(10), "{windows:?}");
}

#[test]
fn a_timeout_forgets_plateau_and_round_trip() {
    let mut path = Path::new(100, Time::from_millis(1));
    path.round();
    path.lose();
    path.cubic.is_found = true;
    path.cubic.on_rto();
    assert_eq!((path.cubic.last_max, path.cubic.smallest), (0, Time::ZERO));
    assert!(!path.cubic.is_found && path.cubic.hystart.is_some());
}

/// Round trips of the first second of an epoch are those of the full queue.
#[test]
fn round_trips_after_a_loss_do_not_count() {
    let mut path = Path::new(50, Time::from_millis(1));
    path.round();
    path.lose();
    path.round();
    path.rtt = Time::from_micros(10);
    path.round();
    assert_eq!(path.cubic.smallest, Time::from_millis(1));
    path.now += Time::from_secs(1);
    path.round();
    assert_eq!(path.cubic.smallest, Time::from_micros(10));
}

/// RFC 9438 §5.8: the curve goes on where it was.
#[test]
fn silence_shifts_the_curve() {
    let mut path = Path::new(100, Time::from_millis(100));
    path.lose();
    path.round();
    let epoch = path.cubic.epoch.expect("an epoch has begun");
    let silence = Time::from_secs(3);
    path.now += silence;
    path.cubic.on_idle(&path.cfg, path.now, silence);
    assert_eq!(path.cubic.epoch, Some(epoch + 750), "jiffies of 4 ms");
    path.cubic.on_idle(&path.cfg, path.now, Time::from_secs(9));
    assert_eq!(path.cubic.epoch, Some(jiffies(&path.cfg, path.now)));
}

/// Slow start ends at the threshold, and what an ACK delivers beyond it counts for what follows.
#[test]
fn slow_start_stops_at_the_threshold() {
    let mut path = Path::new(10, Time::from_millis(1));
    path.window.ssthresh = 12 * MSS;
    path.ack(5);
    assert_eq!((path.segments(), path.window.credit), (12, 3));
}

proptest! {
    #[test]
    fn windows_are_whole_and_grow_by_half_at_most(
        start in 1u32..500,
        steps in prop::collection::vec((1u32..20, 0u64..20_000, 0u8..40), 1..300),
    ) {
        let mut path = Path::new(start, Time::from_micros(300));
        for (segments, micros, event) in steps {
            path.now += Time::from_micros(micros);
            match event {
                0 => path.lose(),
                1 => path.cubic.on_rto(),
                _ => {
                    let before = path.window;
                    path.window.cwnd = path.window.cwnd.max(MSS);
                    let cwnd = path.segments();
                    path.ack(segments);
                    // A credit saved up at a slower pace counts once.
                    let most = segments.div_ceil(2) + 1;
                    prop_assert!(path.segments() - cwnd <= most, "{before:?}");
                }
            }
            prop_assert_eq!(path.window.cwnd % MSS, 0);
        }
    }
}
