// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Who is served when, and with how much.

use super::super::with;
use super::overload::Overload;
use super::{ACTIVE, MSS, RATE_BPS, SCALE, View, open};
use penstock_core::flow::flag;
use penstock_core::{Grant, GrantOpening, GrantPacket};

/// Where a round trip holds more than the buffer, what is given in any time fits the buffer together with what
/// the port carries in that time, and in the end the budget is given.
#[test]
fn credit_of_far_senders_leaves_no_faster_than_data() {
    let (view, rtt_ns) = (View::new(), 10_000_000);
    let mut port = Overload::new(&[("rtt_ns", rtt_ns)]);
    let target = port.params.field("target_bytes");
    let carried = |time_ns: u64| RATE_BPS / 8 * time_ns / 1_000_000_000;
    let budget = target + carried(rtt_ns);
    for _ in 0..100 {
        port.ask();
    }
    let mut given = Vec::new();
    for now_ns in (0..rtt_ns).step_by(100_000) {
        while let Some(action) = port.grant.next(0, now_ns) {
            given.push((now_ns, u64::from(action.window) << SCALE));
            let since = |begun| given.iter().filter(move |(at, _)| *at >= begun);
            for (begun, _) in &given {
                let sum: u64 = since(*begun).map(|(_, bytes)| bytes).sum();
                let rounded = since(*begun).count() << SCALE;
                let most = 128_000 - target + carried(now_ns - begun) + rounded as u64;
                assert!(sum <= most, "{given:?}");
            }
        }
    }
    let grant_bytes = port.params.field("grant_segments") * u64::from(MSS);
    let outstanding = view.port(&port.grant, "outstanding") as u64;
    assert!(
        outstanding > budget - grant_bytes,
        "{outstanding} of {budget}"
    );
}

/// However much a far sender has sent, a grant is no more than may leave at once: else it would wait forever.
#[test]
fn far_senders_of_much_do_not_wait_forever() {
    for rtt_ns in [10_000_000, 50_000_000, 500_000_000] {
        let mut port = Overload::new(&[("rtt_ns", rtt_ns)]);
        let flow = port.ask_amid(4_000_000);
        port.now_ns += 1_000_000_000;
        assert_eq!(port.next(), flow);
    }
}

/// What a flood of datagrams brings beyond a buffer is lost, and holds up no one once the buffer is empty.
#[test]
fn a_flood_holds_up_no_one_after_it() {
    let view = View::new();
    let mut port = Overload::new(&[("side", 2), ("grant_segments", 4)]);
    port.ask_at(0);
    for _ in 0..100_000 {
        port.now_ns += 6_000;
        port.grant.on_bytes(1500, port.now_ns);
    }
    let waits = port.ask_at(0);
    assert_ne!(view.flow(&port.grant, waits, "state"), ACTIVE);
    port.now_ns += 128_000 * 8 * 1_000_000_000 / RATE_BPS;
    assert_eq!(port.next(), waits);
}

/// Where few flows share a large budget, grants grow beyond `grant` with what the messages have sent.
#[test]
fn few_flows_share_the_budget() {
    let view = View::new();
    let sizes = |flows: usize, sent: u32| -> Vec<u32> {
        let mut port = Overload::new(&[
            ("target_bytes", 40_000),
            ("rtt_ns", 1),
            ("grant_segments", 2),
        ]);
        for _ in 0..flows {
            port.ask_amid(sent);
        }
        let mut granted = Vec::new();
        while let Some(action) = port.grant.next(0, 0) {
            // The window is rounded up to its unit.
            granted.push(view.flow(&port.grant, action.flow, "credit") as u32 / MSS);
        }
        granted
    };
    assert_eq!(sizes(1, 8_000), [2]);
    assert_eq!(sizes(1, 80_000), [10]);
    assert_eq!(sizes(1, 200_000), [20]);
    assert_eq!(sizes(2, 200_000), [13; 2]);
    assert_eq!(sizes(5, 200_000), [6; 5]);
    assert_eq!(sizes(50, 200_000), [2; 18]);
}

