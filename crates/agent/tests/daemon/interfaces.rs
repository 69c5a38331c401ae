// SPDX-License-Identifier: Apache-2.0
//! Interfaces that come, go, are renamed or moved, and whose queue or rate changes.

use std::io::{Read, Write};
use std::net::TcpStream;

use penstock_linux::link::{self, Change};
use penstock_linux::testkit::{PATIENCE, Signal, cable, join, set_speed, until};
use penstockd::attach::tcx;
use penstockd::port::pins::program_pin;
use penstockd::port::{PinsArg, Side};

use super::lab::{PORT, PortLab};
use super::{FAIRQ, is_acting};

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
