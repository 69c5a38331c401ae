// SPDX-License-Identifier: Apache-2.0
//! What is refused, each in one line with what to do.

#![allow(clippy::unwrap_used)]

mod place;

use place::{PORT, Place, must, told};

const FAIRQ: [&str; 6] = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];

#[test]
fn what_is_asked_wrongly() {
    let place = Place::new();
    let told = place.refused(&["attach", "eht1", "--scheme", "fairq", "--buffer", "1 MB"]);
    assert!(
        told.contains("no interface eht1") && told.contains("did you mean eth1?"),
        "{told}"
    );
    let told = place.refused(&["attach", PORT, "--scheme", "fairk"]);
    assert!(told.contains("--scheme fairk: unknown scheme"), "{told}");
    let told = place.refused(&["attach", PORT, "--scheme", "fairq"]);
    assert!(
        told.contains("(noqueue) does not report its size") && told.contains("--buffer"),
        "{told}"
    );
    let told = place.refused(&[&FAIRQ[..], &["--set", "window.alpa=1"]].concat());
    assert!(told.contains("did you mean \"alpha\"?"), "{told}");
    let told = place.refused(&["status", "eth7"]);
    assert!(told.contains("eth7 is not attached"), "{told}");
    assert!(!place.pins().exists(), "a refusal leaves nothing");
}

/// A path in place of a name is no folder of pins, whatever lies there.
#[test]
fn what_is_no_name_of_an_interface() {
    let place = Place::new();
    place.ok(&FAIRQ);
    let precious = std::env::temp_dir().join(format!("{}-precious", place.near()));
    std::fs::create_dir_all(precious.join("folder")).unwrap();
    for name in [precious.to_str().unwrap(), "", "eth1/"] {
        let told = place.refused(&["detach", name]);
        assert!(told.contains("is not attached"), "{told}");
        let told = place.refused(&["status", name]);
        assert!(told.contains("is not attached"), "{told}");
    }
    assert!(precious.join("folder").exists());
    std::fs::remove_dir_all(&precious).unwrap();
    assert_eq!(place.status()["acting"], true);
    place.ok(&["detach", PORT]);
}

#[test]
fn what_the_machine_lacks() {
    let place = Place::new();
    let mut command = place.penstockd(&FAIRQ);
    command.args(["--pins", "/tmp/agent-no-bpffs"]);
    let (is_right, line) = told(&command.output().unwrap());
    assert!(
        !is_right && line.contains("/tmp/agent-no-bpffs is not on a bpffs"),
        "{line}"
    );
    assert!(
        line.contains("--pins") && line.trim_end().lines().count() == 1,
        "{line}"
    );

    let agent = env!("CARGO_BIN_EXE_penstockd");
    for arguments in ["attach eth1 --scheme fairq", "detach eth1", "status"] {
        let output = std::process::Command::new("setpriv")
            .args(["--bounding-set=-all", agent])
            .args(arguments.split(' '))
            .output()
            .unwrap();
        let (is_right, line) = told(&output);
        assert!(
            !is_right && line.contains("needs CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF"),
            "{line}"
        );
    }
    let pins = place.pins();
    let output = place
        .penstockd(&["check", "--json", "--pins", pins.to_str().unwrap()])
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", told(&output).1);
    let needs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(needs[0]["name"], "kernel");
    let output = place
        .penstockd(&["check", "--pins", "/tmp/agent-no-bpffs"])
        .output()
        .unwrap();
    let (is_right, line) = told(&output);
    assert!(!is_right && line.contains("lacks: bpffs"), "{line}");
}

#[test]
fn what_is_another_tools() {
    let place = Place::new();
    place.ok(&FAIRQ);
    let folder = place.folder();
    // A map where our link should be.
    std::fs::rename(folder.join("link_egress"), folder.join("kept")).unwrap();
    std::fs::rename(folder.join("depth"), folder.join("link_egress")).unwrap();
    let line = place.refused(&FAIRQ);
    assert!(line.contains("is not penstockd's egress link"), "{line}");
    let line = place.refused(&["detach", PORT]);
    assert!(line.contains("is not penstockd's egress link"), "{line}");
    std::fs::rename(folder.join("link_egress"), folder.join("depth")).unwrap();
    std::fs::rename(folder.join("kept"), folder.join("link_egress")).unwrap();

    // An interface of the same name in another namespace, alive.
    must(&format!("ip -n {} link set eth0 name {PORT}", place.far()));
    let agent = env!("CARGO_BIN_EXE_penstockd");
    let line = std::process::Command::new("nsenter")
        .arg(format!("--net=/run/netns/{}", place.far()))
        .arg(agent)
        .args(FAIRQ)
        .args(["--pins", place.pins().to_str().unwrap()])
        .output()
        .unwrap();
    let (is_right, line) = told(&line);
    assert!(
        !is_right && line.contains("belongs to another interface eth1"),
        "{line}"
    );
    assert!(line.contains("--pins"), "{line}");
    assert_eq!(place.status()["acting"], true);
    place.ok(&["detach", PORT]);

    // Our handle at clsact.
    let tc = format!("tc -n {}", place.near());
    place.ok(&[&FAIRQ[..], &["--hook", "clsact"]].concat());
    std::fs::rename(
        place.folder().join("program_egress"),
        place.bpffs.join("kept"),
    )
    .unwrap();
    let line = place.refused(&[&FAIRQ[..], &["--hook", "clsact"]].concat());
    assert!(
        line.contains("holds egress handle 0x70656e pref 49152"),
        "{line}"
    );
    std::fs::rename(
        place.bpffs.join("kept"),
        place.folder().join("program_egress"),
    )
    .unwrap();
    // Another tool's filter keeps the qdisc.
    let program = place.folder().join("program_ingress");
    must(&format!(
        "{tc} filter add dev {PORT} egress pref 7 bpf da object-pinned {}",
        program.display()
    ));
    place.ok(&["detach", PORT]);
    let filters = must(&format!("{tc} filter show dev {PORT} egress"));
    assert!(
        filters.contains("pref 7") && !filters.contains("0x70656e"),
        "{filters}"
    );
}

#[test]
fn pins_of_an_interface_that_is_gone_are_replaced() {
    let place = Place::new();
    place.ok(&FAIRQ);
    let before = place.maps();
    must(&format!("ip -n {} link del {PORT}", place.near()));
    assert_eq!(place.status()["ifindex"], 0);
    must(&format!(
        "ip -n {} link add {PORT} type veth peer name peer",
        place.near()
    ));
    place.ok(&FAIRQ);
    assert_eq!(place.status()["acting"], true);
    assert_ne!(place.maps(), before, "the flows of another interface");
    place.ok(&["detach", PORT]);
}
