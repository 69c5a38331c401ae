// SPDX-License-Identifier: Apache-2.0
//! The longest round trip between two hosts, from which schemes derive their intervals.

use super::scenario;
use penstock_sim::run::Layout;
use penstock_sim::{Inputs, Scenario};
use std::path::Path;

/// As the schemes know it, seconds.
pub fn round_trip(scenario: &Scenario) -> f64 {
    Layout::of(scenario, &Inputs::default()).rtt_s
}

/// Of a fabric whose cables without a delay of their own have 5 us, microseconds.
fn of(fabric: &str) -> f64 {
    let link = r#"{ rate = "1 Gb/s", delay = "5 us" }"#;
    let text = format!(
        r#"
        title = "round trip"
        duration = "1 ms"
        schemes = ["drop-tail"]
        [fabric]
        {}
        [traffic.some]
        kind = "poisson"
        from = "all"
        to = "all"
        load = 0.1
        size = "1 kB"
        "#,
        fabric.replace("LINK", link)
    );
    (round_trip(&scenario(&text)) * 1e9).round() / 1e3
}

#[test]
fn the_demo_has_one_of_100_us() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/penstock/scenarios/demo.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        round_trip(&Scenario::parse(&text, &path, &[]).unwrap()),
        100e-6
    );
}

#[test]
fn each_kind_of_fabric_has_its_longest_path() {
    let dumbbell =
        "kind = \"dumbbell\"\nsenders = 6\nreceivers = 2\naccess = LINK\nbottleneck = LINK\n";
    let leaf_spine = "kind = \"leaf-spine\"\nspines = 2\nhosts_per_leaf = 4\nhost_link = LINK\nspine_link = LINK\n";
    let tree = "kind = \"tree\"\ncores = 2\naggregations = 2\nracks = 3\nhosts_per_rack = 4\n\
                host_link = LINK\nrack_link = LINK\ncore_link = LINK\n";
    let graph = "kind = \"graph\"\nhost_link = LINK\n";
    for (fabric, expected) in [
        (dumbbell.to_owned(), 30.0),
        (format!("{dumbbell}racks = 3\n"), 40.0),
        (format!("{leaf_spine}leaves = 3\n"), 40.0),
        // All hosts are at one leaf, and at one aggregation switch: no path goes higher.
        (format!("{leaf_spine}leaves = 1\n"), 20.0),
        (tree.to_owned(), 40.0),
        (
            "kind = \"fat-tree\"\nk = 4\nhost_link = LINK\n".to_owned(),
            60.0,
        ),
        // The hosts' own cables count, and of a port its own delay.
        (
            format!(
                "{graph}edges = [[\"a\", \"s\", \"\", \"50 us\"], [\"b\", \"t\"], [\"s\", \"t\"]]\n"
            ),
            120.0,
        ),
        (
            format!(
                "{graph}edges = [[\"a\", \"s\", \"\", \"6 us\"], [\"b\", \"s\", \"\", \"7 us\"], [\"c\", \"s\"]]\n"
            ),
            26.0,
        ),
        (
            format!("{dumbbell}port_at.\"left->right\" = {{ delay = \"100 us\" }}\n"),
            125.0,
        ),
    ] {
        assert_eq!(of(&fabric), expected, "{fabric}");
    }
}
