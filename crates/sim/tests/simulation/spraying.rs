// SPDX-License-Identifier: Apache-2.0
//! Equal paths by packet and by weight, links with an MTU, and fabrics as lists of cables.

use super::round_trips::round_trip;
use super::{outcome, results, scenario};
use penstock_sim::{Cores, Inputs, Outcome, run, run_on};
use std::path::Path;

/// Transfers from the hosts of one leaf to those of the other, over four spines.
fn leaf_spine(fabric: &str, traffic: &str) -> String {
    format!(
        r#"
        title = "paths"
        duration = "100 ms"
        schemes = ["drop-tail"]
        [fabric]
        kind = "leaf-spine"
        leaves = 2
        spines = 4
        hosts_per_leaf = 4
        host_link = {{ rate = "1 Gb/s", delay = "10 us" }}
        spine_link = {{ rate = "1 Gb/s", delay = "20 us" }}
        {fabric}
        [traffic.some]
        kind = "bulk"
        from = "leaf1"
        to = "leaf2"
        {traffic}
        [measure]
        ports = ["leaf1->spine*"]
        "#
    )
}

fn shares(outcome: &Outcome) -> Vec<f64> {
    let bytes: Vec<u64> = outcome
        .ports
        .values()
        .map(|port| port.egress_bytes)
        .collect();
    let all: u64 = bytes.iter().sum();
    bytes
        .iter()
        .map(|bytes| *bytes as f64 / all as f64)
        .collect()
}

#[test]
fn sprayed_packets_take_all_paths_of_their_flow() {
    let one = "flows = 1\nsize = \"2 MB\"";
    let by_flow = outcome(&leaf_spine("", one), "drop-tail");
    assert_eq!(
        shares(&by_flow)
            .iter()
            .filter(|share| **share > 0.0)
            .count(),
        1
    );
    for paths in ["", "symmetric_paths = false"] {
        let text = leaf_spine(&format!("ecmp = \"packet\"\n{paths}"), one);
        let sprayed = outcome(&text, "drop-tail");
        assert_eq!(sprayed.groups["some"].finished, 1);
        // 1400 packets, of which each path has a quarter, 5 standard deviations either way.
        assert!(
            shares(&sprayed)
                .iter()
                .all(|share| (share - 0.25).abs() < 0.06)
        );
        assert_eq!(results(&sprayed), results(&outcome(&text, "drop-tail")));
    }
}

#[test]
fn sprayed_runs_do_not_depend_on_threads() {
    let text = leaf_spine("ecmp = \"packet\"", "pairs = \"all\"\nsize = \"200 kB\"");
    let on = |threads| {
        let cores = Cores {
            threads,
            shards: Some(2),
        };
        let run = run_on(
            cores,
            &scenario(&text),
            &Inputs::default(),
            "drop-tail",
            1,
            &|_| true,
        );
        run.unwrap()
    };
    assert_eq!(results(&on(1)), results(&on(2)));
    assert_eq!(on(1).groups["some"].finished, 16);
}

#[test]
fn links_are_chosen_as_often_as_their_weights_are_large() {
    let flows = "flows = 1000\nsize = \"100 B\"\nstart_gap = \"50 us\"";
    let by_rate = r#"ecmp = "weighted"
        port_at = { "leaf1->spine1" = { rate = "5 Gb/s" } }"#;
    let by_weight = r#"ecmp = "weighted"
        port_at = { "leaf1->spine1" = { weight = 6 }, "leaf1->spine*" = { weight = 2 } }"#;
    for (fabric, first) in [(by_rate, 5.0 / 8.0), (by_weight, 0.5)] {
        let outcome = outcome(&leaf_spine(fabric, flows), "drop-tail");
        let shares = shares(&outcome);
        assert!((shares[0] - first).abs() < 0.08, "{shares:?}");
        let rest = (1.0 - first) / 3.0;
        assert!(
            shares[1..].iter().all(|share| (share - rest).abs() < 0.06),
            "{shares:?}"
        );
    }
}

#[test]
fn segments_fit_the_least_mtu_of_the_path() {
    let packets = |fabric: &str, tcp: &str| {
        let text = leaf_spine(fabric, &format!("flows = 1\nsize = \"89600 B\"\n{tcp}"));
        outcome(&text, "drop-tail").flows[0].packets
    };
    let plain = "tcp = { profile = \"newreno-ns2\" }";
    let jumbo = "tcp = { profile = \"newreno-ns2\", mss = 8960 }";
    assert_eq!(packets("", plain), 62);
    assert_eq!(packets("", jumbo), 10);
    let narrow = r#"port_at = { "leaf1->spine*" = { mtu = "1000 B" } }"#;
    assert_eq!(packets(narrow, plain), 94); // of 960 bytes
    assert_eq!(packets(narrow, jumbo), 94);
}

const EDGES: &str = r#"
    kind = "graph"
    edges = [["a1", "left"], ["a2", "left"], ["left", "mid", "2 Gb/s"], ["left", "other", "1 Gb/s", "30 us"],
             ["mid", "right"], ["other", "right"], ["right", "b1"], ["right", "b2"]]
    host_link = { rate = "1 Gb/s", delay = "10 us" }
