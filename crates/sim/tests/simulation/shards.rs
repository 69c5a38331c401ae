// SPDX-License-Identifier: Apache-2.0
//! A fabric in several shards: the same bytes on any number of threads, and the meaning stays.

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
const LOSSY: &str = r#"
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 5
host_link = { rate = "1 Gb/s", delay = "2 us", jitter = "1 us" }
spine_link = { rate = "1 Gb/s", delay = "3 us", jitter = "4 us" }
shared_at = { "leaf*" = { size = "80 kB" } }
port_at = { "leaf*->spine*" = { loss = "1 %" }, "spine1->*" = { delay = "9 us" } }"#;
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
server_think = { exponential = "200 us" }
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
        "title = \"shards\"\nduration = \"20 ms\"\nschemes = [\"drop-tail\"]\n[fabric]\n{fabric}\n\
         [tcp]\n{tcp}\nmin_rto = \"10 ms\"\ninitial_rto = \"10 ms\"\n{TRAFFIC}\n\
         [measure]\nfrom = \"5 ms\"\n"
    )
}

pub(super) fn sharded(
    text: &str,
    scheme: &str,
    seed: u64,
    shards: usize,
    threads: usize,
) -> Outcome {
    let cores = Cores {
        threads,
        shards: Some(shards),
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
        (LOSSY, linux, "drop-tail", 3),
        (LOSSY, linux, "codel", 2),
        (FAT_TREE, linux, "drop-tail", 1),
        (FAT_TREE, linux, "drop-tail", 4),
        (FAT_TREE, reno, "hcf-fairq", 3),
        (FAT_TREE, linux, "red-ecn", 8),
        (FAT_TREE, reno, "hscc", 8),
    ];
    for (fabric, tcp, scheme, shards) in cases {
        let text = text(fabric, tcp);
        let seed = shards as u64;
        let expected = results(&sharded(&text, scheme, seed, shards, 1));
        for threads in [2, 3, 8] {
            let several = results(&sharded(&text, scheme, seed, shards, threads));
            let what = format!("{scheme}, {shards} shards, {threads} threads");
            assert_same(&expected, &several, &what);
        }
    }
}

#[test]
fn shards_count_what_the_whole_counts() {
    // Too little traffic for two packets to meet: any number of shards counts the same.
    let text = format!(
        "title = \"few\"\nduration = \"90 ms\"\nuntil = \"done\"\nschemes = [\"drop-tail\"]\n[fabric]\n{TREE}\n\
         [tcp]\nprofile = \"linux\"\n\
         [traffic.push]\nkind = \"bulk\"\nsize = \"20 kB\"\nflows = 12\npairs = \"random\"\n\
         start_gap = \"4 ms\"\nfrom = \"all\"\nto = \"all\"\n\
         [traffic.pull]\nkind = \"incast\"\nmode = \"pull\"\nsize = \"9 kB\"\nstart = \"70 ms\"\n\
         requests = 3\nfrom = \"host2\"\nto = \"host15\"\n"
    );
    let scenario = scenario(&text);
    let inputs = Inputs::default();
    let results_of = |shards| {
        let cores = Cores {
            threads: 2,
            shards: Some(shards),
        };
        let Outcome {
            flows,
            drops,
            groups,
            ports,
            ..
        } = run_on(cores, &scenario, &inputs, "drop-tail", 1, &|_| true).unwrap();
        assert!(flows.iter().all(|flow| flow.end_s.is_some()) && flows.len() == 15);
        serde_json::to_string(&(flows, drops, groups, ports)).unwrap()
    };
    let whole = results_of(1);
    for shards in [2, 3, 4, 8] {
        assert_same(&whole, &results_of(shards), &format!("{shards} shards"));
    }
}

#[test]
fn losses_and_timeouts_are_booked_wherever_they_happen() {
    let text = text(TREE, "profile = \"newreno-ns2\"");
    let counts = |outcome: &Outcome| {
        let flows = &outcome.flows;
        let drops: u64 = flows.iter().map(|flow| flow.drops).sum();
        let retransmits: u64 = flows.iter().map(|flow| flow.retransmits).sum();
        let delivered: u64 = flows.iter().map(|flow| flow.delivered_bytes).sum();
        [drops, retransmits, delivered / 1000]
    };
    // One flow more or less in slow start changes a lot: four seeds together.
    let sum = |shards| {
        let mut sum = [0; 3];
        for seed in 1..=4 {
            let outcome = sharded(&text, "drop-tail", seed, shards, 2);
            let starts: Vec<f64> = outcome.flows.iter().map(|flow| flow.start_s).collect();
            assert!(starts.is_sorted());
            for (sum, count) in sum.iter_mut().zip(counts(&outcome)) {
                *sum += count;
            }
        }
        sum
    };
    let whole = sum(1);
    for shards in [2, 4] {
        for (expected, several) in whole.into_iter().zip(sum(shards)) {
            let is_near = several > expected / 2 && several < 2 * expected;
            assert!(
                expected > 500 && is_near,
                "{shards} shards: {expected}, {several}"
            );
        }
    }
}

#[test]
fn a_run_in_shards_can_be_interrupted() {
    let cores = Cores {
        threads: 2,
        shards: Some(2),
    };
    let scenario = scenario(&text(TREE, "profile = \"linux\""));
    let stop_at_half = |done: f64| done < 0.5;
    let inputs = Inputs::default();
    let outcome = run_on(cores, &scenario, &inputs, "drop-tail", 1, &stop_at_half);
    assert!(matches!(outcome, Err(RunError::Interrupted)));
}

#[test]
fn recorded_packets_include_acks_wherever_the_fabric_is_cut() {
    let text = text(LEAF_SPINE, "profile = \"linux\"").replace(
        "[measure]",
        "[measure]\npackets = { port = \"spine1->leaf1\", most = 2000 }",
    );
    let acks = |shards| {
        let outcome = sharded(&text, "drop-tail", 1, shards, 2);
        let acks = outcome.packets.iter().filter(|packet| !packet.forward);
        (outcome.packets.len(), acks.count())
    };
    let (whole, several) = (acks(1), acks(3));
    assert!(whole.1 > 100 && several.1 > 100, "{whole:?} {several:?}");
}
