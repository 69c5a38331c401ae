// SPDX-License-Identifier: Apache-2.0
//! Packets that are not followed, each with its reason, and connections that begin or go on as few
//! do, or as attackers have them.

use penstockd::port::counters;

use super::common::packet::{ACK, FIN, SYN, Segment, ethernet, geneve, vxlan};
use super::port::Port;
use super::segments::{SCALE, ack, open, syn, syn_ack};

fn four() -> Segment {
    Segment::new("10.0.0.1", "10.0.0.2")
}

fn six() -> Segment {
    Segment::new("fd00::1", "fd00::2")
}

/// A frame with other bytes at an offset.
fn with(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..][..bytes.len()].copy_from_slice(bytes);
    frame
}

fn extended(extensions: &[(u8, usize)]) -> Vec<u8> {
    six().with(|s| s.extensions = extensions.to_vec()).frame()
}

fn tunnelled(inner: &[u8]) -> Vec<u8> {
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    ethernet(outer.source, &[], &vxlan(&outer, 4789, 9, false, inner))
}

/// What, the frame, and the counter of its reason; "": it is followed.
fn frames() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let (plain4, plain6) = (four().frame(), six().frame());
    let [at4, at6] =
        [&plain4, &plain6].map(|frame| move |at, bytes: &[u8]| with(frame.clone(), at, bytes));
    let tags = |count| ethernet(four().source, &vec![(0x8100, 5); count], &four().ip());
    let in_vxlan = tunnelled(&plain4);
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    let in_geneve = ethernet(outer.source, &[], &geneve(&outer, 9, 0, false, &plain4));
    vec![
        ("IPv4", plain4.clone(), ""),
        ("ARP", at4(12, &[8, 6]), "not_ip"),
        ("ICMP", at4(23, &[1]), "not_tcp"),
        ("UDP", at4(23, &[17]), "not_tcp"),
        ("the first fragment", at4(20, &[0x20, 0]), "fragment"),
        ("a fragment between", at4(20, &[0x20, 2]), "fragment"),
        ("the last fragment", at4(20, &[0, 2]), "fragment"),
        ("the last of 64 kB", at4(20, &[0x1f, 0]), "fragment"),
        ("IPv4 of version 5", at4(14, &[0x55]), "malformed"),
        ("an IPv4 header of 16 bytes", at4(14, &[0x44]), "malformed"),
        (
            "IPv4 options beyond the packet",
            at4(14, &[0x46, 0, 0, 20]),
            "malformed",
        ),
        ("a total length of 41", at4(16, &[0, 41]), "truncated"),
        ("a total length of 39", at4(16, &[0, 39]), "malformed"),
        ("a TCP header of 16 bytes", at4(46, &[0x40]), "malformed"),
        (
            "TCP options beyond the packet",
            at4(46, &[0x60]),
            "malformed",
        ),
        (
            "half a TCP header",
            with(plain4[..44].to_vec(), 16, &[0, 30]),
            "truncated",
        ),
        ("IPv6", plain6.clone(), ""),
        ("IPv6 of version 4", at6(14, &[0x40]), "malformed"),
        ("a payload length of 21", at6(18, &[0, 21]), "truncated"),
        ("a payload length of 19", at6(18, &[0, 19]), "malformed"),
        ("an authentication header", at6(20, &[51]), "not_tcp"),
        ("a fragment header", extended(&[(44, 8)]), "fragment"),
        (
            "a fragment header behind another",
            extended(&[(0, 8), (44, 8)]),
            "fragment",
        ),
        ("a routing header at its end", extended(&[(43, 8)]), ""),
        (
            "a routing header",
            with(extended(&[(43, 8)]), 57, &[1]),
            "too_deep",
        ),
        ("four extension headers", extended(&[(60, 8); 4]), ""),
        (
            "five extension headers",
            extended(&[(60, 8); 5]),
            "too_deep",
        ),
        (
            "an extension beyond the packet",
            with(extended(&[(60, 8)]), 55, &[4]),
            "malformed",
        ),
        (
            "half an extension header",
            with(extended(&[(60, 8)])[..56].to_vec(), 18, &[0, 2]),
            "truncated",
        ),
        ("two tags", tags(2), ""),
        ("three tags", tags(3), "too_deep"),
        ("half a tag", tags(1)[..16].to_vec(), "truncated"),
        ("VXLAN", in_vxlan.clone(), ""),
        (
            "VXLAN without a network",
            with(in_vxlan.clone(), 42, &[0]),
            "not_tcp",
        ),
        (
            "a UDP length beyond the packet",
            with(in_vxlan.clone(), 38, &[0, 200]),
            "malformed",
        ),
        (
            "a UDP length of 16",
            with(in_vxlan.clone(), 38, &[0, 16]),
            "truncated",
        ),
        (
            "a UDP length of 15",
            with(in_vxlan, 38, &[0, 15]),
            "malformed",
        ),
        ("ARP in VXLAN", tunnelled(&at4(12, &[8, 6])), "not_ip"),
        (
            "a fragment in VXLAN",
            tunnelled(&at4(20, &[0x20, 0])),
            "fragment",
        ),
        ("VXLAN in VXLAN", tunnelled(&tunnelled(&plain4)), "too_deep"),
        ("Geneve", in_geneve.clone(), ""),
        (
            "Geneve of version 1",
            with(in_geneve.clone(), 42, &[0x40]),
            "not_tcp",
        ),
        (
            "Geneve of IPv4",
            with(in_geneve.clone(), 44, &[8, 0]),
            "not_tcp",
        ),
        (
            "Geneve options beyond the packet",
            with(in_geneve, 42, &[0x3f]),
            "malformed",
        ),
    ]
}

