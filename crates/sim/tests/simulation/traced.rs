// SPDX-License-Identifier: Apache-2.0
//! A port's packets, recorded: none missing, and nothing else changed by it.

use super::{outcome, results, wide};
use penstock_scenario::builtin_schemes;
use penstock_sim::Outcome;

fn text(measure: &str) -> String {
    let traffic = format!(
        r#"
        [traffic.mice]
        kind = "incast"
        from = "senders"
        to = "receivers"
        mode = "pull"
        flows = 12
        size = "40 kB"
        requests = 3
        [traffic.noise]
        kind = "udp"
        rate = "50 Mb/s"
        from = "sender1"
        to = "receiver1"
        [measure]
        {measure}
        "#
    );
    let wide = wide("300 ms", "30 kB", &traffic);
    wide.replace("newreno-ns2\"", "linux\"\nmin_rto = \"10 ms\"")
}

fn without_record(mut outcome: Outcome) -> String {
    outcome.packets.clear();
    outcome.events.clear();
    results(&outcome)
}

#[test]
fn every_packet_of_the_port_is_there_and_the_run_is_as_without() {
    for scheme in builtin_schemes().keys() {
        let plain = outcome(&text(""), scheme);
        let recorded = outcome(&text("packets = {}"), scheme);
        let forward = recorded.packets.iter().filter(|packet| packet.forward);
        let (lost, kept): (Vec<_>, Vec<_>) = forward.partition(|packet| packet.lost.is_some());
        let port = &recorded.ports["left->right"];
        let cut = port.drops_by_reason["reserved"]; // of some packets the payload alone is lost
        assert!(
            lost.len() as u64 <= port.drops && lost.len() as u64 + cut >= port.drops,
            "{scheme}"
        );
        let left = kept.iter().filter(|packet| packet.left_s.is_some()).count() as u64;
        assert_eq!(left, port.egress_packets, "{scheme}");
        let rewritten = recorded
            .packets
            .iter()
            .filter(|p| p.window_after < p.window);
        let own = recorded.packets.iter().filter(|packet| packet.own);
        if port.window.acks_rewritten > 0 && !scheme.starts_with("grant-") {
            assert!(rewritten.count() > 0, "{scheme}");
        }
        assert_eq!(own.count() > 0, scheme.starts_with("grant"), "{scheme}");
        assert_eq!(without_record(plain), without_record(recorded), "{scheme}");
    }
}

#[test]
fn no_more_is_kept_than_asked_for_and_of_the_chosen_traffic_as_much_again() {
    let packets = |measure: &str| outcome(&text(measure), "drop-tail").packets;
    let few = packets(r#"packets = { from = "20 ms", most = 50 }"#);
    assert_eq!(few.len(), 50);
    assert!(few.iter().all(|packet| packet.time_s >= 0.02));
    let more = packets(r#"packets = { from = "20 ms", most = 50, traffic = "mice" }"#);
    assert_eq!(more.len(), 100);
    let rest = &more[50..];
    assert!(
        rest.iter()
            .all(|packet| packet.traffic.as_deref() == Some("mice"))
    );
}

#[test]
fn what_senders_do_is_recorded_too() {
    let run = outcome(&text("packets = {}"), "drop-tail");
    let count = |name| {
        run.events
            .iter()
            .filter(|event| event.event == name)
            .count() as u64
    };
    let timeouts: u64 = run.flows.iter().map(|flow| flow.timeouts).sum();
    assert!(count("rto") >= timeouts && timeouts > 0);
    assert!(count("window") > 100);
    let ordered = run
        .events
        .is_sorted_by(|one, other| one.time_s <= other.time_s);
    assert!(ordered, "by time");
}

#[test]
fn events_of_the_chosen_traffic_are_kept_where_an_mtu_shortens_its_segments() {
    let chosen = r#"packets = { most = 50, traffic = "mice" }"#;
    let events = |text: &str| outcome(text, "drop-tail").events.len();
    let whole = text(chosen).replace("\"50 Mb/s\"", "\"50 Mb/s\"\npacket = \"900 B\"");
    let short = whole.replace(
        "[tcp]",
        "port_at = { \"left->right\" = { mtu = \"1000 B\" } }\n[tcp]",
    );
    assert_eq!(events(&whole), 200);
    assert_eq!(events(&short), 200);
}
