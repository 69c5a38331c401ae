// SPDX-License-Identifier: Apache-2.0
//! Packets through links and ports, without TCP.

#![allow(clippy::unwrap_used)]

mod fifo;
mod policies;

use penstock_scenario::units::{Buffer, Rate, Time};
use penstock_sim::fabric::{Cable, Fabric, NO_MTU};
use penstock_sim::network::{Event, Network};
use penstock_sim::packet::{FlowId, Packet, flag};
use penstock_sim::rng::Rng;

/// Hosts on each side.
const HOSTS: u32 = 8;
/// The bottleneck towards the receivers.
const BOTTLENECK: u32 = 0;
const DELAY: Time = Time::from_micros(10);

/// Eight senders and receivers at 1 Gb/s around a bottleneck of 100 Mb/s; flow `2n` goes from
/// sender `n` to receiver `n`.
fn dumbbell(buffer: Buffer) -> Network {
    jittery(buffer, Time::ZERO)
}

/// The same where packets take up to `jitter` longer behind the bottleneck.
fn jittery(buffer: Buffer, jitter: Time) -> Network {
    let deep = Buffer::Packets(10_000);
    let cable = |rate| Cable {
        rate: Rate(rate),
        delay: DELAY,
        jitter: Time::ZERO,
        mtu: NO_MTU,
    };
    let bottleneck = Cable {
        jitter,
        ..cable(100_000_000)
    };
    let fabric = Fabric::dumbbell(
        [HOSTS as usize, HOSTS as usize, 0],
        deep,
        [
            (cable(1_000_000_000), deep),
            (cable(1_000_000_000), deep),
            (bottleneck, buffer),
        ],
    );
    let mut network = Network::new(&fabric, Rng::new(1, 0));
    for host in 0..HOSTS {
        // Cable 0 is the bottleneck, cable 1 + n the access of host n.
        let (from, to) = (2 + 2 * host, 2 + 2 * (HOSTS + host) + 1);
        let path = [from, BOTTLENECK, to];
        let back: Vec<u32> = path.iter().rev().map(|link| link ^ 1).collect();
        network.set_paths(FlowId(2 * host), 0, &path, &back);
    }
    network
}

fn packet(host: u32, seq: u32, size: u16) -> Packet {
    Packet {
        flow: FlowId(2 * host),
        seq,
        payload: size - 40,
        header: 40,
        flags: flag::ACK | flag::ECT,
        ..Packet::default()
    }
}

/// Sends the packets at their times (ascending) and returns what arrives, with its time. The
/// bottleneck's policy does its periodic work meanwhile.
fn transport(network: &mut Network, packets: &[(Time, Packet)]) -> Vec<(Time, Packet)> {
    let mut arrived = Vec::new();
    let mut waiting = packets.iter().peekable();
    let period = network.queue_period(BOTTLENECK);
    let mut tick = period.unwrap_or(Time::NEVER);
    loop {
        let (now, event) = network.next();
        let due = waiting.peek().map_or(Time::NEVER, |(time, _)| *time);
        let is_idle = now > network.horizon();
        if is_idle && due == Time::NEVER {
            return arrived;
        }
        if tick <= now.min(due) {
            let next = network.tick_queue(tick, BOTTLENECK);
            tick = next.unwrap_or(Time::NEVER);
            continue;
        }
        if is_idle || due <= now {
            let (time, packet) = waiting.next().unwrap();
            network.inject(*time, *packet, &[]);
            continue;
        }
        match event {
            Event::Arrival(link) => {
                arrived.extend(network.arrive(now, link).map(|packet| (now, packet)));
            }
            Event::Departure(port) => network.depart(now, port),
            Event::Other(_) => unreachable!("no other was scheduled"),
        }
    }
}

/// Random packets of all flows, for 20 ms at `load` of the bottleneck; no two at one instant.
fn random_traffic(load: f64, seed: u64) -> Vec<(Time, Packet)> {
    let mut rng = Rng::new(seed, 9);
    let mut now = Time::ZERO;
    let mut sent = [0; HOSTS as usize];
    let mut packets = Vec::new();
    while now < Time::from_millis(20) {
        // 800 bytes on average take 64 us at 100 Mb/s.
        now += Time(1 + rng.below((2.0 * 64e6 / load) as u64));
        let host = rng.below(HOSTS.into()) as u32;
        let size = 100 + rng.below(1401) as u16;
        packets.push((now, packet(host, sent[host as usize], size)));
        sent[host as usize] += 1;
    }
    packets
}
