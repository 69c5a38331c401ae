// SPDX-License-Identifier: Apache-2.0
//! Each kind of traffic is the same on sockets as in the simulator.

use super::{Flow, Net, Run, play, scenario};
use penstock_sim::{Inputs, Scenario};
use std::path::Path;

const MIX: &str = r#"
    [traffic.push]
    kind = "incast"
    flows = 16
    size = "20 kB"
    from = "senders"
    to = "receivers"
    epochs = 3
    every = "150 ms"
    [traffic.pull]
    kind = "incast"
    mode = "pull"
    flows = 8
    requests = 10
    size = { exponential = "5 kB" }
    from = "senders"
    to = "receivers"
    [traffic.elephants]
    kind = "bulk"
    flows = 2
    from = "senders[0..2]"
    to = "receivers[0..2]"
    stop = "600 ms"
    [traffic.web]
    kind = "poisson"
    load = "5 %"
    size = "10 kB"
    from = "senders"
    to = "receivers"
    stop = "500 ms"
    [traffic.noise]
    kind = "udp"
    rate = "10 Mb/s"
    from = "sender1"
    to = "receiver1"
    [measure]
    queue_every = "1 ms"
"#;

fn count(run: &Run, group: &str, key: &str) -> u64 {
    run.summary["groups"][group][key].as_u64().unwrap()
}

#[test]
fn a_mix_is_played_as_it_is_simulated() {
    let net = Net::new();
    let text = scenario("1.5 s", MIX);
    let run = play(&net, &text);
    for (group, flows) in [("push", 48), ("pull", 80)] {
        assert_eq!(count(&run, group, "flows"), flows);
        assert_eq!(count(&run, group, "finished"), flows, "{group}");
    }
    assert_eq!(count(&run, "elephants", "flows"), 2);
    assert_eq!(count(&run, "elephants", "finished"), 0);
    assert_eq!(count(&run, "web", "finished"), count(&run, "web", "flows"));
    assert_eq!(run.summary["broken"], 0);
    assert_eq!(run.summary["tcp"], "cubic");
    bytes_are_conserved(&run);

    let parsed = Scenario::parse(&text, Path::new("test.toml"), &[]).unwrap();
    let simulated =
        penstock_sim::run(&parsed, &Inputs::default(), "drop-tail", 1, &|_| true).unwrap();
    let open = |name: &str| name != "pull";
    let mut expected: Vec<_> = simulated
        .flows
        .iter()
        .filter(|f| open(&f.traffic))
        .map(|f| (&*f.traffic, f.flow, &*f.source, &*f.destination, f.bytes))
        .collect();
    let mut played: Vec<_> = run
        .flows
        .iter()
        .filter(|f| open(&f.traffic))
        .map(|f| (&*f.traffic, f.number, &*f.source, &*f.destination, f.bytes))
        .collect();
    expected.sort();
    played.sort();
    assert_eq!(played, expected);
}

/// What was received was sent, and passed the port in front of the receivers.
fn bytes_are_conserved(run: &Run) {
    for flow in &run.flows {
        if flow.end_s.is_some() {
            assert_eq!(Some(flow.delivered), flow.bytes, "{}", flow.traffic);
        }
        assert!(flow.delivered > 0 && flow.packets > 0, "{}", flow.traffic);
        assert!(flow.packets * 65_536 >= flow.delivered);
    }
    let delivered: u64 = run.flows.iter().map(|flow| flow.delivered).sum();
    let port = &run.summary["ports"]["left->right"];
    let sent = port["egress_bytes"].as_u64().unwrap();
    assert!(sent > delivered, "{sent} bytes sent, {delivered} received");
    assert!(port["utilization"].as_f64().unwrap() <= 1.01);
    assert!(run.queues > 0);
}

/// Three requests of each of four clients, with a pause between.
fn play_requests(net: &Net, mode: &str, connection: &str) -> (Run, u64) {
    let traffic = format!(
        r#"
        [traffic.ask]
        kind = "incast"
        size = "30 kB"
        mode = "{mode}"
        connection = "{connection}"
        requests = 3
        think = "20 ms"
        from = "senders"
        to = "receivers"
        "#
    );
    let before = net.tcp_counter("ActiveOpens");
    let run = play(net, &scenario("500 ms", &traffic));
    (run, net.tcp_counter("ActiveOpens") - before)
}

#[test]
fn a_closed_loop_thinks_and_keeps_its_connections_if_it_shall() {
    let net = Net::new();
    for mode in ["push", "pull"] {
        for (connection, opened) in [("new", 12), ("persistent", 4)] {
            let (run, opens) = play_requests(&net, mode, connection);
            assert_eq!(count(&run, "ask", "finished"), 12, "{mode} {connection}");
            assert_eq!(opens, opened, "{mode} {connection}");
            for client in 0..4 {
                let flows = run.flows.iter().filter(|flow| flow.number == client);
                let flows: Vec<_> = flows.collect();
                assert_eq!(flows.len(), 3);
                for pair in flows.windows(2) {
                    assert!(pair[1].start_s >= pair[0].end_s.unwrap() + 0.02);
                    assert_eq!(pair[1].delivered, 30_000);
                }
            }
        }
    }
}

