// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use penstock_core::hcf::{Hcf, HcfParams, HcfPeriod, flow_key};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

/// A packet: flow, number in its flow, bytes.
type Packet = (u32, u64, u32);

/// HCF over real queues.
struct Port {
    hcf: Hcf,
    queues: [VecDeque<Packet>; 2],
    arrived: HashMap<u32, u64>,
    sent: HashMap<u32, u64>,
    reordered: u32,
}

impl Port {
    fn new(params: HcfParams, seed: u32) -> Port {
        let hcf = Hcf::new(params, seed).unwrap();
        let queues = Default::default();
        Port {
            hcf,
            queues,
            arrived: HashMap::new(),
            sent: HashMap::new(),
            reordered: 0,
        }
    }

    fn bytes(&self, queue: usize) -> u64 {
        self.queues[queue]
            .iter()
            .map(|packet| u64::from(packet.2))
            .sum()
    }

    /// Whether a queue lacks room by the limits of its role.
    fn is_full(&self, queues: &[usize], roles: &[usize], size: u32) -> bool {
        let p = self.hcf.params();
        let packets: usize = queues.iter().map(|&q| self.queues[q].len()).sum();
        let bytes: u64 = queues.iter().map(|&q| self.bytes(q)).sum();
        let limit = |of: [u32; 2]| {
            let parts = roles.iter().map(|&role| u64::from(of[role]));
            if parts.clone().any(|part| part == 0) {
                u64::MAX
            } else {
                parts.sum()
            }
        };
        packets as u64 + 1 > limit(p.capacity_packets)
            || bytes + u64::from(size) > limit(p.capacity_bytes)
    }

    fn enqueue(&mut self, flow: u32, size: u32) {
        let number = self.arrived.entry(flow).or_default();
        *number += 1;
        let packet = (flow, *number, size);
        let high = usize::from(self.hcf.state().high);
        let was_full =
            self.is_full(&[high ^ 1], &[1], size) || self.is_full(&[0, 1], &[0, 1], size);
        match self.hcf.on_enqueue(flow_key(flow, 1, 2, 3), size) {
            Some(queue) => self.queues[queue].push_back(packet),
            None => assert!(was_full, "lost without need"),
        }
    }

    fn dequeue(&mut self) -> bool {
        let high = usize::from(self.hcf.state().high);
        let Some(queue) = self.hcf.on_dequeue() else {
            assert!(self.queues.iter().all(VecDeque::is_empty));
            return false;
        };
        assert_eq!(queue == high, !self.queues[high].is_empty(), "high first");
        let (flow, number, size) = self.queues[queue]
            .pop_front()
            .expect("the queue told is not empty");
        let last = self.sent.insert(flow, number).unwrap_or(0);
        self.reordered += u32::from(last > number);
        self.hcf.departed(queue, size);
        true
    }

