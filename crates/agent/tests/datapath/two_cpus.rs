// SPDX-License-Identifier: Apache-2.0
//! Packets of one flow that pass on two CPUs at once.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libbpf_rs::{MapCore, MapFlags};
use penstockd::host::bpf::{TestRun, test_run};
use penstockd::port::plain::of_bytes;
use penstockd::skel::port::types;

use super::common::cpus::{stay_on, together};
use super::common::packet::Segment;
use super::port::Port;
use super::segments::{ack, open, syn, syn_ack};

/// A packet passes a program so many times.
fn pass(program: BorrowedFd<'_>, packet: &[u8], times: i32) {
    let run = TestRun {
        packet: Some(packet),
        repeat: times,
        ..Default::default()
    };
    test_run(&program, run).unwrap();
}

/// The receiver's ACKs and its answer pass at the same time: an ACK that was slower must not take back
/// what the answer has shown, or the ACK of the answer, and a FIN, would seem to acknowledge too much.
#[test]
fn packets_on_two_cpus_move_a_flow_only_forward() {
    let port = Port::new();
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    open(&port, "hscc", &data);
    let older = ack(&data).frame();
    let program = port.0.progs.hscc_ingress.as_fd();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            stay_on(0);
            while !is_over.load(Ordering::Relaxed) {
                pass(program, &older, 1000);
            }
        });
        stay_on(1);
        let mut answer = ack(&data).with(|s| s.payload = 8);
        let mut went_back = 0;
        for _ in 0..1000 {
            port.run("hscc_ingress", &answer.frame());
            answer = answer.with(|s| s.seq = s.seq.wrapping_add(8));
            let flows = &port.0.maps.flows4;
            let key = flows.keys().next().unwrap();
            let flow = flows.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            let flow: types::port_flow = of_bytes(&flow).unwrap();
            went_back += u32::from(flow.entry.next[1] != answer.seq);
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(went_back, 0, "of 1000 answers");
    });
}

/// The ACK that ends a handshake and the request after it: whichever is first makes the flow's entry
/// and deletes the record of the handshake, and the other must find one of them.
#[test]
fn the_last_packets_of_a_handshake_are_both_read() {
    const FLOWS: usize = 2_000;
    let port = Port::new();
    let program = port.0.progs.hscc_ingress.as_fd();
    let egress = port.0.progs.hscc_egress.as_fd();
    let clients: Vec<_> = (0..FLOWS)
        .map(|i| Segment::new("10.0.0.2", "10.0.0.1").with(|s| s.source_port = i as u16 + 1))
        .collect();
    let shake_hands = |flow: usize| {
        pass(program, &syn(&clients[flow]).frame(), 1);
        pass(egress, &syn_ack(&clients[flow]).frame(), 1);
    };
    together(FLOWS, shake_hands, |cpu, flow| {
        let packet = clients[flow].with(|s| s.payload = 100 * cpu);
        pass(program, &packet.frame(), 1);
    });
    assert_eq!(port.passed("unknown_scale"), 0, "packets passed unread");
    let counters = port.counters();
    assert_eq!(
        (counters.half_open_proven, counters.flows_begun),
        (FLOWS as u64, FLOWS as u64)
    );
    let state = port.state();
    assert_eq!(
        (state.half_open, state.half_own, state.flows),
        (0, 0, FLOWS as u32)
    );
}
