// SPDX-License-Identifier: Apache-2.0
//! What sweeps find, count and remove.

use libbpf_rs::{MapCore, MapFlags};
use penstockd::host::clock::monotonic_ns;
use penstockd::port::plain::{bytes_of, of_bytes};
use penstockd::skel::port::types;

use super::common::packet::{ACK, FIN, Segment};
use super::port::Port;
use super::segments::{open, syn_ack};

const COUNTED: u8 = 1;
const ENDED: u8 = 3;
const SECOND: u64 = 1_000_000_000;

fn key(number: u32) -> types::flow_key4 {
    types::flow_key4 {
        source: number,
        ..Default::default()
    }
}

fn flow(phase: u8, last_ns: u64) -> types::port_flow {
    let mut flow = types::port_flow::default();
    (flow.entry.phase, flow.entry.last_ns) = (phase, last_ns);
    flow
}

/// The last record takes the place of one that is given up, which must not lose a flow.
#[test]
fn a_sweep_keeps_the_record_of_each_flow_that_stays() {
    let port = Port::new();
    let flows = &port.0.maps.flows4;
    let old = monotonic_ns().saturating_sub(20 * SECOND);
    for number in 1..=10 {
        let phase = if number % 2 == 0 { ENDED } else { COUNTED };
        port.add_flow(&key(number), &flow(phase, old));
    }
    port.sweep();
    let mut left: Vec<u32> = flows
        .keys()
        .map(|key| of_bytes::<types::flow_key4>(&key).unwrap().source)
        .collect();
    left.sort_unstable();
    assert_eq!(left, [1, 3, 5, 7, 9]);
    assert_eq!((port.records(), port.state().flows), (5, 5));
    // Behind the last each is as a new flow expects it.
    for index in 0..10_u32 {
        let record = port
            .0
            .maps
            .records
            .lookup(&index.to_ne_bytes(), MapFlags::ANY);
        let record = record.unwrap().unwrap();
        let state = &record[record.len() - 4..];
        assert_eq!(state, u32::from(index < 5).to_ne_bytes(), "record {index}");
    }
    for number in left {
        let ended = flow(ENDED, old);
        flows
            .update(bytes_of(&key(number)), bytes_of(&ended), MapFlags::EXIST)
            .unwrap();
    }
    port.sweep();
    assert_eq!((port.records(), flows.keys().count()), (0, 0));
    assert_eq!(port.state().flows, 0);
}

/// A sweep of many flows takes several runs, between which they change.
#[test]
fn flows_that_end_during_a_sweep_are_counted_once() {
    const MANY: u32 = 5000;
    let port = Port::new();
    let [first, last] =
        [1, 2].map(|number| Segment::new("10.0.0.1", "10.0.0.2").with(|s| s.source_port = number));
    open(&port, "fairq", &first);
    for number in 1..=MANY {
        port.add_flow(&key(number), &flow(COUNTED, monotonic_ns()));
    }
    open(&port, "fairq", &last);
    port.sweep();
    let corrected = port.state().corrected;
    assert_eq!(port.state().flows, MANY + 2);
    assert!(port.slice(), "one run sees all");
    for data in [first, last] {
        let fin = data.with(|s| s.flags = FIN | ACK);
        port.run("fairq_egress", &fin.frame());
    }
    port.sweep();
    let state = port.state();
    assert_eq!((state.flows, state.corrected), (MANY, corrected));
}

/// The papers' count restarts after `idle` without data.
#[test]
fn a_count_of_packets_ends_when_the_port_is_idle() {
    let port = Port::new();
    port.configure(|config| {
        (config.schemes.fairq.counting, config.window.idle_ns) = (1, 5 * SECOND);
    });
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    port.run("fairq_ingress", &syn_ack(&data).frame());
    for (silent, flows) in [(0, 1), (2, 1), (4, 0)] {
        port.change_state(|state| state.counter.last_data_ns -= silent * SECOND);
        port.sweep();
        assert_eq!(port.state().flows, flows);
    }
}

/// Sides are counted under a policy alone, each flow once in a sweep.
#[test]
fn a_sweep_adds_its_time_to_the_side_of_each_flow() {
    let port = Port::new();
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    let sweep = || {
        port.change_state(|state| state.sweep_ns = monotonic_ns() - SECOND);
        port.sweep();
        port.sides().map(|side| side.flow_ms)
    };
    open(&port, "hscc", &data);
    assert_eq!(sweep(), [0, 0]);
    let nothing = penstockd::port::policy::Policy {
        exclude: Vec::new(),
        include: Vec::new(),
        canary: None,
    };
    port.control(&nothing, 1);
    port.run("hscc_egress", &data.frame());
    let before = port.state().sweep;
    let [controlled, held_out] = sweep();
    assert_eq!(controlled, port.state().sweep_ms);
    assert!(controlled >= 1000 && held_out == 0);
    assert_eq!(port.state().sweep, before + 1);
}
