// SPDX-License-Identifier: Apache-2.0
//! Random fabrics in shards: nothing is lost and nothing is made where shards meet.

use super::fuzz::{check, draw};
use super::shards::{FAT_TREE, LEAF_SPINE, TREE, sharded};
use super::{assert_same, results};
use penstock_sim::Outcome;
use std::collections::BTreeMap;

const DUMBBELL: &str = r#"
kind = "dumbbell"
senders = 4
receivers = 3
access = { rate = "1 Gb/s", delay = "10 us" }
bottleneck = { rate = "1 Gb/s", delay = "10 us", buffer = "20 packets" }"#;

#[test]
fn random_fabrics_do_not_depend_on_threads() {
    for seed in 1000..1048 {
        let (scheme, text) = draw(seed);
        // Cables without delay cannot be cut, and short ones make rounds short.
        let text = text.replace("\"0 s\" }", "\"20 us\" }");
        let text = text.replace("\"1 us\" }", "\"6 us\" }");
        println!("{text}");
        let shards = 2 + seed as usize % 3;
        let one = sharded(&text, scheme, seed, shards, 1);
        check(&one);
        let threads = 2 + seed as usize / 3 % 2;
        let several = sharded(&text, scheme, seed, shards, threads);
        assert_same(&results(&one), &results(&several), &text);
    }
}

/// Transfers that all end, crossing the fabric both ways, pushed and pulled.
const FINITE: &str = r#"
[traffic.push]
kind = "bulk"
pairs = "random"
size = "60 kB"
flows = 20
start_spread = "2 ms"
from = "all"
to = "all"
[traffic.kept]
kind = "incast"
mode = "pull"
connection = "persistent"
pairs = "random"
size = "30 kB"
requests = 6
flows = 8
from = "all"
to = "all"
[traffic.web]
kind = "poisson"
mode = "pull"
load = "30 %"
size = "20 kB"
flows = 60
pairs = "random"
from = "all"
to = "all"
"#;
const NOISE: &str = r#"
[traffic.noise]
kind = "udp"
rate = "200 Mb/s"
stop = "20 ms"
pairs = "random"
flows = 3
from = "all"
to = "all"
"#;

fn finite(fabric: &str, tcp: &str, noise: &str) -> String {
    format!(
        "title = \"finite\"\nduration = \"400 ms\"\nschemes = [\"drop-tail\"]\n[fabric]\n{fabric}\n\
         [tcp]\nprofile = \"{tcp}\"\nmin_rto = \"4 ms\"\ninitial_rto = \"4 ms\"\n\
         {FINITE}{noise}\n[measure]\nports = [\"*\"]\nqueue_every = \"100 ms\"\n"
    )
}

/// Of each switch, packets that came less those that left or were lost there.
fn balances(outcome: &Outcome) -> BTreeMap<&str, i64> {
    let mut balances = BTreeMap::new();
    let mut ports = BTreeMap::<&str, u32>::new();
    for (name, port) in &outcome.ports {
        let (from, to) = name.split_once("->").unwrap();
        *balances.entry(to).or_default() += port.egress_packets as i64;
        *balances.entry(from).or_default() -= (port.egress_packets + port.drops) as i64;
        *ports.entry(from).or_default() += 1;
    }
    balances.retain(|node, _| ports[node] > 1);
    balances
}

