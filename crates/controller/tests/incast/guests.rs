// SPDX-License-Identifier: Apache-2.0
//! What a guest can cause that floods or makes up flows: the state stays bounded, and others are foreseen.

use crate::{EDGE, PORT, flow, incast, place, report, syn};
use penstock_controller::fabric::Place;
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::segment::{Flow, Segment};
use penstock_sdn::message::Order;
use std::net::SocketAddr;

#[test]
fn a_guest_that_floods_foresees_no_incast() {
    let mut incast = incast(Limits {
        new_flows: 5,
        ..Limits::default()
    });
    for round in 0..10 {
        for port in 0..1000 {
            incast.on_copy(EDGE, &syn(flow(round * 1000 + port)), &[PORT], &[], 0);
        }
        assert_eq!(
            incast.on_queues(&report(0), u64::from(round) * 1_000_000),
            []
        );
    }
    // The same SYN again and again is one flow.
    for _ in 0..1000 {
        incast.on_copy(EDGE, &syn(flow(60_000)), &[PORT], &[], 0);
    }
    assert_eq!(incast.on_queues(&report(0), 20_000_000), []);
}

#[test]
fn the_state_is_bounded() {
    let mut incast = incast(Limits {
        flows: 4,
        new_flows: 1000,
        ..Limits::default()
    });
    for port in 0..1000 {
        let mut flow = flow(port);
        flow.source = SocketAddr::from(([10, 1, (port >> 8) as u8, port as u8], 1));
        incast.on_copy(EDGE, &syn(flow), &[PORT], &[], 0);
    }
    assert_eq!(incast.on_queues(&report(0), 1).len(), 4, "the last four");
}

#[test]
fn a_guest_has_a_share_of_the_flows_of_a_port() {
    let mut incast = incast(Limits {
        guest_flows: 5,
        ..Limits::default()
    });
    let other = place(5, 2);
    incast.on_copy(other, &syn(flow(100)), &[PORT], &[], 0);
    for port in 0..20 {
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
    }
    // Its own oldest are forgotten: those of guests that ended without a FIN do not stay for good.
    assert_eq!(incast.flows(PORT), 6);
    // One that ends makes room for another, also if its other side resets it.
    let end = |flow, flags| Segment { flags, ..syn(flow) };
    for gone in [0, 19] {
        incast.on_copy(EDGE, &end(flow(gone), 1), &[PORT], &[], 0);
    }
    incast.on_copy(other, &end(flow(18).reverse(), 4), &[], &[PORT], 0);
    assert_eq!(incast.flows(PORT), 4);
    for port in 20..30 {
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
    }
    assert_eq!(incast.flows(PORT), 6);
}

#[test]
fn a_syn_that_is_repeated_takes_no_others_flows() {
    let mut incast = incast(Limits {
        flows: 16,
        guest_flows: 8,
        ..Limits::default()
    });
    incast.on_copy(place(5, 2), &syn(flow(100)), &[PORT], &[], 0);
    incast.on_copy(EDGE, &syn(flow(1)), &[PORT], &[], 0);
    for _ in 0..1000 {
        incast.on_copy(EDGE, &syn(flow(2)), &[PORT], &[], 0);
    }
    assert_eq!(incast.flows(PORT), 3);
}

/// A guest's segments and the answers to them, at times that pass.
struct Bed {
    incast: Incast,
    now_ns: u64,
}

const SERVER: Place = Place {
    datapath: 5,
    port: 2,
};

impl Bed {
    fn new() -> Bed {
        Bed {
            incast: incast(Limits::default()),
            now_ns: 1,
        }
    }

    /// How many of the flows are expected to send, as far as a report of an empty queue shows it: whether it
    /// is more than the buffer takes.
    fn is_foreseen(&mut self) -> bool {
        self.now_ns += 500_000;
        let notices = self.incast.on_queues(&report(0), self.now_ns);
        notices
            .iter()
            .any(|notice| matches!(notice.order, Order::On(..)))
    }

    /// The clamp of before is over.
    fn wait(&mut self) {
        while self.is_foreseen() {}
        self.now_ns += 20_000_000;
    }

    fn syn(&mut self, edge: Place, flow: Flow) {
        self.incast
            .on_copy(edge, &syn(flow), &[PORT], &[], self.now_ns);
    }

    fn answer(&mut self, flow: Flow) {
        let mut answer = syn(flow.reverse());
        (answer.flags, answer.seq, answer.ack) = (2 | 16, 700, 101);
        let now_ns = self.now_ns;
        self.incast.on_copy(SERVER, &answer, &[], &[PORT], now_ns);
    }

    fn end(&mut self, flow: Flow, flags: u8, ack: u32) {
        let end = Segment {
            flags,
            ack,
            ..syn(flow)
        };
        self.incast.on_copy(EDGE, &end, &[PORT], &[], self.now_ns);
    }
}

/// Flows that are more than the buffer takes: the 7 of [`incast_is_foreseen_and_ends`].
const ENOUGH: u16 = 7;

fn other_flow(port: u16) -> Flow {
    let mut flow = flow(port);
    flow.source = SocketAddr::from(([10, 0, 0, 9], port));
    flow
}