fn reasons(port: &Port) -> Vec<(String, u64)> {
    let all = port.counters();
    let passed = counters::passed(&all).filter(|(word, _)| word.word != "unknown_scale");
    passed
        .map(|(word, count)| (word.word.to_owned(), count))
        .collect()
}

#[test]
fn what_is_not_followed_passes_with_its_reason() {
    let port = Port::new();
    for (what, frame, reason) in frames() {
        for side in ["egress", "ingress"] {
            let mut expected = reasons(&port);
            for (_, count) in expected.iter_mut().filter(|(word, _)| word == reason) {
                *count += 1;
            }
            assert_eq!(port.run(&format!("hscc_{side}"), &frame), frame, "{what}");
            assert_eq!(reasons(&port), expected, "{what}, {side}");
        }
    }
    assert_eq!(port.state().tracked, 0);
}

/// The ACK of a connection that is followed: in its scale, with the window of the scheme.
#[track_caller]
fn is_controlled(port: &Port, data: &Segment, scale: u8, what: &str) {
    let ack = ack(data);
    let got = port.run("hscc_ingress", &ack.frame());
    let window = 2920_u32.div_ceil(1 << scale) as u16;
    assert_eq!(got, ack.with(|s| s.window = window).frame(), "{what}");
    assert_eq!(port.state().flows, 1, "{what}");
}

#[test]
fn connections_may_begin_in_any_way() {
    let data = four();
    let syn_with_data = syn(&data).with(|s| s.payload = 100);
    let sent = data.with(|s| s.seq += 100);
    let answer = syn_ack(&data);
    let request = syn(&data.reversed()).with(|s| {
        (s.seq, s.payload) = (data.ack.wrapping_sub(101), 100);
    });
    let served = syn(&data).with(|s| (s.flags, s.ack) = (SYN | ACK, data.ack));
    let third = ack(&data.with(|s| s.payload = 0));
    let simultaneous = answer.with(|s| (s.flags, s.ack) = (SYN, 0));
    let cookie = answer.with(|s| s.seq = 77);
    let from_cookie = data.with(|s| s.ack = 78);
    for (what, data, packets) in [
        (
            "SYN with data, not taken",
            &data,
            vec![(true, &syn_with_data), (false, &answer)],
        ),
        (
            "TCP Fast Open",
            &sent,
            vec![(true, &syn_with_data), (false, &syn_ack(&sent))],
        ),
        (
            "TCP Fast Open, by the receiver",
            &data,
            vec![(false, &request), (true, &served), (false, &third)],
        ),
        (
            "simultaneous open",
            &data,
            vec![
                (true, &syn(&data)),
                (false, &simultaneous),
                (true, &served),
                (false, &answer),
            ],
        ),
        (
            "another SYN-ACK, with a cookie",
            &from_cookie,
            vec![(true, &syn(&data)), (false, &answer), (false, &cookie)],
        ),
    ] {
        let port = Port::new();
        for (leaves, packet) in packets {
            let side = if leaves {
                "hscc_egress"
            } else {
                "hscc_ingress"
            };
            port.run(side, &packet.frame());
        }
        port.run("hscc_egress", &data.frame());
        is_controlled(&port, data, SCALE, what);
        assert_eq!(port.state().half_open, 0, "{what}");
    }
}

