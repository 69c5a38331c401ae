// SPDX-License-Identifier: Apache-2.0
//! Room for SYNs, FINs and pure ACKs: the early drop of data that a port must allow, and the
//! priority by which a queue discipline puts these packets ahead of data.

use crate::common::packet::{ACK, FIN, RST, SYN, Segment};
use crate::port::{DROP, NEXT, Port};

const EGRESS: &str = "hscc_egress";
pub const PORT_DROPS: u32 = 1 << 2;

/// Any data is beyond it, on an empty queue too.
const SIGMA_BYTES: u32 = 100;

fn data() -> Segment {
    Segment::new("10.0.0.1", "10.0.0.2").with(|data| data.payload = 1000)
}

fn control(flags: u8) -> Segment {
    data().with(|control| (control.flags, control.payload) = (flags, 0))
}

#[test]
fn data_is_dropped_beyond_sigma_where_the_port_allows_it() {
    let port = Port::new();
    let drop = |is_allowed: bool, segment: &Segment| {
        port.configure(|config| {
            config.schemes.hscc.sigma_bytes = SIGMA_BYTES;
            config.flags = if is_allowed { PORT_DROPS } else { 0 };
        });
        port.outcome(EGRESS, &segment.frame()).0
    };
    assert_eq!(drop(false, &data()), NEXT);
    assert_eq!(port.counters().egress_packets, 1);
    assert_eq!(drop(true, &data()), DROP);
    for flags in [SYN, SYN | ACK, ACK, FIN | ACK, RST] {
        assert_eq!(drop(true, &control(flags)), NEXT, "flags {flags:#x}");
    }
    let counters = port.counters();
    assert_eq!((counters.data_dropped, counters.egress_packets), (1, 6));
    port.configure(|config| {
        config.schemes.hscc.sigma_bytes = data().frame().len() as u32;
        config.flags = PORT_DROPS;
    });
    assert_eq!(port.outcome(EGRESS, &data().frame()).0, NEXT, "it fits");
}

#[test]
fn nothing_is_dropped_by_observers_or_while_the_agent_is_dead() {
    let port = Port::new();
    port.configure(|config| {
        config.schemes.hscc.sigma_bytes = SIGMA_BYTES;
        config.flags = PORT_DROPS;
        config.control_priority = 7;
    });
    assert_eq!(port.outcome("observe_egress", &data().frame()).0, NEXT);
    assert_eq!(port.outcome("observe_egress", &control(ACK).frame()).1, 0);
    assert_eq!(port.outcome(EGRESS, &data().frame()).0, DROP);
    port.beat(1);
    assert_eq!(port.outcome(EGRESS, &data().frame()).0, NEXT);
    assert_eq!(port.outcome(EGRESS, &control(ACK).frame()).1, 0);
    assert_eq!(port.counters().data_dropped, 1);
}

/// What may overtake the data of its flow, and nothing else.
#[test]
fn syns_and_pure_acks_get_the_priority_of_the_port() {
    let port = Port::new();
    let priority = |segment: &Segment| port.outcome(EGRESS, &segment.frame()).1;
    assert_eq!(priority(&control(SYN)), 0, "not unless it is configured");
    port.configure(|config| config.control_priority = 7);
    for flags in [SYN, SYN | ACK, ACK] {
        assert_eq!(priority(&control(flags)), 7, "flags {flags:#x}");
    }
    for segment in [data(), control(FIN | ACK), control(RST), control(RST | ACK)] {
        assert_eq!(priority(&segment), 0, "flags {:#x}", segment.flags);
    }
    let six = Segment::new("fd00::1", "fd00::2");
    assert_eq!(priority(&six), 7);
    assert_eq!(port.counters().control_prioritized, 4);
}

/// A guest's super-packet, too, is as large as its segments.
#[test]
fn super_packets_are_dropped_by_the_size_of_their_segments() {
    let port = Port::new();
    port.configure(|config| {
        config.schemes.hscc.sigma_bytes = 1000;
        config.flags = PORT_DROPS;
    });
    let packet = data().with(|s| s.payload = 3000).frame();
    assert_eq!(port.outcome(EGRESS, &packet).0, DROP);
    port.send_super_packet(EGRESS, &packet, 500);
}
