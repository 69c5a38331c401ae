// SPDX-License-Identifier: Apache-2.0
//! Whatever switches and agents send, the controller stands, and its state stays bounded.

use penstock_controller::fabric::{FIND_NS, MAX_HOSTS, Place};
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::lldp::Lldp;
use penstock_controller::network::Controller;
use penstock_controller::openflow::{Frames, kind};
use penstock_controller::switch::Writes;
use penstock_core::{Params, definitions};
use penstock_sdn::message::{Agent, Ask, Body, Key, QueueReport};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::{copy, greeting, message, segment};

mod wire;

/// Nanoseconds of 36 years.
const YEARS: i64 = 1 << 60;
const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const SWITCHES: usize = 2;
const WATCHED: Place = Place {
    datapath: 1,
    port: 1,
};

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// A message of a switch: its type and body.
    Message(usize, u8, Vec<u8>),
    /// A copy, as a rule made it: of a switch, with a reason and a port.
    Copy(usize, u8, u32, Vec<u8>),
    /// A datagram.
    Datagram(Vec<u8>),
    /// The agent reports a queue.
    Queue(u64, u32, u32),
    /// It asks for the flows of a port.
    Ask(u64, u32, bool),
    /// Time passes.
    Later(u64),
    /// The clock jumps, forward or back.
    Jump(i64),
    /// The switch connects again.
    Again(usize),
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

/// LLDP of this controller or another one, by some port of a switch.
fn link() -> impl Strategy<Value = Vec<u8>> {
    (1u64..3, 1u64..3, 0u32..4, 0u64..5).prop_map(|(sender, datapath, port, number)| {
        Lldp::new(SECRET, sender).frame(Place { datapath, port }, number)
    })
}

/// A SYN or FIN of one of few hosts.
fn any_segment() -> impl Strategy<Value = Vec<u8>> {
    let any = (0u8..4, 0u8..4, any::<u16>(), any::<u8>());
    any.prop_map(|(from, to, port, flags)| segment(from, to, port, flags))
}

fn event() -> impl Strategy<Value = Event> {
    let switch = || 0..SWITCHES;
    let multipart = (prop_oneof![Just(1u8), Just(13)], bytes(200)).prop_map(|(subject, rest)| {
        let head = [0, subject, 0, 0, 0, 0, 0, 0];
        (kind::MULTIPART_REPLY, [&head[..], &rest].concat())
    });
    let message = prop_oneof![(0u8..30, bytes(200)), multipart];
    prop_oneof![
        2 => (switch(), message).prop_map(|(at, (kind, body))| Event::Message(at, kind, body)),
        4 => (switch(), 0u8..5, 0u32..4, prop_oneof![1 => bytes(80), 6 => any_segment(), 1 => link()])
            .prop_map(|(at, reason, port, data)| Event::Copy(at, reason, port, data)),
        1 => bytes(120).prop_map(Event::Datagram),
        1 => (0u64..3, 0u32..3, any::<u32>()).prop_map(|(at, port, queue)| Event::Queue(at, port, queue)),
        1 => (0u64..3, 0u32..3, any::<bool>()).prop_map(|(at, port, all)| Event::Ask(at, port, all)),
        2 => (0u64..3_000_000_000).prop_map(Event::Later),
        1 => (-YEARS..YEARS).prop_map(Event::Jump),
        1 => switch().prop_map(Event::Again),
    ]
}

fn controller(writes: Writes) -> Controller {
    let mut params = Params::new(definitions::of("sicc"), 100_000);
    params.set_field("duration_ns", 10_000_000);
    let incast = Incast::new(&params, Limits::default(), true);
    let keys = BTreeMap::from([(1, (Key::new(SECRET), false))]);
    let watched = BTreeMap::from([(WATCHED, params)]);
    Controller::new(incast, watched, keys, Lldp::new(SECRET, 1), writes)
}

