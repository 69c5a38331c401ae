// SPDX-License-Identifier: Apache-2.0
//! Connections of this host's sockets that are older than a port's programs are controlled. Needs root.

#![allow(clippy::unwrap_used)]

mod lab;

use std::net::{TcpListener, TcpStream};

use lab::{LIMIT, PORT, PortLab, transfers};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_linux::netns::NetNs;
use penstock_linux::testkit::{Process, join, until};
use penstockd::port::plain::of_bytes;
use penstockd::port::{PinsArg, Port, counters};
use penstockd::skel::port::types::port_flow;

const CONNECTIONS: usize = 16;
const BYTES: u64 = 300_000;

/// `FLOW_SCALE_NONE` of `core/flow.h`.
const UNSCALED: u8 = 0xfe;

fn unknown_scales(port: &Port) -> u64 {
    let all = port.counters().unwrap();
    let mut passed = counters::passed(&all);
    let unknown = passed.find(|(word, _)| word.word == "unknown_scale");
    unknown.unwrap().1
}

/// The flows of all ports.
fn flows(port: &Port) -> Vec<port_flow> {
    let mut all = Vec::new();
    for name in ["flows4", "flows6"] {
        let map = port.map(name).unwrap();
        let values = map
            .keys()
            .filter_map(|key| map.lookup(&key, MapFlags::ANY).unwrap());
        all.extend(values.map(|value| of_bytes::<port_flow>(&value).unwrap()));
    }
    all
}

/// One transfer on each connection, all at once.
fn transfer_on_all(netns: &NetNs, streams: &mut Vec<TcpStream>) {
    let threads = (0..).zip(streams.drain(..)).map(|(id, mut stream)| {
        let work = move || {
            transfers::send(&mut stream, id, BYTES).unwrap();
            stream
        };
        netns.spawn(work).unwrap()
    });
    let threads: Vec<_> = threads.collect();
    streams.extend(threads.into_iter().map(|thread| join(thread, LIMIT)));
}

#[test]
fn sockets_of_this_host_are_controlled_from_an_attach_on() {
    sockets_are_controlled(|lab| {
        lab.ok(&[
            "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "60 s",
        ]);
        None
    });
}

/// With no more privileges than the service has.
#[test]
fn sockets_of_this_host_are_controlled_from_the_daemons_start_on() {
    sockets_are_controlled(|lab| {
        let port = "[port.eth1]\nscheme = \"fairq\"\nbuffer = \"128 kB\"\n";
        lab.configure_with("stale = \"60 s\"", port);
        let daemon = lab.start_daemon(None);
        let map = PinsArg::at(lab.pins()).shared().join("known");
        let known = || MapHandle::from_pinned_path(&map).map(|map| map.keys().count());
        until("the daemon reads the sockets", || {
            known().is_ok_and(|known| known > CONNECTIONS)
        });
        Some(daemon)
    });
}

fn sockets_are_controlled(attach: impl FnOnce(&PortLab) -> Option<Process>) {
    let lab = PortLab::new();
    lab.congest();
    for (netns, interface, address) in [
        (lab.near(), PORT, "fd00::1/64"),
        (lab.far(), "eth0", "fd00::2/64"),
    ] {
        let line = format!("ip address add {address} dev {interface} nodad");
        lab::run(netns, &line);
    }
    let listener = lab.far().run(|| TcpListener::bind("[::]:5001"));
    transfers::serve_on(listener.unwrap().unwrap());
    let connect = |to: &str| {
        let stream = lab.near().run(|| TcpStream::connect(to)).unwrap();
        transfers::patient(stream.unwrap()).unwrap()
    };
    // The third is IPv4 of a socket for IPv6.
    let to = ["10.0.0.2:5001", "[fd00::2]:5001", "[::ffff:10.0.0.2]:5001"];
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|n| connect(to[n % 3])).collect();
    let scaling = |on: &str| {
        let set = || std::fs::write("/proc/sys/net/ipv4/tcp_window_scaling", on);
        lab.far().run(set).unwrap().unwrap();
    };
    scaling("0");
    streams.push(connect(to[0]));
    scaling("1");

    let daemon = attach(&lab);
    let port = lab.agent().port(PORT);
    let state = port.state().unwrap();
    assert_eq!((state.flows, state.tracked), (0, 0), "before their data");
    transfer_on_all(lab.near(), &mut streams);

    let (counted, state) = (port.counters().unwrap(), port.state().unwrap());
    assert_eq!(unknown_scales(&port), 0);
    assert_eq!(state.tracked as usize, CONNECTIONS + 1);
    assert!(counted.flows_begun as usize > CONNECTIONS);
    // A receiver that reads late may offer less than its share.
    assert!(
        counted.acks_rewritten > counted.acks * 9 / 10,
        "{counted:?}"
    );
    let flows = flows(&port);
    let unscaled = flows
        .iter()
        .filter(|flow| flow.entry.scale == [UNSCALED; 2]);
    assert_eq!(unscaled.count(), 1);
    assert!(
        flows
            .iter()
            .all(|flow| (536..=1460).contains(&flow.entry.mss))
    );
    drop(daemon);
    lab.ok(&["detach", PORT]);
}
