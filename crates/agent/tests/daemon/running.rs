// SPDX-License-Identifier: Apache-2.0
//! A daemon that is killed and started again, next to other processes that change or hold its ports.

use std::process::{Command, Stdio};

use penstock_linux::testkit::{Process, Signal, cable, until};
use penstockd::host::bpf;
use penstockd::port::PinsArg;

use super::lab::stream::Stream;
use super::lab::{LIMIT, PENSTOCKD, PORT, PortLab, outcome};
use super::{FAIRQ, HSCC, is_acting, scheme};

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
    drop(daemon);
    lab.ok(&["detach", "--all"]);
}

/// It would attach the ports of its configuration again, of which a detach has to warn.
#[test]
fn what_a_daemon_attaches_again_is_not_called_detached() {
    let lab = PortLab::new();
    cable((lab.near(), "lxc1"), (lab.near(), "peer1"), 1);
    let by_hand = ["attach", "lxc1", "--scheme", "hscc", "--buffer", "1 MB"];
    let daemon = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    lab.ok(&by_hand);
    let before = lab.identity();
    let config = lab.config();
    let name = format!("the daemon (pid {}, {})", daemon.id(), config.display());
    let line = lab.refused(&["detach", "--all"]);
    assert!(
        line.contains(&format!("nothing is detached: {name}")),
        "{line}"
    );
    assert_eq!(lab.identity(), before);
    assert_eq!(lab.status_of("lxc1")["scheme"], "hscc");

    let words = lab.ok(&["detach", PORT]);
    let again = format!("eth1: detached, but {name} attaches it again");
    assert!(words.contains(&again), "{words}");
    until("it is attached again", || is_acting(&lab));
    assert!(lab.ok(&["detach", "lxc1"]).contains("lxc1: detached\n"));

    // What is attached by hand stays away.
    lab.ok(&by_hand);
    lab.configure("");
    daemon.signal(Signal::HUP);
    until("the port is let go", || !lab.port_folder().exists());
    assert!(lab.ok(&["detach", "--all"]).contains("lxc1: detached\n"));
    assert!(!lab.pins().exists());
}

#[test]
fn a_daemon_that_cannot_detach_its_ports_at_the_end_fails() {
    let lab = PortLab::new();
    lab.configure(FAIRQ);
    let mut command = Command::new(PENSTOCKD);
    command.args(["run", "--detach", "--config"]);
    command.arg(lab.config()).stderr(Stdio::null());
    let mut daemon = lab.agent().spawn(&mut command, LIMIT);
    until("the daemon attaches", || is_acting(&lab));
    // A program where its link should be.
    let [link, program, kept] =
        ["link_egress", "program_egress", "kept"].map(|name| lab.port_folder().join(name));
    std::fs::rename(&link, &kept).unwrap();
    std::fs::rename(&program, &link).unwrap();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(1));
    std::fs::rename(&link, &program).unwrap();
    std::fs::rename(&kept, &link).unwrap();
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
