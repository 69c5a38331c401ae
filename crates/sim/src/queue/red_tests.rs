// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::queue::fixtures::{data, ect, port};
use crate::rng::Rng;

/// The paper's figure: thresholds 5 and 15, 2 % at most, weight 0.002.
fn config() -> Config {
    Config {
        min_threshold: 5.0,
        max_threshold: 15.0,
        max_p: 0.1,
        weight: 0.002,
        ..Config::for_link(Rate(1_000_000_000), Limit::packets(1000))
    }
}

/// A port whose average is the queue itself.
fn instantaneous() -> Config {
    Config {
        weight: 1.0,
        ..config()
    }
}

fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-9 * expected.abs().max(1e-9)
}

#[test]
fn defaults_of_ns2() {
    // 1 Gb/s, 1500 bytes: 83333 packets/s; 5 ms are 416.7 packets.
    let config = Config::for_link(Rate(1_000_000_000), Limit::packets(100_000));
    assert!(near(config.min_threshold, 208.333_333_333_333));
    assert!(near(config.max_threshold, 625.0));
    assert!(
        (config.weight - 1.199_992_8e-5).abs() < 1e-11,
        "{}",
        config.weight
    );
    // 10 Mb/s: 4.2 packets, raised to 5.
    let slow = Config::for_link(Rate(10_000_000), Limit::packets(100_000));
    assert_eq!((slow.min_threshold, slow.max_threshold), (5.0, 15.0));
    // A buffer of 84 packets leaves 14 and 42.
    let shallow = Config::for_link(Rate(1_000_000_000), Limit::bytes(126_000));
    assert_eq!((shallow.min_threshold, shallow.max_threshold), (14.0, 42.0));
}

/// Floyd and Jacobson §IV: a burst of L = 50 packets into an empty queue brings the average to
/// L + 1 + ((1 - w)^(L+1) - 1) / w: 5 for w = 0.0042.
#[test]
fn average_after_the_papers_burst() {
    let after_burst = |weight: f64| {
        let mut red = Red::new(Config { weight, ..config() });
        for queue in 1..=50 {
            red.update_average(&port(queue));
        }
        red.average()
    };
    let formula = |w: f64| 51.0 + ((1.0 - w).powi(51) - 1.0) / w;
    assert!(near(after_burst(0.0042), formula(0.0042)));
    assert!((after_burst(0.0042) - 5.0).abs() < 0.01);
    assert!(after_burst(0.0041) < 5.0);
}

#[test]
fn idle_time_decays_the_average() {
    let mut red = Red::new(config());
    red.average = 10.0;
    // 100.5 packet times of 12 us: 100 missed packets and the arriving one.
    let now = Time::from_secs(1);
    let idle = Arrival {
        free_at: Time(now.0 - 1_206_000_000),
        ..port(0)
    };
    red.update_average(&idle);
    assert!(near(red.average(), 10.0 * 0.998f64.powi(101)));
    assert_eq!(power(0.998, 0), 1.0);
    assert_eq!(power(0.998, u64::MAX), 0.0);
}

#[test]
fn an_empty_queue_ends_at_zero() {
    let mut red = Red::new(Config {
        weight: 0.5,
        ..config()
    });
    red.average = 1.0;
    (0..50).for_each(|_| red.update_average(&port(0)));
    assert_eq!(red.average(), 0.0);
}

#[test]
fn probability_by_hand() {
    let probability = |average: f64| {
        let mut red = Red::new(config());
        red.average = average;
        red.base_probability()
    };
    assert!(near(probability(7.0), 0.02));
    assert!(near(probability(10.0), 0.05));
    assert!(near(probability(15.0), 0.1));
    assert!(near(probability(22.5), 0.55));
}

/// Packets between drops at a constant queue of `waiting`.
fn gaps(config: Config, waiting: u32, packet: &Packet) -> Vec<u32> {
    let (mut red, mut rng) = (Red::new(config), Rng::new(3, 0));
    let mut gaps = Vec::new();
    let mut gap = 0;
    while gaps.len() < 2_001 {
        gap += 1;
        if red.admit(&port(waiting), packet, &mut rng) != Verdict::Pass {
            gaps.push(std::mem::take(&mut gap));
        }
    }
    gaps.split_off(1)
}

fn mean(gaps: &[u32]) -> f64 {
    gaps.iter().sum::<u32>() as f64 / gaps.len() as f64
}

/// The paper's method 2: at p_b = 0.02 gaps are uniform on 1 to 1/p_b.
#[test]
fn drops_are_uniform() {
    let gaps = gaps(
        Config {
            wait: false,
            ..instantaneous()
        },
        7,
        &data(0),
    );
    assert!(gaps.iter().all(|&gap| (1..=50).contains(&gap)));
    assert!((mean(&gaps) - 25.0).abs() < 1.0, "{}", mean(&gaps));
    let short = gaps.iter().filter(|&&gap| gap <= 10).count() as f64 / gaps.len() as f64;
    assert!((short - 10.0 / 49.0).abs() < 0.03, "{short}");
}

