// SPDX-License-Identifier: Apache-2.0
//! The contract of every [`Scheduler`], checked with random operations.

use std::collections::HashMap;

use proptest::prelude::*;

use super::fixtures::sized;
use super::{DropReason, Limit, Scheduler};
use crate::packet::Packet;
use penstock_scenario::units::Time;

/// One operation on a scheduler.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A packet of a flow arrives.
    Enqueue { flow: u32, size: u16 },
    /// The transmitter is free.
    Dequeue,
    /// Time passes.
    Wait { micros: u64 },
    /// The periodic work.
    Tick,
}

/// Random operations on 12 flows, somewhat more arrivals than departures.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![Just(40u16), Just(1500), 40u16..1501];
    let step = prop_oneof![
        6 => (0u32..12, size).prop_map(|(flow, size)| Step::Enqueue { flow, size }),
        5 => Just(Step::Dequeue),
        2 => (0u64..300).prop_map(|micros| Step::Wait { micros }),
        1 => Just(Step::Tick),
    ];
    prop::collection::vec(step, 0..400)
}

/// Every packet comes back once, flows keep their order, the limit holds, and a queue that holds
/// packets gives one. Returns the number of packets lost.
pub fn check(
    mut queue: impl Scheduler,
    limit: Limit,
    steps: &[Step],
) -> Result<usize, TestCaseError> {
    let mut now = Time::ZERO;
    let mut waiting: HashMap<u32, Packet> = HashMap::new();
    let mut last_sent: HashMap<u32, u32> = HashMap::new();
    let (mut seq, mut total_lost) = (0, 0);
    // What is left in the end is drained.
    let drain = std::iter::repeat_n(Step::Dequeue, steps.len());
    for step in steps.iter().copied().chain(drain) {
        let mut lost = Vec::new();
        let mut on_lost = |packet: Packet, _: DropReason| lost.push(packet);
        match step {
            Step::Enqueue { flow, size } => {
                seq += 1;
                let packet = sized(flow, seq, size);
                waiting.insert(seq, packet);
                queue.enqueue(now, packet, &mut on_lost);
            }
            Step::Dequeue => {
                let held = queue.backlog_packets();
                let sent = queue.dequeue(now, &mut on_lost);
                prop_assert_eq!(sent.is_some(), held > 0, "work-conserving");
                if let Some(packet) = sent {
                    prop_assert_eq!(waiting.remove(&packet.seq), Some(packet));
                    let before = last_sent.insert(packet.flow.0, packet.seq);
                    prop_assert!(before < Some(packet.seq), "order within the flow");
                }
            }
            Step::Wait { micros } => now += Time::from_micros(micros),
            Step::Tick => queue.tick(now),
        }
        total_lost += lost.len();
        for packet in lost {
            prop_assert_eq!(waiting.remove(&packet.seq), Some(packet));
        }
        let bytes: u64 = waiting
            .values()
            .map(|packet| u64::from(packet.size()))
            .sum();
        prop_assert_eq!(queue.backlog_bytes(), bytes);
        prop_assert_eq!(queue.backlog_packets() as usize, waiting.len());
        prop_assert!(limit.holds(bytes, queue.backlog_packets()));
    }
    prop_assert!(waiting.is_empty());
    Ok(total_lost)
}
