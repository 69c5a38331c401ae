// SPDX-License-Identifier: Apache-2.0
//! How many flows a port counts, and what each gets.

use std::os::fd::AsFd;

use libbpf_rs::{MapCore, MapFlags};
use penstockd::host::bpf::{TestRun, test_run};
use penstockd::port::plain::{bytes_of, of_bytes};
use penstockd::skel::port::types;

use super::common::packet::{ACK, FIN, Segment};
use super::port::Port;
use super::segments::{syn, syn_ack};

#[test]
fn flows_are_counted_once_and_swept() {
    let port = Port::new();
    let flow = |i: u16| Segment::new("10.0.0.1", "10.0.0.2").with(|s| s.source_port = i);
    for i in 1..=100 {
        for _ in 0..2 {
            port.run("fairq_egress", &syn(&flow(i)).frame());
            port.run("fairq_ingress", &syn_ack(&flow(i)).frame());
        }
    }
    port.sweep();
    let state = port.state();
    assert_eq!((state.flows, state.tracked, state.half_open), (0, 0, 100));
    for i in 1..=100 {
        for _ in 0..2 {
            port.run("fairq_egress", &flow(i).frame());
        }
    }
    assert_eq!(port.state().flows, 100);
    assert_eq!(port.counters().flows_begun, 100);
    port.sweep();
    let state = port.state();
    assert_eq!(
        (state.flows, state.recount, state.tracked, state.corrected),
        (100, 100, 100, 0)
    );
    assert_eq!(state.half_open, 0);
    for i in 1..=40 {
        for _ in 0..2 {
            port.run(
                "fairq_egress",
                &flow(i).with(|s| s.flags = FIN | ACK).frame(),
            );
        }
    }
    port.sweep();
    assert_eq!((port.state().flows, port.state().corrected), (60, 0));
    // Idle at once: uncounted; data counts one again.
    port.configure(|config| config.window.idle_ns = 1);
    port.sweep();
    assert_eq!(port.state().flows, 0);
    port.run("fairq_egress", &flow(50).with(|s| s.payload = 100).frame());
    assert_eq!(port.state().flows, 1);
    // An evicted entry: the next sweep sets the number right.
    port.configure(|_| {});
    let keys: Vec<_> = port.0.maps.flows4.keys().collect();
    keys.iter()
        .for_each(|key| port.0.maps.flows4.delete(key).unwrap());
    port.sweep();
    assert_eq!((port.state().flows, port.state().corrected), (0, 1));
}

/// The daemon and a `--stay` or `observe` of the same port.
#[test]
fn sweeps_at_once_count_as_one_does() {
    const FLOWS: u32 = 30_000;
    let port = Port::new();
    let mut flow = types::port_flow::default();
    flow.entry.phase = 1;
    flow.entry.last_ns = penstockd::host::clock::monotonic_ns();
    for source in 0..FLOWS {
        let key = types::flow_key4 {
            source,
            ..Default::default()
        };
        port.add_flow(&key, &flow);
    }
    port.sweep();
    let before = port.state();
    assert_eq!(before.flows, FLOWS);
    let sweep = port.0.progs.sweep.as_fd();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(move || {
                for _ in 0..100 {
                    test_run(&sweep, TestRun::default()).unwrap();
                }
            });
        }
    });
    let after = port.state();
    assert_eq!(
        (after.flows, after.corrected),
        (before.flows, before.corrected)
    );
}

#[test]
fn fairq_shares_its_window_by_flows() {
    let port = Port::new();
    // No tick in the life of this test: the window is alpha * B / flows.
    port.configure(|config| config.schemes.fairq.interval_ns = 3_600_000_000_000);
    for i in 1..=8_u16 {
        let data = Segment::new("10.0.0.1", "10.0.0.2").with(|s| s.source_port = i);
        port.run("fairq_egress", &syn(&data).frame());
        let answer = syn_ack(&data);
        // Its share, though it does not take any from the others yet.
        let got = port.run("fairq_ingress", &answer.frame());
        assert_eq!(port.state().flows, u32::from(i) - 1);
        port.run("fairq_egress", &data.frame());
        let share = port.state().window_bytes as u16;
        // Each new flow rounds down by less than 1/256 byte.
        assert!((32_768 / i).abs_diff(share) <= 1, "{i} flows: {share}");
        assert_eq!(got, answer.with(|s| s.window = share).frame(), "{i} flows");
    }
}