/// What is sent while a port of a switch goes up and down for a second.
#[test]
fn a_port_that_flaps_has_few_frames_sent() {
    let mut controller = controller(Writes::All);
    controller.connect(0, 1);
    controller
        .on_bytes(0, &greeting(1), 1)
        .expect("it is right");
    let mut now_ns = 3_000_000_000;
    let mut frames = 0;
    for flap in 0..1000u64 {
        let down = (flap % 2) as u8;
        let mut port = vec![0; 72];
        port[0] = 2; // changed
        port[11] = 3; // its number
        port[8 + 35] = down; // OFPPC_PORT_DOWN
        let status = message(kind::PORT_STATUS, &port);
        controller
            .on_bytes(0, &status, now_ns)
            .expect("it is right");
        controller.tick(now_ns);
        let out = controller.output(0).expect("it is connected");
        let mut sent = Frames::default();
        sent.push(out);
        out.clear();
        while let Some((header, _)) = sent.take().expect("whole messages") {
            frames += usize::from(header.kind == kind::PACKET_OUT);
        }
        now_ns += 1_000_000;
    }
    assert!((3..=40).contains(&frames), "{frames}");
}

#[test]
fn a_link_that_is_configured_is_there_without_lldp() {
    let ends = [1, 2].map(|datapath| Place { datapath, port: 3 });
    let mut controller = controller(Writes::All).with_links(vec![(ends[0], ends[1])], true);
    for (at, datapath) in [(0, 1), (1, 2)] {
        assert_eq!(controller.fabric().links().count(), 0);
        controller.connect(at, 1);
        let greeting = greeting(datapath);
        controller.on_bytes(at, &greeting, 1).expect("it is right");
    }
    let links: Vec<_> = controller.fabric().links().collect();
    assert_eq!(links, [(ends[0], ends[1])]);
    // A host is not learned behind it, and its ports are no edges, from the first moment on.
    controller.tick(FIND_NS + 1);
    assert!(!controller.fabric().is_edge(ends[0]));
    assert!(controller.fabric().is_edge(WATCHED));
}

/// What a guest at one switch gets, another one sends at another switch.
#[test]
fn guests_pretend_a_link_only_where_links_are_found() {
    for finds in [true, false] {
        let mut controller = controller(Writes::All).with_links(Vec::new(), finds);
        for (at, datapath) in [(0, 1), (1, 2)] {
            controller.connect(at, 1);
            let greeting = greeting(datapath);
            controller.on_bytes(at, &greeting, 1).expect("it is right");
        }
        controller.tick(FIND_NS + 1);
        let received = Lldp::new(SECRET, 1).frame(WATCHED, 1);
        let relayed = copy(1, 2, &received);
        controller.on_bytes(1, &relayed, 2).expect("it is right");
        assert_eq!(controller.fabric().links().count(), usize::from(finds));
    }
}

/// A controller that knows hosts 1 and 2, at ports 1 and 2 of a switch.
fn with_hosts() -> Controller {
    let mut controller = controller(Writes::All);
    controller.connect(0, 1);
    let greeting = greeting(1);
    controller.on_bytes(0, &greeting, 1).expect("it is right");
    controller.tick(FIND_NS + 1);
    for (from, to) in [(1, 2), (2, 1)] {
        let miss = copy(3, from.into(), &segment(from, to, 1, 16));
        controller
            .on_bytes(0, &miss, FIND_NS + 2)
            .expect("it is right");
    }
    controller
}

#[test]
fn segments_of_and_to_hosts_that_are_not_known_are_passed_over() {
    let mut controller = with_hosts();
    // To an address that was made up, and from that of the host at the other port.
    for (from, to, copies) in [(1, 9, 0), (2, 1, 0), (1, 2, 1)] {
        let syn = copy(2, 1, &segment(from, to, 1, 2));
        controller
            .on_bytes(0, &syn, FIND_NS + 3)
            .expect("it is right");
        assert_eq!(controller.counters().copies, copies, "{from} to {to}");
    }
}

/// The types and numbers of the messages that are to be sent to a switch.
fn sent(controller: &mut Controller) -> Vec<(u8, u32)> {
    let out = controller.output(0).expect("it is connected");
    let mut frames = Frames::default();
    frames.push(&std::mem::take(out));
    let mut sent = Vec::new();
    while let Some((header, _)) = frames.take().expect("whole messages") {
        sent.push((header.kind, header.xid));
    }
    sent
}

/// An answer to the request with a number.
fn answer(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut answer = message(kind, body);
    answer[4..8].copy_from_slice(&xid.to_be_bytes());
    answer
}

