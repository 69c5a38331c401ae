// SPDX-License-Identifier: Apache-2.0
//! Controllers in whole runs: what they count, and what their messages cost.

use super::outcome;
use penstock_sim::controller::ControllerCounters;

/// A rack of 24 hosts sends 10 kB each to one host of another at once; `controller`: SICC's keys.
fn counters(controller: &str, rest: &str) -> ControllerCounters {
    let text = format!(
        r#"
        title = "a burst"
        duration = "40 ms"
        schemes = ["own"]
        [scheme.own]
        controller = {{ kind = "sicc", interval = "1 ms", {controller} }}
        [fabric]
        kind = "leaf-spine"
        leaves = 2
        spines = 1
        hosts_per_leaf = 24
        host_link = {{ rate = "1 Gb/s", delay = "5 us" }}
        spine_link = {{ rate = "10 Gb/s", delay = "5 us" }}
        {rest}
        "#
    );
    outcome(&text, "own").controller.unwrap()
}

const BURST: &str = r#"
    [traffic.mice]
    kind = "incast"
    size = "10 kB"
    from = "leaf1"
    to = "host25"
"#;

/// Senders push, so SYN-ACKs leave their switch by other ports than the data, the last one too.
#[test]
fn incast_is_foreseen_from_syns_or_syn_acks() {
    for counts in ["syn", "syn-ack"] {
        let of = counters(
            &format!("counts = \"{counts}\", latency = \"10 us\""),
            BURST,
        );
        assert!(of.incasts > 0, "{counts}");
        assert!(of.messages_sent >= 24, "{counts}: {}", of.messages_sent);
    }
}

/// An OFF at each T, whether there was incast or not.
#[test]
fn as_printed_a_quiet_port_sends_off_again_and_again() {
    let sent = |variant: &str| counters(&format!("variant = \"{variant}\""), BURST).messages_sent;
    assert!(sent("paper") > 2 * sent("default"));
}

/// SICC §5.4: each switch of 48 ports reports 150 bytes every 5 ms, so 1000 of them 240 Mb/s.
#[test]
fn reports_of_48_ports_take_what_the_paper_adds_up() {
    const REPORTS: u64 = 10;
    let text = r#"
        title = "two switches of 48 ports and one of two"
        duration = "51 ms"
        schemes = ["own"]
        [scheme.own]
        controller = { kind = "sicc", interval = "5 ms", queue_reports = "REPORTS" }
        [fabric]
        kind = "leaf-spine"
        leaves = 2
        spines = 1
        hosts_per_leaf = 47
        host_link = { rate = "1 Gb/s", delay = "5 us" }
        spine_link = { rate = "10 Gb/s", delay = "5 us" }
        [traffic.later]
        kind = "incast"
        size = "10 kB"
        from = "host1"
        to = "host2"
        start = "50999 us"
    "#;
    for (reports, polled) in [("instant", 0), ("sent", 0), ("polled", 1)] {
        let counters = outcome(&text.replace("REPORTS", reports), "own")
            .controller
            .unwrap();
        let small = 54 + 2 * 2;
        assert_eq!(counters.queue_reports, 3 * REPORTS, "{reports}");
        assert_eq!(
            counters.bytes_to_controller,
            REPORTS * (2 * 150 + small),
            "{reports}"
        );
        assert_eq!(
            counters.bytes_from_controller,
            polled * REPORTS * 3 * 54,
            "{reports}"
        );
        let of_two = counters.bytes_to_controller - REPORTS * small;
        let seconds = REPORTS as f64 * 5e-3;
        assert_eq!(
            of_two as f64 / 2.0 * 1000.0 * 8.0 / seconds,
            240e6,
            "{reports}"
        );
    }
}

/// What queues and messages wait for on the controller's link is late for the burst.
#[test]
fn a_controller_behind_a_slow_link_notifies_later() {
    let rewritten = |reports: &str| counters(reports, BURST).acks_rewritten;
    let at_once = rewritten("latency = \"10 us\"");
    let polled = rewritten("latency = \"10 us\", queue_reports = \"polled\"");
    let slow = "latency = \"10 us\", queue_reports = \"sent\", rate = \"500 kb/s\"";
    assert!(at_once > 0 && polled > 0);
    assert_eq!(rewritten(slow), 0);
}
