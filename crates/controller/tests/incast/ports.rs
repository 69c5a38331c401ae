// SPDX-License-Identifier: Apache-2.0
//! When incast begins and ends at a port, and who gets notices.

use crate::{BUFFER, EDGE, PORT, flow, incast, params, place, report, syn};
use penstock_controller::incast::{Incast, Limits};
use penstock_sdn::message::{Notice, Order};
use std::net::SocketAddr;

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

/// The pairs that get an OFF when the queue of a port is reported to be empty.
fn released(incast: &mut Incast, port: u32, now_ns: u64) -> usize {
    let mut empty = report(0);
    empty.queues = vec![(port, 0)];
    let notices = incast.on_queues(&empty, now_ns).into_iter();
    notices.filter(|one| one.order == Order::Off).count()
}

#[test]
fn a_pair_that_another_port_has_clamped_stays_so() {
    let other = place(1, 8);
    let mut incast = incast(Limits::default());
    incast.watch(other, &params());
    for port in 0..7 {
        incast.on_copy(EDGE, &syn(flow(port)), &[other, PORT], &[], 0);
    }
    let mut both = report(BUFFER);
    both.queues[0].1 = BUFFER;
    assert_eq!(incast.on_queues(&both, 1_000_000).len(), 2, "two ON");
    assert_eq!(released(&mut incast, 8, 2_000_000), 0, "the other port");
    assert_eq!(released(&mut incast, 9, 3_000_000), 1);

    // A port that is not reported any more keeps none.
    for port in 10..17 {
        incast.on_copy(EDGE, &syn(flow(port)), &[other, PORT], &[], 0);
    }
    assert_eq!(incast.on_queues(&both, 50_000_000).len(), 2);
    assert_eq!(released(&mut incast, 8, 2_000_000_000), 1);
}

#[test]
fn a_pair_whose_flows_end_in_a_clamp_is_released() {
    let mut incast = incast(Limits::default());
    for port in 0..7 {
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
    }
    assert_eq!(incast.on_queues(&report(BUFFER), 1_000_000).len(), 1);
    for port in 0..7 {
        let reset = penstock_controller::segment::Segment {
            flags: 4,
            ..syn(flow(port))
        };
        incast.on_copy(EDGE, &reset, &[PORT], &[], 0);
    }
    assert_eq!(incast.flows(PORT), 0);
    assert_eq!(released(&mut incast, 9, 2_000_000), 1);
    assert_eq!(released(&mut incast, 9, 3_000_000), 0, "once");
}

#[test]
fn the_options_are_those_of_the_receiver() {
    let mut incast = incast(Limits::default());
    for port in 0..7 {
        let mut answer = syn(flow(port).reverse());
        (answer.flags, answer.mss, answer.scale) = (2 | 16, Some(8960), None);
        incast.on_copy(EDGE, &syn(flow(port)), &[PORT], &[], 0);
        incast.on_copy(EDGE, &answer, &[], &[PORT], 0);
    }
    let notices = incast.on_queues(&report(0), 1);
    assert_eq!(
        notices[0].order,
        Order::On(8960, Some(0)),
        "no option: no scale"
    );
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
