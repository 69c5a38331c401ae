// SPDX-License-Identifier: Apache-2.0
//! Drop-tail by hand: when a packet arrives, and how much a port holds.

use super::{BOTTLENECK, DELAY, HOSTS, dumbbell, jittery, packet, random_traffic, transport};
use penstock_scenario::units::Buffer;
use penstock_scenario::units::Time;
use penstock_sim::packet::Packet;
use penstock_sim::queue::{DropReason, Scheduler};
use std::collections::VecDeque;

/// 1500 bytes: 12 us at 1 Gb/s, 120 us at 100 Mb/s.
const ACCESS: Time = Time::from_micros(12);
const SLOW: Time = Time::from_micros(120);

#[test]
fn a_packet_is_stored_and_forwarded_at_every_hop() {
    let mut network = dumbbell(Buffer::Packets(100));
    network.start();
    let start = Time::from_micros(3);
    let burst: Vec<_> = (0..3).map(|seq| (start, packet(0, seq, 1500))).collect();
    let arrived = transport(&mut network, &burst);
    let first = start + ACCESS + DELAY + SLOW + DELAY + ACCESS + DELAY;
    let times: Vec<Time> = arrived.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [first, first + SLOW, first + SLOW + SLOW]);
    assert_eq!(network.packet_hops(), 9);
}

/// How many of a burst at one instant, one packet from each host, find room at the bottleneck.
fn accepted(buffer: Buffer, size: u16) -> usize {
    let mut network = dumbbell(buffer);
    network.start();
    let burst: Vec<_> = (0..HOSTS)
        .map(|host| (Time::ZERO, packet(host, 0, size)))
        .collect();
    let arrived = transport(&mut network, &burst).len();
    let full = network.counters(BOTTLENECK, Time::from_secs(10)).drops[DropReason::Full as usize];
    assert_eq!(arrived + full as usize, HOSTS as usize);
    assert_eq!(network.take_losses().len(), full as usize);
    arrived
}

#[test]
fn a_buffer_holds_its_size_with_the_packet_in_transmission() {
    for packets in 1..=7 {
        let by_packets = accepted(Buffer::Packets(packets), 1000);
        assert_eq!(by_packets, packets as usize);
        let bytes = 1000 * u64::from(packets);
        assert_eq!(accepted(Buffer::Bytes(bytes), 1000), packets as usize);
        assert_eq!(
            accepted(Buffer::Bytes(bytes - 1), 1000),
            packets as usize - 1
        );
    }
    assert_eq!(accepted(Buffer::Packets(8), 1000), 8);
}

#[test]
fn room_is_free_again_at_the_instant_a_packet_is_out() {
    // The first packet reaches the bottleneck at 22 us and is out at 142 us; the second comes then
    // or 1 ps earlier.
    for (early, arrives) in [(0, 2), (1, 1)] {
        let mut network = dumbbell(Buffer::Packets(1));
        network.start();
        let second = Time(SLOW.0 - early);
        let packets = [
            (Time::ZERO, packet(0, 0, 1500)),
            (second, packet(1, 0, 1500)),
        ];
        assert_eq!(transport(&mut network, &packets).len(), arrives);
    }
}

#[test]
fn the_queue_is_reported_in_bytes_and_packets() {
    let mut network = dumbbell(Buffer::Packets(100));
    network.start();
    let burst: Vec<_> = (0..4)
        .map(|host| (Time::ZERO, packet(host, 0, 1500)))
        .collect();
    transport(&mut network, &burst);
    let counters = network.counters(BOTTLENECK, Time::from_secs(10));
    assert_eq!((counters.sent_packets, counters.sent_bytes), (4, 6000));
    assert_eq!(counters.peak_bytes, 6000);
    assert_eq!(network.backlog_bytes(Time::from_secs(1), BOTTLENECK), 0);
    assert_eq!(network.backlog_packets(Time::from_secs(1), BOTTLENECK), 0);
}

#[test]
fn jitter_delays_and_neither_loses_nor_reorders() {
    let jitter = Time::from_micros(50);
    for buffer in [Buffer::Packets(5), Buffer::Bytes(4000)] {
        let [plain, late] = [Time::ZERO, jitter].map(|jitter| {
            let mut network = jittery(buffer, jitter);
            network.start();
            transport(&mut network, &random_traffic(1.1, 3))
        });
        let of_flows = |arrived: &[(Time, Packet)]| {
            let mut packets: Vec<_> = arrived
                .iter()
                .map(|(time, packet)| (packet.flow.0, packet.seq, *time))
                .collect();
            packets.sort_by_key(|(flow, _, _)| *flow); // stable: each flow's in their order
            packets
        };
        let (plain, late) = (of_flows(&plain), of_flows(&late));
        assert!(plain.len() > 200);
        let names = |packets: &[(u32, u32, Time)]| -> Vec<_> {
            packets.iter().map(|(flow, seq, _)| (*flow, *seq)).collect()
        };
        assert_eq!(names(&plain), names(&late));
        // Those that bunch together wait for each other at the last link.
        let most = jitter + Time(5 * ACCESS.0);
        let waits: Vec<_> = plain.iter().zip(&late).map(|(p, l)| l.2 - p.2).collect();
        assert!(waits.iter().all(|wait| *wait <= most));
        let mean = waits.iter().map(|wait| wait.0).sum::<u64>() / waits.len() as u64;
        assert!(
            (jitter.0 * 2 / 5..jitter.0 * 4 / 5).contains(&mean),
            "{mean}"
        );
    }
}

/// First in, first out, as a scheduler: a port that could not foresee departures.
struct Fifo {
    packets: VecDeque<Packet>,
    limit: usize,
}

impl Scheduler for Fifo {
    fn enqueue(&mut self, _: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason)) {
        if self.packets.len() < self.limit {
            self.packets.push_back(packet);
        } else {
            lost(packet, DropReason::Full);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        self.packets.pop_front()
    }

    fn backlog_bytes(&self) -> u64 {
        self.packets.iter().map(|p| u64::from(p.size())).sum()
    }

    fn backlog_packets(&self) -> u32 {
        self.packets.len() as u32
    }
}

#[test]
fn foreseen_departures_are_those_of_a_port_that_looks() {
    for (size, load) in [(2, 0.9), (5, 1.5), (30, 1.5)] {
        let mut lost = 0;
        for seed in 0..20 {
            let packets = random_traffic(load, seed);
            let mut foreseen = dumbbell(Buffer::Packets(size));
            foreseen.start();
            let mut looking = dumbbell(Buffer::Packets(size));
            let fifo = Fifo {
                packets: VecDeque::new(),
                limit: size as usize - 1,
            };
            looking.set_scheduler(BOTTLENECK, Box::new(fifo));
            looking.start();
            // Which of two hosts gets its packet first at one instant is not the port's doing.
            let by_time = |mut arrived: Vec<(Time, Packet)>| {
                arrived.sort_by_key(|(time, packet)| (*time, packet.flow, packet.seq));
                arrived
            };
            let arrived = by_time(transport(&mut foreseen, &packets));
            let looked = by_time(transport(&mut looking, &packets));
            let parts = arrived.iter().zip(&looked).find(|(a, b)| a != b);
            assert!(arrived == looked, "{size} packets, seed {seed}: {parts:?}");
            lost += packets.len() - arrived.len();
            let (one, other) = (
                foreseen.counters(BOTTLENECK, Time::from_secs(10)),
                looking.counters(BOTTLENECK, Time::from_secs(10)),
            );
            assert_eq!((one.drops, one.peak_bytes), (other.drops, other.peak_bytes));
        }
        assert!(lost > 0, "{size} packets");
    }
}