#[test]
fn packets_are_sent_on_or_lost_and_every_loss_has_its_transfer() {
    let cases = [
        (TREE, "linux", "drop-tail", 2),
        (TREE, "newreno-ns2", "hcf", 3),
        (TREE, "linux", "hscc", 4),
        (LEAF_SPINE, "linux", "red", 2),
        (LEAF_SPINE, "newreno-ns2", "fairq", 3),
        (LEAF_SPINE, "linux", "dctcp", 3),
        (FAT_TREE, "newreno-ns2", "drop-tail", 3),
        (FAT_TREE, "linux", "hcf-fairq", 2),
        (DUMBBELL, "newreno-ns2", "hcf", 2),
        (DUMBBELL, "linux", "fairq", 2),
    ];
    for (fabric, tcp, scheme, shards) in cases {
        for noise in ["", NOISE] {
            let text = finite(fabric, tcp, noise);
            let outcome = sharded(&text, scheme, shards as u64, shards, 2);
            let what = format!("{scheme}, {tcp}, {shards} shards of {fabric}");
            check(&outcome);
            assert!(
                outcome.flows.iter().all(|flow| flow.end_s.is_some()),
                "{what}"
            );
            let balances = balances(&outcome);
            assert!(
                balances.len() > 1 && balances.values().all(|left| *left == 0),
                "{what}: {balances:?}"
            );
            if noise.is_empty() {
                let booked: u64 = outcome.flows.iter().map(|flow| flow.drops).sum();
                assert_eq!(booked, outcome.drops, "{what}");
            }
        }
    }
}

#[test]
fn connection_numbers_are_used_again_in_shards() {
    // Longer than the two seconds that a number rests for.
    let text = format!(
        "title = \"again\"\nduration = \"6 s\"\nschemes = [\"drop-tail\"]\n[fabric]\n{}\n\
         [tcp]\nprofile = \"linux\"\nmin_rto = \"10 ms\"\n\
         [traffic.asked]\nkind = \"incast\"\nmode = \"pull\"\nsize = \"9 kB\"\nthink = \"20 ms\"\n\
         requests = 220\npairs = \"random\"\nflows = 9\nfrom = \"all\"\nto = \"all\"\n\
         [traffic.pushed]\nkind = \"bulk\"\nsize = \"30 kB\"\nflows = 900\npairs = \"random\"\n\
         start_gap = \"6 ms\"\nfrom = \"all\"\nto = \"all\"\n\
         [measure]\nports = [\"*\"]\nqueue_every = \"1 s\"\n",
        TREE.replace("5 us", "100 us").replace("60 kB", "15 kB")
    );
    for scheme in ["drop-tail", "fairq", "hscc"] {
        let one = sharded(&text, scheme, 3, 3, 1);
        let two = sharded(&text, scheme, 3, 3, 2);
        assert_same(&results(&one), &results(&two), scheme);
        check(&one);
        let done = one.flows.iter().filter(|flow| flow.end_s.is_some());
        assert_eq!(
            (one.flows.len(), done.count()),
            (9 * 220 + 900, 9 * 220 + 900)
        );
        let booked: u64 = one.flows.iter().map(|flow| flow.drops).sum();
        assert_eq!(booked, one.drops, "{scheme}");
    }
}

#[test]
fn what_was_given_up_does_not_end() {
    // Datagrams keep the second request, or what is pushed, in a queue for longer than TCP tries.
    let text = r#"
        title = "given up"
        duration = "3 s"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 2
        receivers = 2
        access = { rate = "1 Gb/s", delay = "10 us" }
        bottleneck = { rate = "10 Mb/s", delay = "10 us" }
        buffer = "1 MB"
        [tcp]
        profile = "linux"
        min_rto = "1 ms"
        max_rto = "10 ms"
        [traffic.asked]
        kind = "incast"
        mode = "pull"
        connection = "persistent"
        size = "1 kB"
        requests = 2
        think = "60 ms"
        from = "sender1"
        to = "receiver1"
        [traffic.noise]
        kind = "udp"
        rate = "900 Mb/s"
        start = "20 ms"
        stop = "30 ms"
        from = "receiver2"
        to = "sender2"
        [traffic.more]
        kind = "udp"
        rate = "900 Mb/s"
        start = "20 ms"
        stop = "30 ms"
        from = "sender2"
        to = "receiver2"
    "#;
    let pushed = text.replace("\"pull\"", "\"push\"");
    for (text, shards) in [(text, 1), (text, 2), (&pushed, 1)] {
        let outcome = sharded(text, "drop-tail", 1, shards, 2);
        check(&outcome);
        let ends: Vec<bool> = outcome
            .flows
            .iter()
            .map(|flow| flow.end_s.is_some())
            .collect();
        assert_eq!(ends, [true, false], "{shards} shards");
    }
}
