// SPDX-License-Identifier: Apache-2.0
//! Transfers that are stopped or given up, and connection numbers that are used again.

use super::{outcome, wide};

#[test]
fn who_is_stopped_before_the_start_never_begins() {
    let traffic = r#"
        [traffic.late]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
        flows = 20
        start_spread = "10 ms"
        stop = "2 ms"
    "#;
    let outcome = outcome(&wide("20 ms", "100 packets", traffic), "drop-tail");
    let group = &outcome.groups["late"];
    assert!((1..10).contains(&group.flows), "{}", group.flows);
}

#[test]
fn a_stopped_transfer_is_under_way_until_then() {
    let traffic = |from: &str| {
        format!(
            r#"
            [traffic.short]
            kind = "bulk"
            from = "sender1"
            to = "receiver1"
            stop = "10 ms"
            [measure]
            from = "{from}"
            "#
        )
    };
    let all = outcome(&wide("40 ms", "100 packets", &traffic("0 s")), "drop-tail");
    let group = &all.groups["short"];
    let rate = group.goodput_bps.unwrap().mean;
    assert!((0.8e9..1e9).contains(&rate), "{rate}");
    assert!(group.longest_silence_s.unwrap().max < 1e-3);
    let late = outcome(
        &wide("40 ms", "100 packets", &traffic("20 ms")),
        "drop-tail",
    );
    assert!(late.groups["short"].goodput_bps.is_none());
}

/// 2 s after its end a connection's number is given away.
#[test]
fn what_ended_keeps_its_counts_when_its_number_is_used_again() {
    let traffic = r#"
        [traffic.stopped]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
        stop = "10 ms"
        [traffic.next]
        kind = "bulk"
        size = "30 kB"
        from = "sender2"
        to = "receiver2"
        start = "2.1 s"
    "#;
    let alone = outcome(
        &wide(
            "20 ms",
            "100 packets",
            traffic.split("[traffic.next]").next().unwrap(),
        ),
        "drop-tail",
    );
    let both = outcome(&wide("2.2 s", "100 packets", traffic), "drop-tail");
    assert_eq!(both.groups["next"].finished, 1);
    let (flow, expected) = (&both.flows[0], &alone.flows[0]);
    assert_eq!(flow.delivered_bytes, expected.delivered_bytes);
    assert_eq!(flow.packets, expected.packets);
    assert_eq!(flow.longest_silence_s, expected.longest_silence_s);
}

#[test]
fn transfers_that_arrive_are_numbered_within_their_traffic() {
    let traffic = r#"
        [traffic.first]
        kind = "bulk"
        from = "senders"
        to = "receivers"
        [traffic.arrive]
        kind = "poisson"
        from = "senders"
        to = "receivers"
        size = "10 kB"
        load = 0.1
        flows = 5
    "#;
    let outcome = outcome(&wide("20 ms", "100 packets", traffic), "drop-tail");
    let flows = outcome.flows.iter().filter(|flow| flow.traffic == "arrive");
    let numbers: Vec<u32> = flows.map(|flow| flow.flow).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[test]
fn datagrams_so_rare_that_none_comes_do_no_harm() {
    for arrivals in ["constant", "poisson"] {
        let traffic = format!(
            r#"
            [traffic.rare]
            kind = "udp"
            rate = "1 b/s"
            packet = "9000 B"
            arrivals = "{arrivals}"
            from = "senders"
            to = "receivers"
            flows = 2000
            start = "1 ms"
            "#
        );
        let outcome = outcome(&wide("20 ms", "100 packets", &traffic), "drop-tail");
        assert_eq!(outcome.ports["left->right"].egress_packets, 0, "{arrivals}");
    }
}

#[test]
fn a_buffer_of_one_packet_holds_the_packet_in_transmission() {
    let traffic = r#"
        [traffic.one]
        kind = "bulk"
        size = "1000 B"
        from = "sender1"
        to = "receiver1"
    "#;
    for scheme in ["drop-tail", "codel", "sfq", "drr", "hcf"] {
        let outcome = outcome(&wide("20 ms", "1 packets", traffic), scheme);
        let group = &outcome.groups["one"];
        assert_eq!((group.finished, group.drops), (1, 0), "{scheme}");
    }
}

#[test]
fn a_buffer_of_one_jumbo_packet_holds_it() {
    let traffic = r#"
        mss = 8960
        [traffic.one]
        kind = "bulk"
        size = "90 kB"
        from = "sender1"
        to = "receiver1"
        [traffic.datagrams]
        kind = "udp"
        packet = "9000 B"
        rate = "1 Mb/s"
        from = "sender2"
        to = "receiver2"
    "#;
    for scheme in ["drop-tail", "codel", "sfq", "drr"] {
        let outcome = outcome(&wide("2 s", "9000 B", traffic), scheme);
        let group = &outcome.groups["one"];
        assert_eq!(group.finished, 1, "{scheme}");
    }
}

#[test]
fn marks_at_departure_are_counted() {
    let traffic = r#"
        ecn = true
        [scheme.marking]
        queue = { kind = "codel", ecn = true, target = "50 us", interval = "1 ms" }
        [traffic.long]
        kind = "bulk"
        from = "senders"
        to = "receiver1"
    "#;
    let outcome = outcome(&wide("20 ms", "100 packets", traffic), "marking");
    assert!(outcome.ports["left->right"].ecn_marks > 0);
}

#[test]
fn every_queue_keeps_within_the_buffer() {
    let traffic = r#"
        [traffic.long]
        kind = "bulk"
        from = "senders"
        to = "receivers"
        flows = 40
        [measure]
        queue_every = "10 us"
    "#;
    for scheme in ["drop-tail", "codel", "sfq", "drr", "hcf"] {
        let outcome = outcome(&wide("10 ms", "50 packets", traffic), scheme);
        let most = outcome.queues.iter().map(|sample| sample.packets).max();
        assert!(most <= Some(50), "{scheme}: {most:?}");
    }
}

/// Each of the two queues holds at least one packet, or none would ever pass.
#[test]
fn hcf_passes_packets_in_any_buffer() {
    let traffic = r#"
        [traffic.some]
        kind = "bulk"
        size = "30 kB"
        from = "sender1"
        to = "receiver1"
    "#;
    for buffer in ["1 packets", "2 packets", "1500 B", "3 kB", "4 kB"] {
        let outcome = outcome(&wide("20 s", buffer, traffic), "hcf");
        assert_eq!(outcome.groups["some"].finished, 1, "{buffer}");
    }
}

#[test]
fn what_ended_before_the_measured_time_does_not_starve_in_it() {
    let traffic = r#"
        [traffic.short]
        kind = "bulk"
        size = "10 kB"
        from = "senders"
        to = "receivers"
        [measure]
        from = "10 ms"
    "#;
    let outcome = outcome(&wide("20 ms", "100 packets", traffic), "drop-tail");
    assert_eq!(outcome.groups["short"].starved, 0.0);
}
