// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Flows whose servers have nothing to send yet.

use super::overload::Overload;
use super::{ACTIVE, LEVELS, MSS, SCALE, View, WAITING};
use penstock_core::GrantPacket;
use penstock_core::flow::flag;

/// Of late flows that wait again.
const LATE_LEVEL: i64 = LEVELS as i64 - 1;

/// Servers without data do not keep the others waiting: whenever nothing has passed for two round trips and a segment, one more
/// flow is granted an allowance, up to a target in all, and after four times as long they lose all but that.
#[test]
fn late_servers_give_way_where_the_link_idles() {
    let mut port = Overload::new(&[("side", 1)]);
    let flows: Vec<u32> = (0..5).map(|_| port.ask()).collect();
    // The first two were granted in their requests.
    let timer = |port: &mut Overload, later_ns: u64| {
        port.now_ns += later_ns;
        let action = port.grant.on_timer(0, port.now_ns)?;
        Some((action.flow, u32::from(action.window) << SCALE))
    };
    port.grant.on_bytes(1500, port.now_ns + 50_000);
    assert_eq!(timer(&mut port, 200_000), None);
    let allowance = (2 * MSS).next_multiple_of(1 << SCALE);
    for (next, later_ns) in [(flows[2], 20_000), (flows[3], 200_000)] {
        assert_eq!(timer(&mut port, later_ns), Some((next, allowance)));
        assert_eq!(timer(&mut port, 0), None);
    }
    port.now_ns += 300_000;
    for late in &flows[..2] {
        assert_eq!(timer(&mut port, 0), Some((*late, 0)));
        assert_eq!(timer(&mut port, 0), Some((*late, allowance)));
    }
    // Another window than before.
    for late in &flows[2..4] {
        assert_eq!(timer(&mut port, 0), Some((*late, allowance + (1 << SCALE))));
    }
    assert_eq!(timer(&mut port, 0), Some((flows[4], allowance)));
    // What arrives after all is granted the rest of its message.
    port.send(flows[0], 2 * MSS, false);
    port.send(flows[2], 5000, true);
    assert_eq!(port.next(), flows[0]);
}

/// However many servers are late by up to an eighth of a second, what they may send at once fits the buffer, and each
/// has had its turn.
#[test]
fn what_late_servers_may_send_fits_the_buffer() {
    let view = View::new();
    let mut port = Overload::new(&[("side", 1)]);
    let flows: Vec<u32> = (0..500).map(|_| port.ask()).collect();
    let mut is_granted = vec![false; flows.len()];
    while port.now_ns < 125_000_000 {
        port.now_ns += 100_000;
        while let Some(action) = port.grant.on_timer(0, port.now_ns) {
            let place = flows.iter().position(|flow| *flow == action.flow).unwrap();
            is_granted[place] |= action.window > 0;
        }
        let may_send = |flow: &u32| {
            view.flow(&port.grant, *flow, "most") - view.flow(&port.grant, *flow, "seen")
        };
        let sum: i64 = flows.iter().map(may_send).sum();
        assert!(sum <= 128_000, "{sum} at {}", port.now_ns);
    }
    assert!(is_granted.iter().all(|granted| *granted));
    // Those that were late twice wait behind all: a request comes before them, as does one of them whose sender probes.
    let last = loop {
        port.now_ns += 100_000;
        while port.grant.on_timer(0, port.now_ns).is_some() {}
        let field = |flow: &u32, name| view.flow(&port.grant, *flow, name);
        let mut waiting = flows.iter().filter(|flow| field(flow, "state") == WAITING);
        if waiting
            .clone()
            .all(|flow| field(flow, "level") == LATE_LEVEL)
        {
            break *waiting.next_back().expect("not all lapse at once");
        }
        assert!(port.now_ns < 1_000_000_000);
    };
    let new = port.ask();
    let probe = GrantPacket {
        now_ns: port.now_ns,
        seq: u32::MAX,
        flags: flag::ACK,
        ..GrantPacket::default()
    };
    port.grant.on_data(last, &probe);
    let begun_ns = port.now_ns;
    while [new, last].map(|flow| view.flow(&port.grant, flow, "state")) != [ACTIVE; 2] {
        port.now_ns += 100_000;
        while port.grant.on_timer(0, port.now_ns).is_some() {}
        assert!(port.now_ns < begun_ns + 5_000_000);
    }
    // Next to others that never end they share what is owed with long ones: one of them in turn with each long one.
    let (mut behind, others): (Vec<u32>, Vec<u32>) = flows
        .iter()
        .partition(|flow| view.flow(&port.grant, **flow, "state") == WAITING);
    let level = |flow: &u32| view.flow(&port.grant, *flow, "level");
    assert!(behind.len() > 3 && behind.iter().all(|flow| level(flow) == LATE_LEVEL));
    for flow in others.iter().chain([&new]) {
        port.grant.close(*flow);
    }
    let long = port.ask_amid(2_000_000);
    let (begun, mut turns, mut late) = (port.passed, 0u32, 0u32);
    while port.passed < begun + 1_000_000 {
        port.ask();
        let flow = port.next();
        if let Some(place) = behind.iter().position(|each| *each == flow) {
            late += 1;
            behind.remove(place);
            port.grant.close(flow); // another may have its number then
            continue;
        }
        turns += u32::from(flow == long);
        port.use_grant(&view, flow, flow == long);
    }
    assert!(late.abs_diff(turns) < 3 && late > 10, "{late} {turns}");
}

/// A port that stands still for up to 8 ms looks like late servers, but a queue holds all that they send: it fits the
/// buffer, however many flows ask, and wait for longer than others take to be late.
#[test]
fn what_is_sent_while_a_port_stands_still_fits_the_buffer() {
    let view = View::new();
    for count in [8, 32, 126, 500] {
        let mut port = Overload::new(&[("side", 1)]);
        let flows: Vec<u32> = (0..count).map(|_| port.ask()).collect();
        let mut sent = vec![0; flows.len()];
        while port.now_ns < 8_000_000 {
            port.now_ns += 100_000;
            loop {
                for (most, flow) in sent.iter_mut().zip(&flows) {
                    let shown = view.flow(&port.grant, *flow, "most")
                        - view.flow(&port.grant, *flow, "seen");
                    *most = shown.max(*most);
                }
                if port.grant.on_timer(0, port.now_ns).is_none() {
                    break;
                }
            }
            let sum: i64 = sent.iter().sum();
            assert!(sum <= 128_000, "{count} flows: {sum} at {}", port.now_ns);
        }
    }
}

/// What arrives of a grant that was taken back was on the way: others are no longer taken for late as early.
#[test]
fn a_queue_elsewhere_does_not_make_servers_late() {
    for is_queued in [false, true] {
        let mut port = Overload::new(&[("side", 1)]);
        let flows: Vec<u32> = (0..4).map(|_| port.ask()).collect();
        let timer = |port: &mut Overload, later_ns: u64| {
            port.now_ns += later_ns;
            port.grant
                .on_timer(0, port.now_ns)
                .map(|action| action.flow)
        };
        // The first is late, and is shown its allowance; before, a third was granted credit.
        assert_eq!(timer(&mut port, 700_000), Some(flows[0]));
        assert_eq!(timer(&mut port, 0), Some(flows[0]));
        port.send(flows[0], if is_queued { 4 } else { 2 } * MSS, false);
        let taken = (0..20).find(|_| timer(&mut port, 100_000) == Some(flows[1]));
        assert_eq!(taken.is_none(), is_queued);
        let taken = (0..200).find(|_| timer(&mut port, 100_000) == Some(flows[1]));
        assert!(taken.is_some());
    }
}
