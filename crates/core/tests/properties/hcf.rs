// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::common::functions::{bin_of, credits_left, fold6};
use super::{printed, with};
use penstock_core::Params;
use penstock_core::hcf::{Hcf, flow_key};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

/// A packet: flow, number in its flow, bytes.
type Packet = (u32, u64, u32);

/// `enum hcf_period`.
const DYNAMIC: u64 = 0;
const FIXED: u64 = 1;
const ORDERED: u64 = 2;

/// `HCF_DROP_BOTH`.
const BOTH: u64 = 1;

fn hcf(fields: &[(&str, u64)]) -> Params {
    with("hcf", 20, fields)
}

fn state(hcf: &Hcf, field: &str, index: usize) -> u64 {
    Fields::of("hcf", "hcf_state").get(hcf.state(), field, index) as u64
}

/// HCF over real queues.
struct Port {
    hcf: Hcf,
    params: Params,
    queues: [VecDeque<Packet>; 2],
    arrived: HashMap<u32, u64>,
    sent: HashMap<u32, u64>,
    reordered: u32,
}

impl Port {
    fn new(params: Params, seed: u32) -> Port {
        let hcf = Hcf::new(&params, seed);
        let queues = Default::default();
        Port {
            hcf,
            params,
            queues,
            arrived: HashMap::new(),
            sent: HashMap::new(),
            reordered: 0,
        }
    }

    /// A limit of both queues.
    fn capacity(&self, of: &str) -> [u64; 2] {
        [0, 1].map(|role| self.params.field(&format!("{of}[{role}]")))
    }

    fn bytes(&self, queue: usize) -> u64 {
        self.queues[queue]
            .iter()
            .map(|packet| u64::from(packet.2))
            .sum()
    }

    /// Whether a queue lacks room by the limits of its role.
    fn is_full(&self, queues: &[usize], roles: &[usize], size: u32) -> bool {
        let packets: usize = queues.iter().map(|&q| self.queues[q].len()).sum();
        let bytes: u64 = queues.iter().map(|&q| self.bytes(q)).sum();
        let limit = |of: &str| {
            let of = self.capacity(of);
            let parts = roles.iter().map(|&role| of[role]);
            if parts.clone().any(|part| part == 0) {
                u64::MAX
            } else {
                parts.sum()
            }
        };
        packets as u64 + 1 > limit("capacity_packets")
            || bytes + u64::from(size) > limit("capacity_bytes")
    }

    fn enqueue(&mut self, flow: u32, size: u32) {
        let number = self.arrived.entry(flow).or_default();
        *number += 1;
        let packet = (flow, *number, size);
        let high = state(&self.hcf, "high", 0) as usize;
        let low_is_full =
            self.is_full(&[high ^ 1], &[1], size) || self.is_full(&[0, 1], &[0, 1], size);
        let needs_both = self.params.field("drop") == BOTH;
        let was_full = low_is_full && (!needs_both || self.is_full(&[high], &[0], size));
        match self.hcf.on_enqueue(flow_key(0, flow, 1, 2, 3), size) {
            Some(queue) => self.queues[queue].push_back(packet),
            None => assert!(was_full, "lost without need"),
        }
    }

    fn dequeue(&mut self) -> bool {
        let high = state(&self.hcf, "high", 0) as usize;
        let Some(queue) = self.hcf.on_dequeue() else {
            assert!(self.queues.iter().all(VecDeque::is_empty));
            return false;
        };
        assert_eq!(queue == high, !self.queues[high].is_empty(), "high first");
        let (flow, number, size) = self.queues[queue]
            .pop_front()
            .expect("the queue returned is not empty");
        let last = self.sent.insert(flow, number).unwrap_or(0);
        self.reordered += u32::from(last > number);
        self.hcf.departed(queue, size);
        true
    }

    fn assert_counts(&self) {
        let of = |field: &str| [0, 1].map(|queue| state(&self.hcf, field, queue));
        let (packets, bytes) = (of("packets"), of("bytes"));
        for queue in 0..2 {
            assert_eq!(packets[queue] as usize, self.queues[queue].len());
            assert_eq!(bytes[queue], self.bytes(queue));
        }
        let within = |load: u64, [high, low]: [u64; 2]| high == 0 || low == 0 || load <= high + low;
        assert!(within(
            packets.iter().sum(),
            self.capacity("capacity_packets")
        ));
        assert!(
            within(bytes.iter().sum(), self.capacity("capacity_bytes")),
            "the buffer is exceeded"
        );
        let credits = self.params.field("credits");
        let bins = self.params.field("bins") as u32;
        assert!(
            (0..bins).all(|bin| u64::from(credits_left(&self.hcf, &self.params, bin)) <= credits)
        );
    }

