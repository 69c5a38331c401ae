// SPDX-License-Identifier: Apache-2.0
//! What observe, watch and metrics report of a real transfer over TCP.

#![allow(clippy::unwrap_used)]

mod lab;

use std::io::Read;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use lab::stream::Stream;
use lab::{LIMIT, PENSTOCKD, PORT, PortLab};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_linux::testkit::{Process, Signal, cable, until};
use penstock_linux::{link, qdisc};
use penstock_scenario::{Scenario, Traffic};
use penstock_sim::run::Inputs;
use penstockd::port::PinsArg;
use penstockd::port::config::FLOW_EVENTS;
use penstockd::port::rings::{Rings, set_flow_events};
use penstockd::watch::ports::Ports;
use serde_json::Value;

const LOOK: [&str; 8] = [
    "observe", PORT, "--for", "1 min", "--buffer", "128 kB", "--json", "--rate",
];

/// Whether `penstockd observe` records the port now.
fn is_recording(lab: &PortLab) -> bool {
    let pins = penstockd::port::PinsArg::at(lab.pins());
    let config = pins.open(PORT).and_then(|port| port.config());
    config.is_ok_and(|config| config.flags & FLOW_EVENTS != 0)
}

/// Observes the port until `work` is done, however long that takes.
fn look(lab: &PortLab, more: &[&str], work: impl FnOnce()) -> Value {
    let mut command = Command::new(PENSTOCKD);
    command.args(LOOK).arg("1 Gb/s").args(more);
    command.arg("--pins").arg(lab.pins()).stdout(Stdio::piped());
    let mut observing = lab.agent().spawn(&mut command, LIMIT);
    until("the recording begins", || is_recording(lab));
    work();
    observing.signal(Signal::INT);
    let mut json = String::new();
    let mut printed = observing.child.stdout.take().unwrap();
    printed.read_to_string(&mut json).unwrap();
    assert!(observing.wait().success());
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_look_in_mid_life_reports_the_flow_and_leaves_nothing_behind() {
    let lab = PortLab::new();
    let stream = Stream::start(&lab);
    let stem = lab.folder.path().join("look");
    let report = look(&lab, &["--out", stem.to_str().unwrap()], || {
        stream.goes_on();
    });
    stream.stop();
    assert!(report["packets"].as_u64() > Some(0), "{report}");
    assert!(report["active_milliseconds"].as_u64() > Some(0), "{report}");
    assert_eq!(report["transfers"]["count"], 1, "{report}");
    assert_eq!(report["transfers"]["unfinished"], 1, "{report}");
    assert_eq!(report["unreadable_records"], 0, "{report}");
    let sent = report["transfers"]["bytes"].as_u64().unwrap();

    let toml = stem.with_added_extension("toml");
    let text = std::fs::read_to_string(&toml).unwrap();
    let scenario = Scenario::parse(&text, &toml, &[]).unwrap();
    let inputs = Inputs::read(&scenario, toml.parent().unwrap(), &|_| Err(String::new())).unwrap();
    std::fs::remove_file(&toml).unwrap();
    std::fs::remove_file(stem.with_added_extension("csv")).unwrap();
    let Traffic::Trace(trace) = &scenario.traffic["seen"] else {
        panic!("traffic.seen is a trace");
    };
    let replayed: Vec<u64> = inputs
        .trace(&trace.file)
        .iter()
        .map(|(_, t)| t.bytes)
        .collect();
    assert_eq!(replayed, [sent]);
    assert!(text.contains("#   sender1 = 10.0.0.1\n"), "{text}");
    assert!(lab.refused(&["status", PORT]).contains("not attached"));
}

/// Whether the programs have ring buffers to write to.
fn has_rings(lab: &PortLab) -> bool {
    let port = lab.agent().port(PORT);
    ["samples", "events"].iter().any(|name| {
        let ring = port.map(name).unwrap();
        let slot = port.slot().to_ne_bytes();
        ring.lookup(&slot, MapFlags::ANY).unwrap().is_some()
    })
}

/// Watching takes no more memory than the samples of a moment need.
#[test]
fn watching_takes_no_events() {
    let lab = PortLab::new();
    lab.ok(&["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"]);
    let port = lab.agent().port(PORT);
    let ring = |name: &str| {
        let all = port.map(name).unwrap();
        let id = all.lookup(&port.slot().to_ne_bytes(), MapFlags::ANY);
        let id = u32::from_ne_bytes(id.unwrap()?.try_into().unwrap());
        Some(MapHandle::from_map_id(id).unwrap().max_entries())
    };
    let watch = || {
        let watching = Ports::new(PinsArg::at(lab.pins()), vec![PORT.to_owned()]);
        let rings = (ring("samples"), ring("events"));
        drop(watching.unwrap());
        rings
    };
    assert_eq!(lab.near().run(watch).unwrap(), (Some(256 << 10), None));
    assert!(!has_rings(&lab));
    lab.ok(&["detach", PORT]);
}

/// A port that was detached and attached again, or that another process observed, is another ring buffer.
#[test]
fn watching_reads_the_records_of_the_port_that_is_there_now() {
    let lab = PortLab::new();
    let attach = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];
    lab.ok(&attach);
    let watch = || {
        let pins = PinsArg::at(lab.pins());
        let is_reader = || Rings::open(&pins.open(PORT).unwrap()).is_err();
        let mut watching = Ports::new(pins.clone(), vec![PORT.to_owned()]).unwrap();
        assert!(is_reader());
        lab.ok(&["detach", PORT]);
        lab.ok(&attach);
        watching.read().unwrap();
        assert!(is_reader() && has_rings(&lab), "attached again");
        drop(watching);

        let observing = Rings::open(&pins.open(PORT).unwrap()).unwrap();
        let mut watching = Ports::new(pins.clone(), vec![PORT.to_owned()]).unwrap();
        drop(observing);
        assert!(!has_rings(&lab));
        watching.read().unwrap();
        assert!(is_reader() && has_rings(&lab), "observed before");
    };
    lab.near().run(watch).unwrap();
    lab.ok(&["detach", PORT]);
}

