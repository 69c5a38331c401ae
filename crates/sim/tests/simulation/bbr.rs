// SPDX-License-Identifier: Apache-2.0
//! BBR: what it is known for.

use super::{outcome, scenario, wide};
use penstock_scenario::builtin_schemes;
use penstock_sim::run::ClientProfiles;
use penstock_sim::{Inputs, Outcome};

/// 50 Mb/s with a round trip of 20.4 ms: the product of both is 127.5 kB.
const BDP: f64 = 127_500.0;

fn path(duration: &str, buffer: &str, rest: &str) -> Outcome {
    let text = format!(
        r#"
        title = "bbr"
        duration = "{duration}"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 4
        receivers = 4
        access = {{ rate = "1 Gb/s", delay = "100 us" }}
        bottleneck = {{ rate = "50 Mb/s", delay = "10 ms", buffer = "{buffer}" }}
        [tcp]
        profile = "linux"
        congestion = "bbr"
        {rest}
        "#
    );
    outcome(&text, "drop-tail")
}

fn goodput_mbps(outcome: &Outcome, group: &str) -> f64 {
    outcome.groups[group].goodput_bps.unwrap().mean / 1e6
}

#[test]
fn alone_it_fills_the_link_and_keeps_the_queue_near_the_pipe() {
    let one = r#"
        [traffic.one]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
    "#;
    let outcome = path("30 s", "2 MB", one);
    let port = &outcome.ports["left->right"];
    assert!(port.utilization >= 0.95, "{}", port.utilization);
    assert!(port.queue_bytes.mean < BDP, "{}", port.queue_bytes.mean);
    assert_eq!(port.drops, 0);
    // STARTUP leaves at most twice what the pipe holds behind.
    assert!((port.queue_bytes.max as f64) < 3.0 * BDP);
}

#[test]
fn it_measures_the_round_trip_again_with_four_segments() {
    let one = r#"
        [traffic.one]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
        [measure]
        windows = { traffic = "one", flows = 1, every = "10 ms" }
    "#;
    let outcome = path("11 s", "2 MB", one);
    let low: Vec<f64> = outcome
        .windows
        .iter()
        .filter(|sample| sample.cwnd_bytes == 4 * 1448)
        .map(|sample| sample.time_s)
        .collect();
    // The least round trip of STARTUP is old after 10 s; probing lasts 200 ms and a round.
    let (first, last) = (low[0], low[low.len() - 1]);
    assert!((10.0..10.3).contains(&first), "{first}");
    assert!((0.15..0.5).contains(&(last - first)), "{}", last - first);
}

#[test]
fn two_flows_share() {
    let two = r#"
        [traffic.two]
        kind = "bulk"
        flows = 2
        from = "senders[0..2]"
        to = "receivers[0..2]"
    "#;
    let outcome = path("30 s", "2 MB", two);
    assert!(outcome.groups["two"].jain.unwrap() > 0.95);
    assert!(outcome.ports["left->right"].utilization >= 0.95);
}

#[test]
fn next_to_cubic_both_progress() {
    let both = r#"
        [traffic.bbr]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
        [traffic.cubic]
        kind = "bulk"
        from = "sender2"
        to = "receiver2"
        tcp = { congestion = "cubic" }
    "#;
    // CUBIC fills a deep buffer and then gets more, a shallow one loses what it needs to grow.
    for (buffer, cubic_wins) in [("60 kB", false), ("2 MB", true)] {
        let outcome = path("40 s", buffer, both);
        let (bbr, cubic) = (
            goodput_mbps(&outcome, "bbr"),
            goodput_mbps(&outcome, "cubic"),
        );
        assert!(bbr > 5.0 && cubic > 2.5, "{buffer}: {bbr} and {cubic}");
        assert_eq!(cubic > bbr, cubic_wins, "{buffer}: {bbr} and {cubic}");
    }
}

#[test]
fn what_the_application_limits_is_not_the_bandwidth() {
    // 14 segments, then a pause: 2.3 Mb/s. Were that taken for the bandwidth, pacing would spread each
    // request over 70 ms instead of a round trip.
    let requests = r#"
        [traffic.small]
        kind = "incast"
        from = "sender1"
        to = "receiver1"
        size = "20 kB"
        mode = "push"
        connection = "persistent"
        requests = 100
        think = "50 ms"
    "#;
    let outcome = path("12 s", "2 MB", requests);
    let times = outcome.groups["small"].fct_s.unwrap();
    assert_eq!(outcome.groups["small"].finished, 100);
    assert!(times.p99 < 0.045, "{times:?}");
}

#[test]
fn a_late_connection_starts_as_an_early_one() {
    let took = |start: &str| {
        let one = format!(
            r#"
            [traffic.one]
            kind = "bulk"
            from = "sender1"
            to = "receiver1"
            size = "2 MB"
            start = "{start}"
            "#
        );
        let outcome = path("13 s", "2 MB", &one);
        outcome.flows[0].fct_s.unwrap()
    };
    // 320 ms at the rate of the link. PROBE_RTT would send four segments a round trip for 200 ms.
    let (early, late) = (took("0 s"), took("12 s"));
    assert!((late - early).abs() < 0.05, "{early} and {late}");
}

#[test]
fn its_random_phases_follow_the_seed_of_the_run() {
    let text = wide(
        "1 ms",
        "100 packets",
        "[traffic.one]\nkind = \"bulk\"\nfrom = \"sender1\"\nto = \"receiver1\"",
    );
    let scheme = &builtin_schemes()["drop-tail"];
    let of = |seed| ClientProfiles::of(&scenario(&text), scheme, &Inputs::default(), seed);
    assert_eq!([1, 2].map(|seed| of(seed).configs[0].seed), [1, 2]);
}
