// SPDX-License-Identifier: Apache-2.0
//! What cannot be played is an error of one line, and nothing is written.

use super::{Folder, LIMIT, Net, scenario, stderr};
use penstock_linux::testkit::{Process, Signal, output};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const LONG: &str = r#"
    [traffic.long]
    kind = "bulk"
    from = "senders"
    to = "receivers"
"#;

/// Tries to play it; returns the error.
fn refused(name: &str, scenario: &str, hosts: &str) -> String {
    let folder = Folder::new();
    let output = output(&mut folder.command(scenario, hosts), LIMIT);
    assert_eq!(output.status.code(), Some(1), "{name}");
    assert!(!folder.out().exists());
    let line = stderr(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn wrong_hosts_are_named() {
    let net = Net::new();
    let (text, hosts) = (scenario("100 ms", LONG), net.hosts());
    for (name, wrong, expected) in [
        (
            "unknown",
            hosts.replace("sender2", "sender9"),
            "hosts.sender9: no such host in the fabric; it has sender1 to receiver4",
        ),
        (
            "missing",
            hosts.replace("\"sender2\"", "\"sender1\""),
            "hosts.sender2: missing; the scenario's traffic needs it",
        ),
        (
            "netns",
            hosts.replace("/proc/", "/no-proc/"),
            "hosts.sender1.netns: cannot open the network namespace /no-proc/",
        ),
        (
            "port",
            hosts.replace("left->right", "left->wrong"),
            "ports.left->wrong: no such port in the fabric",
        ),
        (
            "interface",
            hosts.replace("\"right\"", "\"none\""),
            "port left->right: no interface none in this network namespace; it has lo, bridge, ",
        ),
        (
            "qdisc",
            hosts.replace("\"right\"", "\"left\""),
            "port left->right: left has no qdisc that counts; add one: tc ",
        ),
        ("json", "{".to_owned(), "hosts.json: EOF"),
    ] {
        let line = refused(name, &text, &wrong);
        assert!(line.contains(expected), "{name}: {line}");
    }
}

#[test]
fn wrong_scenarios_and_schemes_are_refused() {
    let net = Net::new();
    let line = refused("scenario", "title = 1", &net.hosts());
    assert!(line.contains("scenario.toml:1: "), "{line}");
    let folder = Folder::new();
    let mut command = folder.command(&scenario("100 ms", LONG), &net.hosts());
    let output = output(command.args(["--scheme", "none"]), LIMIT);
    assert!(!output.status.success());
}

#[test]
fn an_interrupt_ends_the_run_and_writes_nothing() {
    let net = Net::new();
    let folder = Folder::new();
    let mut command = folder.command(&scenario("120 s", LONG), &net.hosts());
    command.args(["--progress", "json"]).stderr(Stdio::piped());
    let mut process = Process::spawn(&mut command, LIMIT);
    let mut lines = BufReader::new(process.child.stderr.take().unwrap()).lines();
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(first["fraction"].as_f64().unwrap() < 0.5);
    process.signal(Signal::INT);
    let last = lines.map(Result::unwrap).last().unwrap();
    assert_eq!(process.wait().code(), Some(130));
    assert!(last.contains("interrupted; nothing was written"), "{last}");
    assert!(!folder.out().exists());
}
