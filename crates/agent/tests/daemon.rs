// SPDX-License-Identifier: Apache-2.0
//! The daemon: killed, started again, reloaded; a transfer goes on through all of it.

#![allow(clippy::unwrap_used)]

mod lab;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use lab::stream::Stream;
use lab::{LIMIT, PENSTOCKD, PORT, PortLab, outcome};
use penstock_linux::link::{self, Change};
use penstock_linux::testkit::{PATIENCE, Process, Signal, cable, join, set_speed, until};
use penstockd::attach::tcx;
use penstockd::host::bpf;
use penstockd::port::pins::program_pin;
use penstockd::port::{PinsArg, Side};

const FAIRQ: &str = "[port.eth1]\nscheme = \"fairq\"\nbuffer = \"128 kB\"\n";
const HSCC: &str = "[port.eth1]\nscheme = \"hscc\"\nbuffer = \"128 kB\"\n";

fn is_acting(lab: &PortLab) -> bool {
    lab.port_folder().join("program_ingress").exists() && lab.status()["acting"] == true
}

fn scheme(lab: &PortLab) -> String {
    lab.status()["scheme"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn killed_it_loses_nothing_and_the_next_takes_over() {
    let lab = PortLab::new();
    let mut first = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    let maps = lab.identity();
    let stream = Stream::start(&lab);

    first.signal(Signal::KILL);
    first.wait();
    stream.goes_on();
    until("the heartbeat is stale", || !is_acting(&lab));
    stream.goes_on();
    let stale = lab.status();
    assert_eq!(stale["rates"]["acks_rewritten"], 0.0, "{stale}");
    assert_eq!(stale["attached"]["ingress"], true);

    // Another scheme meanwhile: the next daemon finds the old one's pins.
    let mut second = lab.daemon(HSCC);
    until("the next one acts", || is_acting(&lab));
    until("by its own configuration", || scheme(&lab) == "hscc");
    assert_eq!(lab.identity(), maps, "the flows stay counted");
    stream.goes_on();

    second.signal(Signal::TERM);
    assert!(second.wait().success());
    assert_eq!(lab.status()["attached"]["egress"], true);
    stream.goes_on();
    stream.stop();
    lab.ok(&["detach", "--all"]);
}

#[test]
fn who_reads_what_it_writes_may_go_away() {
    let lab = PortLab::new();
    let start = |words: &[&str]| {
        let mut command = Command::new(PENSTOCKD);
        command.args(words).arg("--pins").arg(lab.pins());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = lab.agent().spawn(&mut command, LIMIT);
        drop((process.child.stdout.take(), process.child.stderr.take()));
        process
    };
    let end = |mut process: Process| {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    };
    end({
        let words = [
            "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stay",
        ];
        let held = start(&words);
        until("it is attached, and kept", || is_acting(&lab));
        held
    });
    until("it is detached", || !lab.port_folder().exists());

    lab.configure(FAIRQ);
    let mut command = Command::new(PENSTOCKD);
    command.args(["run", "--config"]).arg(lab.config());
    command.stderr(Stdio::piped());
    let mut daemon = lab.agent().spawn(&mut command, LIMIT);
    drop(daemon.child.stderr.take());
    until("the daemon attaches", || is_acting(&lab));
    lab.configure("[port.eth1]\nscheme = \"none at all\"\n");
    daemon.signal(Signal::HUP);
    lab.configure(HSCC);
    daemon.signal(Signal::HUP);
    until("it reloads", || scheme(&lab) == "hscc");
    end(daemon);
    lab.ok(&["detach", "--all"]);
}

#[test]
fn reloads_without_a_gap_and_keeps_the_old_when_the_new_is_wrong() {
    let lab = PortLab::new();
    let daemon = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    let (maps, stream) = (lab.identity(), Stream::start(&lab));

    lab.configure("[port.eth1]\nscheme = \"fairq\"\nbuffer = \"0 B\"\n");
    daemon.signal(Signal::HUP);
    stream.goes_on();
    assert_eq!(scheme(&lab), "fairq");

    lab.configure(HSCC);
    daemon.signal(Signal::HUP);
    until("the scheme changes", || scheme(&lab) == "hscc");
    assert_eq!(lab.identity(), maps);
    stream.goes_on();

    lab.configure("");
    daemon.signal(Signal::HUP);
    until("the port is let go", || !lab.port_folder().exists());
    stream.goes_on();
    stream.stop();
}

#[test]
fn follows_interfaces_and_keeps_ports_attached_by_hand_alive() {
    let lab = PortLab::new();
    lab.ok(&[
        "attach", PORT, "--scheme", "hscc", "--buffer", "1 MB", "--stale", "400 ms",
    ]);
    let metrics = lab.folder.path().join("penstock.prom");
    let metrics_table = format!(
        "[metrics]\ntextfile = \"{}\"\nlisten = \"127.0.0.1:9920\"\n",
        metrics.display()
    );
    let _daemon =
        lab.daemon(&(metrics_table + "[port.agent-v0]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n"));
    until("metrics are written", || {
        let text = std::fs::read_to_string(&metrics).unwrap_or_default();
        text.contains("interface=\"eth1\"")
    });
    std::fs::remove_file(&metrics).unwrap();
    let scrape = || {
        let mut stream = TcpStream::connect("127.0.0.1:9920").unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    };
    let page = join(lab.near().spawn(scrape).unwrap(), PATIENCE);
    assert!(page.contains("interface=\"eth1\""), "{page}");
    let later = program_pin(&PinsArg::at(lab.pins()).of("agent-v0"), Side::Ingress);
    for _ in 0..2 {
        lab.run("ip link add agent-v0 type veth peer name agent-v1");
        until("it is attached", || later.exists());
        lab.run("ip link del agent-v0");
        until("its end is seen", || {
            let all = lab.ok(&["status", "agent-v0", "--for", "1 ms", "--json"]);
            serde_json::from_str::<serde_json::Value>(&all).unwrap()[0]["ifindex"] == 0
        });
        // The daemon beats on, for it may come again; but nothing acts.
        let acting = "penstock_acting{interface=\"agent-v0\",scheme=\"fairq\"} 0.0";
        let metrics = lab.ok(&["metrics"]);
        assert!(metrics.contains(acting), "{metrics}");
        let frame = lab.ok(&["watch", "agent-v0", "--once"]);
        assert!(frame.contains("its programs are detached"), "{frame}");
        std::fs::remove_file(&later).unwrap();
    }
    assert!(is_acting(&lab), "{}", lab.status());
}

/// Another process replaces the scheme of a port that the daemon keeps.
#[test]
fn the_timer_of_a_scheme_that_comes_later_is_run_too() {
    let lab = PortLab::new();
    let attach = ["attach", PORT, "--buffer", "128 kB", "--scheme"];
    lab.ok(&[&attach[..], &["fairq"]].concat());
    let daemon = lab.daemon("");
    until("the daemon keeps the port", || is_acting(&lab));
    let has_timer = || {
        let id = bpf::pinned(&lab.port_folder().join("timer"));
        let line = format!("prog_id:\t{}", id.unwrap_or_default());
        let all = std::fs::read_dir(format!("/proc/{}/fdinfo", daemon.id())).unwrap();
        let all = all.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        let mut lines = all.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
        lines.any(|found| found == line)
    };
    for target in ["0.15", "0.25"] {
        let set = format!("window.target={target}");
        let words = ["grant", "--rate", "1 Gb/s", "--set", &set];
        lab.ok(&[&attach[..], &words].concat());
        until("the daemon has its timer", has_timer);
    }
    drop(daemon);
    lab.ok(&["detach", PORT]);
}

#[test]
fn checks_whether_a_configuration_is_accepted() {
    let lab = PortLab::new();
    let check = |ports: &str| {
        lab.configure(ports);
        let config = lab.config();
        let config = config.to_str().unwrap();
        let answers = [
            lab.output(&["run", "--check-config", config]),
            lab.output(&["run", "--config", config, "--check-config"]),
        ];
        let [named, default] = answers.map(|output| outcome(&output));
        assert_eq!(named, default);
        assert_eq!(named.1.trim_end().lines().count(), 1, "{}", named.1);
        named
    };
    let (is_accepted, line) = check(FAIRQ);
    assert!(is_accepted && line.contains("valid; eth1 fairq"), "{line}");
    let (is_accepted, line) = check("[port.eth1]\nscheme = \"fairq\"\nbufer = \"1 kB\"\n");
    assert!(
        !is_accepted && line.contains(".toml:7: port.eth1.bufer: "),
        "{line}"
    );
    let (is_accepted, line) = check("[metrics]\nlisten = \"0.0.0.0:9468\"\n");
    assert!(
        !is_accepted && line.contains("metrics.allow_remote = true"),
        "{line}"
    );
}

/// What systemd reads on the socket that it names (sd_notify(3)).
#[test]
fn systemd_sees_start_reload_watchdog_and_end() {
    let lab = PortLab::new();
    let path = lab.folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = |start: &str| {
        let mut buffer = [0; 1024];
        loop {
            // A socket with a timeout does not go on by itself after a signal (signal(7)).
            let length = match socket.recv(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                received => received.unwrap(),
            };
            let state = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if state.starts_with(start) {
                return state;
            }
        }
    };
    let mut daemon = lab.daemon_of_service(FAIRQ, Some(&path));
    let ready = next("READY=1");
    assert!(ready.contains("\nSTATUS="), "{ready}");
    next("WATCHDOG=1");
    daemon.signal(Signal::HUP);
    let reloading = next("RELOADING=1\nMONOTONIC_USEC=");
    let started = reloading.trim_end().rsplit('=').next().unwrap();
    let now = penstockd::host::clock::monotonic_ns() / 1000;
    assert!(started.parse::<u64>().unwrap() <= now, "{reloading}");
    next("READY=1");
    daemon.signal(Signal::TERM);
    next("STOPPING=1");
    assert!(daemon.wait().success());
    lab.ok(&["detach", "--all"]);
}

#[test]
fn a_lock_that_another_process_holds_makes_no_port_stale() {
    let lab = PortLab::new();
    let agent = "stale = \"2 s\"\nheartbeat = \"50 ms\"";
    lab.configure_with(agent, FAIRQ);
    let daemon = lab.start_daemon(None);
    until("the daemon attaches", || is_acting(&lab));
    let held = PinsArg::at(lab.pins()).lock().unwrap();
    lab.configure_with(agent, HSCC);
    daemon.signal(Signal::HUP);
    // Longer than a port takes to become stale.
    until("the daemon gives up", || {
        assert!(is_acting(&lab), "{}", lab.status());
        lab.log()
            .contains("another process has been changing ports")
    });
    let holder = format!("pid {}: ", std::process::id());
    assert!(lab.log().contains(&holder), "{}", lab.log());
    let attach = ["attach", PORT, "--scheme", "hscc", "--buffer", "1 MB"];
    assert!(lab.refused(&attach).contains(&holder));
    assert_eq!(scheme(&lab), "fairq");
    drop(held);
    until("the scheme changes", || scheme(&lab) == "hscc");
    assert_eq!(lab.log().matches("another process").count(), 1);
    lab.ok(&["detach", "--all"]);
}

#[test]
fn a_second_daemon_on_the_same_pins_is_refused() {
    let lab = PortLab::new();
    let first = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    let config = lab.config();
    let second = lab.output(&["run", "--config", config.to_str().unwrap()]);
    let (is_accepted, line) = outcome(&second);
    assert!(
        !is_accepted && line.trim_end().lines().count() == 1,
        "{line}"
    );
    let holder = format!("pid {}, {}", first.id(), config.display());
    assert!(line.contains(&holder), "{line}");
    drop(first);
    let third = lab.daemon(HSCC);
    until("the next one acts", || scheme(&lab) == "hscc");
    drop(third);
    lab.ok(&["detach", "--all"]);
}

/// A port is its interface, not the name that this had.
#[test]
fn a_new_interface_of_an_old_name_is_served_and_a_renamed_one_followed() {
    let lab = PortLab::new();
    let _daemon = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    let index = || {
        let found = lab.near().run(|| link::index(PORT));
        found.unwrap().unwrap().unwrap()
    };
    let first = index();
    lab.run(&format!("ip link set {PORT} name old1"));
    cable((lab.near(), PORT), (lab.near(), "peer"), 1);
    assert_ne!(index(), first);
    until("the new interface is served", || {
        let status = lab.status_of(PORT);
        status["ifindex"] == index() && status["acting"] == true
    });
    // Its old port is not in the configuration.
    let old = PinsArg::at(lab.pins()).of("old1");
    until("the old one is detached", || !old.exists());
    let hooks = lab.near().run(|| tcx::query(first, Side::Ingress)).unwrap();
    assert!(hooks.unwrap().is_empty());
    assert_eq!(
        lab.log().matches("is now called old1").count(),
        1,
        "{}",
        lab.log()
    );

    // Attached by hand, then renamed: it stays attached, and alive.
    lab.ok(&[
        "attach", "peer", "--scheme", "hscc", "--buffer", "1 MB", "--stale", "2 s",
    ]);
    lab.run("ip link set peer name peer.7");
    let peer = || lab.status_of("peer.7");
    until("its port has the new name", || peer()["acting"] == true);
    let beat = peer()["heartbeat_age_s"].as_f64().unwrap();
    until("its heart beats", || {
        peer()["heartbeat_age_s"].as_f64() < Some(beat)
    });
    lab.ok(&["detach", "peer.7"]);
}

/// What another version of the maps left on the hook.
#[test]
fn ports_of_another_version_are_taken_off_the_hook() {
    let lab = PortLab::new();
    let programs = || {
        let index = lab.near().run(|| link::get(PORT)).unwrap().unwrap().index;
        let all = [Side::Egress, Side::Ingress].map(|side| {
            let all = lab.near().run(|| tcx::query(index, side)).unwrap();
            all.unwrap().len()
        });
        all[0] + all[1]
    };
    let attach = ["attach", PORT, "--scheme", "fairq", "--buffer", "1 MB"];
    let other = lab.pins().join("v0");
    let age = || {
        lab.ok(&attach);
        std::fs::rename(PinsArg::at(lab.pins()).ports(), &other).unwrap();
        assert_eq!(programs(), 2);
    };
    age();
    lab.ok(&attach);
    assert_eq!(programs(), 2, "the new ones alone");
    assert!(!other.exists());
    lab.ok(&["detach", PORT]);
    age();
    lab.ok(&["detach", PORT]);
    assert!(programs() == 0 && !lab.pins().exists());
    age();
    assert!(lab.ok(&["detach", "--all"]).contains("eth1: detached"));
    assert!(programs() == 0 && !lab.pins().exists());
    // One that was renamed since, and is not configured.
    age();
    lab.run(&format!("ip link set {PORT} name other1"));
    let _daemon = lab.daemon("");
    until("the daemon detaches it", || !lab.pins().exists());
    lab.run(&format!("ip link set other1 name {PORT}"));
    assert_eq!(programs(), 0);
}

/// A pattern serves interfaces as they come, but for those with a table of their own.
#[test]
fn patterns_serve_interfaces_that_come_and_go() {
    let lab = PortLab::new();
    let patterns = "[port.\"lxc*\"]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n\
                    [port.lxc7]\nscheme = \"hscc\"\nbuffer = \"1 MB\"\n";
    let daemon = lab.daemon(patterns);
    for number in [1, 7] {
        cable(
            (lab.near(), &format!("lxc{number}")),
            (lab.near(), &format!("peer{number}")),
            1,
        );
    }
    for (interface, scheme) in [("lxc1", "fairq"), ("lxc7", "hscc")] {
        until("it has its scheme", || {
            let status = lab.status_of(interface);
            status["scheme"] == scheme && status["acting"] == true
        });
    }
    let attached = lab.agent().ok(&["status", "--for", "1 ms"]);
    assert!(
        !attached.contains(PORT) && !attached.contains("peer"),
        "{attached}"
    );
    lab.configure("[port.\"lxc*\"]\nscheme = \"hscc\"\nbuffer = \"1 MB\"\n");
    daemon.signal(Signal::HUP);
    until("the pattern changes", || {
        lab.status_of("lxc1")["scheme"] == "hscc"
    });
    lab.configure("");
    daemon.signal(Signal::HUP);
    until("all are detached", || !lab.pins().exists());
}

/// As a container's end of a veth, which a pattern may match until the container gets it.
#[test]
fn an_interface_that_moves_to_another_namespace_is_let_go() {
    let lab = PortLab::new();
    let ends = (lab.near(), "lxc1");
    let _daemon = lab.daemon("[port.\"lxc*\"]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n");
    cable(ends, (lab.near(), "peer1"), 1);
    until("it is served", || lab.status_of("lxc1")["acting"] == true);
    let far = Change::NetNs(lab.far());
    let moved = lab.near().run(|| link::change("lxc1", &[far]));
    moved.unwrap().unwrap();
    let programs = || {
        let index = link::get("lxc1").unwrap().index;
        let all = [Side::Egress, Side::Ingress].map(|side| tcx::query(index, side).unwrap());
        all.concat().len()
    };
    until("nothing of ours is on it", || {
        lab.far().run(programs).unwrap() == 0
    });
    cable(ends, (lab.near(), "peer2"), 1);
    until("another of its name is served", || {
        lab.status_of("lxc1")["acting"] == true
    });
}

/// A scheme that reckons with more buffer than there is overflows it.
#[test]
fn the_buffer_is_that_of_the_qdisc_also_when_it_changes() {
    let lab = PortLab::new();
    let limit = |bytes: u32| {
        lab.run(&format!(
            "tc qdisc replace dev {PORT} root tbf rate 20mbit burst 5k limit {bytes}"
        ));
    };
    let buffer = || lab.status_of(PORT)["buffer_bytes"].as_u64();
    limit(131_072);
    let _daemon = lab.daemon("[port.eth1]\nscheme = \"fairq\"\n");
    until("it is attached", || buffer() == Some(131_072));
    let port = lab.identity();
    limit(32_768);
    until("the buffer is the new one", || buffer() == Some(32_768));
    assert_eq!(lab.identity(), port, "flows stay counted");
    // By hand, until the qdisc changes again.
    lab.ok(&["attach", PORT, "--scheme", "hscc", "--buffer", "1 MB"]);
    limit(65_536);
    until("it is followed", || buffer() == Some(65_536));
}

/// Credit for a faster link than there is would overflow the port.
#[test]
fn the_rate_of_grant_is_that_of_the_link_also_when_it_changes() {
    let lab = PortLab::new();
    lab.run("ip tuntap add dev tap9 mode tap");
    let set = |megabits| lab.near().run(|| set_speed("tap9", megabits)).unwrap();
    let rate = || lab.status_of("tap9")["credit"]["rate_bps"].as_u64();
    set(1000).unwrap();
    let grant = "scheme = \"grant\"\nwindow = { side = \"receiver\" }\n";
    let daemon = lab.daemon(&format!("[port.tap9]\n{grant}"));
    until("it is attached", || rate() == Some(1_000_000_000));
    let id = || lab.agent().port("tap9").id;
    let port = id();
    set(100).unwrap();
    until("the rate is the new one", || rate() == Some(100_000_000));
    assert_eq!(id(), port, "flows stay counted");
    // A rate that is given stays.
    lab.configure(&format!("[port.tap9]\n{grant}rate = \"1 Gb/s\"\n"));
    daemon.signal(Signal::HUP);
    until("the rate is the given one", || {
        rate() == Some(1_000_000_000)
    });
    drop(daemon);
    lab.ok(&["detach", "tap9"]);
}

#[test]
fn a_dry_run_knows_interfaces_that_were_renamed_moved_or_deleted() {
    let lab = PortLab::new();
    for name in ["lxc1", "lxc2", "tap1"] {
        let peer = format!("peer-{name}");
        cable((lab.near(), name), (lab.near(), &peer), 1);
    }
    let pattern = "[port.\"lxc*\"]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n";
    let ports = format!("{FAIRQ}{pattern}");
    let mut daemon = lab.daemon(&ports);
    until("all are attached", || {
        let is_acting = |name| lab.status_of(name)["acting"] == true;
        [PORT, "lxc1", "lxc2"].into_iter().all(is_acting)
    });
    lab.ok(&["attach", "tap1", "--scheme", "hscc", "--buffer", "1 MB"]);
    daemon.signal(Signal::TERM);
    daemon.wait();
    for (old, new) in [(PORT, "old1"), ("tap1", "lxc3")] {
        lab.run(&format!("ip link set {old} name {new}"));
    }
    lab.run("ip link del lxc1");
    let far = Change::NetNs(lab.far());
    let moved = lab.near().run(|| link::change("lxc2", &[far]));
    moved.unwrap().unwrap();
    let path = lab.config();
    let words = ["run", "--dry-run", "--config", path.to_str().unwrap()];
    let (is_accepted, lines) = outcome(&lab.output(&words));
    assert!(is_accepted, "{lines}");
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "eth1: waits for the interface",
            "lxc1: detach fairq",
            "lxc2: detach fairq",
            "lxc3: replace hscc by fairq",
            "old1: detach fairq",
        ]
    );
    // And so it is.
    let _daemon = lab.daemon(&ports);
    let attached = || PinsArg::at(lab.pins()).interfaces().unwrap();
    until("the others are detached", || attached() == ["lxc3"]);
    until("its scheme is replaced", || {
        lab.status_of("lxc3")["scheme"] == "fairq"
    });
}

