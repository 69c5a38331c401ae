// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::queue::fixtures::{data, ect};
use crate::queue::scheduler_tests::{Step, check, steps};
use proptest::prelude::*;

fn config() -> Config {
    Config::new(Limit::packets(10_000))
}

/// interval / sqrt(count), in microseconds.
#[test]
fn control_law_by_hand() {
    let us = |count| spacing(Time::from_millis(100), count).as_micros();
    assert_eq!(
        [us(1), us(2), us(3), us(4), us(5), us(100)],
        [100_000, 70_710, 57_735, 49_999, 44_721, 9_999]
    );
    let exact = 1e11 / 12_345f64.sqrt();
    let got = spacing(Time::from_millis(100), 12_345).0 as f64;
    assert!((got / exact - 1.0).abs() < 1e-7);
}

/// Fills at two packets a millisecond, serves one, and returns the millisecond of every loss.
fn overload(codel: &mut Codel, packet: Packet, from_ms: u64, to_ms: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut lost, mut marks) = (Vec::new(), Vec::new());
    for ms in from_ms..to_ms {
        let now = Time::from_millis(ms);
        codel.enqueue(now, packet, &mut |_, _| panic!("full"));
        codel.enqueue(now, packet, &mut |_, _| panic!("full"));
        let sent = codel.dequeue(now, &mut |_, reason| {
            assert_eq!(reason, DropReason::Delay);
            lost.push(ms);
        });
        if sent.expect("work-conserving").has(flag::CE) {
            marks.push(ms);
        }
    }
    (lost, marks)
}

/// The wait reaches 5 ms for good at 9 ms (that packet came at 4 ms); 100 ms later the first drop, then
/// after 100, 70.7, 57.7, 50 and 44.7 ms, each at the next whole millisecond: 279.7, 337.4, 387.4, 432.2.
#[test]
fn drops_at_the_times_of_the_control_law() {
    let mut codel = Codel::new(config());
    let (lost, marks) = overload(&mut codel, ect(0), 0, 450);
    assert_eq!(lost, [109, 209, 280, 338, 388, 433]);
    assert!(marks.is_empty(), "no ECN asked for");
}

#[test]
fn marks_at_the_same_times() {
    let mut codel = Codel::new(Config {
        ecn: true,
        ..config()
    });
    let (lost, marks) = overload(&mut codel, ect(0), 0, 450);
    assert_eq!(marks, [109, 209, 280, 338, 388, 433]);
    assert!(lost.is_empty());
    let mut codel = Codel::new(Config {
        ecn: true,
        ..config()
    });
    let (lost, marks) = overload(&mut codel, data(0), 0, 450);
    assert_eq!(lost.len(), 6);
    assert!(marks.is_empty());
}

fn drain(codel: &mut Codel, now: Time) {
    while codel.dequeue(now, &mut |_, _| ()).is_some() {}
    assert!(!codel.dropping);
}

/// §5.5: dropping again within 16 intervals of the last drop resumes at the count reached.
#[test]
fn reentry_resumes_the_count() {
    let mut codel = Codel::new(config());
    overload(&mut codel, data(0), 0, 450);
    let reached = codel.count;
    assert_eq!((reached, codel.last_count), (6, 1));
    drain(&mut codel, Time::from_millis(450));
    let mut soon = codel.clone();
    overload(&mut soon, data(0), 500, 620);
    assert_eq!(soon.count, reached - 1, "count less the count at entry");
    let mut late = codel;
    overload(&mut late, data(0), 3000, 3120);
    assert_eq!(late.count, 1);
}

#[test]
fn a_good_delay_or_a_short_queue_is_left_alone() {
    let mut codel = Codel::new(config());
    for ms in 0..1000 {
        let now = Time::from_millis(ms);
        codel.enqueue(now, data(0), &mut |_, _| panic!("full"));
        if ms >= 4 {
            assert!(
                codel
                    .dequeue(now, &mut |_, _| panic!("4 ms is below the target"))
                    .is_some()
            );
        }
    }
    let mut codel = Codel::new(config());
    codel.enqueue(Time::ZERO, data(0), &mut |_, _| ());
    for ms in 0..1000 {
        codel.enqueue(Time::from_millis(ms), data(0), &mut |_, _| ());
        let late = Time::from_millis(ms + 10);
        assert!(
            codel
                .dequeue(late, &mut |_, _| panic!("one packet remains"))
                .is_some()
        );
    }
}

#[test]
fn a_full_buffer_drops_the_arrival() {
    let mut codel = Codel::new(Config::new(Limit::bytes(3000)));
    let mut lost = Vec::new();
    for _ in 0..3 {
        codel.enqueue(Time::ZERO, data(0), &mut |_, reason| lost.push(reason));
    }
    assert_eq!(lost, [DropReason::Full]);
    assert_eq!((codel.backlog_bytes(), codel.backlog_packets()), (3000, 2));
}

proptest! {
    #[test]
    fn keeps_the_contract(steps in steps()) {
        let limit = Limit { bytes: 20_000, packets: 20 };
        let config = Config {
            target: Time::from_micros(50),
            interval: Time::from_millis(1),
            ..Config::new(limit)
        };
        check(Codel::new(config), limit, &steps)?;
    }
}

#[test]
fn keeps_the_contract_under_dropping() {
    let limit = Limit::packets(1000);
    let config = Config {
        target: Time::from_micros(50),
        interval: Time::from_micros(200),
        ..Config::new(limit)
    };
    let mut steps = vec![
        Step::Enqueue {
            flow: 1,
            size: 1500
        };
        900
    ];
    (0..900).for_each(|_| steps.extend([Step::Wait { micros: 20 }, Step::Dequeue]));
    let lost = check(Codel::new(config), limit, &steps).expect("the contract holds");
    assert!(lost > 50, "{lost}");
}
