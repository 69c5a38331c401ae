// SPDX-License-Identifier: Apache-2.0
//! The floor of a window is one segment, as those that pass show it.

use super::common::packet::{ACK, PSH, Segment};
use super::port::Port;
use super::segments::{SCALE, ack, syn, syn_ack};

/// A test run takes a page at most, so large segments are those of a super-packet of which a part is
/// given. FairQ's windows are a few bytes each in these tests, so that the floor is what is written.
fn clamped() -> Port {
    let port = Port::new();
    port.configure(|config| {
        config.window.first_acks = 0;
        config.schemes.fairq.alpha_q16 = 1;
        config.schemes.fairq.interval_ns = 3_600_000_000_000;
    });
    port
}

/// A connection whose SYNs offer segments of so many bytes.
fn open(port: &Port, data: &Segment, mss: u16) {
    let offering = |segment: Segment| {
        segment
            .with(|s| s.options = Segment::syn_options(mss, SCALE))
            .frame()
    };
    port.run("fairq_egress", &offering(syn(data)));
    port.run("fairq_ingress", &offering(syn_ack(data)));
    port.run("fairq_egress", &data.frame());
}

/// The window that an ACK leaves with, bytes.
fn floor(port: &Port, data: &Segment) -> u32 {
    let frame = port.run("fairq_ingress", &ack(data).frame());
    u32::from(u16::from_be_bytes([frame[48], frame[49]])) << SCALE
}

fn scaled(bytes: u32) -> u32 {
    bytes.next_multiple_of(1 << SCALE)
}

fn flow(source_port: u16) -> Segment {
    Segment::new("10.0.0.1", "10.0.0.2").with(|s| s.source_port = source_port)
}

#[test]
fn the_floor_is_what_passes_and_not_what_is_offered() {
    let port = clamped();
    let small = flow(1);
    open(&port, &small, 65495);
    assert_eq!(floor(&port, &small), scaled(1460));
    // A super-packet is as large as its segments, for its flow, for new flows and for FairQ.
    let part = |of: &Segment| of.with(|s| s.payload = 2000).frame();
    port.send_super_packet("fairq_egress", &part(&small), 1448);
    assert_eq!(floor(&port, &small), scaled(1460));
    assert_eq!(port.state().segments.bytes, 1448);
    assert_eq!(port.state().schemes.fairq.mss_bytes, 1448);
    // Larger ones count at once.
    port.send_super_packet("fairq_egress", &part(&small), 8948);
    assert_eq!(floor(&port, &small), scaled(8952));
    assert_eq!(port.state().schemes.fairq.mss_bytes, 8948);
    // What another flow of this port sends is expected of a new one, within its offer.
    open(&port, &flow(2), 65495);
    assert_eq!(floor(&port, &flow(2)), scaled(8948));
    open(&port, &flow(3), 1460);
    assert_eq!(floor(&port, &flow(3)), scaled(1460));
    // Short writes change nothing; full segments do, the eighth in a row.
    let short = small.with(|s| (s.flags, s.payload) = (ACK | PSH, 100));
    for _ in 0..20 {
        port.run("fairq_egress", &short.frame());
    }
    assert_eq!(floor(&port, &small), scaled(8952));
    for number in 1..=8 {
        assert_eq!(
            floor(&port, &small),
            scaled(8952),
            "before segment {number}"
        );
        port.run("fairq_egress", &small.with(|s| s.payload = 1448).frame());
    }
    assert_eq!(floor(&port, &small), scaled(1460));
}

#[test]
fn a_packet_of_no_connection_shows_no_size() {
    let port = clamped();
    open(&port, &flow(1), 65495);
    let before = port.state().segments.bytes;
    let part = flow(2).with(|s| s.payload = 2000).frame();
    port.send_super_packet("fairq_egress", &part, 60_000);
    assert_eq!(port.state().segments.bytes, before);
}

/// A change of parameters resets the scheme, but not what the port has seen.
#[test]
fn new_parameters_keep_the_size_of_segments() {
    let port = clamped();
    open(&port, &flow(1), 8960);
    let part = flow(1).with(|s| s.payload = 2000).frame();
    port.send_super_packet("fairq_egress", &part, 8948);
    port.configure(|config| config.generation = 2);
    port.run("fairq_egress", &flow(1).frame());
    assert_eq!(port.state().schemes.fairq.mss_bytes, 8948);
}

/// A flow of which only the kernel's socket is known expects what others of its port send.
#[test]
fn a_flow_older_than_the_port_expects_the_segments_of_others() {
    let port = clamped();
    open(&port, &flow(1), 8960);
    let part = flow(1).with(|s| s.payload = 2000).frame();
    port.send_super_packet("fairq_egress", &part, 8948);
    port.know(&flow(2), 8960, [SCALE; 2]);
    assert_eq!(floor(&port, &flow(2)), scaled(8948));
}

/// What a SYN carries was sent before the sizes were agreed on, and a pure ACK has none.
#[test]
fn neither_syns_nor_acks_show_the_size_of_segments() {
    let port = clamped();
    let segments = || {
        let seen = port.state().segments;
        (seen.bytes, seen.latest, seen.since_ns)
    };
    let before = segments();
    let with_data = syn(&flow(1)).with(|s| s.payload = 500);
    for segment in [with_data, flow(1)] {
        port.run("fairq_egress", &segment.frame());
        assert_eq!(segments(), before, "flags {:#x}", segment.flags);
    }
}

/// Those of guests come without the number of their segments.
#[test]
fn a_super_packet_counts_as_its_segments() {
    const SEGMENT: u32 = 300;
    let port = clamped();
    open(&port, &flow(1), 1460);
    for (payload, segments) in [(3000, 10), (3100, 11), (3299, 11)] {
        let before = port.counters().egress_packets;
        let packet = flow(1).with(|s| s.payload = payload).frame();
        port.send_super_packet("fairq_egress", &packet, SEGMENT);
        let counted = port.counters().egress_packets - before;
        assert_eq!(counted, segments, "{payload} bytes");
    }
}