/// Flows amid long messages are served within the bound of the header, however many new ones come.
#[test]
fn every_waiting_flow_is_served_within_its_bound() {
    let view = View::new();
    for share in [0.125, 0.5] {
        let share_q16 = (share * 65536.0) as u64;
        let targets = [("target_bytes", 64_000), ("long_target_bytes", 64_000)];
        let order = [("long_share_q16", share_q16), ("learns", 0)];
        let mut port = Overload::new(&[targets, order].concat());
        // Five flows in levels of 256 KiB to 2 MiB, which come after all new ones.
        let long: Vec<u32> = (0..5).map(|_| port.ask()).collect();
        for (index, flow) in long.iter().enumerate() {
            port.send(*flow, 300_000 << index.min(3), false);
        }
        // Those few may have a third of the budget at a time.
        let grant_bytes = (64_000 + 1250) / 3;
        let width = 1u64 << 21;
        let turns = |place: u64| place * (width / grant_bytes + 1);
        let all = (long.len() as u64 * grant_bytes) as f64 / share;
        // From 1 MiB on they take turns; one grant of 8 is the first level's.
        let bound = |sent: u32| match sent < 1 << 20 {
            true => all * turns(5) as f64,
            false => all * 8.0 / 7.0,
        };
        let mut last_served = vec![port.passed; long.len()];
        let mut served = vec![0; long.len()];
        let begun = port.passed;
        while port.passed < begun + 40_000_000 {
            port.ask();
            let flow = port.next();
            let index = long.iter().position(|each| *each == flow);
            let at = port.passed;
            let bytes = port.use_grant(&view, flow, index.is_some());
            if let Some(index) = index {
                last_served[index] = at;
                served[index] += u64::from(bytes);
            }
            for (flow, last) in long.iter().zip(&last_served) {
                assert!(((port.passed - last) as f64) < bound(port.next_seq[flow]));
            }
        }
        // Together they get their share, and each of them some of it.
        let got = served.iter().sum::<u64>();
        let part = got as f64 / (port.passed - begun) as f64;
        assert!((part / share - 1.0).abs() < 0.1, "{part} of {share}");
        assert!(
            served.iter().all(|bytes| *bytes > 10 * grant_bytes),
            "{served:?}"
        );
    }
}

/// Long flows share by flow, not by level: one that is ahead of the others has as much as each of them.
#[test]
fn a_level_has_as_many_turns_as_flows() {
    let view = View::new();
    let mut port = Overload::new(&[("learns", 0)]);
    let long: Vec<u32> = (0..5).map(|_| port.ask()).collect();
    for flow in &long {
        let bytes = if *flow == long[0] {
            2_200_000
        } else {
            1_100_000
        };
        port.send(*flow, bytes, false);
    }
    // They may have waited for long.
    port.now_ns += 10_000_000_000;
    let mut served = vec![0; long.len()];
    while served.iter().sum::<u32>() < 2_000_000 {
        port.ask();
        let flow = port.next();
        let index = long.iter().position(|each| *each == flow);
        let bytes = port.use_grant(&view, flow, index.is_some());
        if let Some(index) = index {
            served[index] += bytes;
        }
    }
    let (least, most) = (served.iter().min(), served.iter().max());
    assert!(most.unwrap() - least.unwrap() < 50_000, "{served:?}");
}

/// Long flows that send alone are owed nothing: a new message does not wait for them.
#[test]
fn long_flows_alone_are_owed_nothing() {
    let view = View::new();
    let mut port = Overload::new(&[("learns", 0)]);
    let long = [port.ask(), port.ask()];
    for flow in long {
        port.send(flow, 2_000_000, false);
    }
    for _ in 0..100 {
        let flow = port.next();
        port.use_grant(&view, flow, true);
    }
    let short = port.ask();
    assert_eq!(port.next(), short);
}