/// ns-2's `wait_`: between 1/p and 2/p.
#[test]
fn waiting_spaces_drops() {
    let gaps = gaps(instantaneous(), 7, &data(0));
    assert!(gaps.iter().all(|&gap| (50..=100).contains(&gap)));
    assert!((mean(&gaps) - 75.0).abs() < 1.5, "{}", mean(&gaps));
}

#[test]
fn forced_beyond_the_last_threshold() {
    let fate = |config, waiting, packet: &Packet| {
        let (mut red, mut rng) = (Red::new(config), Rng::new(1, 0));
        red.admit(&port(waiting), packet, &mut rng)
    };
    let hard = Config {
        gentle: false,
        ecn: true,
        ..instantaneous()
    };
    let soft = Config {
        hard_drop: false,
        ..hard
    };
    let forced = Verdict::Drop(DropReason::Forced);
    assert_eq!(
        fate(hard, 14, &data(0)),
        Verdict::Pass,
        "the first above the minimum passes"
    );
    assert_eq!(fate(hard, 15, &data(0)), forced);
    assert_eq!(fate(hard, 15, &ect(0)), forced);
    assert_eq!(fate(soft, 15, &ect(0)), Verdict::Mark);
    assert_eq!(fate(soft, 15, &data(0)), forced);
    let gentle = Config {
        gentle: true,
        ..hard
    };
    assert_eq!(fate(gentle, 29, &data(0)), Verdict::Pass);
    assert_eq!(fate(gentle, 30, &data(0)), forced);
}

/// Thresholds 5 and 15: down by a tenth below 9, up by 0.01 or a quarter above 11.
#[test]
fn max_p_adapts() {
    let mut red = Red::new(config());
    assert_eq!(red.period(), Some(Time::from_millis(500)));
    let mut after = |average: f64, max_p: f64| {
        (red.average, red.config.max_p) = (average, max_p);
        red.tick(Time::ZERO, 0);
        red.average = 10.0;
        (red.config.max_p, 2.0 * red.base_probability())
    };
    for (average, max_p, expected) in [
        (8.9, 0.1, 0.09),
        (9.1, 0.1, 0.1),
        (10.9, 0.1, 0.1),
        (11.1, 0.1, 0.11),
        (100.0, 0.02, 0.025),
        (0.0, 0.01, 0.01),
        (20.0, 0.5, 0.5),
    ] {
        let (got, at_maximum) = after(average, max_p);
        assert!(
            near(got, expected) && near(at_maximum, expected),
            "{average}: {got}"
        );
    }
    let mut fixed = Red::new(Config {
        adaptive: false,
        ..config()
    });
    fixed.tick(Time::ZERO, 0);
    assert_eq!((fixed.period(), fixed.config.max_p), (None, 0.1));
}

/// ns-2 counts from the packet that first found the average above the minimum, which passes.
#[test]
fn counting_starts_above_the_minimum() {
    let (mut red, mut rng) = (Red::new(instantaneous()), Rng::new(1, 0));
    for (waiting, count) in [(4, 1), (4, 2), (7, 1), (7, 2), (4, 3), (7, 1)] {
        assert_eq!(red.admit(&port(waiting), &data(0), &mut rng), Verdict::Pass);
        assert_eq!(red.count, count, "{waiting} packets waiting");
    }
}

#[test]
fn a_short_queue_passes_whatever_the_average() {
    let (mut red, mut rng) = (Red::new(config()), Rng::new(1, 0));
    red.average = 1000.0;
    assert_eq!(red.admit(&port(1), &data(0), &mut rng), Verdict::Pass);
    assert_ne!(red.admit(&port(2), &data(0), &mut rng), Verdict::Pass);
}

#[test]
fn marks_up_to_mark_p_and_drops_above() {
    let config = Config {
        ecn: true,
        mark_p: 0.05,
        ..instantaneous()
    };
    let early = |waiting| {
        let (mut red, mut rng) = (Red::new(config), Rng::new(1, 0));
        (0..1000)
            .map(|_| red.admit(&port(waiting), &ect(0), &mut rng))
            .find(|&v| v != Verdict::Pass)
    };
    assert_eq!(early(9), Some(Verdict::Mark));
    assert_eq!(early(12), Some(Verdict::Drop(DropReason::Early)));
}

#[test]
fn an_overflow_counts_in_the_average() {
    let mut red = Red::new(config());
    red.overflow(&port(100), &data(0));
    assert!(near(red.average(), 0.2));
}

proptest! {
    #[test]
    fn never_marks_without_ect(
        queue in prop::collection::vec((0u32..100, any::<bool>()), 0..300),
        gentle: bool, hard_drop: bool, wait: bool,
    ) {
        let config = Config { gentle, hard_drop, wait, ecn: true, weight: 0.5, ..config() };
        let (mut red, mut rng) = (Red::new(config), Rng::new(9, 0));
        for (waiting, capable) in queue {
            let packet = if capable { ect(0) } else { data(0) };
            let verdict = red.admit(&port(waiting), &packet, &mut rng);
            prop_assert!(capable || verdict != Verdict::Mark);
            prop_assert!((0.0..=100.0).contains(&red.average()));
        }
    }
}
