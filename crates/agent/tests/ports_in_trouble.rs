// SPDX-License-Identifier: Apache-2.0
//! Commands that read ports which are renamed, created again, detached or unreadable.

#![allow(clippy::unwrap_used)]

mod lab;

use std::io::Read;
use std::process::{Command, Stdio};

use lab::{LIMIT, PENSTOCKD, PORT, PortLab, outcome};
use penstock_linux::link::{self, Change};
use penstock_linux::testkit::{self, Signal, cable, until};
use penstockd::port::PinsArg;
use penstockd::port::config::FLOW_EVENTS;
use serde_json::Value;

const FAIRQ: [&str; 8] = [
    "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "1 min",
];

fn attach(lab: &PortLab, interface: &str) {
    let mut arguments = FAIRQ;
    arguments[1] = interface;
    lab.ok(&arguments);
}

/// Observes a port for a moment.
fn look(lab: &PortLab, interface: &str, more: &[&str]) -> Value {
    let mut command = Command::new(PENSTOCKD);
    command.args(["observe", interface, "--for", "1 ms", "--json", "--pins"]);
    command.arg(lab.pins()).args(more);
    let output = lab.near().run(|| testkit::output(&mut command, LIMIT));
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

#[test]
fn a_look_at_a_renamed_port_leaves_its_scheme() {
    let lab = PortLab::new();
    attach(&lab, PORT);
    let rename = [Change::Down, Change::Name("eth9"), Change::Up];
    let renamed = lab.near().run(|| link::change(PORT, &rename));
    renamed.unwrap().unwrap();
    let report = look(&lab, "eth9", &[]);
    assert_eq!(report["scheme"], "fairq", "{report}");
    assert_eq!(lab.status_of("eth9")["scheme"], "fairq");
    lab.ok(&["detach", "eth9"]);
}

#[test]
fn an_interface_that_was_created_again_is_not_called_idle_or_gone() {
    let lab = PortLab::new();
    let create = || cable((lab.near(), "lxc1"), (lab.near(), "peer1"), 1);
    create();
    attach(&lab, "lxc1");
    lab.run("ip link del lxc1");
    let words = lab.ok(&["status", "lxc1", "--for", "1 ms"]);
    assert!(words.contains("the interface is gone"), "{words}");
    create();
    let words = lab.ok(&["status", "lxc1", "--for", "1 ms"]);
    assert!(words.contains("created again"), "{words}");
    let (is_success, words) = lab.agent().attempt(&["observe", "lxc1", "--for", "1 ms"]);
    assert!(!is_success && words.contains("created again"), "{words}");
    lab.ok(&["detach", "lxc1"]);
}

#[test]
fn the_buffer_of_a_look_is_the_one_it_was_given() {
    let lab = PortLab::new();
    attach(&lab, PORT);
    let buffer = |more| look(&lab, PORT, more)["buffer_bytes"].as_u64();
    assert_eq!(buffer(&[]), Some(128_000));
    assert_eq!(buffer(&["--buffer", "1 MB"]), Some(1_000_000));
    assert_eq!(lab.status()["buffer_bytes"], 128_000);
    lab.ok(&["detach", PORT]);
}

#[test]
fn a_look_whose_port_is_detached_ends_with_the_reason() {
    let lab = PortLab::new();
    attach(&lab, PORT);
    let mut command = Command::new(PENSTOCKD);
    command.args(["observe", PORT, "--for", "1 min", "--pins"]);
    command.arg(lab.pins()).stderr(Stdio::piped());
    let mut observing = lab.agent().spawn(&mut command, LIMIT);
    until("the recording begins", || {
        let config = lab.agent().port(PORT).config();
        config.is_ok_and(|config| config.flags & FLOW_EVENTS != 0)
    });
    lab.ok(&["detach", PORT]);
    assert!(!observing.wait().success());
    let mut errors = String::new();
    let mut printed = observing.child.stderr.take().unwrap();
    printed.read_to_string(&mut errors).unwrap();
    assert!(errors.contains("another process detached it"), "{errors}");
}

#[test]
fn a_port_that_cannot_be_read_does_not_hide_the_others() {
    let lab = PortLab::new();
    attach(&lab, PORT);
    std::fs::create_dir(PinsArg::at(lab.pins()).of("eth7")).unwrap();
    let (is_success, words) = lab.agent().attempt(&["status", "--for", "1 ms"]);
    assert!(!is_success);
    for part in [
        &format!("{PORT}: fairq, acting"),
        "eth7: cannot be read: ",
        "1 port cannot be read",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let pins = lab.pins();
    let pins = ["--pins", pins.to_str().unwrap()];
    let json = lab.output(&[&["status", "--for", "1 ms", "--json"], &pins[..]].concat());
    assert!(!json.status.success());
    let ports: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(ports[0]["interface"], PORT, "{ports}");
    assert_eq!(ports[1]["interface"], "eth7", "{ports}");
    assert!(ports[1]["error"].is_string(), "{ports}");
    let frame = lab.ok(&["watch", "--once"]);
    assert!(
        frame.contains("acting") && frame.contains("eth7: cannot be read: "),
        "{frame}"
    );
    lab.ok(&["detach", "--all"]);
    let none = lab.ok(&["pause", "--all"]);
    assert!(none.starts_with("no port is attached in "), "{none}");
}

/// The disk on which the output is written may be full.
#[test]
fn output_that_cannot_be_written_is_one_line_and_stops_no_work() {
    let lab = PortLab::new();
    let full = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" > /dev/full", "sh", PENSTOCKD]);
        command.args(arguments).arg("--pins").arg(lab.pins());
        let netns = lab.near();
        let output = netns.run(|| testkit::output(&mut command, LIMIT)).unwrap();
        let (_, errors) = outcome(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        // Before it there are notes of the audit, and on the queue.
        let last = errors.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("penstockd: cannot write to standard output: "),
            "{arguments:?}: {errors}"
        );
    };
    full(&["observe", PORT, "--for", "1 ms", "--buffer", "1 MB"]);
    assert!(!lab.pins().exists());
    cable((lab.near(), "lxc1"), (lab.near(), "peer1"), 1);
    let ports = [PORT, "lxc1"];
    for port in ports {
        attach(&lab, port);
    }
    full(&["status", "--for", "1 ms"]);
    full(&["metrics"]);
    full(&["check"]);
    full(&["watch", "--once"]);
    full(&["pause", "--all"]);
    for port in ports {
        assert_eq!(lab.status_of(port)["paused"], true, "{port}");
    }
    full(&["detach", "--all"]);
    assert!(!lab.pins().exists());
}

/// As a disk that is full for a while.
#[test]
fn metrics_that_cannot_be_written_for_a_while_are_written_again() {
    let lab = PortLab::new();
    let file = lab.folder.path().join("penstock.prom");
    let path = file.to_str().unwrap();
    let mut writing = lab.start(&["metrics", "--textfile", path, "--every", "100 ms"]);
    let is_written = || file.is_file();
    until("it is written", is_written);
    std::fs::remove_file(&file).unwrap();
    // A folder in its place; a write between the two would be one of the folder's owner.
    while std::fs::create_dir(&file).is_err() {
        std::fs::remove_file(&file).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!writing.has_ended());
    std::fs::remove_dir(&file).unwrap();
    until("it is written again", is_written);
    writing.signal(Signal::TERM);
    assert!(writing.wait().success());
}
