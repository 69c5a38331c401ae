// SPDX-License-Identifier: Apache-2.0
//! Which flows a port controls, on the kernel's own TCP: through a switch whose port has FairQ.

#![allow(clippy::unwrap_used)]

mod lab;

use std::net::{TcpListener, TcpStream};

use lab::transfers;
use lab::{SwitchLab, outcome};
use penstock_linux::testkit::join;
use serde_json::Value;

const FAIRQ: [&str; 6] = ["attach", "right", "--scheme", "fairq", "--stale", "60 s"];

fn attach(lab: &SwitchLab, options: &[&str]) {
    lab.agent().ok(&[&FAIRQ[..], options].concat());
}

fn status(lab: &SwitchLab) -> Value {
    let text = lab
        .agent()
        .ok(&["status", "right", "--for", "20 ms", "--json"]);
    serde_json::from_str::<Value>(&text).unwrap()[0].clone()
}

fn number(value: &Value, path: &str) -> u64 {
    let number = value.pointer(path).and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("no {path} in {value}"))
}

/// Serves a port of the receiver.
fn serve(lab: &SwitchLab, port: u16) {
    let server = lab.spawn("right", move || {
        transfers::serve_on(TcpListener::bind((lab::RIGHT, port)).unwrap());
    });
    join(server, lab::LIMIT);
}

/// So many connections at once, each with 300 kB.
fn transfer(lab: &SwitchLab, port: u16, connections: u64) {
    let clients: Vec<_> = (0..connections)
        .map(|id| {
            lab.spawn("left", move || {
                let stream = TcpStream::connect((lab::RIGHT, port))?;
                transfers::send(&mut transfers::patient(stream)?, id, 300_000)
            })
        })
        .collect();
    for client in clients {
        join(client, lab::LIMIT).unwrap();
    }
}

#[test]
fn excluded_connections_pass_untouched() {
    let lab = SwitchLab::new(100_000_000, 64_000);
    serve(&lab, 5001);
    serve(&lab, 5002);
    attach(&lab, &["--exclude", "tcp:5002,192.0.2.0/24"]);
    transfer(&lab, 5002, 4);
    let excluded = status(&lab);
    assert_eq!(excluded["policy"]["exclude"][0], "tcp:5002");
    assert_eq!(number(&excluded, "/counters/acks_rewritten"), 0);
    let spared = number(&excluded, "/counters/passed_excluded");
    assert!(spared > 100, "{excluded}");
    assert_eq!(number(&excluded, "/counters/flows_begun"), 4, "they count");
    transfer(&lab, 5001, 4);
    let others = status(&lab);
    assert!(number(&others, "/counters/acks_rewritten") > 100);
    assert_eq!(number(&others, "/counters/passed_excluded"), spared);
    // Attached again with other rules: these hold from the next packet on.
    attach(&lab, &["--include", "tcp:5002"]);
    let before = number(&others, "/counters/acks_rewritten");
    transfer(&lab, 5001, 1);
    assert_eq!(number(&status(&lab), "/counters/acks_rewritten"), before);
    transfer(&lab, 5002, 4);
    assert!(number(&status(&lab), "/counters/acks_rewritten") > before);
    attach(&lab, &[]);
    assert_eq!(status(&lab)["policy"], Value::Null);
}

#[test]
fn a_canary_shows_both_sides() {
    let lab = SwitchLab::new(100_000_000, 64_000);
    serve(&lab, 5001);
    attach(&lab, &["--canary", "50%"]);
    let stay = lab.agent().start(
        &[
            "attach", "right", "--scheme", "fairq", "--canary", "50%", "--stay",
        ],
        lab::LIMIT,
    );
    penstock_linux::testkit::until("the agent sweeps", || {
        lab.agent().port("right").state().unwrap().sweep > 0
    });
    transfer(&lab, 5001, 24);
    let status = status(&lab);
    assert_eq!(status["policy"]["canary"], 0.5);
    let side =
        |side: &str, counter: &str| number(&status, &format!("/canary/{side}/counters/{counter}"));
    let port = |counter: &str| number(&status, &format!("/counters/{counter}"));
    assert!(side("controlled", "acks_rewritten") > 20, "{status}");
    assert_eq!(side("controlled", "acks_rewritten"), port("acks_rewritten"));
    assert_eq!(side("held_out", "acks_rewritten"), 0);
    assert_eq!(side("held_out", "acks"), port("passed_held_out"));
    for counter in ["acks", "repeated_bytes", "timeouts_seen", "flows_begun"] {
        let sum = side("controlled", counter) + side("held_out", counter);
        assert_eq!(sum, port(counter), "{counter}");
    }
    for name in ["controlled", "held_out"] {
        let flows = side(name, "flows_begun");
        assert!((2..=22).contains(&flows), "{status}");
        let sent = side(name, "egress_bytes") - side(name, "repeated_bytes");
        assert!(
            sent >= flows * 300_000,
            "{name}: {sent} bytes of {flows} flows"
        );
    }
    let lines = lab.agent().ok(&["status", "right", "--for", "20 ms"]);
    for part in [
        "policy: canary of 50 % of flows",
        "canary, controlled: ",
        "canary, held out: ",
    ] {
        assert!(lines.contains(part), "{lines}");
    }
    let metrics = lab.agent().ok(&["metrics"]);
    assert!(metrics.contains("penstock_canary_acks_total{"), "{metrics}");
    drop(stay);
}

#[test]
fn refusals_name_the_rule() {
    let lab = SwitchLab::new(100_000_000, 64_000);
    for (option, value, part) in [
        (
            "--exclude",
            "10.1.0.0/8",
            "allowed: 10.0.0.0/8, or 10.1.0.0/32",
        ),
        ("--exclude", "udp:53", "\"udp:53\" is no rule"),
        ("--include", "dscp:64", "dscp:46 (0 to 63)"),
        ("--canary", "150%", "--canary 150%: is 150 %"),
        ("--canary", "some", "is not a share"),
    ] {
        let line = lab
            .agent()
            .refused(&[&FAIRQ[..], &[option, value]].concat());
        assert!(line.contains(part), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstockd.toml");
    let check = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let arguments = ["run", "--check-config", "--config", path.to_str().unwrap()];
        outcome(&lab.agent().output(&arguments))
    };
    let port = "[port.right]\nscheme = \"fairq\"\n";
    let (is_valid, line) = check(&format!("{port}exclude = [\"tcp:179\", \"mark:1/2\"]\n"));
    assert!(
        !is_valid && line.contains(":3: port.right.exclude"),
        "{line}"
    );
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    let (is_valid, line) = check(&format!(
        "{port}exclude = [\"tcp:179\"]\ncanary = \"10 %\"\n"
    ));
    assert!(is_valid, "{line}");
}
