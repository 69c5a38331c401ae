// SPDX-License-Identifier: Apache-2.0
//! The same scenario and seed give the same bytes on every machine and any number of threads.
//!
//! `tests/golden/*.txt` hold a hash of all results per scheme. Where a change of behaviour is
//! meant, renew them: `PENSTOCK_UPDATE_GOLDEN=1 cargo test -p penstock-sim --test simulation`.

use super::{outcome, results};
use penstock_scenario::builtin_schemes;
use penstock_sim::Outcome;
use std::path::Path;

const TRAFFIC: &str = r#"
[traffic.long]
kind = "bulk"
start_spread = "1 ms"
from = "FROM"
to = "TO"
[traffic.mice]
kind = "incast"
mode = "pull"
size = "10 kB"
start = "5 ms"
requests = 3
think = "1 ms"
from = "FROM"
to = "TO"
[traffic.web]
kind = "poisson"
load = "20 %"
size = "websearch"
from = "FROM"
to = "TO"
[traffic.noise]
kind = "udp"
rate = "20 Mb/s"
from = "FROM"
to = "TO"
"#;

fn text(fabric: &str, from: &str, to: &str) -> String {
    let traffic = TRAFFIC.replace("FROM", from).replace("TO", to);
    format!(
        r#"
        title = "golden"
        duration = "40 ms"
        schemes = ["drop-tail"]
        [fabric]
        {fabric}
        [tcp]
        profile = "linux"
        min_rto = "10 ms"
        initial_rto = "10 ms"
        [measure]
        queue_every = "1 ms"
        {traffic}
        "#
    )
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// One line: the hash, and numbers that show at a glance how far apart two versions are.
fn line(scheme: &str, outcome: &Outcome) -> String {
    let delivered: u64 = outcome.flows.iter().map(|flow| flow.delivered_bytes).sum();
    let finished: usize = outcome.groups.values().map(|group| group.finished).sum();
    format!(
        "{scheme}: {:016x}, {} flows, {finished} finished, {delivered} bytes, {} drops\n",
        hash(&results(outcome)),
        outcome.flows.len(),
        outcome.drops
    )
}

fn check(name: &str, text: &str, schemes: &[&str]) {
    let on_threads = std::thread::scope(|scope| {
        let runs: Vec<_> = schemes
            .iter()
            .map(|scheme| scope.spawn(move || line(scheme, &outcome(text, scheme))))
            .collect();
        runs.into_iter()
            .map(|run| run.join().unwrap())
            .collect::<String>()
    });
    let alone: String = schemes
        .iter()
        .map(|scheme| line(scheme, &outcome(text, scheme)))
        .collect();
    assert_eq!(alone, on_threads, "one thread and many differ");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let file = folder.join(name).with_extension("txt");
    if std::env::var_os("PENSTOCK_UPDATE_GOLDEN").is_some() {
        std::fs::write(file, alone).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        alone == golden,
        "{name} is not what it was; if that is meant, PENSTOCK_UPDATE_GOLDEN=1 renews it\n\
         was:\n{golden}is:\n{alone}"
    );
}

#[test]
fn dumbbell() {
    let fabric = r#"
        kind = "dumbbell"
        senders = 10
        receivers = 10
        access = { rate = "1 Gb/s", delay = "10 us" }
        bottleneck = { rate = "1 Gb/s", delay = "20 us", buffer = "60 packets" }"#;
    let schemes: Vec<&str> = builtin_schemes().keys().map(String::as_str).collect();
    check("dumbbell", &text(fabric, "senders", "receivers"), &schemes);
}

#[test]
fn tree() {
    let fabric = r#"
        kind = "tree"
        aggregations = 2
        racks = 3
        hosts_per_rack = 6
        host_link = { rate = "1 Gb/s", delay = "5 us" }
        rack_link = { rate = "1 Gb/s", delay = "5 us" }
        core_link = { rate = "2 Gb/s", delay = "5 us" }
        buffer = "90 kB""#;
    check(
        "tree",
        &text(fabric, "rack1", "rack3"),
        &["drop-tail", "red-ecn", "dctcp", "sicc", "hcf-fairq"],
    );
}

#[test]
fn fat_tree() {
    let fabric = r#"
        kind = "fat-tree"
        k = 4
        host_link = { rate = "1 Gb/s", delay = "2 us" }
        buffer = "100 packets""#;
    check(
        "fat-tree",
        &text(fabric, "pod1", "pod3"),
        &["drop-tail", "fairq", "hscc", "sicc", "hcf"],
    );
}
