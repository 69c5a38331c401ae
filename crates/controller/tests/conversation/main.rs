// SPDX-License-Identifier: Apache-2.0
//! What switches send, and what the controller does with it.

use penstock_controller::fabric::{FIND_NS, Place};
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::lldp::Lldp;
use penstock_controller::network::Controller;
use penstock_controller::openflow::{Error, Frames, kind, number};
use penstock_controller::switch::Writes;
use penstock_core::{Params, definitions};
use penstock_sdn::message::Key;
use std::collections::BTreeMap;
use wire::{copy, greeting, message, segment};

mod random;
#[path = "../wire/mod.rs"]
mod wire;

const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const WATCHED: Place = Place {
    datapath: 1,
    port: 1,
};

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

#[test]
fn a_link_of_which_nothing_is_seen_any_more_is_dropped() {
    let ends = [1, 2].map(|datapath| Place { datapath, port: 3 });
    let given = [1, 2].map(|datapath| Place { datapath, port: 2 });
    let mut controller = controller(Writes::All).with_links(vec![(given[0], given[1])], true);
    for (at, datapath) in [(0, 1), (1, 2)] {
        controller.connect(at, 1);
        let greeting = greeting(datapath);
        controller.on_bytes(at, &greeting, 1).expect("it is right");
    }
    controller.tick(FIND_NS);
    let see = |controller: &mut Controller, from, at, now_ns| {
        let seen = copy(1, 3, &Lldp::new(SECRET, 1).frame(from, 1));
        controller.on_bytes(at, &seen, now_ns).expect("it is right");
    };
    see(&mut controller, ends[0], 1, FIND_NS);
    let mut links = Vec::new();
    for second in 2..30 {
        if second == 8 {
            see(&mut controller, ends[1], 0, second * SECOND); // the other direction
        }
        controller.tick(second * SECOND);
        links.push(controller.fabric().links().count());
        if links[links.len() - 1] == 1 {
            let is_edge = controller.fabric().is_edge(ends[0]);
            let lost = links.iter().filter(|count| **count == 1).count();
            assert_eq!(is_edge, lost > 3, "{links:?}");
        }
    }
    let kept = links.iter().filter(|count| **count == 2).count();
    assert!((16..=18).contains(&kept), "{links:?}");
    assert_eq!(links.last(), Some(&1), "what is given stays");
}

#[test]
fn the_port_of_the_switch_itself_has_hosts() {
    let mut controller = controller(Writes::All);
    controller.connect(0, 1);
    controller
        .on_bytes(0, &greeting(1), 1)
        .expect("it is right");
    let own = Place {
        datapath: 1,
        port: number::LOCAL,
    };
    let mut port = vec![0; 72];
    port[8..12].copy_from_slice(&own.port.to_be_bytes());
    let status = message(kind::PORT_STATUS, &port);
    controller.on_bytes(0, &status, 1).expect("it is right");
    controller.tick(2 * FIND_NS);
    assert!(controller.fabric().is_edge(own));
}

#[test]
fn the_version_without_a_bitmap_is_the_lower_of_both_headers() {
    for (version, is_taken) in [(1, false), (4, true), (5, true), (6, true)] {
        let mut controller = controller(Writes::All);
        controller.connect(0, 1);
        sent(&mut controller);
        let hello = [version, kind::HELLO, 0, 8, 0, 0, 0, 1];
        assert_eq!(controller.on_bytes(0, &hello, 1).is_ok(), is_taken);
        let out = controller.output(0).expect("it is connected");
        let expected: &[u8] = if is_taken {
            &[4, kind::FEATURES_REQUEST]
        } else {
            &[]
        };
        assert!(out.starts_with(expected) && out.is_empty() != is_taken);
    }
}

#[test]
fn an_auxiliary_connection_is_closed() {
    let mut controller = controller(Writes::All);
    controller.connect(0, 1);
    let mut greeting = greeting(1);
    greeting[8 + 8 + 13] = 1;
    let taken = controller.on_bytes(0, &greeting, 1);
    assert_eq!(taken, Err(Error::Auxiliary(1)));
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
    // There is no room; then a match, an instruction and an action that it does not know.
    for error in [(5, 1), (4, 6), (3, 1), (2, 0)] {
        refuses(error);
    }
}

fn refuses((error, code): (u8, u8)) {
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
            let refusal = answer(kind::ERROR, rule, &[0, error, 0, code]);
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

#[test]
fn a_packet_that_a_switch_refuses_is_no_rule() {
    let mut controller = with_hosts();
    controller.tick(2 * FIND_NS);
    assert!(controller.is_settled());
    let request = [4, kind::PACKET_OUT, 0, 40, 0, 0, 0, 9];
    let refusal = message(kind::ERROR, &[&[0, 2, 0, 4][..], &request].concat());
    controller.on_bytes(0, &refusal, 1).expect("it is right");
    assert!(controller.is_settled());
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
