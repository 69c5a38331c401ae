// SPDX-License-Identifier: Apache-2.0
//! `attach --stay`.

use std::process::{Command, Stdio};
use std::time::Duration;

use penstock_linux::testkit::{Process, Signal, cable, until};

use super::FAIRQ;
use super::lab::{LIMIT, PENSTOCKD, PORT, PortLab};

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
