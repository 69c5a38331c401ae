// SPDX-License-Identifier: Apache-2.0
//! Ports that get schemes, other schemes, and lose them, in namespaces of their own.

#![allow(clippy::unwrap_used)]

mod lab;

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::stream::Stream;
use lab::{LIMIT, PENSTOCKD, PORT, PortLab, outcome};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_linux::link;
use penstock_linux::testkit::{self, Process, Signal, cable, until};
use penstockd::attach::grant;
use penstockd::attach::tcx::{self, Place};
use penstockd::port::Side;
use penstockd::port::pins::{ABI, PinsArg, SHARED, link_pin};
use penstockd::skel::port::PortSkelBuilder;
use penstockd::skel::port::types::port_config;
use serde_json::json;

const FAIRQ: [&str; 6] = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];
const HSCC: [&str; 6] = ["attach", PORT, "--scheme", "hscc", "--buffer", "128 kB"];

fn is_gone(map: u32) -> bool {
    MapHandle::from_map_id(map).is_err()
}

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

#[test]
fn detaching_leaves_nothing_behind() {
    let lab = PortLab::new();
    for hook in ["tcx", "clsact"] {
        lab.ok(&[&FAIRQ[..], &["--hook", hook]].concat());
        let status = lab.status();
        assert_eq!(status["hooks"]["hook"], hook);
        assert_eq!(status["acting"], true, "{status}");
        let maps = lab.maps();
        let programs = ["egress", "ingress"]
            .map(|side| status["hooks"][side]["ours"].as_u64().unwrap() as u32);
        lab.ok(&["detach", PORT]);
        let left = std::fs::read_dir(lab.bpffs()).unwrap();
        let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        // The kernel's own iterators are in every bpffs.
        assert!(
            names
                .iter()
                .all(|name| name.to_string_lossy().ends_with(".debug")),
            "{names:?}"
        );
        until("maps are gone", || maps.iter().all(|map| is_gone(*map)));
        until("programs are gone", || {
            programs
                .iter()
                .all(|id| penstockd::host::bpf::program_by_id(*id).is_none())
        });
        let qdiscs = lab.run(&format!("tc qdisc show dev {PORT}"));
        assert!(!qdiscs.contains("clsact"), "{qdiscs}");
    }
    lab.ok(&[
        "attach",
        PORT,
        "--scheme",
        "shim",
        "--set",
        "window.wscale_source=unified",
    ]);
    assert_eq!(lab.status()["scheme"], "shim");
    lab.ok(&["detach", PORT]);
    let refusal = lab.refused(&["detach", PORT]);
    assert!(refusal.contains("eth1 is not attached"), "{refusal}");
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
fn a_scheme_changes_under_load_without_a_reset() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let stream = Stream::start(&lab);
    let (maps, mut before) = (lab.identity(), lab.status());
    let port = penstockd::port::PinsArg::at(lab.pins()).open(PORT).unwrap();
    let generation = port.config().unwrap().generation;
    // Nothing of the scheme changes: its state goes on, under newly loaded programs.
    lab.ok(&FAIRQ);
    assert_eq!(port.config().unwrap().generation, generation);
    for (step, scheme) in ["hscc", "fairq-paper", "observe", "hscc-paper"]
        .iter()
        .enumerate()
    {
        lab.ok(&["attach", PORT, "--scheme", scheme, "--buffer", "64 kB"]);
        stream.goes_on();
        let now = lab.status();
        assert_eq!(now["scheme"], scheme.trim_end_matches("-paper"));
        assert_ne!(
            now["hooks"]["egress"]["ours"],
            before["hooks"]["egress"]["ours"]
        );
        let packets = |status: &serde_json::Value| status["counters"]["egress_packets"].as_u64();
        assert!(packets(&now) > packets(&before), "{before} {now}");
        assert_eq!(
            port.config().unwrap().generation,
            generation + 1 + step as u32
        );
        before = now;
    }
    assert_eq!(lab.identity(), maps, "the flows stay counted");
    lab.ok(&["detach", PORT]);
    stream.goes_on();
    stream.stop();
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

/// `attach --stay` detaches what it attached, and nothing else.
#[test]
fn staying_detaches_only_what_it_attached() {
    let lab = PortLab::new();
    let pins = lab.pins();
    let stay = |scheme: &str| {
        let arguments = [
            "attach", PORT, "--buffer", "1 MB", "--stay", "--scheme", scheme,
        ];
        let staying = lab.start(&arguments);
        until("it attaches", || {
            lab.port_folder().join("program_ingress").exists()
        });
        staying
    };
    let mut observing = stay("observe");
    lab.ok(&FAIRQ);
    observing.signal(Signal::TERM);
    assert!(observing.wait().success());
    assert_eq!(lab.status()["scheme"], "fairq");
    lab.ok(&["detach", PORT]);

    let mut staying = stay("hscc");
    lab.ok(&["detach", PORT]);
    until("it ends with its port", || staying.has_ended());
    assert!(!staying.wait().success());

    // A terminal that is closed sends SIGHUP.
    for end in [Signal::INT, Signal::HUP] {
        let mut staying = stay_with("--default-signal=HUP", &lab);
        staying.signal(end);
        assert!(staying.wait().success());
        assert!(!pins.exists());
    }
}

/// Starts `attach --stay` by `env` with an option of that.
fn stay_with(option: &str, lab: &PortLab) -> Process {
    let mut command = Command::new("env");
    command.args([option, PENSTOCKD]).args(FAIRQ).arg("--stay");
    command.arg("--pins").arg(lab.pins()).stdout(Stdio::null());
    let staying = lab.agent().spawn(&mut command, LIMIT);
    until("it attaches", || {
        lab.port_folder().join("program_ingress").exists()
    });
    staying
}

/// As nohup starts it, which is to outlive its terminal.
#[test]
fn staying_ignores_a_hangup_that_it_was_started_to_ignore() {
    let lab = PortLab::new();
    let mut staying = stay_with("--ignore-signal=HUP", &lab);
    staying.signal(Signal::HUP);
    // It looks for signals every tenth of a second.
    std::thread::sleep(Duration::from_millis(500));
    assert!(!staying.has_ended());
    assert_eq!(lab.status()["acting"], true);
    staying.signal(Signal::TERM);
    assert!(staying.wait().success());
    assert!(!lab.pins().exists());
}

#[test]
fn staying_follows_an_interface_that_is_renamed() {
    let lab = PortLab::new();
    cable((lab.near(), "lxc1"), (lab.near(), "peer1"), 1);
    for is_followed in [false, true] {
        let mut staying = stay_with("--default-signal=HUP", &lab);
        lab.run(&format!("ip link set {PORT} name old1"));
        if is_followed {
            // Another command moves the pins.
            lab.ok(&["attach", "lxc1", "--scheme", "hscc", "--buffer", "1 MB"]);
            std::thread::sleep(Duration::from_millis(500));
            assert!(!staying.has_ended());
            let beat = || lab.status_of("old1")["heartbeat_age_s"].as_f64();
            until("its heart beats", || beat() < Some(0.2));
            lab.ok(&["detach", "lxc1"]);
        }
        staying.signal(Signal::TERM);
        assert!(staying.wait().success());
        assert!(!lab.pins().exists(), "it is detached by its new name");
        lab.run(&format!("ip link set old1 name {PORT}"));
    }
}

/// Another tool's program with maps of its own, held by its process.
#[test]
fn programs_of_other_tools_keep_their_place_and_run() {
    let lab = PortLab::new();
    let (mut first, mut last) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let [first, last] = [&mut first, &mut last].map(|object| {
        PortSkelBuilder::default()
            .open(object)
            .unwrap()
            .load()
            .unwrap()
    });
    let index = lab.near().run(|| link::get(PORT)).unwrap().unwrap().index;
    let foreign = |skel: &penstockd::skel::port::PortSkel, name: &str| {
        let program = skel
            .progs
            .observe_egress
            .as_fd()
            .try_clone_to_owned()
            .unwrap();
        // Programs without a configuration count nothing.
        let config = &skel.maps.config;
        let mut words = vec![0; config.value_size() as usize];
        let at = std::mem::offset_of!(port_config, ifindex);
        words[..8].copy_from_slice(&[ABI.to_ne_bytes(), 1u32.to_ne_bytes()].concat());
        words[at..at + 4].copy_from_slice(&index.to_ne_bytes());
        config
            .update(&0u32.to_ne_bytes(), &words, MapFlags::ANY)
            .unwrap();
        let pin = lab.bpffs().join(name);
        let attach = || tcx::create_link(&program, index, Side::Egress, Place::Last, &pin);
        lab.near().run(attach).unwrap().unwrap();
    };
    foreign(&first, "first");
    lab.ok(&FAIRQ);
    foreign(&last, "last");
    let names = |lab: &PortLab| {
        let status = lab.status();
        let programs = status["hooks"]["egress"]["programs"]
            .as_array()
            .unwrap()
            .clone();
        programs
            .iter()
            .map(|program| program["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&lab),
        ["fairq_egress", "observe_egress", "observe_egress"]
    );
    lab.ok(&HSCC);
    assert_eq!(
        names(&lab),
        ["hscc_egress", "observe_egress", "observe_egress"]
    );

    let packets = |map: &libbpf_rs::MapMut| {
        let value = map
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .unwrap()
            .unwrap();
        value
            .iter()
            .map(|cpu| u64::from_ne_bytes(cpu[..8].try_into().unwrap()))
            .sum::<u64>()
    };
    let before = [&first, &last].map(|skel| packets(&skel.maps.stats_first));
    let stream = Stream::start(&lab);
    stream.stop();
    let after = [&first, &last].map(|skel| packets(&skel.maps.stats_first));
    assert!(
        before[0] < after[0] && before[1] < after[1],
        "{before:?} {after:?}"
    );

    lab.ok(&["detach", PORT]);
    let left = lab.near().run(|| tcx::query(index, Side::Egress)).unwrap();
    assert_eq!(left.unwrap().len(), 2);
}

/// A program that ends the chain of its hook, as Cilium's do.
fn ending() -> OwnedFd {
    let code = [(0xb7_u8, 0), (0x95, 0)]; // r0 = TC_ACT_OK; exit
    let instructions = code.map(|(code, imm)| libbpf_sys::bpf_insn {
        code,
        imm,
        ..Default::default()
    });
    // SAFETY: a valid program, a valid licence; the descriptor is ours.
    unsafe {
        let fd = libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            c"ending".as_ptr(),
            c"GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as u64,
            std::ptr::null_mut(),
        );
        assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
        OwnedFd::from_raw_fd(fd)
    }
}

#[test]
fn programs_that_end_the_chain_do_not_blind_ours() {
    let lab = PortLab::new();
    let index = lab.near().run(|| link::get(PORT)).unwrap().unwrap().index;
    let attach = |name: &str, side, place| {
        let (program, pin) = (ending(), lab.bpffs().join(name));
        let attach = || tcx::create_link(&program, index, side, place, &pin);
        lab.near().run(attach).unwrap().unwrap();
    };
    for side in Side::BOTH {
        attach(side.name(), side, Place::Last);
    }
    lab.ok(&FAIRQ);
    let stream = Stream::start(&lab);
    let status = lab.status();
    assert_eq!(status["blind"], json!([]), "{status}");
    assert!(
        status["rates"]["ingress_packets"].as_f64() > Some(0.0),
        "{status}"
    );

    // Another comes, first on the hook, where no daemon runs.
    attach("late", Side::Ingress, Place::First);
    let mut status = lab.status();
    until("enough has passed unseen", || {
        status = lab.status();
        status["blind"] == json!(["ingress"])
    });
    assert_eq!(status["acting"], false, "{status}");
    until("status reports it", || {
        let words = lab.ok(&["status", PORT, "--for", "100 ms"]);
        words.contains("blind at ingress")
    });
    until("watch shows it", || {
        let frame = lab.ok(&["watch", PORT, "--once"]);
        frame.contains("BLIND at ingress")
    });
    until("metrics that are read once report it", || {
        let blind = format!("penstock_blind{{interface=\"{PORT}\",scheme=\"fairq\"}} 1");
        lab.ok(&["metrics"]).contains(&blind)
    });
    until("observe reports it", || {
        let look = lab.ok(&["observe", PORT, "--for", "300 ms"]);
        look.starts_with("blind at ingress: ")
    });
    assert_eq!(status["hooks"]["ingress"]["programs"][0]["name"], "ending");

    let mut daemon = lab.daemon("");
    until("ours are first again", || {
        let status = lab.status();
        status["hooks"]["ingress"]["programs"][0]["name"] == "fairq_ingress"
    });
    let status = lab.status();
    assert_eq!(status["blind"], json!([]), "{status}");
    assert_eq!(status["acting"], true, "{status}");
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());
    stream.goes_on();
    stream.stop();
    lab.ok(&["detach", PORT]);
}

/// Without a daemon, the next command that changes ports follows.
#[test]
fn a_port_whose_interface_was_renamed_goes_by_the_new_name() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let maps = lab.identity();
    lab.run(&format!("ip link set {PORT} name old1"));
    cable((lab.near(), PORT), (lab.near(), "peer"), 1);
    assert_eq!(lab.status()["renamed_to"], "old1");
    lab.ok(&FAIRQ);
    assert_eq!(lab.status_of("old1")["scheme"], "fairq");
    assert_ne!(lab.identity(), maps, "a port of its own");
    // Both exchange their names.
    for (old, new) in [(PORT, "passing"), ("old1", PORT), ("passing", "old1")] {
        lab.run(&format!("ip link set {old} name {new}"));
    }
    lab.ok(&["attach", PORT, "--scheme", "hscc", "--buffer", "128 kB"]);
    assert_eq!(lab.identity(), maps, "the flows stay counted");
    assert_eq!(lab.status_of("old1")["scheme"], "fairq");
    lab.ok(&["detach", "--all"]);
    assert!(!lab.pins().exists());
}

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
    lab.ok(&["resume", "--all"]);
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

