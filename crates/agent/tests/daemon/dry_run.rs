// SPDX-License-Identifier: Apache-2.0
//! What `penstockd run --dry-run` prints, which is what a daemon then does.

use penstock_linux::link::{self, Change};
use penstock_linux::testkit::{Signal, cable, until};
use penstockd::port::PinsArg;

use super::lab::{PORT, PortLab, outcome};
use super::{FAIRQ, is_acting};

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
