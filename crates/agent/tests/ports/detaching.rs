// SPDX-License-Identifier: Apache-2.0
//! What a detach removes, and what it does not.

use libbpf_rs::MapHandle;
use penstock_linux::testkit::until;
use penstockd::port::pins::SHARED;

use super::FAIRQ;
use super::lab::{PORT, PortLab};

fn is_gone(map: u32) -> bool {
    MapHandle::from_map_id(map).is_err()
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