#[test]
fn a_server_answers_when_it_has_thought() {
    let net = Net::new();
    let traffic = r#"
        [traffic.ask]
        kind = "incast"
        size = "30 kB"
        mode = "pull"
        connection = "persistent"
        requests = 3
        server_think = "50 ms"
        from = "senders"
        to = "receivers"
    "#;
    let run = play(&net, &scenario("1 s", traffic));
    assert_eq!(count(&run, "ask", "finished"), 12);
    let time = |flow: &Flow| flow.end_s.unwrap() - flow.start_s;
    for flow in &run.flows {
        assert!(flow.server_wait_s >= 0.05 && flow.server_wait_s < time(flow));
    }
    let slow = &run.summary["groups"]["ask"]["slow"];
    let share = slow["server_think"].as_f64().unwrap();
    let slowest = run.flows.iter().map(time).fold(0.0, f64::max);
    assert!(share >= 0.05 / slowest - 1e-9, "{slow}");
}

#[test]
fn an_end_that_stops_is_stopped_and_delivers_no_more() {
    let net = Net::new();
    let traffic = r#"
        [traffic.stopped]
        kind = "bulk"
        from = "senders[0..2]"
        to = "receivers[0..2]"
        stop = "100 ms"
        [traffic.late]
        kind = "bulk"
        size = "1 MB"
        from = "sender3"
        to = "receiver3"
        start = "200 ms"
        [measure]
        from = "150 ms"
    "#;
    let run = play(&net, &scenario("600 ms", traffic));
    let stopped = run.flows.iter().filter(|flow| flow.traffic == "stopped");
    for flow in stopped {
        assert!(flow.end_s.is_none() && flow.bytes.is_none() && flow.delivered > 0);
        assert_eq!(flow.packets, 0, "after the measured time began");
    }
    assert_eq!(count(&run, "late", "finished"), 1);
    assert_eq!(run.summary["broken"], 0, "a stop breaks nothing");
}

#[test]
fn a_run_until_done_ends_after_its_last_transfer_and_has_windows() {
    let net = Net::new();
    let traffic = r#"
        [traffic.long]
        kind = "bulk"
        flows = 1
        from = "sender1"
        to = "receiver1"
        [traffic.ask]
        kind = "incast"
        size = "30 kB"
        mode = "pull"
        requests = 3
        think = "20 ms"
        from = "senders"
        to = "receivers"
        [measure]
        windows = { traffic = "long", every = "5 ms" }
    "#;
    // The bound is far beyond the limit of the test.
    let bounded = scenario("1000 s", traffic).replace("duration", "until = \"done\"\nduration");
    let run = play(&net, &bounded);
    assert_eq!(count(&run, "ask", "finished"), 12);
    assert_eq!(count(&run, "ask", "unfinished"), 0);
    let rows: Vec<&str> = run.windows.lines().skip(1).collect();
    assert!(rows.len() > 2 && rows.iter().all(|row| row.starts_with("long,0,")));
    assert!(
        run.summary["groups"]["long"]["loss_cycle_s"]
            .as_f64()
            .unwrap()
            > 0.0
    );
}

const JOBS: &str = r#"
    [traffic.read]
    kind = "job"
    clients = "receivers"
    jobs = 3
    think = { exponential = "5 ms" }
    CONNECTION
    pick = { servers = { of = "senders", count = 3 } }
    stages = [
        { from = "servers", to = "client", mode = "pull", size = "20 kB" },
        { from = "client", to = "sender1", size = "1 kB", think = "2 ms" },
    ]
"#;

#[test]
fn transfers_of_jobs_wait_on_sockets_too() {
    for connection in ["", "connection = \"persistent\""] {
        let net = Net::new();
        let traffic = JOBS.replace("CONNECTION", connection);
        let run = play(
            &net,
            &scenario("2 s", &traffic).replace("duration", "until = \"done\"\nduration"),
        );
        let jobs = &run.summary["groups"]["read"]["jobs"];
        assert_eq!(
            (&jobs["finished"], &jobs["unfinished"]),
            (&12.into(), &0.into()),
            "{connection}"
        );
        assert_eq!(count(&run, "read", "finished"), 12 * 4);
        for job in 0..12 {
            let flows = run.flows.iter().filter(|flow| flow.number == job);
            let (writes, reads): (Vec<_>, Vec<_>) =
                flows.partition(|flow| flow.bytes == Some(1000));
            assert_eq!((reads.len(), writes.len()), (3, 1));
            let last = reads
                .iter()
                .map(|flow| flow.end_s.unwrap())
                .fold(0.0, f64::max);
            assert!(writes[0].start_s >= last + 2e-3, "{connection}: job {job}");
        }
    }
}