/// The slot of a port that was detached is the next one's.
#[test]
fn what_a_reader_leaves_of_a_port_that_is_gone_harms_no_other() {
    let lab = PortLab::new();
    let attach = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];
    // Another port keeps what all ports share.
    cable((lab.near(), "lxc1"), (lab.near(), "peer1"), 1);
    lab.ok(&["attach", "lxc1", "--scheme", "fairq", "--buffer", "1 MB"]);
    lab.ok(&attach);
    let pins = PinsArg::at(lab.pins());
    let gone = pins.open(PORT).unwrap();
    let old = Rings::open(&gone).unwrap();
    lab.ok(&["detach", PORT]);
    lab.ok(&attach);
    let port = pins.open(PORT).unwrap();
    assert_eq!(port.slot(), gone.slot());
    let new = Rings::open(&port).unwrap();
    set_flow_events(&pins.lock().unwrap(), &port, true).unwrap();
    drop(old);
    assert!(set_flow_events(&pins.lock().unwrap(), &gone, false).is_err());
    assert!(has_rings(&lab) && is_recording(&lab));
    assert!(lab.port_folder().join("has_reader").exists());
    drop(new);
    lab.ok(&["detach", "--all"]);
}

/// The daemon removes what it left.
#[test]
fn an_observer_that_is_killed_leaves_nothing_behind() {
    let lab = PortLab::new();
    let observe = || {
        let observing = lab.start(&["observe", PORT, "--for", "1 min", "--buffer", "128 kB"]);
        until("the recording begins", || is_recording(&lab));
        assert!(has_rings(&lab));
        observing
    };
    let kill = |mut observing: Process| {
        observing.signal(Signal::KILL);
        observing.wait();
    };
    kill(observe());
    assert!(is_recording(&lab) && has_rings(&lab), "no one removes it");
    let pattern = "[port.\"lxc*\"]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n";
    let daemon = lab.daemon(pattern);
    until("its port is detached", || !lab.port_folder().exists());

    lab.ok(&[
        "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "1 min",
    ]);
    let observing = observe();
    cable((lab.near(), "lxc1"), (lab.near(), "peer1"), 1);
    until("the daemon has looked after its ports", || {
        lab.status_of("lxc1")["acting"] == true
    });
    lab.run("ip link del lxc1");
    until("and again", || lab.status_of("lxc1").is_null());
    assert!(is_recording(&lab) && has_rings(&lab), "one that is alive");
    kill(observing);
    until("its rings are removed", || {
        !is_recording(&lab) && !has_rings(&lab)
    });
    assert_eq!(lab.status()["scheme"], "fairq");

    // A scheme that is attached where an observer was the first stays.
    lab.ok(&["detach", PORT]);
    let observing = observe();
    lab.ok(&[
        "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "1 min",
    ]);
    kill(observing);
    until("its rings are removed", || {
        !is_recording(&lab) && !has_rings(&lab)
    });
    assert_eq!(lab.status()["scheme"], "fairq");
    drop(daemon);
    lab.ok(&["detach", PORT]);
    assert!(!lab.pins().exists());
}

