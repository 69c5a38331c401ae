// SPDX-License-Identifier: Apache-2.0
//! The shim on real TCP: one below each host carries the window scales to a FairQ port, by each of the
//! three encodings, and what a shim does whose agent is dead. Needs root.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::SwitchLab;
use lab::transfers::{connect, send, serve, transfer};
use penstock_linux::link;
use penstock_linux::socket::tcp_info;
use penstock_linux::testkit::{disable_tx_checksum_offload, join};
use penstockd::attach::load::{self, Room};
use penstockd::attach::tcx::{self, Place};
use penstockd::port::PinsArg;
use penstockd::port::Side;
use penstockd::port::slots::Slots;
use penstockd::skel::port::types::{port_abi, port_config};
use std::time::Duration;

/// For the transfers of one test.
const LIMIT: Duration = Duration::from_secs(120);

/// `enum wscale_source` of core/window.h.
const RESERVED: u32 = 1;
const WINDOW12: u32 = 2;
const UNIFIED: u32 = 3;
/// Another than what Linux offers by itself.
const NETWORK_SCALE: u32 = 7;

fn config(wscale_source: u32) -> port_config {
    let mut config = port_config {
        abi: port_abi::PENSTOCK_ABI,
        generation: 1,
        stale_ns: u64::MAX,
        flows_max: u32::MAX,
        ..port_config::default()
    };
    config.window.wscale_source = wscale_source;
    config.window.network_wscale = NETWORK_SCALE;
    config.window.idle_ns = 1_000_000_000;
    config
}

/// Puts a shim below a host; its pins are those of an interface named `shim`.
fn put_shim(lab: &SwitchLab, host: &'static str, wscale_source: u32) -> penstockd::port::Port {
    let pins = PinsArg::at(lab.pins().join(host));
    let folder = pins.of("shim");
    let attach = || {
        let interface = link::get("eth0").unwrap().index;
        std::fs::create_dir_all(pins.dir.parent().unwrap()).unwrap();
        let lock = pins.lock().unwrap();
        let programs = load::programs(&pins, &lock, "shim", Room::default()).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let slots = Slots::open(&pins).unwrap();
        slots.allocate(&folder, interface).unwrap();
        for (program, side) in programs.iter().zip(Side::BOTH) {
            let pin = folder.join(side.name());
            tcx::create_link(program, interface, side, Place::Last, &pin).unwrap();
        }
        interface
    };
    let ifindex = lab.netns(host).run(attach).unwrap();
    let port = pins.open("shim").unwrap();
    let config = port_config {
        ifindex,
        ..config(wscale_source)
    };
    port.set_config(&config).unwrap();
    port.beat().unwrap();
    port
}

/// Both hosts with shims, computing the checksums of their packets, so that each one is tested; and a
/// port between them that reads the window scale from `scale`.
fn network(wscale_source: u32, scale: &str) -> (SwitchLab, [penstockd::port::Port; 2]) {
    let lab = switch();
    let shims = ["left", "right"].map(|host| put_shim(&lab, host, wscale_source));
    attach(&lab, &[&format!("window.wscale_source={scale}")]);
    lab.netns("right").run(serve).unwrap();
    (lab, shims)
}

fn switch() -> SwitchLab {
    let lab = SwitchLab::new(100_000_000, 65_536);
    for host in ["left", "right"] {
        let disable = || disable_tx_checksum_offload("eth0");
        lab.netns(host).run(disable).unwrap().unwrap();
    }
    lab
}

/// FairQ on the port to the receiver, with these settings.
fn attach(lab: &SwitchLab, settings: &[&str]) {
    let mut words = vec!["attach", "right", "--scheme", "fairq", "--stale", "60min"];
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    lab.agent().ok(&words);
}

/// Flows at once, so that the port's share is less than what receivers offer.
fn play(lab: &SwitchLab) {
    let senders: Vec<_> = (0..8)
        .map(|id| lab.spawn("left", move || transfer(id, 300_000)))
        .collect();
    senders
        .into_iter()
        .for_each(|sender| join(sender, LIMIT).unwrap());
}

