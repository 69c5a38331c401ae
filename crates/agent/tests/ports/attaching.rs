// SPDX-License-Identifier: Apache-2.0
//! A port is its interface, whatever that is called and whatever clock its agent has.

use std::process::Command;

use penstock_linux::testkit::{self, cable};

use super::FAIRQ;
use super::lab::{LIMIT, PENSTOCKD, PORT, PortLab, outcome};

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
