// SPDX-License-Identifier: Apache-2.0
//! What is refused, each in one line with what to do.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::{Agent, PENSTOCKD, PORT, PortLab, outcome};
use penstock_linux::link::{self, Change};
use penstock_linux::testkit::{self, PATIENCE, cable};
use penstockd::port::PinsArg;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const FAIRQ: [&str; 6] = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];

#[test]
fn what_is_asked_wrongly() {
    let lab = PortLab::new();
    let line = lab.refused(&["attach", "eht1", "--scheme", "fairq", "--buffer", "1 MB"]);
    assert!(
        line.contains("no interface eht1") && line.contains("did you mean eth1?"),
        "{line}"
    );
    let line = lab.refused(&["attach", PORT, "--scheme", "fairk"]);
    assert!(line.contains("--scheme fairk: unknown scheme"), "{line}");
    let line = lab.refused(&["attach", PORT, "--scheme", "fairq"]);
    assert!(
        line.contains("(noqueue) does not report its size") && line.contains("--buffer"),
        "{line}"
    );
    let line = lab.refused(&[&FAIRQ[..], &["--set", "window.alpa=1"]].concat());
    assert!(line.contains("did you mean \"alpha\"?"), "{line}");
    let line = lab.refused(&["status", "eht1"]);
    let reason = "(no port is); no interface eht1 in this network namespace; did you mean eth1?";
    assert!(
        line.contains("eht1 is not attached") && line.contains(reason),
        "{line}"
    );
    let line = lab.refused(&["status", PORT]);
    let remedy = "(no port is); do: penstockd attach eth1 --scheme observe";
    assert!(line.contains(remedy), "{line}");
    assert!(!lab.pins().exists(), "a refusal leaves nothing");
}

/// A path given as a name is no folder of pins, whatever it has.
#[test]
fn what_is_no_name_of_an_interface() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let precious = lab.folder.path().join("precious");
    std::fs::create_dir_all(precious.join("folder")).unwrap();
    // In the names of pins a colon stands for a dot.
    let vlan = "eth1.7";
    cable((lab.near(), vlan), (lab.near(), "peer7"), 1);
    lab.ok(&["attach", vlan, "--scheme", "fairq", "--buffer", "1 MB"]);
    for name in [precious.to_str().unwrap(), "", "eth1/", "eth1:7"] {
        let line = lab.refused(&["detach", name]);
        assert!(line.contains("is not attached"), "{line}");
        let line = lab.refused(&["status", name]);
        assert!(line.contains("is not attached"), "{line}");
    }
    assert!(precious.join("folder").exists());
    assert_eq!(lab.status()["acting"], true);
    lab.ok(&["detach", vlan]);
    lab.ok(&["detach", PORT]);
}

#[test]
fn an_interface_can_have_the_names_that_the_kernel_takes() {
    let netns = testkit::namespace();
    let is_taken = |name: &str| {
        let create = || link::create_veth(name, "peer", &netns, 1);
        let is_taken = netns.run(create).unwrap().is_ok();
        if is_taken {
            netns.run(|| link::delete(name)).unwrap().unwrap();
        }
        is_taken
    };
    for name in [
        "a23456789012345",
        "a234567890123456",
        ".",
        "..",
        "...",
        "a/b",
        "a:b",
        "a b",
        "a\tb",
        "a\x0bb",
        "a\x01b",
        "a*b?",
        "é",
        "à", // its second byte is the blank of Latin-1
        "a\u{2003}b",
        "a\u{85}b",
    ] {
        assert_eq!(link::is_name(name), is_taken(name), "{name:?}");
    }
    // The kernel finds a name for the empty one, and reads none beyond a zero.
    for name in ["", "a\0b"] {
        assert!(!link::is_name(name), "{name:?}");
    }
}

