// SPDX-License-Identifier: Apache-2.0
//! Ports that pass packets untouched for a while.

use penstock_linux::testkit::until;
use serde_json::json;

use super::FAIRQ;
use super::lab::stream::Stream;
use super::lab::{PORT, PortLab};

#[test]
fn a_paused_port_lets_packets_pass_until_it_resumes() {
    let lab = PortLab::new();
    lab.congest();
    lab.ok(&[&FAIRQ[..], &["--stale", "60 s"]].concat());
    let stream = Stream::start(&lab);
    // Whether ACKs are rewritten while a part of the stream arrives.
    let rewritten = || {
        let count = || lab.agent().port(PORT).counters().unwrap().acks_rewritten;
        let before = count();
        stream.goes_on();
        count() > before
    };
    until("windows are lowered", rewritten);
    let words = lab.ok(&["pause", PORT]);
    assert!(
        words.contains("eth1: paused until penstockd resume\n"),
        "{words}"
    );
    if !std::path::Path::new("/run/systemd/journal/socket").exists() {
        let entry = "audit: action=pause interface=eth1 uid=0 pid=";
        assert!(words.contains(entry), "{words}");
    }
    until("windows are open", || !rewritten());
    let status = lab.status();
    assert_eq!(
        (&status["paused"], &status["acting"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(status["flows"], 1, "flows stay counted");
    assert!(
        lab.ok(&["metrics"])
            .contains("penstock_acting{interface=\"eth1\",scheme=\"fairq\"} 0")
    );
    // Neither another attach nor a daemon that starts ends it.
    lab.ok(&[&FAIRQ[..], &["--stale", "60 s"]].concat());
    assert_eq!(lab.status()["paused"], true);
    let words = lab.ok(&["resume", "--all"]);
    assert!(words.contains("eth1: no longer paused\n"), "{words}");
    until("windows are lowered again", rewritten);
    assert_eq!(lab.status()["acting"], true);
    lab.ok(&["pause", "--all", "--for", "300 ms"]);
    let status = lab.status();
    assert!(status["resumes_in_s"].as_f64() < Some(0.3), "{status}");
    until("it resumes by itself", rewritten);
    stream.stop();
    // A port that is detached is paused first, as its windows open in steps only while it lasts.
    let held = lab.agent().port(PORT);
    lab.ok(&["detach", PORT]);
    let config = held.config().unwrap();
    let resumes_ns = config.resume_ns - config.pause_ns;
    assert_eq!(resumes_ns, 10_000_000_000, "an interrupted detach ends");
    let refusal = lab.refused(&["pause", PORT]);
    assert!(refusal.contains("eth1 is not attached"), "{refusal}");
}

#[test]
fn a_port_that_resumes_without_a_daemon_does_not_act() {
    let lab = PortLab::new();
    lab.ok(&[&FAIRQ[..], &["--stale", "40 ms"]].concat());
    lab.ok(&["pause", PORT]);
    until("the heartbeat is stale", || {
        lab.status()["heartbeat_age_s"].as_f64() > Some(0.04)
    });
    let words = lab.ok(&["status", PORT, "--for", "1 ms"]);
    assert!(
        words.contains("eth1: fairq, paused: packets pass untouched; heartbeat ")
            && words.contains(
                " s is stale; do: systemctl start penstockd, then penstockd resume eth1\n"
            ),
        "{words}"
    );
    let words = lab.ok(&["resume", PORT]);
    assert!(
        words.contains(
            "eth1: no longer paused, but its heartbeat is stale: packets pass untouched; do: "
        ),
        "{words}"
    );
    assert_eq!(lab.status()["acting"], false);
    lab.ok(&["detach", PORT]);
}
