// SPDX-License-Identifier: Apache-2.0
//! What `status` and `metrics` report of a port.

use std::ffi::OsStr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use penstock_linux::testkit::until;
use penstockd::port::PinsArg;

use super::FAIRQ;
use super::lab::stream::Stream;
use super::lab::{PORT, PortLab};

/// While the kernel counts it, a program's status has what it costs a packet.
#[test]
fn the_cost_of_a_program_is_what_the_kernel_counted() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let stream = Stream::start(&lab);
    stream.goes_on();
    // SAFETY: a number of the kernel's; what it returns is a descriptor of ours, or an error below 0.
    let counts = unsafe {
        let counts =
            libbpf_rs::libbpf_sys::bpf_enable_stats(libbpf_rs::libbpf_sys::BPF_STATS_RUN_TIME);
        assert!(counts >= 0);
        OwnedFd::from_raw_fd(counts)
    };
    stream.goes_on();
    drop(counts);
    for side in ["egress", "ingress"] {
        let cost = &lab.status()["hooks"][side]["programs"][0]["cost"];
        let [runs, ns] = ["runs", "nanoseconds"].map(|name| cost[name].as_u64().unwrap());
        assert!(ns / runs > 1, "{ns} ns of {runs} runs");
    }
    let lines = lab.ok(&["status", PORT]);
    assert!(lines.contains(" ns a packet)"), "{lines}");
    stream.stop();
}

/// The first packet initialises the scheme: until then it grants no window.
#[test]
fn a_port_without_packets_has_no_window_yet() {
    let lab = PortLab::quiet();
    lab.ok(&FAIRQ);
    let (status, line) = (lab.status(), lab.ok(&["status", PORT, "--for", "1 ms"]));
    assert_eq!(status["window_bytes"], serde_json::Value::Null, "{status}");
    assert!(
        line.contains("acting; 0 ACKs/s rewritten, no packet yet"),
        "{line}"
    );
    let stream = Stream::start(&lab);
    let (status, line) = (lab.status(), lab.ok(&["status", PORT, "--for", "1 ms"]));
    assert!(status["window_bytes"].as_u64() > Some(0), "{status}");
    assert!(line.contains(", window "), "{line}");
    stream.stop();
    lab.ok(&["detach", PORT]);
}

#[test]
fn a_queue_that_cannot_be_read_is_reported() {
    let lab = PortLab::new();
    for (qdisc, reason) in [
        ("", Some("(noqueue); do: tc qdisc replace dev eth1 root")),
        (
            "pfifo_fast",
            Some("pfifo_fast counts it separately for each CPU"),
        ),
        ("bfifo limit 128k", None),
    ] {
        if !qdisc.is_empty() {
            lab.run(&format!("tc qdisc replace dev {PORT} root {qdisc}"));
        }
        let words = lab.ok(&FAIRQ);
        let status = lab.status();
        let lines = lab.ok(&["status", PORT, "--for", "1 ms"]);
        for text in [words, status["queue_unseen"].to_string(), lines] {
            match reason {
                Some(reason) => assert!(text.contains(reason), "{text}"),
                None => assert!(!text.contains("cannot read its queue"), "{text}"),
            }
        }
    }
    lab.ok(&["detach", PORT]);
    let pins = lab.pins();
    let arguments = ["check", "--pins", pins.to_str().unwrap()];
    assert!(lab.ok(&arguments).contains("yes queues "));
}

#[test]
fn queues_beyond_those_that_are_read_are_reported() {
    let lab = PortLab::with_queues(1026);
    lab.run(&format!("tc qdisc add dev {PORT} root handle 1: mq"));
    let words = lab.ok(&FAIRQ);
    let status = lab.status();
    for text in [words, status["queue_unseen"].to_string()] {
        assert!(text.contains("read 1024 of its 1026 queues"), "{text}");
    }
    let stream = Stream::start(&lab);
    let unread = format!("penstock_queues_unread{{interface=\"{PORT}\",scheme=\"fairq\"}} 2");
    until("the metric has the number", || {
        stream.goes_on();
        lab.ok(&["metrics"]).contains(&unread)
    });
    stream.stop();
    lab.ok(&["detach", PORT]);
}

#[test]
fn status_waits_for_a_port_that_is_being_attached() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let lock = PinsArg::at(lab.pins()).lock().unwrap();
    let is_mark = |name: &OsStr| name.to_string_lossy().starts_with("slot_");
    let pins = std::fs::read_dir(lab.port_folder()).unwrap();
    let mut paths = pins.map(|entry| entry.unwrap().path());
    let mark = paths
        .find(|path| path.file_name().is_some_and(is_mark))
        .unwrap();
    let away = lab.port_folder().join("away");
    std::fs::rename(&mark, &away).unwrap();
    let (succeeded, printed) = std::thread::scope(|scope| {
        let status = scope.spawn(|| lab.agent().attempt(&["status", PORT]));
        std::thread::sleep(Duration::from_millis(500));
        std::fs::rename(&away, &mark).unwrap();
        drop(lock);
        status.join().unwrap()
    });
    assert!(succeeded, "{printed}");
}
