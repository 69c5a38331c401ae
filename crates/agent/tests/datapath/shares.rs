// SPDX-License-Identifier: Apache-2.0
//! What each port has for itself in the tables of all ports, whatever passes by another.

use std::net::{Ipv4Addr, Ipv6Addr};

use libbpf_rs::{MapCore, MapFlags};
use penstock_linux::link;
use penstock_linux::netns::{Entered, NetNs};
use penstock_linux::testkit::{cable, namespace};
use penstockd::port::plain::{bytes_of, of_bytes};
use penstockd::skel::port::types;

use super::common::packet::Segment;
use super::port::Port;
use super::segments::{ack, open, syn, syn_ack};

/// More than the records of half-open flows of all ports.
const FLOOD: u32 = 40_000;

/// The slot of the second port.
const OTHER: u32 = 1;

/// An interface for the second port, in a namespace that this thread is in.
struct Interface {
    index: u32,
    _entered: Entered,
    _netns: NetNs,
}

impl Interface {
    fn new() -> Interface {
        let netns = namespace();
        let entered = netns.enter().unwrap();
        cable((&netns, "port"), (&netns, "far"), 1);
        Interface {
            index: link::get("port").unwrap().index,
            _entered: entered,
            _netns: netns,
        }
    }
}

fn flood(port: &Port, syns: u32) {
    for number in 0..syns {
        let [one, other] = match number % 2 {
            0 => [0, 1].map(|host| Ipv4Addr::from(0x0b00_0000 + 2 * number + host).to_string()),
            _ => [0, 1].map(|host| {
                Ipv6Addr::from((0xfd_u128 << 120) + 2 * u128::from(number) + host).to_string()
            }),
        };
        port.run("fairq_egress", &syn(&Segment::new(&one, &other)).frame());
    }
}

fn connections(count: u16) -> impl Iterator<Item = Segment> {
    let ends = [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")];
    (1..=count).flat_map(move |number| {
        ends.map(|(one, other)| Segment::new(one, other).with(|s| s.source_port = number))
    })
}

#[test]
fn a_flood_at_one_port_takes_no_handshake_of_another() {
    const EACH: u16 = 50;
    let (port, interface) = (Port::new(), Interface::new());
    port.add_port(OTHER, interface.index);
    let run = |side: &str, segment: &Segment| {
        port.run_on(interface.index, &format!("fairq_{side}"), &segment.frame());
    };
    connections(EACH).for_each(|data| run("egress", &syn(&data)));
    flood(&port, FLOOD / 2);
    connections(EACH).for_each(|data| run("ingress", &syn_ack(&data)));
    flood(&port, FLOOD);
    port.sweep();
    assert!(
        port.state().half_open > port.0.maps.half_own.max_entries() / 2,
        "{}",
        port.state().half_open
    );
    for data in connections(EACH) {
        run("egress", &data.with(|s| s.payload = 100));
        run("ingress", &ack(&data.with(|s| s.payload = 100)));
    }
    let all = 2 * u32::from(EACH);
    let state = port.state_of(OTHER);
    assert_eq!((state.flows, state.half_open, state.half_own), (all, 0, 0));
    let counters = port.counters_of(OTHER);
    assert_eq!(counters.half_open_proven, u64::from(all));
    assert_eq!(
        counters.acks_rewritten,
        2 * u64::from(all),
        "scales are known"
    );
}

#[test]
fn a_port_beyond_its_share_proves_handshakes_and_gets_its_share_back() {
    const EACH: u16 = 500;
    let port = Port::new();
    port.use_slots(1024);
    let share = port.0.maps.half_own.max_entries() / 1024;
    connections(EACH).for_each(|data| drop(port.run("fairq_egress", &syn(&data).frame())));
    assert_eq!(port.state().half_own, share);
    for data in connections(EACH) {
        port.run("fairq_ingress", &syn_ack(&data).frame());
        port.run("fairq_egress", &data.frame());
    }
    let state = port.state();
    assert_eq!((state.flows, state.half_own), (2 * u32::from(EACH), 0));

    // Those never proven give their places back when they are over.
    flood(&port, 100);
    assert_eq!(port.state().half_own, share);
    let own = &port.0.maps.half_own;
    for key in own.keys().collect::<Vec<_>>() {
        let record = own.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let mut record: types::port_half = of_bytes(&record).unwrap();
        record.handshake.last_ns = 1;
        own.update(&key, bytes_of(&record), MapFlags::EXIST)
            .unwrap();
    }
    port.sweep();
    assert_eq!(port.state().half_own, 0);
    let counters = port.counters();
    assert_eq!(counters.half_open_expired, u64::from(share));
}

#[test]
fn a_port_has_no_more_flows_than_its_share_and_leaves_the_rest_to_others() {
    const MOST: u32 = 64;
    const EACH: u16 = 100;
    let (port, interface) = (Port::new(), Interface::new());
    port.configure(|config| config.flows_max = MOST);
    port.add_port(OTHER, interface.index);
    connections(EACH).for_each(|data| open(&port, "fairq", &data));
    let tracked = |slot| (port.state_of(slot).tracked, port.state_of(slot).flows);
    assert_eq!(tracked(0), (MOST, MOST));
    assert_eq!(
        port.passed("table_full"),
        u64::from(2 * u32::from(EACH) - MOST)
    );

    for data in connections(EACH / 4) {
        for (side, segment) in [
            ("egress", syn(&data)),
            ("ingress", syn_ack(&data)),
            ("egress", data),
        ] {
            port.run_on(interface.index, &format!("fairq_{side}"), &segment.frame());
        }
    }
    assert_eq!(tracked(OTHER), (50, 50));
    assert_eq!(tracked(0), (MOST, MOST));
}

/// Interfaces whose indices meet in the map of slots.
#[test]
fn a_port_is_found_at_one_of_the_next_places() {
    let (port, interface) = (Port::new(), Interface::new());
    let slots = &port.0.maps.slots;
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    port.add_port(OTHER, interface.index);
    for (place, is_found) in [(1, true), (3, true), (4, false)] {
        let write = |at: u32, slot: u32| {
            let at = (interface.index + at).to_ne_bytes();
            slots
                .update(&at, &slot.to_ne_bytes(), MapFlags::ANY)
                .unwrap();
        };
        write(0, 0);
        write(place, OTHER);
        let before = port.counters_of(OTHER).egress_packets;
        port.run_on(interface.index, "fairq_egress", &data.frame());
        let seen = port.counters_of(OTHER).egress_packets - before;
        assert_eq!(seen, u64::from(is_found), "place {place}");
        write(place, 0);
    }
    assert_eq!(port.counters().egress_packets, 0);
}

#[test]
fn a_port_has_its_share_before_the_agent_counts_it() {
    let port = Port::new();
    port.use_slots(0);
    port.run(
        "fairq_egress",
        &syn(&Segment::new("10.0.0.1", "10.0.0.2")).frame(),
    );
    assert_eq!(port.state().half_own, 1);
}
