// SPDX-License-Identifier: Apache-2.0
//! A fabric in several parts: the same bytes on any number of threads, and what it means stays.

use super::{assert_same, results, scenario};
use penstock_sim::{Cores, Inputs, Outcome, RunError, run_on};

pub(super) const TREE: &str = r#"
kind = "tree"
aggregations = 3
racks = 4
hosts_per_rack = 4
host_link = { rate = "1 Gb/s", delay = "5 us" }
rack_link = { rate = "1 Gb/s", delay = "5 us" }
core_link = { rate = "2 Gb/s", delay = "5 us" }
buffer = "60 kB""#;
pub(super) const LEAF_SPINE: &str = r#"
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 5
host_link = { rate = "1 Gb/s", delay = "2 us" }
spine_link = { rate = "1 Gb/s", delay = "3 us", buffer = "40 packets" }"#;
pub(super) const FAT_TREE: &str = r#"
kind = "fat-tree"
k = 4
host_link = { rate = "1 Gb/s", delay = "2 us" }
buffer = "50 packets""#;

/// Every kind of traffic that can be divided: pushed and pulled, begun again and again on one
/// connection and on new ones, stopped before the end, made up as the run goes, and datagrams.
const TRAFFIC: &str = r#"
[traffic.long]
kind = "bulk"
start_spread = "1 ms"
pairs = "random"
flows = 20
stop = "15 ms"
from = "all"
to = "all"
[traffic.endless]
kind = "bulk"
pairs = "random"
flows = 5
from = "all"
to = "all"
[traffic.asked]
kind = "incast"
mode = "pull"
size = "10 kB"
start = "3 ms"
requests = 4
think = "1 ms"
from = ["host3", "host6", "host7", "host8", "host10", "host12"]
to = "host1"
[traffic.kept]
kind = "incast"
mode = "pull"
connection = "persistent"
size = "4 kB"
requests = 20
from = ["host2", "host5", "host9"]
to = "host15"
[traffic.web]
kind = "poisson"
load = "20 %"
size = "websearch"
pairs = "random"
from = "all"
to = "all"
[traffic.noise]
kind = "udp"
rate = "50 Mb/s"
pairs = "random"
flows = 4
from = "all"
to = "all"
"#;

fn text(fabric: &str, tcp: &str) -> String {
    format!(
        "title = \"parts\"\nduration = \"20 ms\"\nschemes = [\"drop-tail\"]\n[fabric]\n{fabric}\n\
         [tcp]\n{tcp}\nmin_rto = \"10 ms\"\ninitial_rto = \"10 ms\"\n{TRAFFIC}\n\
         [measure]\nfrom = \"5 ms\"\n"
    )
}

pub(super) fn divided(
    text: &str,
    scheme: &str,
    seed: u64,
    parts: usize,
    threads: usize,
) -> Outcome {
    let cores = Cores {
        threads,
        parts: Some(parts),
    };
    let inputs = Inputs::default();
    run_on(cores, &scenario(text), &inputs, scheme, seed, &|_| true).unwrap()
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let reno = "profile = \"newreno-ns2\"";
    let linux = "profile = \"linux\"";
    let cases = [
        (TREE, reno, "drop-tail", 3),
        (TREE, linux, "fairq", 2),
        (TREE, linux, "red-ecn", 4),
        (LEAF_SPINE, linux, "dctcp", 3),
        (LEAF_SPINE, reno, "hcf", 2),
        (LEAF_SPINE, linux, "hscc", 3),
        (FAT_TREE, linux, "drop-tail", 4),
        (FAT_TREE, reno, "hcf-fairq", 3),
    ];
    for (fabric, tcp, scheme, parts) in cases {
        let text = text(fabric, tcp);
        let seed = parts as u64;
        let one = results(&divided(&text, scheme, seed, parts, 1));
        for threads in [2, 3] {
            let several = results(&divided(&text, scheme, seed, parts, threads));
            let what = format!("{scheme}, {parts} parts, {threads} threads");
            assert_same(&one, &several, &what);
        }
    }
}

#[test]
fn parts_count_what_the_whole_counts() {
    // Too little traffic for two packets to meet: every part tells the same as the whole.
    let text = format!(
        "title = \"few\"\nduration = \"90 ms\"\nschemes = [\"drop-tail\"]\n[fabric]\n{TREE}\n\
         [tcp]\nprofile = \"linux\"\n\
         [traffic.push]\nkind = \"bulk\"\nsize = \"20 kB\"\nflows = 12\npairs = \"random\"\n\
         start_gap = \"4 ms\"\nfrom = \"all\"\nto = \"all\"\n\
         [traffic.pull]\nkind = \"incast\"\nmode = \"pull\"\nsize = \"9 kB\"\nstart = \"70 ms\"\n\
         requests = 3\nfrom = \"host2\"\nto = \"host15\"\n"
    );
    let scenario = scenario(&text);
    let inputs = Inputs::default();
    let told = |parts| {
        let cores = Cores {
            threads: 2,
            parts: Some(parts),
        };
        let told = run_on(cores, &scenario, &inputs, "drop-tail", 1, &|_| true).unwrap();
        assert!(told.flows.iter().all(|flow| flow.end_s.is_some()) && told.flows.len() == 15);
        serde_json::to_string(&(told.flows, told.drops, told.groups)).unwrap()
    };
    let whole = told(1);
    for parts in [2, 3, 4] {
        assert_same(&whole, &told(parts), &format!("{parts} parts"));
    }
}

#[test]
fn losses_and_timeouts_are_booked_wherever_they_happen() {
    let text = text(TREE, "profile = \"newreno-ns2\"");
    let counts = |told: &Outcome| {
        let flows = &told.flows;
        let drops: u64 = flows.iter().map(|flow| flow.drops).sum();
        let retransmits: u64 = flows.iter().map(|flow| flow.retransmits).sum();
        let delivered: u64 = flows.iter().map(|flow| flow.delivered_bytes).sum();
        [drops, retransmits, delivered / 1000]
    };
    // One flow more or less in slow start changes a lot: four seeds together.
    let sum = |parts| {
        let mut sum = [0; 3];
        for seed in 1..=4 {
            let told = divided(&text, "drop-tail", seed, parts, 2);
            let starts: Vec<f64> = told.flows.iter().map(|flow| flow.start_s).collect();
            assert!(starts.is_sorted());
            for (sum, count) in sum.iter_mut().zip(counts(&told)) {
                *sum += count;
            }
        }
        sum
    };
    let whole = sum(1);
    for parts in [2, 4] {
        for (one, several) in whole.into_iter().zip(sum(parts)) {
            let is_near = several > one / 2 && several < 2 * one;
            assert!(one > 500 && is_near, "{parts} parts: {one}, {several}");
        }
    }
}

#[test]
fn a_run_in_parts_can_be_interrupted() {
    let cores = Cores {
        threads: 2,
        parts: Some(2),
    };
    let scenario = scenario(&text(TREE, "profile = \"linux\""));
    let stop_at_half = |done: f64| done < 0.5;
    let inputs = Inputs::default();
    let told = run_on(cores, &scenario, &inputs, "drop-tail", 1, &stop_at_half);
    assert!(matches!(told, Err(RunError::Interrupted)));
}
