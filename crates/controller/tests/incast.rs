// SPDX-License-Identifier: Apache-2.0
//! Copies of SYNs and FINs, incast at ports, and what a guest that floods can cause.

use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_controller::fabric::{Mac, Place};
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::segment::{COPY_BYTES, Flow, Segment};
use penstock_core::{Params, definitions};
use penstock_sdn::message::{Notice, Order, QueueReport};
use proptest::prelude::*;
use std::net::SocketAddr;

fn place(datapath: u64, port: u32) -> Place {
    Place { datapath, port }
}

fn mac(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

fn copy(flow: Flow, flags: u8, options: &[TcpOptionElement]) -> Vec<u8> {
    let (source, destination) = (flow.source, flow.destination);
    let ends = (mac(101), mac(201));
    let builder = PacketBuilder::ethernet2(ends.0.0, ends.1.0);
    let octets = |address: SocketAddr| match address.ip() {
        std::net::IpAddr::V4(ip) => ip.octets(),
        std::net::IpAddr::V6(_) => panic!("IPv4 here"),
    };
    let builder = builder.ipv4(octets(source), octets(destination), 64).tcp(
        source.port(),
        destination.port(),
        1,
        1000,
    );
    let builder = if flags & 2 != 0 {
        builder.syn()
    } else {
        builder.fin()
    };
    let builder = if flags & 16 != 0 {
        builder.ack(5)
    } else {
        builder
    };
    let builder = builder.options(options).expect("options fit");
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[0; 500]).expect("a frame");
    bytes.truncate(COPY_BYTES.into());
    bytes
}

fn flow(port: u16) -> Flow {
    Flow {
        source: SocketAddr::from(([10, 0, 0, 1], port)),
        destination: SocketAddr::from(([10, 0, 0, 2], 80)),
    }
}

#[test]
fn a_copy_has_what_the_guests_agree_on() {
    let options = [
        TcpOptionElement::MaximumSegmentSize(1460),
        TcpOptionElement::Timestamp(1, 2),
        TcpOptionElement::WindowScale(7),
    ];
    let segment = Segment::read(&copy(flow(1), 2 | 16, &options)).expect("TCP");
    let expected = Segment {
        macs: (mac(101), mac(201)),
        flow: flow(1),
        flags: 2 | 16,
        seq: 1,
        ack: 5,
        mss: Some(1460),
        scale: Some(7),
    };
    assert_eq!(segment, expected);
    let fin = Segment::read(&copy(flow(1), 1, &[])).expect("TCP");
    assert_eq!((fin.flags, fin.mss, fin.scale), (1, None, None));
}

proptest! {
    #[test]
    fn any_frame_is_read_or_not(mut bytes in proptest::collection::vec(any::<u8>(), 0..140), ip in any::<bool>()) {
        let _ = Segment::read(&bytes);
        if bytes.len() > 60 && ip {
            bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
            bytes[23] = 6;
            let _ = Segment::read(&bytes);
        }
    }
}

const EDGE: Place = Place {
    datapath: 5,
    port: 1,
};
const PORT: Place = Place {
    datapath: 1,
    port: 9,
};
const BUFFER: u32 = 100_000;

fn params() -> Params {
    let mut params = Params::new(definitions::of("sicc"), BUFFER);
    params.set_field("duration_ns", 10_000_000);
    params
}

fn incast(limits: Limits) -> Incast {
    let mut incast = Incast::new(&params(), limits, true);
    incast.watch(PORT, &params());
    incast
}

fn report(queue: u32) -> QueueReport {
    QueueReport {
        datapath: 1,
        queues: vec![(8, 0), (9, queue)],
    }
}

fn syn(flow: Flow) -> Segment {
    Segment {
        macs: (mac(101), mac(201)),
        flow,
        flags: 2,
        seq: 100,
        ack: 0,
        mss: Some(1400),
        scale: Some(9),
    }
}