    fn assert_counts(&self) {
        let state = self.hcf.state();
        for queue in 0..2 {
            assert_eq!(state.packets[queue] as usize, self.queues[queue].len());
            assert_eq!(state.bytes[queue], self.bytes(queue));
        }
        let within = |load: u64, [high, low]: [u32; 2]| {
            high == 0 || low == 0 || load <= u64::from(high) + u64::from(low)
        };
        let p = self.hcf.params();
        assert!(within(
            state.packets.iter().map(|&n| u64::from(n)).sum(),
            p.capacity_packets
        ));
        assert!(
            within(state.bytes.iter().sum(), p.capacity_bytes),
            "the buffer is exceeded"
        );
        let credits = self.hcf.params().credits;
        assert!((0..self.hcf.params().bins).all(|bin| self.hcf.credits(bin) <= credits));
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

fn params() -> impl Strategy<Value = HcfParams> {
    let periods = prop_oneof![Just(HcfPeriod::Dynamic), Just(HcfPeriod::Ordered)];
    (
        1u32..=256,
        1u32..2000,
        [1u32..20, 1u32..20],
        [0u32..9000, 0u32..9000],
        1u8..=4,
        periods,
        any::<bool>(),
    )
        .prop_map(
            |(bins, credits, capacity_packets, capacity_bytes, hashes, period, counts_bytes)| {
                HcfParams {
                    bins,
                    credits,
                    capacity_packets,
                    capacity_bytes,
                    hashes: hashes.into(),
                    period,
                    swap: 1,
                    credits_in_bytes: u32::from(counts_bytes),
                }
            },
        )
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
    fn counts_hold_at_any_input(params in params(), is_fixed: bool, swaps: bool, seed: u32, events in events()) {
        let period = if is_fixed { HcfPeriod::Fixed } else { params.period };
        Port::new(HcfParams { period, swap: swaps.into(), ..params }, seed).run(&events);
    }

    #[test]
    fn bins_are_in_range(bins in 1u32..=256, seed: u32, key: u32, index in 0u32..4) {
        let hcf = Hcf::new(HcfParams { bins, ..HcfParams::new(20) }, seed).unwrap();
        prop_assert!(hcf.bin_of(key, index) < bins);
    }
}

/// Packets of two flows, offered at twice the rate of the port.
fn overload(params: HcfParams) -> u32 {
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
fn order_is_lost_without_the_swap_or_with_a_fixed_period() {
    assert!(
        overload(HcfParams::paper(20)) > 0,
        "HCF §III-D says that Algorithm 1 reorders"
    );
    assert!(
        overload(HcfParams {
            period: HcfPeriod::Fixed,
            ..HcfParams::new(20)
        }) > 0
    );
    assert_eq!(overload(HcfParams::new(20)), 0);
    assert_eq!(
        overload(HcfParams {
            period: HcfPeriod::Ordered,
            ..HcfParams::new(20)
        }),
        0
    );
}

#[test]
fn a_bin_has_its_credits_and_then_the_low_queue() {
    let mut hcf = Hcf::new(
        HcfParams {
            credits: 2,
            ..HcfParams::new(20)
        },
        5,
    )
    .unwrap();
    let [first, second] = [7, 8];
    assert_ne!(
        hcf.bin_of(first, 0),
        hcf.bin_of(second, 0),
        "another seed is needed"
    );
    let queues = [first, first, first, second].map(|key| hcf.on_enqueue(key, 1000));
    assert_eq!(queues, [Some(0), Some(0), Some(1), Some(0)]);
    assert_eq!(
        [first, second].map(|key| hcf.credits(hcf.bin_of(key, 0))),
        [0, 1]
    );
    let epoch = hcf.state().epoch;
    for _ in 0..3 {
        assert_eq!(hcf.on_dequeue(), Some(0));
        hcf.departed(0, 1000);
    }
    assert_eq!(
        (hcf.state().high, hcf.state().epoch),
        (1, epoch + 1),
        "the queues have swapped"
    );
    assert!((0..20).all(|bin| hcf.credits(bin) == 2));
    assert_eq!(hcf.on_dequeue(), Some(1), "what was low is high");
}

#[test]
fn serving_the_low_queue_ends_no_period() {
    let params = HcfParams {
        capacity_packets: [1, 10],
        bins: 1,
        ..HcfParams::paper(20)
    };
    let mut hcf = Hcf::new(params, 1).unwrap();
    assert_eq!(
        [0, 1].map(|key| hcf.on_enqueue(key, 40)),
        [Some(0), Some(1)]
    );
    hcf.departed(0, 40);
    let epoch = hcf.state().epoch;
    assert_eq!(hcf.on_dequeue(), Some(1));
    hcf.departed(1, 40);
    assert_eq!((hcf.state().epoch, hcf.state().high), (epoch, 0));
}

#[test]
fn hashes_spread_flows_evenly_and_change_with_the_period() {
    let mut hcf = Hcf::new(HcfParams::new(20), 9).unwrap();
    let mut together = 0;
    for _ in 0..200 {
        let mut load = [0; 20];
        (0..400).for_each(|flow| load[hcf.bin_of(flow_key(flow, 9, 80, 5000), 0) as usize] += 1);
        assert!(
            load.iter().all(|&flows| (2..60).contains(&flows)),
            "mean 20: {load:?}"
        );
        together += u32::from(hcf.bin_of(1, 0) == hcf.bin_of(2, 0));
        hcf.on_enqueue(1, 40);
        let queue = hcf.on_dequeue().expect("one packet");
        hcf.departed(queue, 40);
    }
    assert!(
        (1..30).contains(&together),
        "two flows met {together} times in 200, expected 10"
    );
}

#[test]
fn refuses_a_queue_without_any_limit() {
    let params = HcfParams {
        capacity_packets: [10, 0],
        ..HcfParams::new(20)
    };
    assert_eq!(Hcf::new(params, 1).unwrap_err().field, "capacity_packets");
}
