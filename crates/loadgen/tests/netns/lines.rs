// SPDX-License-Identifier: Apache-2.0
//! What cannot be played is told in one line, and nothing is written.

use super::{Folder, Net, scenario, stderr};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const LONG: &str = r#"
    [traffic.long]
    kind = "bulk"
    from = "senders"
    to = "receivers"
"#;

/// Plays it in vain; returns the line it says.
fn refused(name: &str, scenario: &str, hosts: &str) -> String {
    let folder = Folder::new(name);
    let output = folder.command(scenario, hosts).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{name}");
    assert!(!folder.0.join("out").exists());
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn wrong_hosts_are_told_by_name() {
    let net = Net::new();
    let (text, hosts) = (scenario("100 ms", LONG), net.hosts());
    for (name, wrong, told) in [
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
            hosts.replace("/run/netns/", "/run/netns/no-"),
            "hosts.sender1.netns: /run/netns/no-traffic-",
        ),
        (
            "port",
            hosts.replace("left->right", "left->wrong"),
            "ports.left->wrong: no such port in the fabric",
        ),
        (
            "interface",
            hosts.replace("\"right\"", "\"none\""),
            "port left->right: interface none: ",
        ),
        (
            "qdisc",
            hosts.replace("\"right\"", "\"left\""),
            "port left->right: reading the statistics of its root qdisc: it has none",
        ),
        ("json", "{".to_owned(), "hosts.json: EOF"),
    ] {
        let said = refused(name, &text, &wrong);
        assert!(said.contains(told), "{name}: {said}");
    }
}

#[test]
fn wrong_scenarios_and_schemes_are_told() {
    let net = Net::new();
    let said = refused("scenario", "title = 1", &net.hosts());
    assert!(said.contains("scenario.toml:1: "), "{said}");
    let folder = Folder::new("scheme");
    let mut command = folder.command(&scenario("100 ms", LONG), &net.hosts());
    let output = command.args(["--scheme", "none"]).output().unwrap();
    assert!(!output.status.success());
}

#[test]
fn an_interrupt_ends_the_run_and_writes_nothing() {
    let net = Net::new();
    let folder = Folder::new("interrupt");
    let mut command = folder.command(&scenario("60 s", LONG), &net.hosts());
    command.args(["--progress", "json"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(first["fraction"].as_f64().unwrap() < 0.5);
    let id = child.id() as libc::pid_t;
    // SAFETY: no pointers; the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(id, libc::SIGINT) }, 0);
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        said.last()
            .unwrap()
            .contains("interrupted; nothing was written")
    );
    assert!(!folder.0.join("out").exists());
}