#[test]
fn rules_that_a_switch_refuses_are_written_again_and_those_before_stay() {
    let mut controller = with_hosts();
    let mut now_ns = 2 * FIND_NS;
    let of = |kind, sent: &[(u8, u32)]| {
        let all: Vec<_> = sent.iter().filter(|one| one.0 == kind).copied().collect();
        all
    };
    sent(&mut controller);
    for is_refused in [true, false] {
        controller.tick(now_ns);
        let written = sent(&mut controller);
        let [(_, barrier)] = of(kind::BARRIER_REQUEST, &written)[..] else {
            panic!("a barrier: {written:?}");
        };
        let (_, rule) = of(kind::FLOW_MOD, &written)[0];
        assert!(controller.is_settled());
        if is_refused {
            let refusal = answer(kind::ERROR, rule, &[0, 5, 0, 1]);
            controller
                .on_bytes(0, &refusal, now_ns)
                .expect("it is right");
        }
        let done = answer(kind::BARRIER_REPLY, barrier, &[]);
        controller.on_bytes(0, &done, now_ns).expect("it is right");
        assert_eq!(controller.is_settled(), !is_refused);
        let deletes = of(kind::FLOW_MOD, &sent(&mut controller));
        assert_eq!(deletes.is_empty(), is_refused);
        // Not at once.
        controller.tick(now_ns + 1_000_000_000);
        assert_eq!(of(kind::FLOW_MOD, &sent(&mut controller)), []);
        now_ns += 10_000_000_000;
    }
}