#[test]
fn what_the_machine_lacks() {
    let lab = PortLab::new();
    let elsewhere = ["--pins", "/tmp/agent-no-bpffs"];
    let (is_accepted, line) = outcome(&lab.output(&[&FAIRQ[..], &elsewhere].concat()));
    assert!(
        !is_accepted && line.contains("/tmp/agent-no-bpffs is not on a bpffs"),
        "{line}"
    );
    assert!(
        line.contains("--pins") && line.trim_end().lines().count() == 1,
        "{line}"
    );

    for arguments in [
        "attach eth1 --scheme fairq",
        "detach eth1",
        "status",
        "metrics",
        "metrics --textfile /tmp/agent-no-privileges.prom",
    ] {
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set=-all", PENSTOCKD])
            .args(arguments.split(' '));
        let (is_accepted, line) = outcome(&testkit::output(&mut command, PATIENCE));
        assert!(
            !is_accepted && line.contains("needs CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF"),
            "{arguments}: {line}"
        );
        assert_eq!(line.trim_end().lines().count(), 1, "{arguments}: {line}");
    }
    // Where it can be seen that there are no pins, as while an image is built, nothing is lacking.
    let folder = tempfile::tempdir().unwrap();
    for (mode, needs) in [(0o700, false), (0o000, true)] {
        std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args([
                "--bounding-set=-all",
                PENSTOCKD,
                "detach",
                "--all",
                "--pins",
            ])
            .arg(folder.path());
        let (is_accepted, line) = outcome(&testkit::output(&mut command, PATIENCE));
        assert_eq!(is_accepted, !needs, "{line}");
        assert_eq!(line.contains("needs CAP_NET_ADMIN"), needs, "{line}");
    }
    let pins = lab.pins();
    let output = lab.output(&["check", "--json", "--pins", pins.to_str().unwrap()]);
    assert!(output.status.success(), "{}", outcome(&output).1);
    let needs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(needs[0]["name"], "kernel");
    let (is_accepted, line) = outcome(&lab.output(&[&["check"][..], &elsewhere].concat()));
    assert!(!is_accepted && line.contains("lacks: bpffs"), "{line}");
}

#[test]
fn what_is_another_tools() {
    let lab = PortLab::new();
    lab.ok(&[&FAIRQ[..], &["--stale", "60 s"]].concat());
    let folder = lab.port_folder();
    // A program where our link should be.
    std::fs::rename(folder.join("link_egress"), folder.join("kept")).unwrap();
    std::fs::rename(folder.join("program_egress"), folder.join("link_egress")).unwrap();
    let line = lab.refused(&FAIRQ);
    assert!(line.contains("is not penstockd's egress link"), "{line}");
    let line = lab.refused(&["detach", PORT]);
    assert!(line.contains("is not penstockd's egress link"), "{line}");
    std::fs::rename(folder.join("link_egress"), folder.join("program_egress")).unwrap();
    std::fs::rename(folder.join("kept"), folder.join("link_egress")).unwrap();

    // An interface of the same name in another namespace, alive.
    let far = Agent {
        netns: lab.far(),
        pins: lab.pins(),
    };
    let rename = || link::change("eth0", &[Change::Name(PORT)]);
    far.netns.run(rename).unwrap().unwrap();
    let (is_accepted, line) = far.attempt(&FAIRQ);
    assert!(
        !is_accepted && line.contains("belongs to another interface eth1"),
        "{line}"
    );
    assert!(line.contains("--pins"), "{line}");
    assert_eq!(lab.status()["acting"], true);
    lab.ok(&["detach", PORT]);

    // Our handle at clsact.
    lab.ok(&[&FAIRQ[..], &["--hook", "clsact"]].concat());
    std::fs::rename(
        lab.port_folder().join("program_egress"),
        lab.bpffs().join("kept"),
    )
    .unwrap();
    let line = lab.refused(&[&FAIRQ[..], &["--hook", "clsact"]].concat());
    assert!(
        line.contains("holds egress handle 0x70656e pref 1;"),
        "{line}"
    );
    std::fs::rename(
        lab.bpffs().join("kept"),
        lab.port_folder().join("program_egress"),
    )
    .unwrap();
    // Another tool's filter keeps the qdisc.
    let program = lab.port_folder().join("program_ingress");
    lab.run(&format!(
        "tc filter add dev {PORT} egress pref 7 bpf da object-pinned {}",
        program.display()
    ));
    lab.ok(&["detach", PORT]);
    let filters = lab.run(&format!("tc filter show dev {PORT} egress"));
    assert!(
        filters.contains("pref 7") && !filters.contains("0x70656e"),
        "{filters}"
    );
}