#[test]
fn of_flows_that_never_end_a_number_counts_and_then_few_a_second() {
    let mut bed = Bed::new();
    let mut begun = Vec::new();
    // 10,000 SYNs a second for 3 s, 5 between two reports: too few for incast, but for the sum.
    for round in 0..6_000u16 {
        for one in 0..5 {
            bed.syn(EDGE, flow(round * 5 + one + 1));
        }
        if bed.is_foreseen() {
            begun.push(round);
        }
    }
    // Each T by itself has 5 new flows of 14.6 kB, which fit.
    assert_eq!(begun, [] as [u16; 0]);
    let ignored = bed.incast.counters().ignored_syns;
    assert!(
        (30_000 - 1024 - 30..=30_000 - 1024).contains(&ignored),
        "{ignored}"
    );

    // As many as are incast at once do not count any more, but those of another guest do.
    let mut times = 0;
    for round in 0..1000u16 {
        for one in 0..ENOUGH {
            bed.syn(EDGE, flow(40_000 + round * ENOUGH + one));
        }
        times += u32::from(bed.is_foreseen());
    }
    assert_eq!(times, 0, "the flood of a guest foresees nothing");
    (0..ENOUGH).for_each(|port| bed.syn(SERVER, other_flow(port)));
    assert!(bed.is_foreseen(), "another guest's flows count");
    // A second of silence, and few count again.
    bed.wait();
    bed.now_ns += 1_000_000_000;
    (0..ENOUGH).for_each(|port| bed.syn(EDGE, flow(port + 1000)));
    assert!(bed.is_foreseen());
}

#[test]
fn flows_that_end_properly_count_as_long_as_they_come() {
    let mut bed = Bed::new();
    for round in 0..1000u16 {
        for one in 0..ENOUGH {
            let flow = flow(round % 100 * ENOUGH + one + 1);
            bed.syn(EDGE, flow);
            bed.answer(flow);
        }
        assert!(bed.is_foreseen(), "round {round}");
        for one in 0..ENOUGH {
            let flow = flow(round % 100 * ENOUGH + one + 1);
            bed.end(flow, 1 | 16, 701 + u32::from(round));
        }
        bed.wait();
    }
}

#[test]
fn a_flood_takes_nothing_of_what_is_known_of_others_flows() {
    let attacker = place(5, 3);
    let mut limits = Limits {
        flows: 32,
        guest_flows: 8,
        unproven_flows: 16,
        ..Limits::default()
    };
    limits.new_flows = limits.unproven_flows;
    let mut bed = Bed::new();
    bed.incast = incast(limits);
    for round in 0..100u16 {
        for one in 0..ENOUGH {
            bed.syn(EDGE, flow(round * ENOUGH + one));
            bed.answer(flow(round * ENOUGH + one));
        }
        // To the port, and elsewhere.
        for port in 0..100 {
            let flood = syn(other_flow(port));
            let now_ns = bed.now_ns;
            bed.incast.on_copy(attacker, &flood, &[PORT], &[], now_ns);
            bed.incast.on_copy(attacker, &flood, &[], &[], now_ns);
        }
        for one in 0..ENOUGH {
            bed.end(flow(round * ENOUGH + one), 1 | 16, 701);
        }
        bed.is_foreseen();
    }
    bed.wait();
    (0..ENOUGH).for_each(|port| bed.syn(EDGE, flow(50_000 + port)));
    assert!(bed.is_foreseen(), "flows that ended properly do not count");
}

#[test]
fn flows_that_end_otherwise_are_as_those_that_never_end() {
    // Without an answer; an acknowledgment that is guessed; an RST; and a SYN-ACK that answers no one's SYN.
    for (is_answered, flags, ack) in [
        (false, 1 | 16, 701),
        (true, 1 | 16, 1 << 30),
        (true, 1, 701),
        (true, 4, 701),
    ] {
        let mut bed = Bed::new();
        for port in 0..2000 {
            bed.syn(EDGE, flow(port));
            if is_answered {
                bed.answer(flow(port));
            }
            bed.end(flow(port), flags, ack);
            bed.is_foreseen();
        }
        (0..ENOUGH).for_each(|port| bed.syn(EDGE, flow(port + 3000)));
        assert!(!bed.is_foreseen(), "{is_answered} {flags} {ack}");
        (0..ENOUGH).for_each(|port| bed.syn(SERVER, other_flow(port)));
        assert!(bed.is_foreseen());
    }
}

#[test]
fn answers_are_counted_for_who_has_begun_the_connection() {
    let mut bed = Bed::new();
    // The port is on the way of the answers.
    let answer = |bed: &mut Bed, flow: Flow| {
        bed.incast
            .on_copy(EDGE, &syn(flow), &[], &[PORT], bed.now_ns);
        let mut answer = syn(flow.reverse());
        (answer.flags, answer.seq, answer.ack) = (2 | 16, 700, 101);
        let now_ns = bed.now_ns;
        bed.incast.on_copy(SERVER, &answer, &[PORT], &[], now_ns);
    };
    for port in 0..3000 {
        answer(&mut bed, flow(port));
        bed.is_foreseen();
    }
    (0..ENOUGH).for_each(|port| answer(&mut bed, flow(4000 + port)));
    assert!(!bed.is_foreseen(), "the guest has flooded");
    (0..ENOUGH).for_each(|port| bed.syn(SERVER, other_flow(port)));
    assert!(bed.is_foreseen(), "the server has not");
}
