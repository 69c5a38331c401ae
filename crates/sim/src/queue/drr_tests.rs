// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::queue::fixtures::sized;
use crate::queue::scheduler_tests::{Step, check, steps};

fn config(quantum: u32, limit: Limit) -> Config {
    Config {
        quantum_bytes: NonZeroU32::new(quantum).expect("not zero"),
        limit,
    }
}

fn never(_: Packet, _: DropReason) {
    panic!("lost");
}

fn send(drr: &mut Drr, packets: usize) -> Vec<Packet> {
    (0..packets)
        .map_while(|_| drr.dequeue(Time::ZERO, &mut never))
        .collect()
}

/// The paper's example (figures 2 and 3): quantum 500; queue 1 holds 200, 750 and 20: the first round
/// sends 200 and keeps 300; the second has 800, sends 750 and 20.
#[test]
fn the_papers_example() {
    let mut drr = Drr::new(config(500, Limit::packets(100)));
    for (seq, (flow, size)) in [(1, 200), (2, 500), (1, 750), (2, 500), (1, 50)]
        .into_iter()
        .enumerate()
    {
        drr.enqueue(Time::ZERO, sized(flow, seq as u32, size), &mut never);
    }
    let order: Vec<_> = send(&mut drr, 9)
        .iter()
        .map(|p| (p.flow.0, p.size()))
        .collect();
    assert_eq!(order, [(1, 200), (2, 500), (1, 750), (1, 50), (2, 500)]);
}

/// Lemma of §III: backlogged flows differ by at most one quantum and two packets.
#[test]
fn bytes_are_shared_whatever_the_packet_size() {
    let mut drr = Drr::new(config(1500, Limit::packets(10_000)));
    for seq in 0..3000 {
        drr.enqueue(Time::ZERO, sized(0, seq, 1500), &mut never);
        drr.enqueue(Time::ZERO, sized(1, seq, 300), &mut never);
        drr.enqueue(Time::ZERO, sized(2, seq, 576), &mut never);
    }
    let mut sent = [0u32; 3];
    for packet in send(&mut drr, 2000) {
        sent[packet.flow.0 as usize] += packet.size();
    }
    let spread = sent.iter().max().expect("three") - sent.iter().min().expect("three");
    assert!(spread <= 1500 + 2 * 1500, "{sent:?}");
}

#[test]
fn the_longest_gives_way() {
    let mut drr = Drr::new(config(1500, Limit::bytes(15_000)));
    for seq in 0..10 {
        drr.enqueue(Time::ZERO, sized(0, seq, 1500), &mut never);
    }
    let mut lost = Vec::new();
    drr.enqueue(Time::ZERO, sized(1, 0, 1500), &mut |packet, reason| {
        lost.push((packet, reason))
    });
    assert_eq!(
        lost,
        [(sized(0, 9, 1500), DropReason::Overlimit)],
        "the last of the longest"
    );
    assert_eq!(
        send(&mut drr, 2)
            .iter()
            .map(|p| p.flow.0)
            .collect::<Vec<_>>(),
        [0, 1]
    );
}

#[test]
fn empty_flows_are_forgotten() {
    let mut drr = Drr::new(config(1500, Limit::packets(100)));
    for flow in 0..1000 {
        drr.enqueue(Time::ZERO, sized(flow, 0, 100), &mut never);
        assert_eq!(send(&mut drr, 2).len(), 1);
    }
    assert!(drr.queue_of.is_empty());
    assert_eq!(drr.spare.len(), 1);
}

/// DRR as the paper prints it, without a limit.
#[derive(Default)]
struct Reference {
    queues: [VecDeque<Packet>; 12],
    deficit: [u32; 12],
    active: VecDeque<usize>,
    serving: Option<usize>,
}

impl Reference {
    fn enqueue(&mut self, packet: Packet) {
        let flow = packet.flow.0 as usize;
        if self.queues[flow].is_empty() && self.serving != Some(flow) {
            self.active.push_back(flow);
            self.deficit[flow] = 0;
        }
        self.queues[flow].push_back(packet);
    }

    fn dequeue(&mut self, quantum: u32) -> Option<Packet> {
        loop {
            let flow = match self.serving {
                Some(flow) => flow,
                None => {
                    let flow = self.active.pop_front()?;
                    self.deficit[flow] += quantum;
                    *self.serving.insert(flow)
                }
            };
            let size = self.queues[flow].front().expect("active").size();
            if size > self.deficit[flow] {
                self.active.push_back(flow);
                self.serving = None;
                continue;
            }
            self.deficit[flow] -= size;
            let packet = self.queues[flow].pop_front();
            if self.queues[flow].is_empty() {
                self.serving = None;
            }
            return packet;
        }
    }
}

proptest! {
    #[test]
    fn keeps_the_contract(steps in steps(), quantum in 100u32..3000) {
        let limit = Limit { bytes: 20_000, packets: 20 };
        check(Drr::new(config(quantum, limit)), limit, &steps)?;
    }

    #[test]
    fn agrees_with_the_printed_algorithm(steps in steps(), quantum in 100u32..3000) {
        let mut drr = Drr::new(config(quantum, Limit::packets(u32::MAX)));
        let mut reference = Reference::default();
        for (seq, step) in steps.into_iter().enumerate() {
            match step {
                Step::Enqueue { flow, size } => {
                    let packet = sized(flow, seq as u32, size);
                    drr.enqueue(Time::ZERO, packet, &mut never);
                    reference.enqueue(packet);
                }
                _ => prop_assert_eq!(drr.dequeue(Time::ZERO, &mut never), reference.dequeue(quantum)),
            }
        }
    }
}