#[test]
fn pins_of_an_interface_that_is_gone_are_replaced() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let before = lab.identity();
    lab.near().run(|| link::delete(PORT)).unwrap().unwrap();
    assert_eq!(lab.status()["ifindex"], 0);
    cable((lab.near(), PORT), (lab.near(), "peer"), 1);
    lab.ok(&FAIRQ);
    assert_eq!(lab.status()["acting"], true);
    assert_ne!(lab.identity(), before, "the flows of another interface");
    lab.ok(&["detach", PORT]);
}

/// Where the bpffs is open to everybody, another user may be first.
#[test]
fn pins_that_another_user_could_change() {
    let lab = PortLab::new();
    let pins = lab.pins();
    std::fs::create_dir(&pins).unwrap();
    std::os::unix::fs::chown(&pins, Some(65534), None).unwrap();
    let line = lab.refused(&FAIRQ);
    assert!(
        line.contains("belongs to user 65534, not to user 0"),
        "{line}"
    );
    std::os::unix::fs::chown(&pins, Some(0), None).unwrap();
    std::fs::set_permissions(&pins, PermissionsExt::from_mode(0o777)).unwrap();
    lab.ok(&FAIRQ);
    let ports = PinsArg::at(&pins).ports();
    for folder in [&pins, &ports] {
        let mode = std::fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
    let mut other = Command::new("setpriv");
    other
        .args(["--reuid=65534", "--clear-groups", "flock"])
        .arg(ports)
        .arg("true");
    let (is_accepted, line) = outcome(&testkit::output(&mut other, PATIENCE));
    assert!(!is_accepted && line.contains("ermission denied"), "{line}");
    lab.ok(&["detach", PORT]);
}

/// Pins go by the interface's own name, by which the next command would look for them.
#[test]
fn an_alternative_name_is_refused_with_the_name_to_use() {
    let lab = PortLab::new();
    lab.run(&format!(
        "ip link property add dev {PORT} altname alternative1"
    ));
    for words in [
        &[
            "attach",
            "alternative1",
            "--scheme",
            "fairq",
            "--buffer",
            "1 MB",
        ][..],
        &[
            "observe",
            "alternative1",
            "--for",
            "1 ms",
            "--buffer",
            "1 MB",
        ],
        &["limit", "alternative1", "--ingress", "1gbit"],
    ] {
        let line = lab.refused(words);
        assert!(
            line.contains("alternative1 is an alternative name of eth1"),
            "{line}"
        );
    }
    assert!(!lab.pins().exists(), "a refusal leaves nothing");
    // Nor is an interface taken for the one whose name another has as an alternative.
    lab.ok(&FAIRQ);
    lab.run(&format!("ip link set {PORT} name old1"));
    lab.run(&format!("ip link property add dev old1 altname {PORT}"));
    lab.ok(&["detach", "old1"]);
    assert!(!lab.pins().exists());
}

/// A lock needs no room: what could not be changed could not be detached either.
#[test]
fn a_full_disk_for_locks_refuses_nothing() {
    let lab = PortLab::new();
    let locks = lab.folder.path().join("locks");
    std::fs::create_dir(&locks).unwrap();
    let folder = locks.to_str().unwrap();
    lab.run(&format!("mount -t tmpfs -o size=4k full {folder}"));
    std::fs::write(locks.join("full"), [7; 4096]).unwrap();
    assert!(std::fs::write(locks.join("more"), "x").is_err());
    let attached = lab
        .agent()
        .attempt(&[&FAIRQ[..], &["--locks", folder]].concat());
    let detached = lab.agent().attempt(&["detach", PORT, "--locks", folder]);
    lab.run(&format!("umount {folder}"));
    assert!(attached.0, "{}", attached.1);
    assert!(detached.0, "{}", detached.1);
}

/// A heartbeat that is renewed every tenth of a second at best would be stale in between.
#[test]
fn a_heartbeat_that_is_stale_before_the_next_is_refused() {
    let lab = PortLab::new();
    for stale in ["0 s", "39 ms"] {
        let line = lab.refused(&[&FAIRQ[..], &["--stale", stale]].concat());
        assert!(line.contains("--stale") && line.contains("40 ms"), "{line}");
    }
    lab.ok(&[&FAIRQ[..], &["--stale", "40 ms"]].concat());
    lab.ok(&["detach", PORT]);
}

#[test]
fn what_is_given_twice() {
    let lab = PortLab::new();
    let grant = ["attach", PORT, "--scheme", "grant", "--buffer", "128 kB"];
    let in_window = [&grant[..], &["--set", "window.rate=2 Gb/s"]].concat();
    for rate in [["--rate", "1 Gb/s"], ["--set", "rate=1 Gb/s"]] {
        let line = lab.refused(&[&in_window[..], &rate].concat());
        let reason = "--rate: is 1 Gb/s, and window.rate, another name for it, is 2 Gb/s; give one";
        assert!(line.contains(reason), "{line}");
    }
    for (set, option) in [
        ("scheme=hscc", "--scheme"),
        ("buffer=1 MB", "--buffer"),
        ("window.side=port", "--side"),
    ] {
        let more = ["--side", "receiver", "--set", set];
        let line = lab.refused(&[&grant[..], &more].concat());
        let reason = format!("--set {set}: {option} is given, too; give one of them");
        assert!(line.contains(&reason), "{line}");
    }
    lab.ok(&in_window);
    assert_eq!(lab.status()["credit"]["rate_bps"], 2_000_000_000_u64);
    lab.ok(&["detach", PORT]);
}

#[test]
fn an_order_to_a_port_without_a_program() {
    let lab = PortLab::new();
    lab.ok(&["attach", PORT, "--scheme", "sicc"]);
    std::fs::remove_file(lab.port_folder().join("program_egress")).unwrap();
    let line = lab.refused(&["sicc", "off", PORT, "10.0.0.2", "10.0.0.1"]);
    let reason = "eth1 has no program; do: penstockd attach eth1 --scheme sicc";
    assert!(line.contains(reason), "{line}");
    lab.ok(&["detach", PORT]);
}

#[test]
fn a_negative_quantity_of_a_deployment() {
    let lab = PortLab::new();
    for (option, value) in [
        ("--rate", "-5"),
        ("--buffer", "-5 kB"),
        ("--canary", "-5 %"),
    ] {
        let line = lab.refused(&["attach", PORT, "--scheme", "grant", option, value]);
        let begin = format!("penstockd: {option} {value}: ");
        assert!(line.starts_with(&begin), "{line}");
    }
}

/// By the options that the command has.
#[test]
fn a_limit_out_of_range_is_named_by_its_option() {
    let lab = PortLab::new();
    for (option, value) in [
        ("--ingress", "999bit"),
        ("--ingress", "2 Tb/s"),
        ("--rtt", "1000 s"),
    ] {
        let mut words = vec!["limit", PORT, option, value];
        if option != "--ingress" {
            words.extend(["--ingress", "1gbit"]);
        }
        let line = lab.refused(&words);
        assert!(line.contains(option) && !line.contains("--set"), "{line}");
    }
}
