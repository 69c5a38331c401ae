// SPDX-License-Identifier: Apache-2.0
//! The shim, to the byte: what it writes into what its host sends, and takes out of what that gets.

use super::common::packet::{PSH, RST, Segment, ethernet, vxlan};
use super::port::Port;
use super::segments::{SCALE, ack, flows, open, syn, syn_ack};

/// `enum wscale_source` of core/window.h.
const TRACKED: u32 = 0;
const RESERVED: u32 = 1;
const WINDOW12: u32 = 2;
const UNIFIED: u32 = 3;

const EGRESS: &str = "shim_egress";
const INGRESS: &str = "shim_ingress";

/// Another than `SCALE`.
const NETWORK_SCALE: u8 = 3;

fn set(port: &Port, wscale_source: u32) {
    port.configure(|config| {
        config.window.wscale_source = wscale_source;
        config.window.network_wscale = u32::from(NETWORK_SCALE);
    });
}

fn shim(wscale_source: u32) -> Port {
    let port = Port::new();
    set(&port, wscale_source);
    port
}

/// With these reserved bits, which the checksum leaves out.
fn carrying(segment: &Segment, bits: u8) -> Vec<u8> {
    let mut frame = segment.frame();
    let tcp = if segment.source.is_ipv4() { 34 } else { 54 };
    frame[tcp + 12] |= bits;
    frame
}

fn signed(segment: &Segment) -> Segment {
    segment.with(|s| s.options = [vec![1, 1, 19, 18], vec![9; 16]].concat())
}

/// Nothing is written into it, nor taken out.
#[track_caller]
fn stays(port: &Port, program: &str, frame: &[u8]) {
    assert_eq!(port.run(program, frame), frame);
}

#[test]
fn reserved_bits_carry_the_scale_of_what_a_host_offers() {
    let port = shim(RESERVED);
    for (_, data) in flows() {
        open(&port, "shim", &data);
        assert_eq!(port.run(EGRESS, &data.frame()), carrying(&data, SCALE));
        let answer = ack(&data);
        assert_eq!(port.run(INGRESS, &carrying(&answer, 9)), answer.frame());
        stays(&port, INGRESS, &answer.frame());
        stays(&port, EGRESS, &data.with(|s| s.flags = PSH).frame());
        for flags in [RST, PSH] {
            stays(
                &port,
                INGRESS,
                &carrying(&answer.with(|s| s.flags = flags), 9),
            );
        }
        stays(&port, EGRESS, &signed(&data).frame());
        stays(&port, INGRESS, &carrying(&signed(&answer), 9));
    }
    let counters = port.counters();
    assert_eq!((counters.acks, counters.acks_rewritten), (6, 4));
    assert_eq!(port.passed("authenticated"), 4);
    assert_eq!(port.passed("unknown_scale"), 0);

    let data = flows()[0].1.clone();
    let answer = ack(&data);
    stays(&port, EGRESS, &data.with(|s| s.source_port = 1).frame());
    assert_eq!(port.passed("unknown_scale"), 1);
    set(&port, TRACKED);
    stays(&port, EGRESS, &data.frame());
    stays(&port, INGRESS, &carrying(&answer, 9));
    // Whose agent is dead writes no more, but what others wrote would spoil the checksum.
    set(&port, RESERVED);
    port.beat(1);
    stays(&port, EGRESS, &data.frame());
    assert_eq!(port.passed("stale"), 1);
    assert_eq!(port.run(INGRESS, &carrying(&answer, 9)), answer.frame());
    stays(&port, EGRESS, &data.with(|s| s.flags = RST).frame());
}

#[test]
fn twelve_bits_are_left_for_the_window() {
    let port = shim(WINDOW12);
    let carried = u16::from(SCALE) << 12;
    for (_, data) in flows() {
        open(&port, "shim", &data);
        for beats in [true, false] {
            if !beats {
                port.beat(1);
            }
            let window = |segment: &Segment, window| segment.with(|s| s.window = window);
            for (given, left) in [(0x123, 0x123), (0xffff, 0xfff), (0, 0)] {
                let got = port.run(EGRESS, &window(&data, given).frame());
                assert_eq!(got, window(&data, carried | left).frame());
            }
            let answer = ack(&data);
            for (given, left) in [(0x9123, 0x123), (0x123, 0x123)] {
                let got = port.run(INGRESS, &window(&answer, given).frame());
                assert_eq!(got, window(&answer, left).frame());
            }
            stays(&port, EGRESS, &signed(&data).frame());
            stays(&port, INGRESS, &signed(&answer).frame());
            let stranger = data.with(|s| s.source_port = 1);
            let got = port.run(EGRESS, &stranger.frame());
            assert_eq!(got, window(&stranger, 0xfff).frame(), "no scale is known");
        }
        port.beat(penstockd::host::clock::monotonic_ns());
    }
}

