// SPDX-License-Identifier: Apache-2.0
//! Handshakes through Grant's programs, packet by packet.

use std::mem::offset_of;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_linux::testkit::alone;
use penstockd::attach::grant;
use penstockd::skel::grant::types::{grant_flow, grant_own};

use crate::common::cpus::together;
use crate::common::packet::{ACK, PSH, SYN, Segment};
use crate::lab::PortLab;
use crate::{Programs, TIMESTAMPS};

impl Programs {
    /// A segment that leaves, or arrives; the window that it has afterwards.
    fn window(&self, leaves: bool, segment: &Segment) -> u16 {
        let (_, out) = self.pass(leaves, &segment.frame()).unwrap();
        u16::from_be_bytes([out[48], out[49]])
    }

    /// No host's addresses: an ACK of Grant's to this host's own would be answered by a reset.
    fn flow(port: u16) -> Segment {
        Segment::new("10.9.0.1", "10.9.0.2").with(|s| s.source_port = port)
    }

    /// The same with IP options, with which no flow is followed.
    fn open_with_options(&self, port: u16) -> u16 {
        let [syn, answer] = [Self::syn(port), Self::syn_ack(port)].map(|segment| {
            let bare = segment.frame().len();
            let frame = segment.with(|s| s.ip_options = vec![1; 4]).frame();
            assert_eq!(frame.len(), bare + 4);
            frame
        });
        self.pass(true, &syn).unwrap();
        let (_, out) = self.pass(false, &answer).unwrap();
        u16::from_be_bytes([out[52], out[53]])
    }

    /// SYN and SYN-ACK: what this shows to the one who opens the connection.
    fn open(&self, port: u16) -> u16 {
        self.window(true, &Self::syn(port));
        self.accept(port)
    }

    fn syn(port: u16) -> Segment {
        let options = Segment::syn_options(1460, 7);
        Self::flow(port).with(|s| (s.flags, s.options) = (SYN, options))
    }

    fn syn_ack(port: u16) -> Segment {
        Self::flow(port).reversed().with(|s| {
            (s.flags, s.seq, s.ack, s.window) = (SYN | ACK, 2000, 1001, 64_000);
            s.options = Segment::syn_options(1460, 7);
        })
    }

    fn accept(&self, port: u16) -> u16 {
        self.window(false, &Self::syn_ack(port))
    }

    /// An ACK of nothing.
    fn acknowledge(&self, port: u16) -> u16 {
        self.window(
            false,
            &Self::flow(port).reversed().with(|s| {
                (s.flags, s.seq, s.ack, s.window) = (ACK, 2001, 1001, 500);
                s.options = TIMESTAMPS.to_vec();
            }),
        )
    }

    /// The end of the handshake, or data behind as much as has been sent.
    fn send(&self, port: u16, sent: u32, payload: usize) {
        self.window(
            true,
            &Self::flow(port).with(|s| {
                (s.flags, s.seq, s.ack) = (ACK | PSH, 1001 + sent, 2001);
                (s.payload, s.options) = (payload, TIMESTAMPS.to_vec());
            }),
        );
    }
}

/// Where the first flow is in a port's `grant_own`.
const FIRST: usize = offset_of!(grant_own, flows) + size_of::<grant_flow>();

/// The map `grant_own` of the port, and its value.
fn own_of(lab: &PortLab) -> (MapHandle, Vec<u8>) {
    let own = MapHandle::from_pinned_path(lab.port_folder().join("grant_own")).unwrap();
    let value = own.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    (own, value)
}

/// Flows that have an entry.
fn followed(lab: &PortLab) -> usize {
    let (_, value) = own_of(lab);
    let entries = value[FIRST..].chunks_exact(size_of::<grant_flow>());
    entries
        .filter(|entry| entry[offset_of!(grant_flow, state)] != 0)
        .count()
}

