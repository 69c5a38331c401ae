// SPDX-License-Identifier: Apache-2.0
//! Timeouts are counted where they happen, and agree with the kernel's own counters.

use super::{Folder, LIMIT, Net, Run, play, scenario};
use penstock_linux::testkit::Process;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const BULK: &str = r#"
    [traffic.long]
    kind = "bulk"
    from = "senders"
    to = "receivers"
"#;

#[test]
fn a_handshake_without_an_answer_times_out_once_a_second() {
    let net = Net::new();
    // The hosts learn each other's Ethernet addresses, which is no part of TCP.
    play(&net, &scenario("100 ms", BULK));
    net.mute_receivers();
    let run = play(&net, &scenario("1.5 s", BULK));
    assert_eq!(run.flows.len(), 4);
    for flow in &run.flows {
        let (data, handshake) = (flow.timeouts, flow.syn_timeouts);
        assert_eq!(
            (data, handshake, flow.delivered),
            (0, 1, 0),
            "{}",
            flow.source
        );
    }
    let kernel = run.summary["kernel"]["syn_retransmits"].as_u64();
    assert!(kernel.unwrap() >= 4, "{kernel:?}");
    assert_eq!(run.summary["groups"]["long"]["stalled"], 4);
}

/// Plays it, and calls `change` when a share `at` of it is over.
fn play_with_change(net: &Net, scenario: &str, at: f64, change: fn(&Net)) -> Run {
    let folder = Folder::new();
    let mut command = folder.command(scenario, &net.hosts());
    command.args(["--progress", "json"]).stderr(Stdio::piped());
    let mut process = Process::spawn(&mut command, LIMIT);
    let lines = BufReader::new(process.child.stderr.take().unwrap()).lines();
    let mut is_changed = false;
    for line in lines {
        let report: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        if !is_changed && report["fraction"].as_f64().unwrap() > at {
            change(net);
            is_changed = true;
        }
    }
    assert!(process.wait().success() && is_changed);
    folder.results()
}

/// The kernel counts the same, but for a timeout of each flow at the very end.
fn agrees_with_the_kernel(run: &Run) {
    let timeouts = run
        .flows
        .iter()
        .map(|flow| flow.timeouts + flow.syn_timeouts);
    let counted: u64 = timeouts.sum();
    let kernel = run.summary["kernel"]["timeouts"].as_u64().unwrap();
    let differ = kernel.abs_diff(counted);
    assert!(differ <= 4, "{counted} counted, {kernel} by the kernel");
}

#[test]
fn data_without_an_acknowledgement_times_out() {
    let net = Net::new();
    let text = scenario("2.5 s", BULK);
    let run = play_with_change(&net, &text, 0.2, Net::mute_receivers);
    for flow in &run.flows {
        assert!(flow.delivered > 0 && flow.timeouts > 0, "{}", flow.source);
        assert_eq!(flow.syn_timeouts, 0);
    }
    agrees_with_the_kernel(&run);
}

#[test]
fn a_handshake_that_succeeds_late_keeps_its_timeouts() {
    let net = Net::new();
    play(&net, &scenario("100 ms", BULK));
    net.mute_receivers();
    let text = scenario("4 s", &BULK.replace("from", "size = \"10 kB\"\n    from"));
    let run = play_with_change(&net, &text, 0.4, Net::unmute_receivers);
    for flow in &run.flows {
        assert_eq!(flow.delivered, 10_000);
        assert_eq!(flow.timeouts, 0);
        // Of the SYN and of the SYN-ACK.
        assert!(flow.syn_timeouts > 1, "{}", flow.source);
    }
    agrees_with_the_kernel(&run);
}

#[test]
fn what_only_a_namespace_has_is_set_there_alone() {
    let net = Net::new();
    let of_this_process =
        |name| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    let switches = ["tcp_ecn", "tcp_sack", "tcp_tw_reuse"];
    let before = switches.map(of_this_process);
    let tcp = "[tcp]\n        ecn = true\n        sack = false\n        recovery = \"newreno\"";
    let text = scenario("100 ms", BULK).replace("[tcp]", tcp);
    play(&net, &text);
    assert_eq!(switches.map(|name| net.sysctl(name)), ["1", "0", "1"]);
    assert_eq!(switches.map(of_this_process), before);
}