/// A step after the programs' fails: Grant's go on.
#[test]
fn a_replacement_that_fails_late_silences_no_grant() {
    let lab = PortLab::new();
    let grant = ["attach", PORT, "--scheme", "grant", "--rate", "1 Gb/s"];
    lab.ok(&[&grant[..], &["--buffer", "128 kB"]].concat());
    let obstacle = lab.port_folder().join("hcf_link");
    std::fs::create_dir(&obstacle).unwrap();
    let line = lab.refused(&FAIRQ);
    assert!(line.contains("eth1 stays as it was"), "{line}");
    let credit = grant::status(&lab.port_folder()).unwrap();
    assert_eq!(credit.map(|credit| credit.rate_bps), Some(1_000_000_000));
    assert_eq!(lab.status()["scheme"], "grant");
    std::fs::remove_dir(&obstacle).unwrap();
    lab.ok(&FAIRQ);
    lab.ok(&["detach", PORT]);
}

#[test]
fn what_all_ports_share_cannot_be_detached() {
    let lab = PortLab::new();
    lab.ok(&[&FAIRQ[..], &["--stale", "60 s"]].concat());
    let line = lab.refused(&["detach", SHARED]);
    assert!(line.contains("is not attached"), "{line}");
    assert_eq!(lab.status()["acting"], true);
    lab.ok(&["detach", PORT]);
}