/// The end of a handshake and what is behind it pass on two CPUs: one makes the entry, and the other finds it.
#[test]
fn a_flow_is_followed_once() {
    let _alone = alone();
    const FLOWS: usize = 5_000;
    let lab = PortLab::quiet();
    let all = Programs::attach(&lab, "port");
    let port = |flow| 1024 + flow as u16;
    let open = |flow| {
        all.open(port(flow));
    };
    let send = |cpu, flow| all.send(port(flow), 0, 300 * cpu);
    lab.near().run(|| together(FLOWS, open, send)).unwrap(); // threads are where they are begun
    assert_eq!(followed(&lab), FLOWS);
}

/// A flow whose entry went to another while it rested is followed again by its next ACK, not by the one after.
#[test]
fn a_flow_without_an_entry_is_followed_at_once() {
    let _alone = alone();
    let lab = PortLab::quiet();
    let all = Programs::attach(&lab, "port");
    let story = || {
        // With others half open, the SYN-ACK of the last has no more than an allowance.
        let windows = [1022, 1023, 1024].map(|port| all.open(port));
        assert!(windows[0] > 6 * 1460, "{windows:?}");
        assert_eq!(windows[2], 2 * 1460);
        all.send(1024, 0, 0);
        let allowed = all.acknowledge(1024);
        assert!(allowed <= 2 * 1460 / 128 + 1, "{allowed}");
        let (own, mut value) = own_of(&lab);
        value[FIRST + offset_of!(grant_flow, owner)] ^= 1; // its serial number
        own.update(&[0; 4], &value, MapFlags::ANY).unwrap();
        assert_eq!(all.acknowledge(1024), allowed);
    };
    lab.near().run(story).unwrap();
}

/// A first segment that was lost before the port has not arrived: no ACK of Grant's own covers it.
#[test]
fn what_was_lost_is_not_acknowledged() {
    let _alone = alone();
    let lab = PortLab::quiet();
    let all = Programs::attach(&lab, "port");
    let story = || {
        all.open(1024);
        all.send(1024, 1448, 1448);
        let (_, value) = own_of(&lab);
        let number = |field| u32::from_ne_bytes(value[FIRST + field..][..4].try_into().unwrap());
        assert_eq!(number(offset_of!(grant_flow, ack)), 1001);
        assert_eq!(number(offset_of!(grant_flow, seen)), 1001 + 2 * 1448);
    };
    lab.near().run(story).unwrap();
}

/// A SYN-ACK shows 0 where credit is out, and an allowance all the same once the port knows that connections begin with
/// short messages. Who was shown 0 asks for credit whatever has been learned since, also if a second SYN-ACK showed more.
#[test]
fn handshakes_show_what_is_known_of_first_messages() {
    let _alone = alone();
    let lab = PortLab::quiet();
    let all = Programs::attach(&lab, "port");
    let asked = || {
        let credit = grant::status(&lab.port_folder()).unwrap().unwrap();
        u64::from(credit.waiting) + credit.counters["grants"]
    };
    let story = || {
        // Some are granted credit, and send nothing.
        let shut = (1024..1124).find(|port| {
            let window = all.open(*port);
            if window > 0 {
                all.send(*port, 0, 0);
            }
            window == 0
        });
        let shut = shut.expect("credit ends");
        assert_eq!(all.open(shut + 1), 0);
        assert_eq!(all.open_with_options(shut + 2), 2 * 1460);
        // They begin with a request, as do others.
        for port in 1024..shut {
            all.send(port, 0, 300);
        }
        for port in 2000..2200 {
            all.open(port);
            all.send(port, 0, 0);
            all.send(port, 0, 300);
        }
        for port in 2000..2200 {
            all.send(port, 300, 1448);
            all.send(port, 1748, 1448);
        }
        let waiting = grant::status(&lab.port_folder()).unwrap().unwrap().waiting;
        assert!(waiting > 5, "{waiting} wait");
        assert_eq!(all.open(3000), 2 * 1460);
        all.send(3000, 0, 0);
        assert!(all.acknowledge(3000) > 0, "it waits");
        let before = asked();
        all.send(shut, 0, 0);
        assert!(asked() > before);
        let before = asked();
        assert_eq!(all.accept(shut + 1), 2 * 1460);
        all.send(shut + 1, 0, 0);
        assert!(asked() > before);
    };
    lab.near().run(story).unwrap();
}