#[test]
fn incast_is_foreseen_and_ends() {
    let mut incast = incast(Limits::default());
    // 7 flows of 10 segments of 1460 bytes are more than the buffer.
    for port in 0..7 {
        incast.on_copy(EDGE, &syn(flow(port)), &[place(5, 5), PORT], &[], 0);
    }
    let mut answer = syn(flow(3).reverse());
    (answer.flags, answer.mss, answer.scale) = (2 | 16, Some(8960), Some(3));
    incast.on_copy(EDGE, &answer, &[place(5, 6)], &[PORT], 0);
    let notices = incast.on_queues(&report(0), 1_000_000);
    let (source, destination) = (flow(0).source.ip(), flow(0).destination.ip());
    let one = |order| Notice {
        source,
        destination,
        order,
    };
    assert_eq!(notices.len(), 1, "one for the pair: {notices:?}");
    assert!(matches!(notices[0].order, Order::On(..)));
    assert_eq!(
        (notices[0].source, notices[0].destination),
        (source, destination)
    );
    assert_eq!(incast.on_queues(&report(50_000), 2_000_000), []);
    assert_eq!(incast.on_queues(&report(0), 3_000_000), [one(Order::Off)]);
    let found: Vec<_> = incast.ports().map(|(_, port)| port.incasts).collect();
    assert_eq!(found, [1]);
}

#[test]
fn the_options_are_those_of_the_receiver() {
    let mut incast = incast(Limits::default());
    for port in 0..7 {
        let mut answer = syn(flow(port).reverse());
        (answer.flags, answer.mss, answer.scale) = (2 | 16, Some(8960), None);
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
        incast.on_copy(EDGE, &answer, &[], &[], 0);
    }
    let notices = incast.on_queues(&report(0), 1);
    assert_eq!(
        notices[0].order,
        Order::On(8960, Some(0)),
        "no option: no scale"
    );
}

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
fn at_once_a_new_connection_is_clamped_before_the_queue_is_reported() {
    let mut params = params();
    params.set_field("at_once", 1);
    let mut incast = Incast::new(&params, Limits::default(), true);
    incast.watch(PORT, &params);
    let mut from = |host: u8| {
        let mut flow = flow(7);
        flow.source = SocketAddr::from(([10, 0, 1, host], 7));
        incast.on_copy(EDGE, &syn(flow), &[place(5, 5), PORT], &[], u64::from(host))
    };
    let early: Vec<usize> = (0..6).map(|host| from(host).len()).collect();
    assert_eq!(early, [0; 6]);
    assert_eq!(from(6).len(), 7, "each source that is there");
    let last = from(7);
    assert_eq!(last.len(), 1, "the new one");
    assert_eq!(last[0].source, std::net::IpAddr::from([10, 0, 1, 7]));
    let counted: Vec<_> = incast.ports().map(|(_, port)| port.incasts).collect();
    assert_eq!((counted, incast.counters().notices), (vec![1], 8));
}

#[test]
fn a_controller_that_only_counts_sends_no_notice() {
    let mut incast = Incast::new(&params(), Limits::default(), false);
    incast.watch(PORT, &params());
    for port in 0..1000 {
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
    }
    assert_eq!(incast.on_queues(&report(BUFFER), 1_000_000), []);
    assert_eq!(incast.flows(PORT), 1000);
}

#[test]
fn with_syn_acks_that_count_both_directions_do_and_each_once() {
    let mut params = params();
    params.set_field("counts", 1);
    let back = place(1, 8);
    let mut incast = Incast::new(&params, Limits::default(), true);
    for place in [PORT, back] {
        incast.watch(place, &params);
    }
    for port in 0..7 {
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[back], 0);
        let mut answer = syn(flow(port).reverse());
        (answer.flags, answer.ack) = (2 | 16, 101);
        for _ in 0..2 {
            incast.on_copy(place(5, 2), &answer, &[back], &[PORT], 0);
        }
    }
    let mut notices = incast.on_queues(&report(0), 1_000_000);
    notices.retain(|notice| matches!(notice.order, Order::On(..)));
    assert_eq!(notices.len(), 2, "both directions: {notices:?}");
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
        bed.incast.on_copy(EDGE, &syn(flow), &[], &[], bed.now_ns);
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