/// How many requests for a role are to be sent, and the number of the last.
fn roles(controller: &mut Controller) -> (usize, u32) {
    let sent = sent(controller).into_iter();
    let roles: Vec<_> = sent.filter(|one| one.0 == kind::ROLE_REQUEST).collect();
    (roles.len(), roles.last().map_or(0, |one| one.1))
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_pause_of_the_controller_is_no_silence_of_a_switch() {
    let mut controller = with_hosts();
    let mut lost = |at| controller.tick(at * SECOND).len();
    assert_eq!(lost(20), 0);
    let gone: Vec<_> = (21..=26).filter(|at| lost(*at) == 1).collect();
    assert_eq!(gone, [26]);
}

/// What a master sent is received by guests, who keep it.
#[test]
fn frames_of_a_controller_that_ended_do_not_stand_for_it() {
    let ends = [1, 2].map(|datapath| Place { datapath, port: 3 });
    let mut controller = controller(Writes::One).with_links(vec![(ends[0], ends[1])], false);
    for (at, datapath) in [(0, 1), (1, 2)] {
        controller.connect(at, 1);
        let greeting = greeting(datapath);
        controller.on_bytes(at, &greeting, 1).expect("it is right");
    }
    controller.tick(FIND_NS + 1);
    sent(&mut controller);
    let frame = |from, number| Lldp::new(SECRET, 2).frame(from, number);
    let (replayed, own) = (frame(WATCHED, 10), frame(ends[0], 10));
    let real = frame(ends[1], 9);
    for (at, port, frame, requests) in [
        (2, 3, &real, 0),
        (3, 3, &real, 0),     // a number again
        (4, 1, &replayed, 0), // at an edge
        (4, 3, &own, 0),      // where it left
        (5, 1, &replayed, 1),
    ] {
        let copy = copy(1, port, frame);
        controller
            .on_bytes(0, &copy, at * SECOND)
            .expect("it is right");
        controller.tick(at * SECOND);
        assert_eq!(roles(&mut controller).0, requests, "{at} s");
    }
}

#[test]
fn a_role_that_is_lost_is_not_taken_back_at_once() {
    let mut controller = controller(Writes::One);
    controller.connect(0, 1);
    let greeting = greeting(1);
    controller.on_bytes(0, &greeting, 1).expect("it is right");
    sent(&mut controller);
    controller.tick(4 * SECOND);
    assert_eq!(roles(&mut controller).0, 1);
    let master = [&[0, 0, 0, 2, 0, 0, 0, 0][..], &1u64.to_be_bytes()].concat();
    let master = message(kind::ROLE_REPLY, &master);
    controller
        .on_bytes(0, &master, 4 * SECOND)
        .expect("it is right");
    assert_eq!(controller.written(), 1);
    let is_slave = message(kind::ERROR, &[0, 1, 0, 10]);
    controller
        .on_bytes(0, &is_slave, 5 * SECOND)
        .expect("it is right");
    assert_eq!(controller.written(), 0);
    for (at, requests) in [(6, 0), (7, 0), (8, 1)] {
        controller.tick(at * SECOND);
        assert_eq!(roles(&mut controller).0, requests, "{at} s");
    }
    // A later election is one of another controller.
    let slave = [&[0, 0, 0, 3, 0, 0, 0, 0][..], &5u64.to_be_bytes()].concat();
    let slave = message(kind::ROLE_REPLY, &slave);
    controller
        .on_bytes(0, &slave, 8 * SECOND)
        .expect("it is right");
    for (at, requests) in [(10, 0), (11, 1)] {
        controller.tick(at * SECOND);
        assert_eq!(roles(&mut controller).0, requests, "{at} s");
    }
}

#[test]
fn a_switch_without_roles_is_asked_once() {
    let greeting = greeting(1);
    let (begin, rest) = greeting.split_at(40); // HELLO and its number
    let (_role, ports) = rest.split_at(24);
    for (writes, refusal) in [Writes::All, Writes::One]
        .into_iter()
        .flat_map(|writes| [(writes, [0, 11, 0, 1]), (writes, [0, 1, 0, 1])])
    {
        let mut controller = controller(writes);
        controller.connect(0, 1);
        controller.on_bytes(0, begin, 1).expect("it is right");
        let (1, role) = roles(&mut controller) else {
            panic!("one role");
        };
        let answer = answer(kind::ERROR, role, &refusal);
        let taken = controller.on_bytes(0, &answer, 1);
        assert_eq!(taken.is_ok(), writes == Writes::All);
        if writes == Writes::All {
            controller.on_bytes(0, ports, 1).expect("it is right");
            assert_eq!((controller.written(), roles(&mut controller).0), (1, 0));
        }
    }
}

proptest! {
    #[test]
    fn any_conversation_is_survived(
        events in proptest::collection::vec(event(), 1..60),
        one_writes in any::<bool>(),
    ) {
        let mut controller = controller(if one_writes { Writes::One } else { Writes::All });
        let (mut now_ns, mut agent) = (1, Agent::new(Key::new(SECRET), 1, 7));
        let from = "127.0.0.1:1".parse().expect("an address");
        for at in 0..SWITCHES {
            controller.connect(at, now_ns);
            controller.on_bytes(at, &greeting(at as u64 + 1), now_ns).expect("it is right");
        }
        prop_assert_eq!(controller.fabric().switches().count(), SWITCHES);
        let hello = agent.seal(&Body::Hello(vec!["10.0.0.1".parse().expect("an address")]));
        controller.on_datagram(from, &hello, 5, now_ns);
        for (_, answer) in controller.datagrams() {
            agent.unseal(&answer).expect("it is of the controller");
        }
        now_ns += FIND_NS;
        for event in events {
            match event {
                Event::Message(at, kind, body) => {
                    if controller.on_bytes(at, &message(kind, &body), now_ns).is_err() {
                        controller.disconnect(at);
                    }
                }
                Event::Copy(at, reason, port, data) => {
                    let _ = controller.on_bytes(at, &copy(reason, port, &data), now_ns);
                }
                Event::Datagram(bytes) => controller.on_datagram(from, &bytes, 5, now_ns),
                Event::Queue(datapath, port, queue) => {
                    let queues = vec![(port, queue)];
                    let report = agent.seal(&Body::Queues(QueueReport { datapath, queues }));
                    controller.on_datagram(from, &report, 5, now_ns);
                }
                Event::Ask(datapath, port, wants_all) => {
                    let ports = vec![(port, wants_all)];
                    let ask = agent.seal(&Body::Ask(Ask { datapath, ports }));
                    controller.on_datagram(from, &ask, 5, now_ns);
                }
                Event::Later(ns) => now_ns = now_ns.saturating_add(ns),
                Event::Jump(ns) => now_ns = now_ns.saturating_add_signed(ns).clamp(1, 1 << 62),
                Event::Again(at) => {
                    controller.disconnect(at);
                    controller.connect(at, now_ns);
                    let _ = controller.on_bytes(at, &greeting(at as u64 + 1), now_ns);
                }
            }
            controller.report(now_ns);
            for lost in controller.tick(now_ns) {
                controller.disconnect(lost);
            }
            for (_, answer) in controller.datagrams() {
                let taken = agent.unseal(&answer);
                prop_assert!(taken.is_ok(), "{:?}", taken);
            }
            prop_assert!(controller.fabric().hosts().count() <= MAX_HOSTS);
            for connection in controller.connections() {
                let out = controller.output(connection).expect("it is connected");
                prop_assert!(out.len() < 1 << 20, "{} bytes", out.len());
                out.clear();
            }
        }
        let counters = controller.counters();
        prop_assert!(controller.ports().all(|(_, port)| port.flows <= counters.copies));
    }
}