/// Long flows get their share where new messages keep the queue above `long_target`, and where a grant would
/// take more than the budget.
#[test]
fn a_share_that_is_owed_may_take_the_whole_budget() {
    let view = View::new();
    for (targets, queue_bytes) in [((25_600, 6_400), 12_000), ((6_400, 1_600), 3_000)] {
        let (target, long_target) = targets;
        let targets = [("target_bytes", target), ("long_target_bytes", long_target)];
        let mut port = Overload::new(&[targets[0], targets[1], ("learns", 0)]);
        assert!(long_target < queue_bytes);
        let long = port.ask_amid(2_000_000);
        let (begun, mut served) = (port.passed, 0);
        while port.passed < begun + 4_000_000 {
            port.ask();
            let granted = port.grant.next(queue_bytes as u32, port.now_ns);
            let flow = granted.expect("room beyond the queue").flow;
            let bytes = port.use_grant(&view, flow, flow == long);
            if flow == long {
                served += u64::from(bytes);
            }
        }
        let part = served as f64 / (port.passed - begun) as f64;
        assert!((part / 0.125 - 1.0).abs() < 0.1, "{part}");
    }
}

/// Long flows get their share though none but they wait, as requests are granted when they come.
#[test]
fn long_flows_do_not_starve_behind_requests_that_need_not_wait() {
    let view = View::new();
    let mut port = Overload::new(&[("learns", 0)]);
    let long = port.ask_amid(2_000_000);
    assert_eq!(port.next(), long);
    port.use_grant(&view, long, true);
    let is_active = |port: &Overload, flow| view.flow(&port.grant, flow, "state") == ACTIVE;
    let mut short = port.ask_at(0);
    let (begun, mut served) = (port.passed, 0);
    while port.passed < begun + 4_000_000 {
        // The next comes before this one is over.
        let next = port.ask_at(0);
        while let Some(action) = port.grant.next(0, port.now_ns)
            && action.flow == long
        {
            served += u64::from(port.use_grant(&view, long, true));
        }
        assert!(is_active(&port, short) && is_active(&port, next));
        port.use_grant(&view, short, false);
        short = next;
    }
    let part = served as f64 / (port.passed - begun) as f64;
    assert!((part / 0.125 - 1.0).abs() < 0.15, "{part}");
}

/// Likewise the longest have their part of it, behind others that are so few that each is granted as soon as it asks.
#[test]
fn the_longest_do_not_starve_behind_others_that_need_not_wait() {
    let view = View::new();
    let mut port = Overload::new(&[("learns", 0)]);
    let [longest, others @ ..] =
        [4_500_000, 2_100_000, 2_100_000, 2_100_000].map(|bytes| port.ask_amid(bytes));
    let (begun, mut served) = (port.passed, 0);
    while port.passed < begun + 4_000_000 {
        for flow in others {
            while let Some(action) = port.grant.next(0, port.now_ns) {
                if action.flow == longest {
                    served += u64::from(port.use_grant(&view, longest, true));
                }
            }
            port.use_grant(&view, flow, true);
        }
    }
    let part = served as f64 / (port.passed - begun) as f64;
    // The level of the others has the other half of what is owed.
    assert!((part / 0.0625 - 1.0).abs() < 0.15, "{part}");
}

/// Nor do they get more where a grant is larger than what is owed, as those to few flows are.
#[test]
fn large_grants_are_counted_whole() {
    let view = View::new();
    let targets = [("target_bytes", 60_000), ("long_target_bytes", 60_000)];
    let mut port = Overload::new(&[targets, [("grant_segments", 2), ("learns", 0)]].concat());
    let long = port.ask_amid(2_000_000);
    port.ask();
    let (begun, mut served, mut least) = (port.passed, 0, u32::MAX);
    while port.passed < begun + 2_000_000 {
        let flow = port.next();
        let bytes = port.use_grant(&view, flow, flow == long);
        if flow == long {
            served += u64::from(bytes);
            least = least.min(bytes);
        } else {
            port.ask();
        }
    }
    assert!(least > 10 * MSS, "{least}");
    let part = served as f64 / (port.passed - begun) as f64;
    assert!((part / 0.125 - 1.0).abs() < 0.15, "{part}");
}

