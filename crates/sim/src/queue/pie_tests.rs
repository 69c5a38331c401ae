// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::queue::fixtures::{data, ect, port};
use crate::rng::Rng;

/// 12 Mb/s: a byte is 2/3 us, 1500 bytes are 1 ms.
const RATE: Rate = Rate(12_000_000);

fn pie() -> Pie {
    Pie::new(Config::for_link(RATE))
}

fn with_probability(p: f64) -> Pie {
    Pie {
        probability: fixed(p),
        old_delay: Time::from_millis(30),
        burst_allowance: Time::ZERO,
        ..pie()
    }
}

fn update(pie: &mut Pie, delay_ms: u64) -> f64 {
    pie.tick(Time::ZERO, delay_ms * 1500);
    pie.probability()
}

fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-6 * expected
}

/// RFC 8033 §4.2 by hand: p = alpha (delay - 15 ms) + beta (delay - old), over 2048, then 128.
#[test]
fn controller_by_hand() {
    let mut pie = pie();
    let first = (0.125 * 0.015 + 1.25 * 0.030) / 2048.0;
    assert!(near(update(&mut pie, 30), first), "{}", pie.probability());
    let second = first + 0.125 * 0.015 / 128.0;
    assert!(near(update(&mut pie, 30), second));
    let third = second + (0.125 * 0.005 + 1.25 * -0.010) / 128.0;
    assert!(third < 0.0, "the queue shrinks fast");
    assert_eq!(update(&mut pie, 20), 0.0);
}

#[test]
fn steps_are_tuned_to_the_probability() {
    for (p, divisor) in [
        (5e-7, 2048.0),
        (5e-6, 512.0),
        (5e-5, 128.0),
        (5e-4, 32.0),
        (5e-3, 8.0),
        (5e-2, 2.0),
        (0.5, 1.0),
    ] {
        let got = update(&mut with_probability(p), 30);
        assert!(near(got, p + 0.125 * 0.015 / divisor), "{p}: {got}");
    }
}

#[test]
fn a_jump_at_high_probability_is_capped() {
    let mut pie = with_probability(0.2);
    pie.old_delay = Time::ZERO;
    assert!(near(update(&mut pie, 100), 0.22));
}

#[test]
fn decays_on_an_empty_queue() {
    let mut pie = with_probability(0.5);
    pie.old_delay = Time::ZERO;
    assert!(near(update(&mut pie, 0), (0.5 - 0.125 * 0.015) * 0.98));
}

#[test]
fn bursts_pass_for_150_ms() {
    let mut pie = pie();
    pie.probability = ONE;
    let mut rng = Rng::new(1, 0);
    for _ in 0..10 {
        assert_eq!(pie.admit(&port(50), &data(0), &mut rng), Verdict::Pass);
        update(&mut pie, 50);
    }
    assert_eq!(
        pie.admit(&port(50), &data(0), &mut rng),
        Verdict::Drop(DropReason::Early)
    );
    pie.probability = 0;
    pie.old_delay = Time::ZERO;
    update(&mut pie, 1);
    assert_eq!(pie.burst_allowance, Time::from_millis(150), "calm again");
}

#[test]
fn never_drops_from_two_packets_or_a_calm_queue() {
    let mut rng = Rng::new(1, 0);
    assert_eq!(
        with_probability(1.0).admit(&port(2), &data(0), &mut rng),
        Verdict::Pass
    );
    assert_ne!(
        with_probability(1.0).admit(&port(3), &data(0), &mut rng),
        Verdict::Pass
    );
    let calm = Pie {
        old_delay: Time::from_millis(7),
        accumulated: 8 * ONE,
        ..with_probability(0.19)
    };
    let busy = Pie {
        old_delay: Time::from_millis(8),
        ..calm.clone()
    };
    let dropped = |mut pie: Pie| {
        let mut rng = Rng::new(1, 0);
        (0..1000).any(|_| pie.admit(&port(50), &data(0), &mut rng) != Verdict::Pass)
    };
    assert!(!dropped(calm));
    assert!(dropped(busy));
}

#[test]
fn derandomized_drops_keep_their_distance() {
    let (mut pie, mut rng) = (with_probability(0.05), Rng::new(5, 0));
    let (mut gap, mut gaps) = (0, Vec::new());
    for _ in 0..100_000 {
        gap += 1;
        if pie.admit(&port(50), &data(0), &mut rng) != Verdict::Pass {
            gaps.push(std::mem::take(&mut gap));
        }
    }
    // 0.85 / 0.05 = 17 packets, 8.5 / 0.05 = 170.
    assert!(gaps.iter().all(|gap| (17..=170).contains(gap)));
    let mean = 100_000.0 / gaps.len() as f64;
    assert!(
        (mean - 36.0).abs() < 1.0,
        "16 and then a geometric wait of 20: {mean}"
    );
}

#[test]
fn marks_up_to_the_threshold() {
    let verdict = |p: f64| {
        let mut pie = with_probability(p);
        pie.config.ecn = true;
        let mut rng = Rng::new(1, 0);
        (0..1000)
            .map(|_| pie.admit(&port(50), &ect(0), &mut rng))
            .find(|&v| v != Verdict::Pass)
    };
    assert_eq!(verdict(0.1), Some(Verdict::Mark));
    assert_eq!(verdict(0.11), Some(Verdict::Drop(DropReason::Early)));
}

/// A port of a packet per millisecond under 20 % overload that never yields: the delay settles at the
/// target and a sixth of the packets goes.
#[test]
fn holds_the_target_under_overload() {
    let (mut pie, mut rng) = (pie(), Rng::new(8, 0));
    let mut free_at = Time::ZERO;
    let mut next_update = Time::ZERO;
    let (mut arrivals, mut drops, mut delays) = (0u32, 0u32, 0.0);
    for i in 0..480_000u64 {
        let now = Time(i * 833_333_333);
        let delay = free_at.saturating_sub(now);
        let backlog_bytes = delay.0 * 1500 / 1_000_000_000;
        if now >= next_update {
            pie.tick(now, backlog_bytes);
            next_update += Time::from_millis(15);
        }
        let port = Arrival {
            now,
            backlog_bytes,
            backlog_packets: (backlog_bytes / 1500) as u32,
            free_at,
        };
        let passes = pie.admit(&port, &data(0), &mut rng) == Verdict::Pass;
        if passes {
            free_at = free_at.max(now) + Time::from_millis(1);
        }
        if i >= 240_000 {
            arrivals += 1;
            drops += u32::from(!passes);
            delays += delay.as_secs_f64();
        }
    }
    let (share, mean) = (
        f64::from(drops) / f64::from(arrivals),
        delays / f64::from(arrivals),
    );
    assert!((share - 1.0 / 6.0).abs() < 0.002, "{share}");
    assert!((0.014..0.016).contains(&mean), "{mean}");
}

proptest! {
    #[test]
    fn probability_is_bounded_and_only_ect_marked(steps in prop::collection::vec((0u64..10_000_000, any::<bool>()), 0..300)) {
        let mut pie = Pie::new(Config { ecn: true, ..Config::for_link(RATE) });
        let mut rng = Rng::new(4, 0);
        for (backlog, capable) in steps {
            pie.tick(Time::ZERO, backlog);
            prop_assert!((0.0..=1.0).contains(&pie.probability()));
            let packet = if capable { ect(0) } else { data(0) };
            prop_assert!(capable || pie.admit(&port(50), &packet, &mut rng) != Verdict::Mark);
        }
    }
}
