// SPDX-License-Identifier: Apache-2.0
//! Each traffic does what its keys specify.

use super::{outcome, wide};
use penstock_sim::run::FlowRecord;
use penstock_sim::{Inputs, Outcome, Scenario, run};

/// A closed loop of three requests and a pause of 1 ms.
fn loop_of_three(mode: &str, connection: &str, clients: u32) -> Outcome {
    let traffic = format!(
        r#"
        [traffic.ask]
        kind = "incast"
        flows = {clients}
        from = "senders"
        to = "receivers"
        size = "1000 B"
        mode = "{mode}"
        connection = "{connection}"
        requests = 3
        think = "1 ms"
        "#
    );
    outcome(&wide("50 ms", "1000 packets", &traffic), "drop-tail")
}

fn of_client(outcome: &Outcome, client: u32) -> Vec<&FlowRecord> {
    let flows = outcome.flows.iter();
    flows.filter(|flow| flow.flow == client).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// A load is a share of what the links carry, wherever their rates are written.
#[test]
fn a_load_counts_links_of_another_rate() {
    let begun = |fabric: &str, load_of: &str| {
        let text = format!(
            r#"
            title = "loads"
            duration = "1 s"
            schemes = ["drop-tail"]
            [fabric]
            {fabric}
            [traffic.some]
            kind = "poisson"
            load = "50 %"
            size = "10 kB"
            from = "sender1"
            to = "receiver1"
            {load_of}
            "#
        );
        outcome(&text, "drop-tail").groups["some"].flows as f64
    };
    let star = |edge: &str, port_at: &str| {
        format!(
            r#"
            kind = "graph"
            host_link = {{ rate = "1 Gb/s", delay = "1 us" }}
            edges = [["sender1", "s"{edge}], ["receiver1", "s"]]
            port_at = {{ {port_at} }}
            "#
        )
    };
    let slow = r#", "20 Mb/s""#;
    let port = r#""s->receiver1" = { rate = "30 Mb/s" }"#;
    let dumbbell = r#"
        kind = "dumbbell"
        senders = 1
        receivers = 1
        access = { rate = "1 Gb/s", delay = "1 us" }
        bottleneck = { rate = "1 Gb/s", delay = "1 us" }
        port_at = { "left->right" = { rate = "20 Mb/s" } }
    "#;
    for (fabric, load_of, rate) in [
        (dumbbell.to_owned(), "", 20e6),
        (star(slow, ""), "", 20e6),
        (star("", r#""sender1->s" = { rate = "20 Mb/s" }"#), "", 20e6),
        (star(slow, port), r#"load_of = "destinations""#, 30e6),
    ] {
        let (flows, expected) = (begun(&fabric, load_of), 0.5 * rate / 80e3);
        assert!(
            (flows - expected).abs() < 5.0 * expected.sqrt(),
            "{flows}, not {expected}: {fabric}"
        );
    }
}

#[test]
fn a_closed_loop_asks_again_after_thinking() {
    for mode in ["push", "pull"] {
        for connection in ["new", "persistent"] {
            let outcome = loop_of_three(mode, connection, 4);
            assert_eq!(outcome.groups["ask"].finished, 12, "{mode} {connection}");
            for client in 0..4 {
                let flows = of_client(&outcome, client);
                assert_eq!(flows.len(), 3);
                assert_eq!(flows[0].source, format!("sender{}", client + 1));
                assert_eq!(flows[0].destination, format!("receiver{}", client + 1));
                for pair in flows.windows(2) {
                    assert!(near(pair[1].start_s, pair[0].end_s.unwrap() + 1e-3));
                }
            }
        }
    }
}

#[test]
fn a_persistent_connection_saves_the_handshake_and_pull_costs_a_request() {
    let times = |mode: &str, connection: &str| {
        let outcome = loop_of_three(mode, connection, 1);
        let flows = of_client(&outcome, 0);
        (flows[0].fct_s.unwrap(), flows[1].fct_s.unwrap())
    };
    // One way: 30 us, and what the packet takes to send three times, at 8 ns per byte.
    let way = |bytes: f64| 30e-6 + 3.0 * bytes * 8e-9;
    let (handshake, data, request) = (2.0 * way(48.0), way(1040.0), way(140.0));
    // The answer waits behind the ACK of the request.
    let answer = 40.0 * 8e-9 + data;
    let by_hand = [
        ("push", "new", handshake + data, handshake + data),
        ("push", "persistent", handshake + data, data),
        (
            "pull",
            "new",
            handshake + request + answer,
            handshake + request + answer,
        ),
        (
            "pull",
            "persistent",
            handshake + request + answer,
            request + answer,
        ),
    ];
    for (mode, connection, first, second) in by_hand {
        let (one, two) = times(mode, connection);
        assert!(
            near(one, first) && near(two, second),
            "{mode} {connection}: {one} {first}, {two} {second}"
        );
    }
}

#[test]
fn at_a_barrier_all_wait_for_the_last() {
    rounds_begin("start_spread = \"500 us\"", 0.0);
    rounds_begin("start_gap = \"20 us\"", 20e-6);
}

/// Each round begins 1 ms after the end of the last, its flows `gap` seconds apart.
fn rounds_begin(starts: &str, gap: f64) {
    let traffic = r#"
        [traffic.blocks]
        kind = "incast"
        from = "senders"
        to = "receiver1"
        block = "400 kB"
        requests = 5
        connection = "persistent"
        mode = "pull"
        barrier = true
        think = "1 ms"
    "#;
    let traffic = format!("{traffic}{starts}\n");
    let outcome = outcome(&wide("1 s", "1000 packets", &traffic), "drop-tail");
    let flows = &outcome.flows;
    assert_eq!(flows.len() % 5, 0);
    let rounds: Vec<_> = flows.chunks(flows.len() / 5).collect();
    assert_eq!(
        (rounds.len(), outcome.groups["blocks"].finished),
        (5, flows.len())
    );
    for pair in rounds.windows(2) {
        let ends = pair[0].iter().map(|flow| flow.end_s.unwrap());
        let last = ends.clone().fold(0.0, f64::max);
        assert!(ends.fold(1.0, f64::min) < last);
        let mut begins = (0..).map(|place| last + 1e-3 + gap * f64::from(place));
        assert!(pair[1].iter().all(|flow| {
            begins
                .next()
                .is_some_and(|at| (flow.start_s - at).abs() < 1e-9)
        }));
    }
}

/// Whatever comes at once, one program connects, writes and answers one after another, 100 us for each, or
/// 300 us to connect.
#[test]
fn one_program_does_one_thing_after_another() {
    let ends = |mode: &str, connection: &str, event_loop: &str, connect_us: u32| {
        let connect = match connect_us {
            300 => "event_loop_connect = \"300 us\"",
            _ => "",
        };
        let traffic = format!(
            r#"
            [traffic.blocks]
            kind = "incast"
            from = "senders"
            to = "receiver1"
            size = "1 kB"
            requests = 3
            barrier = true
            mode = "{mode}"
            connection = "{connection}"
            event_loop = "{event_loop}"
            {connect}
            "#
        );
        let outcome = outcome(&wide("1 s", "1000 packets", &traffic), "drop-tail");
        let flows = &outcome.flows;
        assert_eq!(outcome.groups["blocks"].finished, flows.len());
        let (first, rest) = flows.split_at(flows.len() / 3);
        for pair in first.windows(2) {
            let gap = f64::from(connect_us) * 1e-6;
            assert!(pair[1].start_s - pair[0].start_s >= gap - 1e-9);
        }
        let mut ends: Vec<f64> = rest.iter().map(|flow| flow.end_s.unwrap()).collect();
        ends.sort_by(f64::total_cmp);
        let gaps = ends.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.fold(f64::INFINITY, f64::min)
    };
    for mode in ["push", "pull"] {
        for connection in ["new", "persistent"] {
            let each = ends(mode, connection, "0 s", 0);
            let one = ends(mode, connection, "100 us", 100);
            let slow = ends(mode, connection, "100 us", 300);
            assert!(
                each < 20e-6 && one > 99e-6 && (99e-6..150e-6).contains(&slow),
                "{mode} {connection}: {each} {one} {slow}"
            );
        }
    }
}

#[test]
fn epochs_begin_on_time_whatever_is_unfinished() {
    let traffic = r#"
        [traffic.epochs]
        kind = "incast"
        from = "senders"
        to = "receivers"
        block = "4 MB"
        start = "2 ms"
        start_spread = "100 us"
        epochs = 4
        every = "10 ms"
    "#;
    let outcome = outcome(&wide("60 ms", "1000 packets", traffic), "drop-tail");
    let starts: Vec<f64> = outcome.flows.iter().map(|flow| flow.start_s).collect();
    assert_eq!(starts.len(), 16);
    for (index, start) in starts.iter().enumerate() {
        let epoch = 2e-3 + 10e-3 * (index / 4) as f64;
        assert!((epoch..epoch + 100e-6).contains(start), "{start}");
    }
    assert!(
        outcome
            .flows
            .iter()
            .all(|flow| flow.bytes == Some(1_000_000))
    );
    // 4 MB need 32 ms at least: the last epoch begins before the first is over.
    let first = &outcome.flows[..4];
    assert!(
        first
            .iter()
            .any(|flow| flow.end_s.is_none_or(|end| end > starts[15]))
    );
}

#[test]
fn poisson_arrivals_offer_their_load() {
    let traffic = r#"
        [traffic.web]
        kind = "poisson"
        load = "40 %"
        size = "10 kB"
        from = "senders"
        to = "receivers"
        start = "100 ms"
        stop = "900 ms"
    "#;
    let outcome = outcome(&wide("1 s", "1000 packets", traffic), "drop-tail");
    let flows = &outcome.flows;
    let load = flows.len() as f64 * 80_000.0 / (0.8 * 1e9);
    // 4000 arrivals: a standard deviation is 1.6 %.
    assert!((load - 0.4).abs() < 0.4 * 0.06, "{load}");
    assert!(flows.iter().all(|f| (0.1..0.9).contains(&f.start_s)));
    assert_eq!(outcome.groups["web"].finished, flows.len());
    let gaps: Vec<f64> = flows
        .windows(2)
        .map(|pair| pair[1].start_s - pair[0].start_s)
        .collect();
    // Of exponential gaps a share of 1 - 1/e is shorter than the mean.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let short = gaps.iter().filter(|gap| **gap < mean).count() as f64;
    assert!((short / gaps.len() as f64 - 0.632).abs() < 0.03);
}

#[test]
fn udp_sends_at_its_rate_and_stops() {
    for arrivals in ["constant", "poisson"] {
        let traffic = format!(
            r#"
            [traffic.noise]
            kind = "udp"
            rate = "200 Mb/s"
            arrivals = "{arrivals}"
            packet = "1000 B"
            from = "senders"
            to = "receivers"
            stop = "500 ms"
            "#
        );
        let outcome = outcome(&wide("1 s", "1000 packets", &traffic), "drop-tail");
        let sent = outcome.ports["left->right"].egress_packets as f64;
        let tolerance = if arrivals == "constant" { 4.0 } else { 500.0 };
        assert!((sent - 12_500.0).abs() <= tolerance, "{arrivals}: {sent}");
        assert!(outcome.groups.is_empty() && outcome.flows.is_empty());
    }
}

#[test]
fn bulk_starts_and_stops_at_its_times() {
    let traffic = r#"
        [traffic.long]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
        start = "10 ms"
        stop = "30 ms"
        [measure]
        from = "45 ms"
    "#;
    let outcome = outcome(&wide("50 ms", "1000 packets", traffic), "drop-tail");
    let flow = &outcome.flows[0];
    assert!(flow.delivered_bytes > 1_000_000 && flow.end_s.is_none());
    assert_eq!((flow.packets, flow.bytes), (0, None));
    assert_eq!(outcome.ports["left->right"].utilization, 0.0);
}

/// Reads `rows` as the trace of a scenario, and runs it.
fn replay(name: &str, rows: &str) -> Result<Outcome, String> {
    let folder = std::env::temp_dir().join(format!("penstock-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("trace.csv"), rows).unwrap();
    let traffic = r#"
        [traffic.recorded]
        kind = "trace"
        file = "trace.csv"
        start = "1 ms"
    "#;
    let file = folder.join("test.toml");
    let scenario = Scenario::parse(&wide("50 ms", "1000 packets", traffic), &file, &[]).unwrap();
    let read = Inputs::read(&scenario, &folder, &|_| Err("not CSV".to_owned()));
    std::fs::remove_dir_all(&folder).unwrap();
    let inputs = read.map_err(|error| {
        let shown = error.to_string();
        let at = shown.find("trace.csv").unwrap();
        shown[at..].to_owned()
    })?;
    Ok(run(&scenario, &inputs, "drop-tail", 1, &|_| true).unwrap())
}

#[test]
fn a_trace_is_replayed() {
    let rows = "note,bytes,destination,source,start_s\n\
                a,2000,receiver2,sender1,0.002\n\
                \n\
                b, 3000 ,receiver1,receiver4,0.0005\n";
    let outcome = replay("good", rows).unwrap();
    let found: Vec<_> = outcome
        .flows
        .iter()
        .map(|f| (f.source.as_str(), f.destination.as_str(), f.delivered_bytes))
        .collect();
    assert_eq!(
        found,
        [
            ("receiver4", "receiver1", 3000),
            ("sender1", "receiver2", 2000)
        ]
    );
    assert!(near(outcome.flows[0].start_s, 1.5e-3));
    assert!(near(outcome.flows[1].start_s, 3e-3));
}

#[test]
fn a_broken_trace_is_refused_with_its_line() {
    let header = "start_s,source,destination,bytes\n";
    let broken = [
        (
            "start_s,source,bytes\n".to_owned(),
            "trace.csv:1: has no column destination; needed: start_s,source,destination,bytes",
        ),
        (
            format!("{header}0,sender1,receiver1,10\n1,sender1,receiver9,10\n"),
            "trace.csv:3: destination: no host \"receiver9\" in the fabric; it has sender1 to receiver4",
        ),
        (
            format!("{header}\n-1,sender1,receiver1,10\n"),
            "trace.csv:3: start_s: not a time in seconds from 0 to 1e6",
        ),
        (
            format!("{header}0,sender1,receiver1,0\n"),
            "trace.csv:2: bytes: not a whole number from 1 to 2^50",
        ),
        (
            format!("{header}0,sender1,receiver1\n"),
            "trace.csv:2: has no bytes",
        ),
        (
            format!("{header}0,sender1,sender1,5\n"),
            "trace.csv:2: source and destination are both sender1",
        ),
        (header.to_owned(), "trace.csv: has no transfers"),
        (
            format!("{header}0.049,sender1,receiver1,5\n1,sender1,receiver1,5\n"),
            "trace.csv: all 2 transfers start after the end of the run, 50 ms",
        ),
    ];
    for (number, (rows, message)) in broken.into_iter().enumerate() {
        let error = replay(&format!("broken{number}"), &rows).unwrap_err();
        assert_eq!(error, message);
    }
}

/// One-to-all and all-to-all.
#[test]
fn all_pairs_are_each_source_with_each_other_host() {
    let traffic = r#"
        [traffic.shuffle]
        kind = "incast"
        pairs = "all"
        from = "all"
        to = "all"
        size = "1 kB"
    "#;
    let outcome = outcome(&wide("100 ms", "1000 packets", traffic), "drop-tail");
    let pairs: std::collections::HashSet<_> = outcome
        .flows
        .iter()
        .map(|flow| (&flow.source, &flow.destination))
        .collect();
    assert_eq!((pairs.len(), outcome.groups["shuffle"].finished), (56, 56));
    assert!(pairs.iter().all(|(from, to)| from != to));
}

#[test]
fn no_client_asks_a_server_on_its_own_machine() {
    let traffic = r#"
        [traffic.ask]
        kind = "incast"
        pairs = "all"
        machines = 2
        from = "senders"
        to = "receivers"
        size = "1 kB"
        mode = "pull"
    "#;
    let outcome = outcome(&wide("100 ms", "1000 packets", traffic), "drop-tail");
    let number = |name: &str| name.trim_start_matches(char::is_alphabetic).parse::<u32>();
    assert_eq!(outcome.groups["ask"].finished, 8);
    for flow in &outcome.flows {
        let (from, to) = (number(&flow.source), number(&flow.destination));
        assert_ne!(from.unwrap() % 2, to.unwrap() % 2);
    }
}
