// SPDX-License-Identifier: Apache-2.0
//! Short flows without end through a port with FairQ, which loses some of their SYNs and FINs:
//! the number of flows stays exact, nothing is left behind, and the agent does not grow.
//!
//! PENSTOCK_SOAK_FLOWS and PENSTOCK_SOAK_SECONDS (`make soak`: 100,000 in 600 s) set its length.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::SwitchLab;
use lab::transfers::{abort, connect, send, serve, transfer};
use libbpf_rs::{MapCore, MapFlags};
use penstock_linux::testkit::{Process, from_environment, join};
use penstockd::port::Port;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For what remains to be sent at the end.
const LIMIT: Duration = Duration::from_secs(240);
/// Flows that begin at once, as in incast.
const SENDERS: u64 = 32;
/// Connections that stay open all the time.
const HELD: u64 = 20;

/// Memory of a process in use, kB.
fn resident_kb(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let value = line.unwrap().split_whitespace().nth(1);
    value.unwrap().parse().unwrap()
}

/// The table's entries, as bytes of key and value.
fn entries(port: &Port) -> Vec<String> {
    let flows = port.map("flows4").unwrap();
    let value = |key: &[u8]| flows.lookup(key, MapFlags::ANY).unwrap();
    flows
        .keys()
        .map(|key| format!("{key:02x?}: {:02x?}", value(&key)))
        .collect()
}

/// Waits until a condition holds; the error is what was the case instead.
fn settle<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, now: impl Fn() -> T) {
    let begun = Instant::now();
    while now() != expected {
        let found = now();
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what}: {found:?}, not {expected:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_count_of_flows_is_exact() {
    let flows = from_environment("PENSTOCK_SOAK_FLOWS", 3000);
    let seconds = from_environment("PENSTOCK_SOAK_SECONDS", 8);
    let lab = SwitchLab::new(100_000_000, 24_576);
    let limit = Duration::from_secs(seconds + 300);
    lab.netns("right").run(serve).unwrap();
    let (agent, port) = lab.attach("fairq", &["--set", "window.idle=10s"], limit);
    let (held, done) = hold(&lab);
    settle("flows held open", HELD, || {
        u64::from(port.state().unwrap().flows)
    });
    let memory = resident_kb(&agent);
    let begun = Instant::now();
    let failed = play(&lab, flows, Duration::from_secs(seconds));
    let elapsed = begun.elapsed();

    settle("flows after the others ended", HELD, || {
        u64::from(port.state().unwrap().flows)
    });
    done.store(true, Ordering::Relaxed);
    held.into_iter()
        .for_each(|thread| join(thread, limit).unwrap());
    settle("flows after all ended", 0, || {
        u64::from(port.state().unwrap().flows)
    });
    settle("entries in the table", Vec::new(), || entries(&port));
    let (state, counters) = (port.state().unwrap(), port.counters().unwrap());
    let (drops, repeated) = (lab.drops(), lab.tcp_counter("RetransSegs"));
    let grown = resident_kb(&agent).saturating_sub(memory);
    println!(
        "{flows} flows in {:.0} s, {failed} failed, {drops} drops, {repeated} segments sent again, {} resets sent, {} SYNs seen, {} begun, {} ended, {} ACKs rewritten, agent {memory} kB + {grown} kB",
        elapsed.as_secs_f64(),
        lab.tcp_counter("OutRsts"),
        counters.syns,
        counters.flows_begun,
        counters.flows_ended,
        counters.acks_rewritten
    );
    assert_eq!(failed, 0, "transfers failed");
    assert_eq!(state.corrected, 0, "a sweep had to correct the count");
    assert_eq!(counters.flows_begun, counters.flows_ended);
    assert!(counters.flows_begun >= flows + HELD, "each flow counts");
    assert!(
        drops > 0 && counters.syns > 2 * (flows + HELD),
        "no loss: nothing was proven"
    );
    assert!(counters.acks_rewritten > 0, "the scheme did not act");
    assert!(grown <= 1024, "the agent grew by {grown} kB");
}

/// Connections that send a few bytes now and then until stopped.
fn hold(
    lab: &SwitchLab,
) -> (
    Vec<std::thread::JoinHandle<std::io::Result<()>>>,
    Arc<AtomicBool>,
) {
    let done = Arc::new(AtomicBool::new(false));
    let threads = (0..HELD).map(|id| {
        let done = done.clone();
        lab.spawn("left", move || {
            let mut stream = connect()?;
            while !done.load(Ordering::Relaxed) {
                send(&mut stream, 1 << 60 | id, 100)?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        })
    });
    (threads.collect(), done)
}

/// Plays the flows in rounds, spread over the time; returns how many failed.
fn play(lab: &SwitchLab, flows: u64, time: Duration) -> u64 {
    let (next, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let begun = Instant::now();
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (next, failed) = (next.clone(), failed.clone());
            lab.spawn("left", move || {
                loop {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    if id >= flows {
                        return;
                    }
                    let due = time.mul_f64((id / SENDERS * SENDERS) as f64 / flows as f64);
                    std::thread::sleep(due.saturating_sub(begun.elapsed()));
                    let outcome = match id % 50 {
                        0 => abort(),
                        _ => transfer(id, 200 + id * 7919 % 24_000),
                    };
                    if let Err(error) = outcome {
                        eprintln!("flow {id}: {error}");
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| join(sender, time + LIMIT));
    failed.load(Ordering::Relaxed)
}
