// SPDX-License-Identifier: Apache-2.0
//! Switches that differ: their buffers, and which of them have the scheme.

use super::{outcome, scenario};
use penstock_sim::Inputs;
use penstock_sim::run::Layout;

/// Long flows from all racks to all others through a core with 64 kB a port, between racks whose
/// ports have more.
fn testbed(scheme_at: &str) -> String {
    format!(
        r#"
        title = "testbed"
        duration = "300 ms"
        schemes = ["hscc"]
        [fabric]
        kind = "dumbbell"
        senders = 6
        receivers = 3
        racks = 2
        access = {{ rate = "1 Gb/s", delay = "10 us" }}
        bottleneck = {{ rate = "1 Gb/s", delay = "10 us", buffer = "3 MB" }}
        buffer = "1 MB"
        buffer_at = {{ left = "64 kB", rack1 = "500 kB", "rack*" = "2 MB" }}
        {scheme_at}
        [tcp]
        profile = "linux"
        [traffic.out]
        kind = "bulk"
        from = ["rack1", "rack2"]
        to = ["receivers", "rack1", "rack2"]
        pairs = "all"
        [traffic.back]
        kind = "bulk"
        from = "receivers"
        to = ["rack1", "rack2"]
        pairs = "all"
        [measure]
        ports = ["left->r*", "r*->left"]
        "#
    )
}

#[test]
fn the_name_of_a_switch_comes_before_its_links_and_the_fabric() {
    let layout = Layout::of(&scenario(&testbed("")), &Inputs::default());
    let kilobytes = |name: &str| {
        let named = layout.ports.iter().find(|port| {
            let Some((from, to)) = name.split_once("->") else {
                panic!("{name}")
            };
            port.from == from && port.to == to
        });
        named.unwrap().buffer_bytes / 1000
    };
    for (port, expected) in [
        ("left->right", 64),
        ("left->rack2", 64),
        ("rack1->left", 500),
        ("rack1->sender1", 500),
        ("rack2->left", 2000),
        ("right->left", 3000),
        ("right->receiver1", 1000),
        ("sender1->rack1", 1500),
    ] {
        assert_eq!(kilobytes(port), expected, "{port}");
    }
}

#[test]
fn the_scheme_is_on_the_named_switches_only() {
    let is_core = |name: &String| name.starts_with("left->");
    let outcome = outcome(&testbed("scheme_at = [\"left\"]"), "hscc");
    assert_eq!(outcome.ports.len(), 6);
    for (name, port) in &outcome.ports {
        let queue = port.queue_bytes.max;
        assert_eq!(port.window.clamps > 0, is_core(name), "{name}");
        assert_eq!(port.window.acks > 0, is_core(name), "{name}");
        assert!(queue <= 64_000 || !is_core(name), "{name} {queue}");
    }
}

/// What policies derive from the longest round trip does not depend on where delays are written.
#[test]
fn the_round_trip_counts_ports_that_differ() {
    let text = |port_at: &str| {
        format!(
            r#"
            title = "round trips"
            duration = "1 ms"
            schemes = ["fairq"]
            [fabric]
            kind = "leaf-spine"
            leaves = 2
            spines = 2
            hosts_per_leaf = 2
            host_link = {{ rate = "1 Gb/s", delay = "5 us" }}
            spine_link = {{ rate = "1 Gb/s", delay = "10 us" }}
            port_at = {{ {port_at} }}
            [traffic.all]
            kind = "bulk"
            from = "leaf1"
            to = "leaf2"
            "#
        )
    };
    let fast_spine = r#""leaf1->spine2" = { rate = "2 Gb/s" }"#;
    for (port_at, micros) in [
        ("", 60.0),
        (fast_spine, 60.0),
        (r#""leaf1->spine2" = { delay = "110 us" }"#, 160.0),
        (r#""leaf*->spine*" = { delay = "30 us" }"#, 100.0),
        (r#""*" = { delay = "3 us" }"#, 24.0),
        (
            r#""*->leaf1" = { delay = "100 us" }, "leaf1->*" = { delay = "300 us" }"#,
            830.0,
        ),
        // Between two hosts of one switch.
        (
            r#""host*" = { delay = "100 us" }, "leaf1->host*" = { delay = "300 us" }"#,
            800.0,
        ),
    ] {
        let layout = Layout::of(&scenario(&text(port_at)), &Inputs::default());
        assert!(
            (layout.rtt_s * 1e6 - micros).abs() < 1e-6,
            "{port_at}: {}",
            layout.rtt_s
        );
    }
}

/// Credit is where hosts are; the queue policy of its scheme on all ports.
#[test]
fn credit_behind_ports_leaves_queue_policies_between_switches() {
    let text = r#"
        title = "marks"
        duration = "50 ms"
        schemes = ["both"]
        [scheme.both]
        queue = { kind = "threshold", mark_at = "5 packets" }
        window = { kind = "grant", side = "receiver" }
        tcp = { congestion = "dctcp", ecn = true }
        [fabric]
        kind = "leaf-spine"
        leaves = 2
        spines = 1
        hosts_per_leaf = 4
        host_link = { rate = "1 Gb/s", delay = "10 us" }
        spine_link = { rate = "1 Gb/s", delay = "10 us" }
        [traffic.all]
        kind = "bulk"
        from = "leaf1"
        to = "leaf2"
        [measure]
        ports = ["leaf1->spine1"]
    "#;
    let port = &outcome(text, "both").ports["leaf1->spine1"];
    assert!(port.ecn_marks > 0 && port.window.acks == 0, "{port:?}");
}

#[test]
fn patterns_and_defaults_select_ports_between_switches() {
    let protected = |text: &str| {
        let layout = Layout::of(&scenario(text), &Inputs::default());
        let ports = layout.ports.into_iter().filter(|port| port.is_protected);
        let mut names: Vec<String> = ports
            .map(|port| format!("{}->{}", port.from, port.to))
            .collect();
        names.sort();
        names.join(" ")
    };
    let core = "left->rack1 left->rack2 left->right right->left";
    assert_eq!(protected(&testbed("")), core);
    let racks = testbed("scheme_at = [\"rack*\", \"right\"]");
    assert_eq!(protected(&racks), "rack1->left rack2->left right->left");
    let leaf_spine = r#"
        title = "spines"
        duration = "1 ms"
        schemes = ["hscc"]
        [fabric]
        kind = "leaf-spine"
        leaves = 2
        spines = 1
        hosts_per_leaf = 1
        host_link = { rate = "1 Gb/s", delay = "10 us" }
        spine_link = { rate = "1 Gb/s", delay = "10 us" }
        SCHEME_AT
        [traffic.all]
        kind = "bulk"
        from = "leaf1"
        to = "leaf2"
        "#;
    for (scheme_at, expected) in [
        (
            "",
            "leaf1->host1 leaf1->spine1 leaf2->host2 leaf2->spine1 spine1->leaf1 spine1->leaf2",
        ),
        ("scheme_at = [\"spine*\"]", "spine1->leaf1 spine1->leaf2"),
        ("scheme_at = [\"leaf2\"]", "leaf2->host2 leaf2->spine1"),
    ] {
        assert_eq!(
            protected(&leaf_spine.replace("SCHEME_AT", scheme_at)),
            expected
        );
    }
}