/// The process was killed before it pinned what it had attached.
#[test]
fn detaching_removes_what_a_killed_attach_left() {
    let lab = PortLab::new();
    lab.ok(&[&FAIRQ[..], &["--hook", "clsact"]].concat());
    for side in ["egress", "ingress"] {
        let pin = lab.port_folder().join(format!("program_{side}"));
        std::fs::rename(&pin, pin.with_file_name(format!("program_{side}_new"))).unwrap();
    }
    lab.ok(&["detach", PORT]);
    let qdiscs = lab.run("tc qdisc show dev eth1");
    assert!(!qdiscs.contains("clsact"), "{qdiscs}");
    assert!(!lab.pins().exists());
}

/// As a container may have: its clock is not that of the programs.
#[test]
fn a_port_acts_whatever_time_namespace_its_agent_is_in() {
    let lab = PortLab::new();
    for offset in ["100000", "-1"] {
        let mut command = Command::new("unshare");
        command.args(["--time", "--monotonic", offset, "--fork", PENSTOCKD]);
        command
            .args(FAIRQ)
            .args(["--stale", "60 s", "--pins"])
            .arg(lab.pins());
        let output = lab.near().run(|| testkit::output(&mut command, LIMIT));
        let (is_attached, words) = outcome(&output.unwrap());
        assert!(is_attached, "{words}");
        assert_eq!(lab.status()["acting"], true, "{offset}");
        lab.ok(&["detach", PORT]);
    }
}