"#;

fn graph(fabric: &str) -> String {
    format!(
        r#"
        title = "graph"
        duration = "50 ms"
        schemes = ["drop-tail"]
        [fabric]
        {fabric}
        [traffic.some]
        kind = "bulk"
        flows = 40
        size = "20 kB"
        start_gap = "500 us"
        from = "left"
        to = ["b1", "b2"]
        [measure]
        ports = ["left->*"]
        "#
    )
}

#[test]
fn a_list_of_cables_is_a_fabric() {
    let text = graph(EDGES);
    let scenario = scenario(&text);
    assert_eq!(scenario.fabric.hosts(), ["a1", "a2", "b1", "b2"]);
    assert_eq!(
        scenario.fabric.switches(),
        ["left", "mid", "other", "right"]
    );
    // Of the equal paths the longer one counts, over `other`.
    assert_eq!(round_trip(&scenario), 120e-6);
    for scheme in ["drop-tail", "fairq", "sicc", "grant"] {
        let outcome = outcome(&text, scheme);
        assert_eq!(outcome.groups["some"].finished, 40, "{scheme}");
        assert!(
            outcome.ports["left->mid"].egress_bytes > 100_000,
            "both equal paths are used"
        );
        assert!(outcome.ports["left->other"].egress_bytes > 100_000);
    }
    // A dumbbell as cables is a dumbbell.
    let cables = r#"
        kind = "graph"
        edges = [["sender1", "left"], ["sender2", "left"], ["left", "right"], ["right", "receiver1"], ["right", "receiver2"]]
        host_link = { rate = "1 Gb/s", delay = "10 us" }"#;
    let dumbbell = r#"
        kind = "dumbbell"
        senders = 2
        receivers = 2
        access = { rate = "1 Gb/s", delay = "10 us" }
        bottleneck = { rate = "1 Gb/s", delay = "10 us" }"#;
    let times = |fabric: &str, hosts: [&str; 2]| {
        let text = graph(fabric).replace("from = \"left\"", &format!("from = \"{}\"", hosts[0]));
        let text = text.replace("[\"b1\", \"b2\"]", &format!("\"{}\"", hosts[1]));
        let flows = outcome(&text, "drop-tail").flows;
        flows.iter().map(|flow| flow.fct_s.unwrap()).sum::<f64>()
    };
    let (one, other) = (
        times(cables, ["left", "right"]),
        times(dumbbell, ["senders", "receivers"]),
    );
    assert!((one / other - 1.0).abs() < 0.05, "{one} {other}");
}

#[test]
fn graphml_and_lists_in_files_are_read() {
    let graphml = r#"<?xml version="1.0"?>
        <graphml><!-- <edge source="x" target="y"/> -->
        <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1"/>
        <key attr.name="delay" for="edge" id="d2"/>
        <graph edgedefault="undirected">
        <node id="Wien 1"/><node id="Graz"/>
        <node id='Linz'><data key="d0">ignored</data></node>
        <edge source="Wien 1" target="Graz"><data key="d1">2000000000.0</data></edge>
        <edge source="Graz" target="Wien 1"/>
        <edge source="Graz" target="Linz"><data key="d2">3 us</data></edge>
        </graph></graphml>"#;
    let list = "# node,node\nWien_1,Graz,2 Gb/s\nGraz,Linz,1 Gb/s,3 us\n";
    let folder = std::env::temp_dir().join(format!("penstock-graph-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut found = Vec::new();
    for (name, content) in [("net.graphml", graphml), ("net.csv", list)] {
        std::fs::write(folder.join(name), content).unwrap();
        let fabric = format!(
            "kind = \"graph\"\nfile = \"{name}\"\nhosts_per_switch = 2\n\
             host_link = {{ rate = \"1 Gb/s\", delay = \"1 us\" }}"
        );
        let text = graph(&fabric).replace("\"left\"", "\"Wien_1\"");
        let text = text
            .replace("[\"b1\", \"b2\"]", "\"Linz\"")
            .replace("left->*", "Wien_1->*");
        let scenario = penstock_sim::Scenario::parse(&text, &folder.join("f.toml"), &[]).unwrap();
        assert_eq!(scenario.fabric.hosts()[0], "Wien_1-host1");
        let again = penstock_sim::Scenario::parse(&scenario.resolved(), Path::new("x.toml"), &[]);
        assert_eq!(
            again.as_ref(),
            Ok(&scenario),
            "its edges stand in the resolved scenario"
        );
        let outcome = run(&scenario, &Inputs::default(), "drop-tail", 1, &|_| true).unwrap();
        assert_eq!(outcome.groups["some"].finished, 40);
        found.push((
            round_trip(&scenario),
            outcome.groups["some"].fct_s.unwrap().mean,
        ));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found[0].0, found[1].0);
    assert!((found[0].0 - 2.0 * 6e-6).abs() < 1e-12);
}