/// Senders that push begin with their allowance, and so above the first level: a port that they fill still
/// serves those that wait in it.
#[test]
fn new_flows_are_served_where_pushing_ones_never_end() {
    let targets = [("target_bytes", 64_000), ("long_target_bytes", 64_000)];
    let mut port = Overload::new(&[targets, [("long_share_q16", 8192), ("learns", 0)]].concat());
    let push = |port: &mut Overload| {
        let flow = open(&mut port.grant, SCALE, &GrantOpening::default());
        port.next_seq.insert(flow, 0);
        let first = GrantPacket {
            now_ns: port.now_ns,
            window: 60_000,
            scale: SCALE,
            flags: flag::ACK,
            ..GrantPacket::default()
        };
        port.grant.on_ack(flow, &first, 0);
        port.send(flow, 2 * MSS, false);
    };
    let grant_bytes = port.params.field("grant_segments") as u32 * MSS;
    for _ in 0..4 {
        push(&mut port);
    }
    for _ in 0..10 {
        let waiting = port.ask();
        let begun = port.passed;
        while let flow = port.next()
            && flow != waiting
        {
            port.send(flow, grant_bytes, false);
            if port.next_seq[&flow] > 50_000 {
                port.grant.close(flow);
                push(&mut port);
            }
            // Of the grants of an eighth of the bytes, one of 8 is the first level's, where four are before it.
            assert!(port.passed - begun < 6 * 8 * 8 * u64::from(grant_bytes));
        }
        port.send(waiting, 5000, true);
        port.grant.close(waiting);
    }
}

/// Until sizes are known what has sent the most goes first, up to 256 KiB, or, at a slow link, up to
/// what that carries in 10 ms: or a request would wait for seconds where long flows have just begun.
#[test]
fn a_slow_link_serves_short_messages_first_from_the_beginning() {
    let view = View::new();
    let order = |rate_bps| -> Vec<i64> {
        let grant = Grant::new(&with("grant", 128_000, &[]), rate_bps, false);
        let get = |place| view.port.get(grant.state(), "order", place);
        (0..10).map(get).collect()
    };
    assert_eq!(order(10_000_000_000), [8, 7, 6, 5, 4, 3, 2, 1, 0, 9]);
    assert_eq!(order(200_000_000), [8, 7, 6, 5, 4, 3, 2, 1, 0, 9]);
    assert_eq!(order(100_000_000), [7, 6, 5, 4, 3, 2, 1, 0, 8, 9]);
    // 12.5 kB are in the level that ends at 16 KiB.
    assert_eq!(order(10_000_000), [4, 3, 2, 1, 0, 5, 6, 7, 8, 9]);
    assert_eq!(order(100_000), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/// Equal messages run to completion once their sizes are known; in a mixture the shorter go first.
#[test]
fn the_order_follows_the_sizes() {
    let view = View::new();
    let order = |sizes: &[(u32, u32)]| -> Vec<i64> {
        let mut port = Overload::new(&[]);
        for (size, count) in sizes {
            for _ in 0..*count {
                let flow = port.ask();
                port.send(flow, *size, true);
                port.grant.close(flow);
            }
        }
        port.grant.learn();
        let get = |place| view.port.get(port.grant.state(), "order", place);
        (0..12).map(get).collect()
    };
    let before = |order: &[i64], first: i64, second: i64| {
        let place = |level| order.iter().position(|each| *each == level).unwrap();
        place(first) < place(second)
    };
    // Levels: 1 to 2 KiB is 1, 32 to 64 KiB is 6, 512 KiB to 1 MiB is 10.
    let equal = order(&[(60_000, 100)]);
    assert!(
        (0..6).all(|level| before(&equal, level + 1, level)),
        "{equal:?}"
    );
    let mixed = order(&[(1500, 500), (800_000, 50)]);
    assert!((2..9).all(|level| before(&mixed, 0, level)), "{mixed:?}");
    // Even a long one is best completed when little is left of it.
    assert!(before(&mixed, 10, 5), "{mixed:?}");
}
