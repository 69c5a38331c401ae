// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::queue::fixtures::sized;
use crate::queue::scheduler_tests::{check, steps};
use crate::rng::Rng;

fn new(config: Config) -> Sfq {
    Sfq::new(config, Rng::new(1, 0))
}

fn never(_: Packet, _: DropReason) {
    panic!("lost");
}

fn flows_sent(sfq: &mut Sfq, packets: usize) -> Vec<u32> {
    (0..packets)
        .map_while(|_| sfq.dequeue(Time::ZERO, &mut never))
        .map(|p| p.flow.0)
        .collect()
}

#[test]
fn queues_take_turns_by_packet() {
    let mut sfq = new(Config::new(Limit::packets(100)));
    let (a, b) = (
        0,
        (1..)
            .find(|&f| sfq.bucket(FlowId(f)) != sfq.bucket(FlowId(0)))
            .expect("endless"),
    );
    for seq in 0..4 {
        sfq.enqueue(Time::ZERO, sized(a, seq, 1500), &mut never);
    }
    for seq in 0..2 {
        sfq.enqueue(Time::ZERO, sized(b, seq, 100), &mut never);
    }
    assert_eq!(flows_sent(&mut sfq, 9), [a, b, a, b, a, a]);
}

#[test]
fn queues_take_turns_by_bytes() {
    let quantum = NonZeroU32::new(1500);
    let mut sfq = new(Config {
        quantum_bytes: quantum,
        ..Config::new(Limit::packets(100))
    });
    let (a, b) = (
        0,
        (1..)
            .find(|&f| sfq.bucket(FlowId(f)) != sfq.bucket(FlowId(0)))
            .expect("endless"),
    );
    for seq in 0..6 {
        sfq.enqueue(Time::ZERO, sized(a, seq, 1500), &mut never);
        sfq.enqueue(Time::ZERO, sized(b, seq, 500), &mut never);
    }
    assert_eq!(flows_sent(&mut sfq, 8), [a, b, b, b, a, b, b, b]);
}

#[test]
fn the_longest_gives_way() {
    let mut sfq = new(Config::new(Limit::packets(10)));
    let b = (1..)
        .find(|&f| sfq.bucket(FlowId(f)) != sfq.bucket(FlowId(0)))
        .expect("endless");
    for seq in 0..10 {
        sfq.enqueue(Time::ZERO, sized(0, seq, 1500), &mut never);
    }
    let mut lost = Vec::new();
    sfq.enqueue(Time::ZERO, sized(b, 0, 1500), &mut |packet, reason| {
        lost.push((packet, reason))
    });
    assert_eq!(lost, [(sized(0, 9, 1500), DropReason::Overlimit)]);
}

#[test]
fn the_hash_spreads_flows_and_perturbation_separates_them() {
    let mut sfq = new(Config::new(Limit::packets(100)));
    let mut load = [0u32; 128];
    // Flows of one direction: all even.
    (0..12_800).for_each(|connection| load[sfq.bucket(FlowId(connection << 1)) as usize] += 1);
    assert!(load.iter().all(|&n| (50..160).contains(&n)), "{load:?}");
    let rival = (1..)
        .find(|&f| sfq.bucket(FlowId(f)) == sfq.bucket(FlowId(0)))
        .expect("endless");
    let collisions = (0..1000).filter(|_| {
        sfq.tick(Time::ZERO);
        sfq.bucket(FlowId(rival)) == sfq.bucket(FlowId(0))
    });
    assert!(collisions.count() < 30, "about 1000 / 128");
    assert_eq!(sfq.period(), Some(Time::from_secs(10)));
}

proptest! {
    #[test]
    fn keeps_the_contract(steps in steps(), buckets in 1u32..20, quantum in 0u32..3000) {
        let limit = Limit { bytes: 20_000, packets: 20 };
        let config = Config {
            buckets: NonZeroU32::new(buckets).expect("not zero"),
            quantum_bytes: NonZeroU32::new(quantum),
            ..Config::new(limit)
        };
        check(new(config), limit, &steps)?;
    }
}
