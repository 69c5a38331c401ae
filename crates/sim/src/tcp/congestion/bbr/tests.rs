// SPDX-License-Identifier: Apache-2.0
use super::Bbr;
use super::filter::MaxFilter;
use super::policer::{Policer, Totals};
use super::rate::DeliveryRate;
use penstock_scenario::units::Time;

const RTT: Time = Time::from_millis(10);

#[test]
fn the_rate_is_what_was_delivered_since_the_segment_left() {
    let mut rate = DeliveryRate::default();
    let ms = Time::from_millis;
    rate.on_sent(ms(0), true);
    rate.on_sent(ms(5), false);
    let first = rate.on_ack(ms(10), 1000, Some(ms(0)), RTT).unwrap();
    assert_eq!(
        (first.rate, first.prior_delivered, first.is_app_limited),
        (100_000, 0, false)
    );
    // The second left 5 ms after the first, but its ACK is 15 ms from the last delivery it knew.
    let second = rate.on_ack(ms(15), 1000, Some(ms(5)), RTT).unwrap();
    assert_eq!(second.rate, 2000 * 1000 / 15);
}

#[test]
fn an_interval_below_the_least_round_trip_is_no_sample() {
    let mut rate = DeliveryRate::default();
    rate.on_sent(Time::ZERO, true);
    let early = rate.on_ack(Time::from_millis(9), 1000, Some(Time::ZERO), RTT);
    assert!(early.is_none());
}

#[test]
fn samples_are_limited_by_the_application_until_its_last_byte_is_delivered() {
    let mut rate = DeliveryRate::default();
    let ms = Time::from_millis;
    rate.on_sent(ms(0), true);
    rate.limit(1000);
    rate.on_sent(ms(1), false);
    assert!(
        !rate
            .on_ack(ms(10), 1000, Some(ms(0)), RTT)
            .unwrap()
            .is_app_limited
    );
    let second = rate.on_ack(ms(12), 1000, Some(ms(1)), RTT).unwrap();
    assert!(second.is_app_limited);
    rate.on_sent(ms(13), false);
    let third = rate.on_ack(ms(23), 1000, Some(ms(13)), RTT).unwrap();
    assert!(!third.is_app_limited);
}

#[test]
fn the_greatest_of_ten_rounds_counts() {
    let mut filter = MaxFilter::default();
    filter.add(1, 50);
    filter.add(2, 30);
    filter.add(3, 40);
    assert_eq!(filter.max(), 50);
    filter.add(11, 10);
    assert_eq!(filter.max(), 50);
    filter.add(12, 10);
    assert_eq!(filter.max(), 40);
    filter.add(14, 10);
    assert_eq!(filter.max(), 10);
}

/// Rounds of 10 ms with 20 % loss, and then with none, that deliver `bytes` each.
fn policed(policer: &mut Policer, from: u64, rounds: u64, bytes: u64, is_app_limited: bool) {
    for round in from..from + rounds {
        let totals = Totals {
            now: Time::from_millis(10 * round),
            lost: round * bytes / 4,
            delivered: round * bytes,
        };
        if policer.rate().is_none() {
            policer.on_ack(totals, true, is_app_limited, true);
        }
    }
}

#[test]
fn two_intervals_of_heavy_loss_at_one_rate_show_a_policer() {
    let mut policer = Policer::default();
    policed(&mut policer, 1, 5, 10_000, false);
    assert_eq!(policer.rate(), None, "one interval is not enough");
    policed(&mut policer, 6, 4, 10_000, false);
    assert_eq!(policer.rate(), Some(1_000_000));
    assert!((1..48).all(|_| !policer.is_worn()));
    assert!(policer.is_worn());
}

#[test]
fn an_application_that_is_slow_is_no_policer() {
    let mut policer = Policer::default();
    policed(&mut policer, 1, 5, 10_000, false);
    policed(&mut policer, 6, 9, 10_000, true);
    assert_eq!(policer.rate(), None);
}

#[test]
fn flows_and_runs_start_to_probe_in_different_phases() {
    let mut phases: Vec<usize> = (0..100)
        .map(|seed| {
            let mut bbr = Bbr::new(seed);
            bbr.start_cycle(RTT);
            bbr.phase
        })
        .collect();
    phases.sort_unstable();
    phases.dedup();
    // All but the one that drains.
    assert_eq!(phases, [0, 2, 3, 4, 5, 6, 7]);
}
