// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Segments as a flow and a port show them.

use super::flow::{Flow, data, syn, syn_ack};
use penstock_core::PortSegments;
use penstock_core::flow::flag;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// A connection whose SYNs offer `mss`.
fn offering(mss: u16) -> Flow {
    let mut flow = Flow::default();
    for mut syn in [syn(), syn_ack()] {
        syn.mss = mss;
        flow.see(syn);
    }
    let mut request = data(1, 1);
    request.flags |= flag::PSH;
    flow.see(request);
    flow
}

/// A segment, or a super-packet of segments of a size.
fn send(flow: &mut Flow, bytes: u32, more_flags: u8, super_packet_of: u16) {
    let mut segment = data(1, 1);
    segment.flags |= more_flags;
    (segment.payload, segment.mss) = (bytes, super_packet_of);
    flow.see(segment);
}

#[test]
fn an_option_claims_no_more_than_ordinary_segments() {
    for (option, expected) in [
        (536, 536),
        (1000, 1000),
        (1460, 1460),
        (8960, 1460),
        (65495, 1460),
    ] {
        assert_eq!(offering(option).entry.mss(0), expected);
    }
    // Where the port's segments are larger, those of a new flow are expected to be as well.
    assert_eq!(offering(65495).entry.mss(8960), 8960);
    assert_eq!(offering(1460).entry.mss(8960), 1460);
}

#[test]
fn a_full_segment_shows_its_size_at_once() {
    for (bytes, super_packet_of, shown) in [(8948, 0, 8952), (60_000, 8948, 8952), (1448, 0, 1460)]
    {
        let mut flow = offering(65495);
        send(&mut flow, bytes, 0, super_packet_of);
        assert_eq!(flow.entry.mss(0), shown);
        assert_eq!(
            flow.entry.mss(65535),
            shown,
            "the flow's own holds, not the port's"
        );
    }
    let mut flow = offering(8000);
    send(&mut flow, 8948, 0, 0);
    assert_eq!(flow.entry.mss(0), 8000, "never more than both offer");
}

#[test]
fn what_an_application_wrote_last_shows_nothing_of_the_path() {
    for flags in [flag::PSH, flag::FIN] {
        let mut flow = offering(8960);
        send(&mut flow, 200, flags, 0);
        assert_eq!(flow.entry.mss(8960), 8960);
        let mut flow = offering(8960);
        send(&mut flow, 8948, 0, 0);
        for _ in 0..100 {
            send(&mut flow, 200, flag::PSH, 0);
        }
        assert_eq!(flow.entry.mss(0), 8952);
        // But for a larger one than all before.
        let mut flow = offering(8960);
        send(&mut flow, 4000, 0, 0);
        send(&mut flow, 5000, flag::PSH, 0);
        assert_eq!(flow.entry.mss(0), 5000);
    }
}

#[test]
fn a_smaller_path_is_followed_by_the_eighth_segment() {
    let mut flow = offering(8960);
    send(&mut flow, 8948, 0, 0);
    for _ in 0..7 {
        send(&mut flow, 1448, 0, 0);
        assert_eq!(flow.entry.mss(0), 8952);
    }
    send(&mut flow, 1448, 0, 0);
    assert_eq!(flow.entry.mss(0), 1460);
    // A large one between begins a new run.
    send(&mut flow, 8948, 0, 0);
    for _ in 0..7 {
        send(&mut flow, 1448, 0, 0);
    }
    send(&mut flow, 8948, 0, 0);
    send(&mut flow, 1448, 0, 0);
    assert_eq!(flow.entry.mss(0), 8952);
}

#[test]
fn another_connection_shows_its_segments_again() {
    let mut flow = offering(8960);
    send(&mut flow, 8948, 0, 0);
    for mut packet in [syn(), syn_ack(), data(1, 1)] {
        (packet.seq, packet.ack) = (
            packet.seq.wrapping_add(1 << 20),
            packet.ack.wrapping_add(1 << 20),
        );
        if packet.flags & flag::SYN != 0 {
            packet.mss = 8960;
        } else {
            packet.flags |= flag::PSH;
        }
        flow.see(packet);
    }
    assert_eq!(flow.entry.mss(0), 1460);
}

#[test]
fn a_port_follows_the_largest_full_segment_of_a_second() {
    let mut port = PortSegments::default();
    port.on_data(8948, true, SECOND);
    for ms in (1000..1999).map(|ms| ms * 1_000_000) {
        port.on_data(1448, true, ms);
        assert_eq!(port.bytes, 8948);
    }
    // A period without the large ones has to pass.
    port.on_data(1448, true, 2 * SECOND);
    assert_eq!(port.bytes, 8948);
    port.on_data(1448, true, 3 * SECOND);
    assert_eq!(port.bytes, 1448);
    // Short writes are none, however long they last.
    for second in 4..20 {
        port.on_data(100, false, second * SECOND);
        assert_eq!(port.bytes, 1448);
    }
}

proptest! {
    /// What saves the datapath its lock.
    #[test]
    fn what_is_not_heeded_changes_nothing(
        segments: Vec<(u32, bool, u32)>,
    ) {
        let (mut port, mut now) = (PortSegments::default(), 0);
        for (bytes, is_full, after) in segments {
            now += u64::from(after);
            let before = port;
            let is_heeded = port.heeds(bytes, is_full, now);
            port.on_data(bytes, is_full, now);
            prop_assert_eq!(is_heeded, port != before);
            prop_assert!(!port.heeds(bytes, is_full, now), "heeded twice");
        }
    }

    /// A window of the size shown holds the largest full segment of the present period, and of no
    /// segment older than two.
    #[test]
    fn a_port_shows_what_passed_of_late(
        segments in proptest::collection::vec((1u32..70_000, 0u64..SECOND), 1..100),
    ) {
        let (mut port, mut now, mut seen) = (PortSegments::default(), SECOND, Vec::new());
        for (bytes, after) in segments {
            now += after;
            seen.push((now, bytes.min(65535)));
            port.on_data(bytes, true, now);
            let since = |age: u64| {
                let recent = seen.iter().filter(|(at, _)| now - at < age);
                recent.map(|(_, bytes)| *bytes).max().unwrap_or(0)
            };
            // Periods begin with a segment, so each lasts less than two seconds here.
            prop_assert!(port.bytes >= port.latest && port.bytes >= bytes.min(65535));
            prop_assert!(port.bytes <= since(4 * SECOND));
        }
    }

    /// Never below what is offered or ordinary, whichever is less; never above the offer.
    #[test]
    fn a_flow_is_expected_to_send_no_less_than_ordinary_segments(
        option in 536u16..,
        port_bytes: u32,
        segments: Vec<(u32, u8, u16)>,
    ) {
        let mut flow = offering(option);
        for (bytes, flags, super_packet_of) in segments {
            send(&mut flow, bytes, flags & (flag::PSH | flag::FIN), super_packet_of);
            let mss = flow.entry.mss(port_bytes);
            prop_assert!(mss >= u32::from(option.min(1460)) && mss <= option.into());
        }
    }
}
