// SPDX-License-Identifier: Apache-2.0
//! Packets of every header stack, whole and broken, through every program of a port: whatever
//! they hold, they pass, as long as they were, with at most a lower window, a CE mark, and
//! checksums as right as before. Needs root.
//!
//! PENSTOCK_FUZZ_PACKETS is how many (`make fuzz-datapath`: 10 million), PENSTOCK_FUZZ_SEED
//! which.

#![allow(clippy::unwrap_used)]

mod cases;
mod check;
mod craft;
mod device;
mod floors;
mod forge;
mod kernel;
mod mutate;
mod random;
mod reference;

use cases::{CASES, Case};
use check::check;
use craft::{Flow, Stack};
use kernel::{Runner, make_runnable, program, put, put_at};
use libbpf_rs::Object;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use penstock_linux::testkit::from_environment;
use penstockd::skel::port::PortSkelBuilder;
use random::Random;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Packets with one configuration and one set of flows.
const ROUND: u64 = 2000;

#[derive(Default)]
struct Tally {
    packets: u64,
    runs: u64,
    tcp: u64,
    changed: u64,
    changed_right: u64,
    broken: Vec<String>,
    /// Entries that forged packets met.
    met: u64,
    by_case: BTreeMap<&'static str, u64>,
    by_stack: BTreeMap<Stack, u64>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.broken.extend(other.broken);
        self.packets += other.packets;
        self.runs += other.runs;
        self.tcp += other.tcp;
        self.changed += other.changed;
        self.changed_right += other.changed_right;
        self.met += other.met;
        for (case, count) in other.by_case {
            *self.by_case.entry(case).or_default() += count;
        }
        for (stack, count) in other.by_stack {
            *self.by_stack.entry(stack).or_default() += count;
        }
    }
}

#[test]
fn no_packet_is_harmed() {
    let packets = from_environment("PENSTOCK_FUZZ_PACKETS", 100_000);
    let seed = from_environment("PENSTOCK_FUZZ_SEED", 1);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let begun = Instant::now();
    let done = AtomicU64::new(0);
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let done = &done;
        let workers: Vec<_> = (0..threads)
            .map(|worker| scope.spawn(move || work(seed, worker, threads, packets, done)))
            .collect();
        for worker in workers {
            all.add(worker.join().expect("a worker ends"));
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "seed {seed}: {} packets, {} runs in {seconds:.1} s ({:.0}/s), {} TCP, {} changed, {} of these with all checksums right",
        all.packets,
        all.runs,
        all.runs as f64 / seconds,
        all.tcp,
        all.changed,
        all.changed_right
    );
    for case in &CASES {
        println!(
            "  {:<24} changed {}",
            case.name,
            all.by_case.get(case.name).unwrap_or(&0)
        );
    }
    assert!(
        all.broken.is_empty(),
        "rules are broken:\n{}",
        all.broken.join("\n")
    );
    // A fuzzer whose packets are never acted on proves nothing.
    assert!(all.met > 100, "forged packets met {} flows", all.met);
    for case in CASES.iter().filter(|case| case.acts()) {
        assert!(
            all.by_case.contains_key(case.name),
            "{}: no packet was changed",
            case.name
        );
    }
    let shapes: std::collections::BTreeSet<_> = all
        .by_stack
        .keys()
        .map(|s| (s.tunnel, s.is6, s.tags.min(2)))
        .collect();
    assert!(
        shapes.len() >= 18,
        "acted on only in these stacks: {shapes:?}"
    );
}

fn work(seed: u64, worker: u64, workers: u64, packets: u64, done: &AtomicU64) -> Tally {
    let device = device::Device::new(cases::BUFFER_BYTES);
    let mut memory = MaybeUninit::uninit();
    let open = PortSkelBuilder::default().open(&mut memory).unwrap();
    let loaded = open
        .load()
        .expect("the kernel takes the programs; loading them needs root");
    let mut runner = Runner::new(device.ifindex);
    let mut tally = Tally::default();
    let mut floors = floors::Floors::default();
    let mut round = worker;
    while round * ROUND < packets && tally.broken.len() < 10 {
        let case = &CASES[round as usize % CASES.len()];
        // Each round has its own seed, whichever thread plays it.
        let random = Random(seed.wrapping_mul(0x1_0000_0001).wrapping_add(round));
        play(
            loaded.object(),
            &mut runner,
            case,
            round,
            random,
            &mut floors,
            &mut tally,
        );
        let before = done.fetch_add(ROUND, Ordering::Relaxed);
        if (before + ROUND) / 1_000_000 != before / 1_000_000 {
            eprintln!("{} million packets", (before + ROUND) / 1_000_000);
        }
        round += workers;
    }
    tally
}

/// One round: a port set up by `case`, its flows, and their packets.
fn play(
    object: &Object,
    runner: &mut Runner,
    case: &'static Case,
    round: u64,
    mut random: Random,
    floors: &mut floors::Floors,
    tally: &mut Tally,
) {
    put_at(object, "policy", 1, &cases::policy().to_map(1, round + 1));
    let config = case.config(round as u32 + 1, runner.ifindex);
    put(object, "config", &config);
    put(object, "heartbeat", &1u64);
    let programs = [false, true].map(|is_egress| program(object, &case.program(is_egress)));
    let mut flows: Vec<Flow> = (0..48).map(|_| Flow::any(&mut random)).collect();
    for index in 0..ROUND {
        if index % (ROUND / 2) == ROUND / 4 {
            match forge::forge(object, runner, &programs, &mut flows, &mut random) {
                Ok(met) => tally.met += met,
                Err(broken) => tally
                    .broken
                    .push(format!("{}, round {round}: {broken}", case.name)),
            }
        }
        let which = random.below(flows.len());
        if random.percent(2) {
            flows[which] = Flow::any(&mut random);
        }
        let (mut packet, is_out) = flows[which].packet(&mut random);
        let is_whole = random.percent(50);
        if random.percent(5) {
            packet = mutate::noise(&mut random);
        } else if !is_whole {
            mutate::mutate(&mut packet, &mut random);
        }
        make_runnable(&mut packet);
        let segment = if random.percent(10) {
            1 + random.below(1500) as u32
        } else {
            0
        };
        tally.packets += 1;
        floors.see(&packet);
        let other = random.percent(30).then_some(!is_out);
        for is_egress in [Some(is_out), other].into_iter().flatten() {
            let passed = runner.run(&programs[usize::from(is_egress)], &packet, segment);
            let outcome = check(
                &packet,
                passed.packet,
                passed.verdict,
                case.right(is_egress),
            );
            let outcome = outcome.and_then(|outcome| {
                let is_tracked = case.wscale_source == cases::TRACKED;
                if is_tracked && case.right(is_egress) == check::Right::Window {
                    floors.check(&packet, passed.packet)?;
                }
                Ok(outcome)
            });
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(broken) => {
                    tally.broken.push(format!(
                        "{}, {}, round {round}, packet {index}: {broken}\n  before {}\n  after  {}",
                        case.name,
                        case.program(is_egress),
                        hex(&packet),
                        hex(passed.packet)
                    ));
                    continue;
                }
            };
            tally.runs += 1;
            tally.tcp += u64::from(outcome.is_tcp);
            if outcome.changed {
                tally.changed += 1;
                tally.changed_right += u64::from(outcome.was_right);
                *tally.by_case.entry(case.name).or_default() += 1;
                if is_whole {
                    *tally.by_stack.entry(flows[which].stack).or_default() += 1;
                }
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