fn holds(name: &str, wscale_source: u32, scale: &str) {
    let (lab, shims) = network(wscale_source, scale);
    play(&lab);
    let carried = shims.map(|shim| shim.counters().unwrap().acks_rewritten);
    let lowered = lab.agent().port("right").counters().unwrap().acks_rewritten;
    let wrong = lab.tcp_counter("InCsumErrors");
    println!("{name}: {carried:?} packets carried a scale, {lowered} windows lowered");
    assert!(
        carried[1] > 100,
        "the receiver's shim carried {} scales",
        carried[1]
    );
    assert!(lowered > 50, "the port lowered {lowered} windows");
    assert_eq!(wrong, 0, "checksums were wrong");
}

#[test]
fn reserved_bits_carry_the_scale() {
    holds("bits", RESERVED, "reserved-bits");
}

/// The papers' deployment: a shim below the receiver only, whose bits the port clears.
#[test]
fn a_port_clears_the_bits_for_a_sender_without_a_shim() {
    let lab = switch();
    let shim = put_shim(&lab, "right", RESERVED);
    let scale = "window.wscale_source=reserved-bits";
    attach(&lab, &[scale, "window.clears_bits=true"]);
    lab.netns("right").run(serve).unwrap();
    play(&lab);
    let carried = shim.counters().unwrap().acks_rewritten;
    let lowered = lab.agent().port("right").counters().unwrap().acks_rewritten;
    assert!(carried > 100, "the shim carried {carried} scales");
    assert!(lowered > 50, "the port lowered {lowered} windows");
    assert_eq!(lab.tcp_counter("InCsumErrors"), 0, "bits were left");
}

/// The port itself takes the option out of SYNs, or lowers it; no host has a shim.
fn port_changes_syns(source: &str, scale: impl FnOnce(u32) -> u32) {
    let lab = switch();
    lab.netns("right").run(serve).unwrap();
    let shown = || {
        let stream = lab.netns("left").run(connect).unwrap().unwrap();
        u32::from(tcp_info(&stream).unwrap().peer_window_scale)
    };
    let expected = scale(shown());
    let source = format!("window.wscale_source={source}");
    let network = format!("window.network_wscale={expected}");
    attach(&lab, &[&source, &network]);
    assert_eq!(shown(), expected);
    play(&lab);
    let lowered = lab.agent().port("right").counters().unwrap().acks_rewritten;
    assert!(lowered > 50, "the port lowered {lowered} windows");
    assert_eq!(lab.tcp_counter("InCsumErrors"), 0, "checksums were wrong");
}

#[test]
fn a_port_takes_the_scale_out_of_syns() {
    port_changes_syns("stripped", |_| 0);
}

/// A host's windows are then read as half of what they are.
#[test]
fn a_port_lowers_the_scale_of_syns() {
    port_changes_syns("lowered", |own| own - 1);
}

#[test]
fn twelve_bits_leave_four_for_the_scale() {
    holds("twelve", WINDOW12, "window-bits");
}

#[test]
fn one_scale_is_that_of_all() {
    holds("unified", UNIFIED, "unified");
}

#[test]
fn a_dead_agents_shim_keeps_its_word_and_gives_no_other() {
    let (lab, shims) = network(UNIFIED, "unified");
    let mut old = lab.netns("left").run(connect).unwrap().unwrap();
    send(&mut old, 1, 10_000).unwrap();
    assert_eq!(
        u32::from(tcp_info(&old).unwrap().peer_window_scale),
        NETWORK_SCALE
    );
    for shim in &shims {
        shim.set_config(&port_config {
            stale_ns: 1,
            ..shim.config().unwrap()
        })
        .unwrap();
    }
    let before = shims[1].counters().unwrap().acks_rewritten;
    send(&mut old, 2, 2_000_000).unwrap();
    assert!(
        shims[1].counters().unwrap().acks_rewritten > before + 10,
        "its windows are misread"
    );
    let new = lab.netns("left").run(connect).unwrap().unwrap();
    assert_ne!(
        u32::from(tcp_info(&new).unwrap().peer_window_scale),
        NETWORK_SCALE,
        "a SYN was changed"
    );
    assert_eq!(lab.tcp_counter("InCsumErrors"), 0);
}