#[test]
fn the_queues_of_a_card_with_many_add_up() {
    queues_add_up(&PortLab::with_queues(4));
}

/// Grant's credit counts what is queued, so it must not read as nothing.
#[test]
fn grant_sees_the_queues_of_a_card_with_many() {
    let lab = PortLab::with_queues(4);
    lab.ok(&[
        "attach", PORT, "--scheme", "grant", "--rate", "1 Gb/s", "--buffer", "128 kB", "--stale",
        "1 min",
    ]);
    queues_add_up(&lab);
    lab.ok(&["detach", PORT]);
}

/// As on most network cards: the root (mq) holds nothing and drops nothing itself. Nor does the
/// first queue here, so what is seen is in the others.
fn queues_add_up(lab: &PortLab) {
    lab.run(&format!("tc qdisc add dev {PORT} root handle 1: mq"));
    let classes = lab.run(&format!("tc class show dev {PORT}"));
    lab.run(&format!(
        "tc qdisc add dev {PORT} parent 1:1 bfifo limit 10mb"
    ));
    for queue in 2..=classes.lines().count() {
        lab.run(&format!(
            "tc qdisc add dev {PORT} parent 1:{queue:x} tbf rate 20mbit burst 5k limit 12k"
        ));
    }
    let stream = Stream::start(lab);
    // Which queue a flow takes is up to a hash.
    let sockets: Vec<UdpSocket> = std::iter::repeat_with(|| {
        let socket = lab.near().run(|| UdpSocket::bind("10.0.0.1:0"));
        socket.unwrap().unwrap()
    })
    .take(12)
    .collect();
    // More at once than a queue holds, however busy the machine is.
    let burst = || {
        for socket in &sockets {
            for _ in 0..20 {
                socket.send_to(&[7; 1400], "10.0.0.2:9").unwrap();
            }
        }
    };
    let dropped = || {
        let all = lab.near().run(|| qdisc::all(link::get(PORT)?.index));
        let drops = |qdisc: &qdisc::Qdisc| qdisc.counters.drops;
        all.unwrap().unwrap().iter().map(drops).sum::<u32>()
    };
    let report = look(lab, &[], || {
        // From the first recorded packet on.
        stream.goes_on();
        let before = dropped();
        until("packets are dropped", || {
            burst();
            dropped() > before
        });
        let port = lab.agent().port(PORT);
        let milliseconds = || port.stats().unwrap().depth.iter().skip(1).sum::<u64>();
        until("packets found a queue", || {
            burst();
            milliseconds() > 0
        });
        stream.goes_on();
    });
    stream.stop();
    assert!(report["drops"].as_u64() > Some(0), "{report}");
    let longest = report["queue_bytes"]["max"].as_u64().unwrap();
    assert!((1..2 * 10_000_000).contains(&longest), "{report}");
}

#[test]
fn where_a_scheme_runs_a_look_reads_along_and_is_the_only_one() {
    let lab = PortLab::new();
    lab.ok(&[
        "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "1 min",
    ]);
    let stream = Stream::start(&lab);
    let report = look(&lab, &[], || stream.goes_on());
    assert_eq!(report["scheme"], "fairq");
    assert!(!has_rings(&lab));
    assert_eq!(report["flows"]["counted"], 1, "{report}");
    assert!(report["acks"].as_u64() > Some(0), "{report}");

    let pins = lab.pins();
    let begin = || lab.start(&["observe", PORT, "--for", "1 min"]);
    let mut long = begin();
    let mut errors = String::new();
    until("the second look is refused", || {
        // Before the first has begun it is the first itself, and may be what the other meets.
        if long.has_ended() {
            long = begin();
        }
        let second = lab.output(&[
            "observe",
            PORT,
            "--for",
            "1 ms",
            "--rate",
            "1 Gb/s",
            "--pins",
            pins.to_str().unwrap(),
        ]);
        errors = String::from_utf8_lossy(&second.stderr).into_owned();
        !second.status.success()
    });
    assert!(errors.contains("end it first"), "{errors}");

    let frame = lab.ok(&["watch", PORT, "--once"]);
    assert!(frame.contains("acting"), "{frame}");
    assert!(frame.contains("of 128 kB"), "{frame}");
    let metrics = lab.ok(&["metrics"]);
    let acting = format!("penstock_acting{{interface=\"{PORT}\",scheme=\"fairq\"}} 1");
    assert!(metrics.contains(&acting), "{metrics}");
    drop(long);
    stream.stop();
    lab.ok(&["detach", PORT]);
}