/// How long an entry stays after its last packet: a connection may be idle for a quarter of an hour
/// and need its scale again, any time if a shim changed it; one that has ended may send its last
/// segments again.
#[test]
fn entries_stay_as_long_as_they_may_be_needed() {
    const COUNTED: u8 = 1;
    const IDLE: u8 = 2;
    const ENDED: u8 = 3;
    const UNIFIED: u8 = 8;
    let port = Port::new();
    let now = penstockd::host::clock::monotonic_ns();
    let mut expected = Vec::new();
    for (number, (phase, unified, unacknowledged, seconds, stays)) in (1_u32..).zip([
        (COUNTED, 0, 0, 2, true),
        (COUNTED, 0, 0, 2 * 60, true), // idle from this sweep on
        (IDLE, 0, 0, 2, true),
        (IDLE, 0, 0, 20, true),
        (IDLE, 0, 0, 14 * 60, true),
        (IDLE, 0, 0, 16 * 60, false),
        (IDLE, UNIFIED, 0, 160 * 60, true),
        (ENDED, 0, 0, 0, true),
        (ENDED, 0, 0, 2, false),
        (ENDED, 0, 1, 2, true),
        (ENDED, 0, 1, 12, true),
        (ENDED, 0, 1, 18, false),
        (ENDED, UNIFIED, 0, 14 * 60, true), // its other direction may go on
        (ENDED, UNIFIED, 0, 16 * 60, false),
    ]) {
        // A machine that booted later has no such entries.
        let Some(last_ns) = now.checked_sub(seconds * 1_000_000_000) else {
            continue;
        };
        let mut flow = types::port_flow::default();
        (flow.entry.phase, flow.entry.last_ns) = (phase, last_ns);
        (flow.unified, flow.entry.next[0]) = (unified, unacknowledged);
        let key = types::flow_key4 {
            source: number,
            ..Default::default()
        };
        port.add_flow(&key, &flow);
        let what = format!("phase {phase}, unified {unified}, {seconds} s");
        expected.push((key, stays, what));
    }
    port.sweep();
    for (key, stays, what) in expected {
        let found = port.0.maps.flows4.lookup(bytes_of(&key), MapFlags::ANY);
        assert_eq!(found.unwrap().is_some(), stays, "{what}");
    }
}

/// Only what leaves again after a silence did so for a retransmission timer.
#[test]
fn what_is_repeated_after_a_silence_is_a_timeout() {
    const SILENCE_NS: u64 = 1_000_000_000;
    let port = Port::new();
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    let timeouts = || port.counters().timeouts_seen;
    port.run("fairq_egress", &syn(&data).frame());
    port.run("fairq_egress", &syn(&data).frame());
    assert_eq!(timeouts(), 0);
    let half = &port.0.maps.half_own;
    for key in half.keys().collect::<Vec<_>>() {
        let record = half.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let mut record: types::port_half = of_bytes(&record).unwrap();
        record.handshake.last_ns -= SILENCE_NS;
        half.update(&key, bytes_of(&record), MapFlags::EXIST)
            .unwrap();
    }
    port.run("fairq_egress", &syn(&data).frame());
    assert_eq!(timeouts(), 1);
    port.run("fairq_ingress", &syn_ack(&data).frame());
    let mut data = data.with(|s| s.payload = 100);
    let flows = &port.0.maps.flows4;
    for (is_silent, is_new, expected) in [
        (false, true, 1),
        (false, false, 1),
        (true, true, 1),
        (true, false, 2),
    ] {
        for key in flows.keys().filter(|_| is_silent).collect::<Vec<_>>() {
            let flow = flows.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            let mut flow: types::port_flow = of_bytes(&flow).unwrap();
            flow.entry.last_ns -= SILENCE_NS;
            flows
                .update(&key, bytes_of(&flow), MapFlags::EXIST)
                .unwrap();
        }
        if is_new {
            data.seq += 100;
        }
        port.run("fairq_egress", &data.frame());
        assert_eq!(timeouts(), expected, "silent {is_silent}, new {is_new}");
    }
    assert_eq!(port.counters().repeated_bytes, 200);
}

/// Programs of another scheme that are attached under the same configuration begin with its state.
#[test]
fn another_scheme_renews_the_state() {
    let port = Port::new();
    let data = Segment::new("10.0.0.1", "10.0.0.2").frame();
    let schemes = ["observe", "hscc", "fairq", "observe"].map(|scheme| {
        port.run(&format!("{scheme}_egress"), &data);
        port.state().scheme
    });
    assert_eq!(schemes[0], schemes[3]);
    assert!(schemes[0] != schemes[1] && schemes[1] != schemes[2] && schemes[0] != schemes[2]);
}