/// As a detach that is killed between the two sides leaves it, or another tool.
#[test]
fn a_link_that_was_detached_is_replaced() {
    let lab = PortLab::new();
    let attach = [&FAIRQ[..], &["--stale", "60 s"]].concat();
    lab.ok(&attach);
    for sides in [&Side::BOTH[..1], &Side::BOTH[1..], &Side::BOTH] {
        for side in sides {
            let pin = link_pin(&lab.port_folder(), *side);
            libbpf_rs::Link::open(pin).unwrap().detach().unwrap();
        }
        if let [_] = sides {
            let words = lab.ok(&["status", PORT, "--for", "1 ms"]);
            assert!(words.contains("attached at one side only"), "{words}");
        }
        lab.ok(&attach);
        assert_eq!(lab.status()["acting"], true, "{sides:?}");
    }
    lab.ok(&["detach", PORT]);
    assert!(!lab.pins().exists());
}

/// The last step fails: what was there is attached again, by the same programs.
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

#[test]
fn a_replacement_that_fails_leaves_what_was_there() {
    let lab = PortLab::new();
    for hook in ["tcx", "clsact"] {
        let options = ["--hook", hook, "--stale", "60 s"];
        lab.ok(&[&FAIRQ[..], &options].concat());
        let stream = Stream::start(&lab);
        let (before, maps) = (lab.status(), lab.identity());
        let config = || format!("{:?}", lab.agent().port(PORT).config().unwrap());
        let running = config();
        let obstacle = lab.port_folder().join("program_ingress_new");
        std::fs::create_dir(&obstacle).unwrap();
        let line = lab.refused(&[&HSCC[..], &options].concat());
        assert!(line.contains("eth1 stays as it was"), "{line}");
        std::fs::remove_dir(&obstacle).unwrap();
        let after = lab.status();
        for key in ["scheme", "acting", "hooks", "attached", "buffer_bytes"] {
            assert_eq!(after[key], before[key], "{key}");
        }
        assert_eq!(lab.identity(), maps);
        assert_eq!(config(), running);
        stream.goes_on();
        stream.stop();
        lab.ok(&["detach", PORT]);
    }
    assert!(!lab.pins().exists());
}
