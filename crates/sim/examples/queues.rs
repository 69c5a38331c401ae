// SPDX-License-Identifier: Apache-2.0
//! Nanoseconds per packet of every queue policy: `cargo run --release --example queues`.
//!
//! Admissions decide on packets of a congested port; schedulers take one and give one with 100
//! packets waiting. The row "none" is what the loop itself costs.

use std::hint::black_box;
use std::time::Instant;

use penstock_scenario::units::{Rate, Time};
use penstock_sim::packet::{FlowId, Packet, flag};
use penstock_sim::queue::{Admission, Arrival, DropReason, Limit, Scheduler, Verdict};
use penstock_sim::queue::{codel, drr, pie, red, sfq, threshold};
use penstock_sim::rng::Rng;

const PACKETS: u64 = 5_000_000;
const RATE: Rate = Rate(1_000_000_000);
const LIMIT: Limit = Limit::packets(120);

fn packet(flow: u32) -> Packet {
    Packet {
        flow: FlowId(flow),
        seq: 0,
        ack: 0,
        ts_val: 0,
        ts_ecr: 0,
        options: 0,
        payload: 1460,
        window: 0,
        flags: flag::ACK | flag::ECT,
        header: 40,
        hop: 0,
    }
}

struct DropTail;

impl Admission for DropTail {
    fn admit(&mut self, _: &Arrival, _: &Packet, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
}

fn report(name: &str, start: Instant, note: &str) {
    let nanos = start.elapsed().as_nanos() as f64 / PACKETS as f64;
    println!("{name:<12} {nanos:6.1} ns/packet  {note}");
}

fn admission(name: &str, mut policy: impl Admission) {
    let mut rng = Rng::new(1, 0);
    let mut refused = 0u64;
    let start = Instant::now();
    for i in 0..PACKETS {
        let now = Time(i * 12_000_000);
        // A queue that swings between 10 and 73 packets.
        let backlog_packets = 10 + (i >> 4 & 63) as u32;
        let backlog_bytes = u64::from(backlog_packets) * 1500;
        let free_at = Time(now.0 + backlog_bytes * 8000);
        let port = Arrival {
            now,
            backlog_bytes,
            backlog_packets,
            free_at,
        };
        let verdict = policy.admit(black_box(&port), &packet(i as u32 & 127), &mut rng);
        refused += u64::from(verdict != Verdict::Pass);
        if i & 1023 == 0 {
            policy.tick(now, backlog_bytes);
        }
    }
    report(
        name,
        start,
        &format!(
            "{:.2} % marked or dropped",
            100.0 * refused as f64 / PACKETS as f64
        ),
    );
}

fn scheduler(name: &str, mut queue: impl Scheduler, flows: u32) {
    let (mut lost, mut rng) = (0u64, Rng::new(1, 0));
    let mut on_lost = |_: Packet, _: DropReason| lost += 1;
    for _ in 0..100 {
        queue.enqueue(
            Time::ZERO,
            packet(rng.below(u64::from(flows)) as u32),
            &mut on_lost,
        );
    }
    let start = Instant::now();
    for i in 0..PACKETS {
        let now = Time(i * 12_000_000);
        let flow = rng.below(u64::from(flows)) as u32;
        queue.enqueue(now, black_box(packet(flow)), &mut on_lost);
        // One arrival in 16 finds the transmitter busy: some overload.
        if i & 15 != 0 {
            black_box(queue.dequeue(now, &mut on_lost));
        }
    }
    let note = format!(
        "{flows} flows, {:.2} % lost",
        100.0 * lost as f64 / PACKETS as f64
    );
    report(name, start, &note);
}

fn main() {
    let only = std::env::args().nth(1);
    let wants = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wants("none") {
        admission("none", DropTail);
    }
    if wants("red") {
        let ecn = red::Config {
            ecn: true,
            weight: 0.002,
            adaptive: false,
            ..red::Config::for_link(RATE, LIMIT)
        };
        admission("red", red::Red::new(ecn));
    }
    if wants("threshold") {
        admission(
            "threshold",
            threshold::Marking::new(threshold::Threshold::Packets(65)),
        );
    }
    if wants("pie") {
        let target = Time::from_micros(200);
        let config = pie::Config {
            target,
            update_period: target,
            max_burst: Time(10 * target.0),
            alpha_per_s: 9.375,
            beta_per_s: 93.75,
            ..pie::Config::for_link(RATE)
        };
        admission("pie", pie::Pie::new(config));
    }
    for flows in [16, 1000] {
        if wants("codel") {
            let times = codel::Config::new(LIMIT);
            let config = codel::Config {
                target: Time::from_micros(50),
                interval: Time::from_millis(1),
                ..times
            };
            scheduler("codel", codel::Codel::new(config), flows);
        }
        if wants("sfq") {
            scheduler(
                "sfq",
                sfq::Sfq::new(sfq::Config::new(LIMIT), Rng::new(2, 0)),
                flows,
            );
        }
        if wants("drr") {
            scheduler("drr", drr::Drr::new(drr::Config::new(LIMIT)), flows);
        }
    }
}
