// SPDX-License-Identifier: Apache-2.0
//! Routes, and incast at ports.

use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_controller::fabric::{FIND_NS, Fabric, MAX_HOSTS, Mac, Place};
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::segment::{COPY_BYTES, Flow, Segment};
use penstock_core::{Params, definitions};
use penstock_sdn::message::{Notice, Order, QueueReport};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

fn place(datapath: u64, port: u32) -> Place {
    Place { datapath, port }
}

fn mac(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

/// Leaves 1, 2, ... with hosts at ports 1, 2, ...; spine s at port 100 + s, its ports numbered by leaf.
fn leaf_spine(leaves: u64, spines: u64, hosts: u16) -> Fabric {
    let mut fabric = Fabric::default();
    for leaf in 1..=leaves {
        let up = (1..=spines).map(|spine| 100 + spine as u32);
        let ports = (1..=u32::from(hosts)).chain(up).collect();
        fabric.set_ports(leaf, ports, 0);
    }
    for spine in 1..=spines {
        let ports = (1..=leaves as u32).collect();
        fabric.set_ports(1000 + spine, ports, 0);
        for leaf in 1..=leaves {
            let ends = (
                place(leaf, 100 + spine as u32),
                place(1000 + spine, leaf as u32),
            );
            assert!(fabric.add_link(ends.0, ends.1));
            assert!(
                !fabric.add_link(ends.1, ends.0),
                "it is known from the other end"
            );
        }
    }
    assert!(
        !fabric.settle(FIND_NS),
        "all ports have been there for long enough"
    );
    for leaf in 1..=leaves {
        for host in 1..=hosts {
            let number = leaf as u16 * 100 + host;
            assert!(fabric.add_host(mac(number), place(leaf, host.into()), 0));
        }
    }
    fabric
}

#[test]
fn routes_are_the_same_forth_and_back() {
    let fabric = leaf_spine(4, 2, 4);
    let hosts: Vec<_> = fabric.hosts().collect();
    let ends: BTreeMap<_, _> = fabric.links().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let mut spines = BTreeSet::new();
    for (from, at) in &hosts {
        for (to, last) in &hosts {
            let path = fabric.path(*from, *to).expect("all are connected");
            let back = fabric.path(*to, *from).expect("all are connected");
            assert_eq!(path.last(), Some(last));
            assert_eq!(path.len(), if at.datapath == last.datapath { 1 } else { 3 });
            let links = |path: &[Place]| {
                let both = path.iter().filter_map(|out| Some((*out, *ends.get(out)?)));
                both.map(|(a, b)| (a.min(b), a.max(b)))
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(links(&path), links(&back), "{from} to {to}");
            spines.extend(
                path.iter()
                    .filter(|out| out.datapath > 1000)
                    .map(|out| out.datapath),
            );
        }
    }
    assert_eq!(spines.len(), 2, "both spines are used");
}

#[test]
fn a_broadcast_reaches_each_host_once() {
    let fabric = leaf_spine(4, 2, 4);
    let ends: BTreeMap<_, _> = fabric.links().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let tree = fabric.tree();
    for (_, from) in fabric.hosts() {
        let mut reached: BTreeMap<Place, u32> = BTreeMap::new();
        let mut arrived = vec![from];
        while let Some(entry) = arrived.pop() {
            for port in &tree[&entry.datapath] {
                let out = place(entry.datapath, *port);
                if out == entry {
                    continue; // OpenFlow sends nothing back
                }
                match ends.get(&out) {
                    Some(next) => arrived.push(*next),
                    None => *reached.entry(out).or_default() += 1,
                }
            }
        }
        let hosts: BTreeMap<_, _> = fabric
            .hosts()
            .filter(|(_, at)| *at != from)
            .map(|(_, at)| (at, 1))
            .collect();
        assert_eq!(reached, hosts);
    }
}

#[test]
fn what_is_behind_a_port_that_goes_is_forgotten() {
    let mut fabric = leaf_spine(2, 2, 1);
    fabric.remove_switch(1001);
    let path = fabric.path(mac(101), mac(201)).expect("the other spine");
    assert_eq!(path, [place(1, 102), place(1002, 2), place(2, 1)]);
    fabric.remove_switch(1002);
    assert_eq!(fabric.path(mac(101), mac(201)), None);
    fabric.set_ports(1, BTreeSet::from([101]), 0);
    assert_eq!(fabric.hosts().count(), 1);
}

#[test]
fn nothing_is_flooded_over_a_port_before_it_is_known_where_it_leads() {
    let mut fabric = leaf_spine(2, 1, 2);
    let now_ns = 10 * FIND_NS;
    fabric.set_ports(1, BTreeSet::from([1, 2, 3, 101]), now_ns);
    assert!(fabric.settle(now_ns + FIND_NS - 1), "port 3 is new");
    assert!(!fabric.tree()[&1].contains(&3));
    assert!(!fabric.add_host(mac(103), place(1, 3), now_ns));
    assert!(fabric.tree()[&1].contains(&1), "the others are as before");
    assert!(!fabric.settle(now_ns + FIND_NS));
    assert!(fabric.tree()[&1].contains(&3));
    assert!(fabric.add_host(mac(103), place(1, 3), now_ns));
}

#[test]
fn no_host_is_learned_behind_a_switch_or_from_a_forged_address() {
    let mut fabric = leaf_spine(2, 1, 1);
    assert!(!fabric.add_host(mac(999), place(1, 101), 0));
    assert!(!fabric.add_host(mac(999), place(1, 77), 0), "no such port");
    assert!(!fabric.add_host(Mac([0xff; 6]), place(1, 1), 0));
}

#[test]
fn who_makes_up_addresses_leaves_room_for_others() {
    let mut fabric = leaf_spine(2, 1, 1);
    let known = fabric.hosts().count();
    for number in 1000..2000 {
        fabric.add_host(mac(number), place(1, 1), 0);
    }
    let all = fabric.hosts().count();
    assert!(
        (MAX_HOSTS / 2..MAX_HOSTS).contains(&all),
        "{known} to {all}"
    );
    assert!(fabric.add_host(mac(999), place(2, 1), 0), "at another port");
    for number in 2000..3000 {
        fabric.add_host(mac(number), place(2, 1), 0);
    }
    assert!(fabric.hosts().count() <= MAX_HOSTS);
}

#[test]
fn who_claims_the_address_of_another_is_not_believed_while_that_sends() {
    let mut fabric = leaf_spine(2, 1, 2);
    let second = 1_000_000_000;
    assert!(!fabric.add_host(mac(101), place(1, 1), 10 * second));
    assert!(!fabric.add_host(mac(101), place(2, 2), 12 * second));
    assert_eq!(fabric.path(mac(102), mac(101)), Some(vec![place(1, 1)]));
    assert!(
        fabric.add_host(mac(101), place(2, 2), 15 * second),
        "it has moved"
    );
    // Its port goes down: it may be anywhere.
    fabric.set_ports(2, BTreeSet::from([1, 101]), 0);
    assert!(fabric.add_host(mac(101), place(1, 1), 16 * second));
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
        edge_flows: 5,
        ..Limits::default()
    });
    let other = place(5, 2);
    for port in 0..20 {
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
    }
    incast.on_copy(other, &syn(flow(100)), &[PORT], &[], 0);
    assert_eq!(incast.flows(PORT), 6);
    // One that ends makes room for another, also if its other side resets it.
    let end = |flow, flags| Segment { flags, ..syn(flow) };
    incast.on_copy(EDGE, &end(flow(0), 1), &[PORT], &[], 0);
    incast.on_copy(other, &end(flow(1).reverse(), 4), &[], &[PORT], 0);
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