/// The SYN with another scale.
fn offering(syn: &Segment, scale: u8) -> Vec<u8> {
    let options = Segment::syn_options(1460, scale);
    syn.with(|s| s.options = options).frame()
}

#[test]
fn one_scale_is_written_into_syns_and_windows() {
    for (_, data) in flows() {
        let port = shim(UNIFIED);
        let first = syn(&data);
        let unified = offering(&first, NETWORK_SCALE);
        assert_eq!(port.run(EGRESS, &first.frame()), unified);
        // A repeated one is the same, whatever was configured meanwhile.
        set(&port, TRACKED);
        assert_eq!(port.run(EGRESS, &first.frame()), unified);
        stays(&port, INGRESS, &syn_ack(&data).frame());
        for (given, left) in [(0x10, 0x100), (0xfff, 0xfff0), (0x1000, 0xffff), (0, 0)] {
            let [given, left] = [given, left].map(|window| data.with(|s| s.window = window));
            assert_eq!(port.run(EGRESS, &given.frame()), left.frame());
        }
        stays(
            &port,
            EGRESS,
            &signed(&data).with(|s| s.window = 0x10).frame(),
        );
        assert_eq!(port.counters().acks_rewritten, 3);
    }
}

/// Without the option at both ends there is no scale (RFC 7323 §2.2).
#[test]
fn windows_of_a_peer_without_scaling_stay() {
    let port = shim(UNIFIED);
    let data = flows()[0].1.clone();
    port.run(EGRESS, &syn(&data).frame());
    let plain = syn_ack(&data).with(|s| s.options = vec![2, 4, 5, 180]);
    port.run(INGRESS, &plain.frame());
    stays(&port, EGRESS, &data.with(|s| s.window = 0x10).frame());
}

#[test]
fn syns_that_keep_their_scale() {
    let port = shim(UNIFIED);
    let at = |number| flows()[0].1.with(|s| s.source_port = number);
    let plain = |number| syn(&at(number)).with(|s| s.options = vec![2, 4, 5, 180]);
    stays(&port, EGRESS, &plain(1).frame());
    let signed = syn(&at(2)).with(|s| {
        s.options = [vec![3, 3, SCALE, 1, 19, 18], vec![9; 16], vec![1, 1]].concat();
    });
    stays(&port, EGRESS, &signed.frame());
    assert_eq!(port.passed("authenticated"), 1);
    stays(&port, EGRESS, &offering(&syn(&at(3)), NETWORK_SCALE));
    stays(&port, EGRESS, &syn(&at(4)).with(|s| s.flags |= RST).frame());
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    let inside = vxlan(&outer, 4789, 9, true, &syn(&at(5)).frame());
    stays(&port, EGRESS, &ethernet(outer.source, &[], &inside));
    stays(&port, INGRESS, &ethernet(outer.source, &[], &inside));
    assert_eq!(port.passed("too_deep"), 2);
    // One that left as it was is repeated as it was.
    port.beat(1);
    stays(&port, EGRESS, &syn(&at(6)).frame());
    assert_eq!(port.passed("stale"), 1);
    port.beat(penstockd::host::clock::monotonic_ns());
    stays(&port, EGRESS, &syn(&at(6)).frame());
    set(&port, RESERVED);
    stays(&port, EGRESS, &syn(&at(7)).frame());
}

/// A connection that is older than the shim, of which a socket of the host is known.
#[test]
fn scales_of_older_connections_are_those_of_sockets() {
    const OTHER: u8 = 5;
    let port = shim(RESERVED);
    for (_, data) in flows() {
        let older = data.with(|s| s.source_port = 1);
        for known in [&data, &older] {
            port.know(known, 1460, [OTHER; 2]);
        }
        assert_eq!(port.run(EGRESS, &older.frame()), carrying(&older, OTHER));
        open(&port, "shim", &data);
        assert_eq!(port.run(EGRESS, &data.frame()), carrying(&data, SCALE));
    }
    assert_eq!(port.passed("unknown_scale"), 0);
}

#[test]
fn a_shim_counts_what_passes() {
    let port = shim(TRACKED);
    let frames = [ack(&flows()[0].1), syn(&flows()[1].1)].map(|segment| segment.frame());
    for frame in &frames {
        stays(&port, EGRESS, frame);
        stays(&port, INGRESS, frame);
    }
    let counters = port.counters();
    let bytes = frames.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!((counters.egress_packets, counters.egress_bytes), (2, bytes));
    assert_eq!((counters.ingress_packets, counters.acks), (2, 1));
}