#[test]
fn a_dry_run_names_what_changes_of_grant() {
    let lab = PortLab::new();
    let grant =
        |more: &str| format!("[port.eth1]\nscheme = \"grant\"\nbuffer = \"128 kB\"\n{more}");
    let rate = "rate = \"1 Gb/s\"\n";
    let _daemon = lab.daemon(&grant(rate));
    until("it is attached", || is_acting(&lab));
    let path = lab.config();
    let plan = |ports: &str| {
        lab.configure(ports);
        let words = ["run", "--dry-run", "--config", path.to_str().unwrap()];
        outcome(&lab.output(&words)).1
    };
    assert_eq!(plan(&grant(rate)), "eth1: unchanged (grant)\n");
    let other = grant("rate = \"2 Gb/s\"\nwindow = { target = 0.15 }\n");
    assert_eq!(plan(&other), "eth1: change window.target, rate of grant\n");
}

#[test]
fn a_dry_run_prints_what_a_reload_would_change_and_changes_nothing() {
    let lab = PortLab::new();
    cable((lab.near(), "lxc1"), (lab.near(), "tap1"), 1);
    let _daemon = lab.daemon(&format!(
        "{FAIRQ}[port.lxc1]\nscheme = \"observe\"\nbuffer = \"1 MB\"\n"
    ));
    until("both are attached", || {
        is_acting(&lab) && lab.status_of("lxc1")["flows"] == 0
    });
    lab.ok(&["attach", "tap1", "--scheme", "hscc", "--buffer", "1 MB"]);
    let path = lab.config();
    let plan = |ports: &str| {
        lab.configure(ports);
        let words = ["run", "--dry-run", "--config", path.to_str().unwrap()];
        let (is_accepted, lines) = outcome(&lab.output(&words));
        assert!(is_accepted, "{lines}");
        let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = (lab.identity(), lab.status()["hooks"].clone());
    let tap = "tap1: stays, as it was attached by hand (hscc)";
    assert_eq!(
        plan(FAIRQ),
        ["eth1: unchanged (fairq)", "lxc1: detach observe", tap]
    );
    let changed = FAIRQ.to_owned()
        + "window = { alpha = 0.3 }\nmark = \"30 kB\"\n[port.\"lxc?\"]\nscheme = \"fairq\"\n\
           buffer = \"1 MB\"\n[port.eth9]\nscheme = \"fairq\"\n";
    let lines = plan(&changed);
    assert_eq!(lines[0], "eth1: change mark, window.alpha of fairq");
    assert_eq!(
        lines[1..],
        [
            "eth9: waits for the interface",
            "lxc1: replace observe by fairq",
            tap
        ]
    );
    lab.ok(&["detach", "tap1"]);
    let lines = plan("[port.\"ta*\"]\nscheme = \"fairq\"\n");
    assert!(
        lines.contains(&"eth1: detach fairq".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("tap1: refused: the qdisc of tap1")),
        "{lines:?}"
    );
    assert_eq!((lab.identity(), lab.status()["hooks"].clone()), before);
}
