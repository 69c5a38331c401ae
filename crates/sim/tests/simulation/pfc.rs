// SPDX-License-Identifier: Apache-2.0
//! Priority flow control: nothing is lost in switches, and who waits behind a pause waits too.

use super::{outcome, results};
use penstock_scenario::builtin_schemes;
use penstock_sim::Outcome;

/// Datagrams of two senders to a slow receiver, and of a third to another one. `fabric`: keys of the fabric.
fn victim(fabric: &str) -> Outcome {
    let text = format!(
        r#"
        title = "victim"
        duration = "50 ms"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 3
        receivers = 2
        access = {{ rate = "1 Gb/s", delay = "1 us" }}
        bottleneck = {{ rate = "10 Gb/s", delay = "1 us" }}
        {fabric}
        [traffic.hot]
        kind = "udp"
        flows = 2
        rate = "1.8 Gb/s"
        arrivals = "constant"
        from = "senders[0..2]"
        to = "receiver1"
        [traffic.victim]
        kind = "udp"
        rate = "900 Mb/s"
        arrivals = "constant"
        from = "sender3"
        to = "receiver2"
        [measure]
        from = "10 ms"
        ports = ["*"]
        "#
    );
    outcome(&text, "drop-tail")
}

#[test]
fn a_pause_spreads_and_holds_up_who_is_not_to_blame() {
    let without = victim("");
    assert!(without.ports["right->receiver1"].drops > 1000);
    assert!(without.ports["right->receiver2"].utilization > 0.89);
    assert_eq!(without.ports["left->right"].pauses, None);

    let with = victim(r#"pfc_at = { "*" = { pause = "60 kB" } }"#);
    let lost_in_switches = |name: &str| !name.starts_with("sender") && with.ports[name].drops > 0;
    assert!(!with.ports.keys().any(|name| lost_in_switches(name)));
    assert!(with.ports["right->receiver1"].utilization > 0.99);
    // The right switch has the left one pause, and that all three senders: also the one to the idle port.
    for port in [
        "left->right",
        "sender1->left",
        "sender2->left",
        "sender3->left",
    ] {
        let port = &with.ports[port];
        assert!(port.pauses.unwrap() > 10 && port.paused_s.unwrap() > 0.005);
    }
    assert!(with.ports["right->receiver2"].utilization < 0.7);
    // A port that feeds no switch never pauses.
    assert_eq!(with.ports["right->receiver1"].pauses, None);
    // No queue is longer than what the ports into its switch may hold: 60 kB each, and a headroom of 4 packets
    // and what a round trip carries.
    let most = |ports: u64, round_trip: u64| ports * (60_000 + 4 * 1500 + round_trip);
    assert!(with.ports["left->right"].queue_bytes.max <= most(3, 250) + 1500);
    assert!(with.ports["right->receiver1"].queue_bytes.max <= most(1, 2500) + 1500);
}

#[test]
fn without_headroom_packets_are_lost() {
    let with = victim(r#"pfc_at = { "*" = { pause = "60 kB", headroom = "0 B" } }"#);
    assert!(with.ports["left->right"].drops + with.ports["right->receiver1"].drops > 10);
}

#[test]
fn tcp_loses_nothing_and_every_scheme_works_with_it() {
    let text = |ecmp: &str| {
        format!(
            r#"
            title = "all"
            duration = "30 ms"
            schemes = ["drop-tail"]
            [fabric]
            kind = "leaf-spine"
            leaves = 2
            spines = 2
            hosts_per_leaf = 8
            host_link = {{ rate = "1 Gb/s", delay = "2 us" }}
            spine_link = {{ rate = "1 Gb/s", delay = "2 us" }}
            buffer = "64 kB"
            pfc_at = {{ "*" = {{ pause = "30 kB" }} }}
            {ecmp}
            [tcp]
            min_rto = "10 ms"
            [traffic.read]
            kind = "incast"
            mode = "pull"
            size = "100 kB"
            from = "leaf2"
            to = "host1"
            "#
        )
    };
    for ecmp in ["", "ecmp = \"packet\"", "ecmp = \"weighted\""] {
        let text = text(ecmp);
        let plain = outcome(&text, "drop-tail");
        assert_eq!(
            (plain.drops, plain.groups["read"].finished),
            (0, 8),
            "{ecmp}"
        );
        assert_eq!(plain.groups["read"].timeouts, 0);
        assert_eq!(results(&plain), results(&outcome(&text, "drop-tail")));
        for scheme in builtin_schemes().keys() {
            let outcome = outcome(&text, scheme);
            assert!(outcome.groups["read"].finished > 0, "{scheme} {ecmp}");
            // Nor by schedulers that drop only what they have no room for.
            if ["sfq", "drr", "hcf"].contains(&scheme.as_str()) {
                assert_eq!(outcome.drops, 0, "{scheme} {ecmp}");
            }
        }
    }
}

#[test]
fn the_headroom_is_for_the_longest_packets_of_any_traffic() {
    let text = r#"
        title = "jumbo"
        duration = "20 ms"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 3
        receivers = 1
        access = { rate = "10 Gb/s", delay = "1 us" }
        bottleneck = { rate = "1 Gb/s", delay = "1 us" }
        pfc_at = { "*" = { pause = "60 kB" } }
        [traffic.jumbo]
        kind = "bulk"
        from = "senders"
        to = "receiver1"
        tcp = { mss = 8960 }
    "#;
    let run = outcome(text, "drop-tail");
    assert_eq!(run.drops, 0);
    assert!(run.groups["jumbo"].goodput_bps.unwrap().mean > 0.2e9);
}