#[test]
fn sequence_numbers_wrap_and_ports_are_used_again() {
    let port = Port::new();
    port.configure(|config| config.window.first_acks = 255);
    let mut data = four().with(|s| (s.seq, s.ack) = (u32::MAX - 2000, u32::MAX));
    open(&port, "hscc", &data);
    for number in 0..4 {
        data.payload = 1000;
        port.run("hscc_egress", &data.frame());
        is_controlled(&port, &data, SCALE, &format!("segment {number}"));
        data.seq = data.seq.wrapping_add(1000);
    }
    assert_eq!(port.counters().repeated_bytes, 0);
    data.payload = 0;
    port.run("hscc_egress", &data.with(|s| s.flags = FIN | ACK).frame());
    assert_eq!(port.state().flows, 0);

    // TIME_WAIT ends early for a higher sequence number (RFC 6191); with another scale.
    let again = data.with(|s| s.seq = s.seq.wrapping_add(100_000));
    let scaled = |segment: Segment| segment.with(|s| s.options = Segment::syn_options(1460, 3));
    port.run("hscc_egress", &scaled(syn(&again)).frame());
    port.run("hscc_ingress", &scaled(syn_ack(&again)).frame());
    port.run("hscc_egress", &again.frame());
    is_controlled(&port, &again, 3, "the ports again");
    assert_eq!(port.state().tracked, 1);
}

/// Of each other pair of addresses and ports, as floods are that hide behind ACKs.
#[test]
fn acks_of_no_connection_leave_nothing_behind() {
    let port = Port::new();
    open(&port, "hscc", &four());
    let before = port.state();
    for number in 1..=2000 {
        for flow in [four(), six()] {
            let stray = ack(&flow).with(|s| (s.source_port, s.payload) = (1000 + number, 100));
            let frame = stray.frame();
            assert_eq!(port.run("hscc_ingress", &frame), frame);
            let pure = flow.with(|s| s.source_port = 1000 + number).frame();
            assert_eq!(port.run("hscc_egress", &pure), pure);
        }
    }
    let after = port.state();
    let entries = |state: &penstockd::skel::port::types::port_state| {
        (state.flows, state.tracked, state.half_open, state.half_own)
    };
    assert_eq!(entries(&after), entries(&before));
    assert_eq!(port.counters().half_open_begun, 1);
}

/// Lists that contradict themselves are read up to there, and nothing is written behind it.
#[test]
fn broken_options_stay_as_they_are() {
    let port = Port::new();
    port.configure(|config| config.window.wscale_source = 4);
    let scale = [3, 3, SCALE, 1];
    for broken in [
        [0, 1, 1, 1],
        [2, 0, 1, 1],
        [2, 1, 1, 1],
        [254, 9, 1, 1],
        [3, 4, 9, 9],
        [3, 2, 1, 1],
    ] {
        let is_read_on = broken[0] == 3;
        for (options, is_stripped) in [
            ([broken, scale].concat(), is_read_on),
            ([scale, broken].concat(), true),
            (broken.to_vec(), false),
        ] {
            let mut expected = options.clone();
            if is_stripped {
                let at = if options[..4] == scale { 0 } else { 4 };
                expected[at..][..3].copy_from_slice(&[1; 3]);
            }
            let [given, left] = [options, expected]
                .map(|options| syn(&four()).with(|s| s.options = options).frame());
            assert_eq!(port.run("hscc_egress", &given), left, "{broken:?}");
        }
    }
}

/// Frames of the usual headers are parsed by other code than the rest.
#[test]
fn other_headers_find_the_same_flow() {
    for (data, other) in [
        (four(), four().with(|s| s.ip_options = vec![1; 12])),
        (six(), six().with(|s| s.extensions = vec![(0, 8)])),
    ] {
        let port = Port::new();
        open(&port, "hscc", &data);
        is_controlled(&port, &other, SCALE, "other headers later");
        let port = Port::new();
        open(&port, "hscc", &other);
        is_controlled(&port, &data, SCALE, "other headers first");
    }
}

/// Who knows the addresses and ports forges the server's SYN before its first ACK, with a scale
/// that would close the connection's window.
#[test]
fn a_syn_forged_within_a_handshake_is_not_believed() {
    let port = Port::new();
    let data = four();
    port.run("hscc_egress", &syn(&data).frame());
    port.run("hscc_ingress", &syn_ack(&data).frame());
    let forged = syn(&data.reversed()).with(|s| {
        (s.seq, s.options) = (1 << 31, Segment::syn_options(1460, 14));
    });
    port.run("hscc_ingress", &forged.frame());
    let ack = ack(&data).frame();
    assert_eq!(port.run("hscc_ingress", &ack), ack);
    assert_eq!(port.state().flows, 0);
}