    fn run(&mut self, events: &[(u8, u32, u32)]) {
        for &(event, flow, size) in events {
            match event {
                0..=4 => self.enqueue(flow, size),
                5..=8 => drop(self.dequeue()),
                _ => self.hcf.on_tick(),
            }
            self.assert_counts();
        }
        while self.dequeue() {}
        self.assert_counts();
    }
}

fn params() -> impl Strategy<Value = Params> {
    let capacities = [1u64..20, 1u64..20, 0u64..9000, 0u64..9000];
    let period = prop_oneof![Just(DYNAMIC), Just(ORDERED)];
    let in_bytes = prop_oneof![Just(0u64), Just(1)];
    (
        1u64..=256,
        1u64..2000,
        capacities,
        1u64..=4,
        period,
        in_bytes,
    )
        .prop_map(|(bins, credits, capacities, hashes, period, in_bytes)| {
            hcf(&[
                ("bins", bins),
                ("credits", credits),
                ("credits_in_bytes", in_bytes),
                ("capacity_packets[0]", capacities[0]),
                ("capacity_packets[1]", capacities[1]),
                ("capacity_bytes[0]", capacities[2]),
                ("capacity_bytes[1]", capacities[3]),
                ("hashes", hashes),
                ("period", period),
            ])
        })
}

fn events() -> impl Strategy<Value = Vec<(u8, u32, u32)>> {
    proptest::collection::vec((0u8..10, 0u32..8, 40u32..1500), 0..300)
}

proptest! {
    /// HCF Theorem 1, with all parameters that keep it.
    #[test]
    fn no_flow_is_reordered(params in params(), seed: u32, events in events()) {
        let mut port = Port::new(params, seed);
        port.run(&events);
        prop_assert_eq!(port.reordered, 0);
    }

    /// Any parameters: queues and counts agree and nothing is lost without need.
    #[test]
    fn counts_hold_at_any_input(
        mut params in params(),
        is_fixed: bool,
        [swap, drops_at_both, low_keeps_credits]: [bool; 3],
        seed: u32,
        events in events(),
    ) {
        if is_fixed {
            params.set_field("period", FIXED);
        }
        params.set_field("swap", swap.into());
        params.set_field("drop", drops_at_both.into());
        params.set_field("low_keeps_credits", low_keeps_credits.into());
        Port::new(params, seed).run(&events);
    }

    #[test]
    fn bins_are_in_range(bins in 1u32..=256, seed: u32, key: u32, index in 0u32..4) {
        let params = hcf(&[("bins", bins.into())]);
        prop_assert!(bin_of(&Hcf::new(&params, seed), &params, key, index) < bins);
    }
}

/// Packets of two flows, offered at twice the rate of the port.
fn overload(params: Params) -> u32 {
    let mut port = Port::new(params, 1);
    for step in 0..4000 {
        port.enqueue(step % 7, 1000);
        if step % 2 == 0 {
            port.dequeue();
        }
        if step % 16 == 0 {
            port.hcf.on_tick();
        }
    }
    while port.dequeue() {}
    port.reordered
}

#[test]
fn order_is_lost_in_all_readings_but_that_of_the_theorem() {
    assert!(
        overload(printed("hcf", 20, &[])) > 0,
        "HCF §III-D states that Algorithm 1 reorders"
    );
    assert!(overload(hcf(&[("period", FIXED)])) > 0);
    assert!(overload(hcf(&[("drop", BOTH)])) > 0);
    assert!(overload(hcf(&[("low_keeps_credits", 1), ("credits", 20)])) > 0);
    assert_eq!(overload(hcf(&[])), 0);
    assert_eq!(overload(hcf(&[("period", ORDERED)])), 0);
}

#[test]
fn a_bin_has_its_credits_and_then_the_low_queue() {
    let params = with("hcf", 20, &[("credits", 2)]);
    let mut hcf = Hcf::new(&params, 5);
    let [first, second] = [7, 8];
    assert_ne!(
        bin_of(&hcf, &params, first, 0),
        bin_of(&hcf, &params, second, 0),
        "another seed is needed"
    );
    let queues = [first, first, first, second].map(|key| hcf.on_enqueue(key, 1000));
    assert_eq!(queues, [Some(0), Some(0), Some(1), Some(0)]);
    assert_eq!(
        [first, second].map(|key| credits_left(&hcf, &params, bin_of(&hcf, &params, key, 0))),
        [0, 1]
    );
    let epoch = state(&hcf, "epoch", 0);
    for _ in 0..3 {
        assert_eq!(hcf.on_dequeue(), Some(0));
        hcf.departed(0, 1000);
    }
    assert_eq!(
        (state(&hcf, "high", 0), state(&hcf, "epoch", 0)),
        (1, epoch + 1),
        "the queues have swapped"
    );
    assert!((0..20).all(|bin| credits_left(&hcf, &params, bin) == 2));
    assert_eq!(hcf.on_dequeue(), Some(1), "what was low is high");
}

