// SPDX-License-Identifier: Apache-2.0
//! Packets as hosts of an overlay send them, through the port below: VXLAN and Geneve whose inner
//! checksums are still to be filled in, VLAN tags that the kernel has taken off.

#![allow(clippy::unwrap_used)]

mod common;
mod lab;

use common::packet::{ACK, SYN, Segment, ethernet};
use std::net::{TcpListener, TcpStream};

use lab::credit::{ANSWER_BYTES, Lab, PLACES};
use lab::{PORT, PortLab, SwitchLab, transfers};
use libbpf_rs::MapCore;
use penstock_linux::link;
use penstock_linux::testkit::{alone, disable_tx_checksum_offload, join, until};
use rustix::net::{AddressFamily, SocketType};

const FAIRQ: [&str; 8] = [
    "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "60 s",
];

#[test]
fn checksums_still_to_be_filled_in_stay_right() {
    let lab = SwitchLab::new(100_000_000, 64_000);
    for (host, peer, address) in [
        ("left", lab::RIGHT, "10.9.0.1/24"),
        ("right", lab::LEFT, "10.9.0.2/24"),
    ] {
        for line in [
            format!("ip link add vxlan0 type vxlan id 7 remote {peer} dstport 8472 dev eth0"),
            format!("ip address add {address} dev vxlan0"),
            "ip link set vxlan0 up".to_owned(),
        ] {
            lab::run(lab.netns(host), &line);
        }
    }
    // ACKs come in by `right`, not summed up yet, are rewritten, and summed up when they leave.
    let off = || disable_tx_checksum_offload("left");
    lab.netns("switch").run(off).unwrap().unwrap();
    lab.agent()
        .ok(&["attach", "right", "--scheme", "fairq", "--stale", "60 s"]);
    let server = lab.spawn("right", || {
        transfers::serve_on(TcpListener::bind(("10.9.0.2", 5001)).unwrap());
    });
    join(server, lab::LIMIT);
    let client = lab.spawn("left", || {
        let stream = TcpStream::connect(("10.9.0.2", 5001))?;
        transfers::send(&mut transfers::patient(stream)?, 1, 2_000_000)
    });
    join(client, lab::LIMIT).unwrap();
    let text = lab
        .agent()
        .ok(&["status", "right", "--for", "20 ms", "--json"]);
    let status = &serde_json::from_str::<serde_json::Value>(&text).unwrap()[0];
    assert!(
        status["counters"]["acks_rewritten"].as_u64() > Some(100),
        "{status}"
    );
    assert_eq!(lab.tcp_counter("InCsumErrors"), 0);
}

/// What lies between two hosts, as `ip link add` has it.
const OVERLAYS: [&str; 4] = [
    "link eth0 type macvlan mode bridge", // no header of its own: plain IPv4 and IPv6
    "type vxlan id 7 remote PEER4 dstport 8472 dev eth0",
    "type vxlan id 7 remote PEER4 dstport 4789 noudpcsum dev eth0",
    "type vxlan id 7 remote PEER6 dstport 4789 dev eth0",
];

/// Grant's ACKs reach senders behind tunnels, whose headers it has to write. VLAN tags, which this kernel may lack,
/// are tested in another one: `evidence/kernels/guest/check.py`.
#[test]
fn credit_reaches_senders_of_an_overlay() {
    const FLOWS: u64 = 100;
    let _alone = alone();
    for (place, overlay) in PLACES.iter().flat_map(|p| OVERLAYS.map(|o| (*p, o))) {
        let lab = Lab::new(place, &[]);
        for (host, own, peer) in [("left", 1, 2), ("right", 2, 1)] {
            let kind = overlay
                .replace("PEER4", &format!("10.97.0.{peer}"))
                .replace("PEER6", &format!("fd97::{peer}"));
            for line in [
                format!("ip address add 10.97.0.{own}/24 dev eth0"),
                format!("ip address add fd97::{own}/64 dev eth0 nodad"),
                format!("ip link add above {kind}"),
                format!("ip address add 10.96.0.{own}/24 dev above"),
                format!("ip address add fd96::{own}/64 dev above nodad"),
                "ip link set above up gso_max_segs 1".to_owned(),
            ] {
                lab::run(lab.lab.netns(host), &line);
            }
        }
        for address in ["10.96.0.2:5004", "[fd96::2]:5004"] {
            let listen = || transfers::listen(address.parse().unwrap());
            lab.lab.netns("right").run(listen).unwrap();
            let flows: Vec<_> = (0..FLOWS)
                .map(|id| {
                    lab.lab.spawn("left", move || {
                        let stream = TcpStream::connect(address)?;
                        transfers::send(&mut transfers::patient(stream)?, id, ANSWER_BYTES)
                    })
                })
                .collect();
            for flow in flows {
                join(flow, lab::LIMIT).unwrap();
            }
        }
        let counted = lab.credit().counters;
        let context = format!("{overlay}, {place:?}: {counted:?}");
        assert!(counted["grants"] >= 2 * FLOWS, "{context}");
        // An ACK of one family is not made one of the other where the kernel encapsulated it.
        assert!(counted["carriers_failed"] < 5, "{context}");
        assert_eq!(lab.harm(), (0, 0), "{context}");
        assert_eq!(lab.lab.tcp_counter("InCsumErrors"), 0, "{context}");
        lab.settles();
    }
}

/// Two tenants with the same addresses, each in a VLAN of its own.
#[test]
fn tenants_in_vlans_are_two_flows() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    let syn = data.with(|s| (s.flags, s.options) = (SYN, Segment::syn_options(1460, 7)));
    let answer = syn
        .reversed()
        .with(|s| (s.flags, s.seq, s.ack) = (SYN | ACK, 5000, syn.seq + 1));
    let third = data.with(|s| (s.seq, s.ack) = (syn.seq + 1, 5001));
    for tag in [5, 6] {
        let tagged = |segment: &Segment| ethernet(segment.source, &[(0x8100, tag)], &segment.ip());
        inject(lab.near(), PORT, &tagged(&syn));
        // The receiving kernel takes the tag off before our program sees the packet.
        inject(lab.far(), "eth0", &tagged(&answer));
        inject(lab.near(), PORT, &tagged(&third));
    }
    let port = lab.agent().port(PORT);
    let networks = || {
        let mut found: Vec<u32> = port
            .map("flows4")
            .unwrap()
            .keys()
            .map(|key| u32::from_ne_bytes(key[12..16].try_into().unwrap()))
            .collect();
        found.sort_unstable();
        found
    };
    until("both handshakes are seen", || networks().len() >= 2);
    assert_eq!(networks(), [5, 6]);
    assert_eq!(lab.status()["flows"], 2);
    lab.ok(&["detach", PORT]);
}

/// Sends a frame by an interface as it is.
fn inject(netns: &penstock_linux::netns::NetNs, interface: &str, frame: &[u8]) {
    let index = netns.run(|| link::get(interface)).unwrap().unwrap().index;
    let sent = netns.run(|| {
        let socket = rustix::net::socket(AddressFamily::PACKET, SocketType::RAW, None).unwrap();
        // SAFETY: plain numbers; the address is as long as stated.
        unsafe {
            let mut to: libc::sockaddr_ll = std::mem::zeroed();
            to.sll_family = libc::AF_PACKET as u16;
            to.sll_ifindex = index as i32;
            libc::sendto(
                std::os::fd::AsRawFd::as_raw_fd(&socket),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        }
    });
    assert_eq!(sent.unwrap(), frame.len() as isize);
}