#[test]
fn serving_the_low_queue_ends_no_period() {
    let capacity = [("capacity_packets[0]", 1), ("bins", 1)];
    let mut hcf = Hcf::new(&printed("hcf", 20, &capacity), 1);
    assert_eq!(
        [0, 1].map(|key| hcf.on_enqueue(key, 40)),
        [Some(0), Some(1)]
    );
    hcf.departed(0, 40);
    let epoch = state(&hcf, "epoch", 0);
    assert_eq!(hcf.on_dequeue(), Some(1));
    hcf.departed(1, 40);
    assert_eq!(
        (state(&hcf, "epoch", 0), state(&hcf, "high", 0)),
        (epoch, 0)
    );
}

#[test]
fn hashes_spread_flows_evenly_and_change_with_the_period() {
    let params = with("hcf", 20, &[]);
    let mut hcf = Hcf::new(&params, 9);
    let mut together = 0;
    for _ in 0..200 {
        let mut load = [0; 20];
        (0..400).for_each(|flow| {
            load[bin_of(
                &hcf,
                &params,
                flow_key(hcf.key_seed(), flow, 9, 80, 5000),
                0,
            ) as usize] += 1;
        });
        assert!(
            load.iter().all(|&flows| (2..60).contains(&flows)),
            "mean 20: {load:?}"
        );
        together += u32::from(bin_of(&hcf, &params, 1, 0) == bin_of(&hcf, &params, 2, 0));
        hcf.on_enqueue(1, 40);
        let queue = hcf.on_dequeue().expect("one packet");
        hcf.departed(queue, 40);
    }
    assert!(
        (1..30).contains(&together),
        "two flows met {together} times in 200, expected 10"
    );
}

/// Destination and ports cancel out where nothing is mixed in, as anybody may find out.
#[test]
fn flows_with_the_same_key_part_in_the_next_period() {
    let keys = |seed| {
        [(0x0a00_0001, 0x1389), (0x0a00_0003, 0x138b)]
            .map(|(destination, port)| flow_key(seed, 0x0a00_0007, destination, 40_000, port))
    };
    let [one, other] = keys(0);
    assert_eq!(one, other);
    let params = with("hcf", 20, &[]);
    let mut hcf = Hcf::new(&params, 9);
    for _ in 0..1000 {
        let [one, other] = keys(hcf.key_seed());
        assert_ne!(one, other);
        hcf.on_enqueue(one, 40);
        let queue = hcf.on_dequeue().expect("one packet");
        hcf.departed(queue, 40);
    }
}

#[test]
fn addresses_with_the_same_xor_part_in_the_next_period() {
    let hosts = ["2001:db8:0:1::2", "2001:db8:0:2::1", "2001:db8:0:3::"];
    let hosts = hosts.map(|host| host.parse().unwrap());
    let differ = |seed| {
        let [one, other, third] = hosts.map(|host| fold6(seed, host));
        one != other && other != third && third != one
    };
    assert!((0..1000).all(differ));
}

/// The longest time that a packet waits, in departures, if two arrive for each that leaves.
fn longest_wait(params: Params) -> u32 {
    const STEPS: u32 = 20_000;
    let mut port = Port::new(params, 1);
    let mut arrived = [VecDeque::new(), VecDeque::new()];
    let mut longest = 0;
    for step in 0..STEPS {
        for flow in [2 * step % 40, (2 * step + 1) % 40] {
            let key = flow_key(0, flow, 1, 2, 3);
            if let Some(queue) = port.hcf.on_enqueue(key, 1000) {
                arrived[queue].push_back(step);
            }
        }
        let queue = port.hcf.on_dequeue().expect("more arrive than leave");
        let since = arrived[queue].pop_front().expect("it is not empty");
        longest = longest.max(step - since);
        port.hcf.departed(queue, 1000);
        if step % 2 == 0 {
            port.hcf.on_tick();
        }
    }
    let waiting = arrived.iter().filter_map(VecDeque::front);
    waiting
        .map(|since| STEPS - since)
        .max()
        .map_or(longest, |last| longest.max(last))
}

/// A queue that becomes the high one is served until it is empty; one that stays low waits.
#[test]
fn the_low_queue_gets_its_turn_by_the_swap() {
    let fair = [
        hcf(&[]),
        hcf(&[("period", ORDERED)]),
        hcf(&[("low_keeps_credits", 1)]),
    ];
    let waits = fair.map(longest_wait);
    assert!(waits.iter().all(|wait| *wait < 60), "{waits:?}");
    let unfair = [
        printed("hcf", 20, &[]),
        hcf(&[("drop", BOTH)]),
        hcf(&[("period", FIXED)]),
    ];
    let waits = unfair.map(longest_wait);
    assert!(waits.iter().all(|wait| *wait > 10_000), "{waits:?}");
}
