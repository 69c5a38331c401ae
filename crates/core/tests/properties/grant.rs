// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::with;
use penstock_core::flow::flag;
use penstock_core::{Grant, GrantPacket, Params};
use proptest::prelude::*;

const LEVELS: usize = 16;
const WAITING: i64 = 2;
const ACTIVE: i64 = 3;
const MSS: u32 = 1000;
const SCALE: u8 = 7;
const RATE_BPS: u64 = 200_000_000;

/// What the structs hold.
struct View {
    port: Fields,
    flow: Fields,
}

impl View {
    fn new() -> View {
        View {
            port: Fields::of("grant_state", "grant_port"),
            flow: Fields::of("grant_state", "grant_flow"),
        }
    }

    fn port(&self, grant: &Grant, name: &str) -> i64 {
        self.port.get(grant.state(), name, 0)
    }

    fn flow(&self, grant: &Grant, flow: u32, name: &str) -> i64 {
        self.flow.get(grant.flow(flow), name, 0)
    }

    /// The flows of a list, checked in both directions; the lists end the struct.
    fn list(&self, grant: &Grant, number: usize) -> Vec<u32> {
        let lists = &grant.state()[grant.state().len() - 8 * (LEVELS + 2)..];
        let word = |at: usize| {
            let bytes = lists[8 * number + at..][..4].try_into().unwrap();
            u32::from_ne_bytes(bytes)
        };
        let (mut flows, mut next) = (Vec::new(), word(0));
        while next != 0 {
            let before = flows.last().copied().unwrap_or(0);
            assert_eq!(self.flow(grant, next, "prev"), i64::from(before));
            flows.push(next);
            assert!(flows.len() < 1000, "a circle");
            next = self.flow(grant, next, "next") as u32;
        }
        assert_eq!(word(4), flows.last().copied().unwrap_or(0));
        flows
    }

    /// The bits of the lists are those of the lists that are not empty, by level and by place in the order.
    fn assert_bits(&self, grant: &Grant) {
        let (mut filled, mut filled_at) = (0, 0);
        for number in 0..LEVELS + 2 {
            let place = self.port.get(grant.state(), "place", number);
            if number < LEVELS {
                let level = self.port.get(grant.state(), "order", place as usize);
                assert_eq!(level, number as i64);
            }
            if !self.list(grant, number).is_empty() {
                filled |= 1 << number;
                filled_at |= 1 << place;
            }
        }
        assert_eq!(self.port(grant, "filled"), filled);
        assert_eq!(self.port(grant, "filled_at"), filled_at);
    }

    /// No flow is lost, and the sums are those of the flows.
    fn assert_consistent(&self, grant: &Grant, flows: &[u32]) {
        let open = || flows.iter().copied().filter(|flow| grant.is_open(*flow));
        let in_state = |state: i64| -> Vec<u32> {
            open()
                .filter(|flow| self.flow(grant, *flow, "state") == state)
                .collect()
        };
        self.assert_bits(grant);
        let mut waiting = Vec::new();
        for level in 0..LEVELS {
            for flow in self.list(grant, level) {
                assert_eq!(self.flow(grant, flow, "level"), level as i64);
                waiting.push(flow);
            }
        }
        let late = self.list(grant, LEVELS + 1);
        let mut active = [self.list(grant, LEVELS), late.clone()].concat();
        waiting.sort_unstable();
        active.sort_unstable();
        assert_eq!(waiting, in_state(WAITING));
        assert_eq!(active, in_state(ACTIVE));
        assert_eq!(self.port(grant, "waiting"), waiting.len() as i64);
        assert_eq!(self.port(grant, "active"), active.len() as i64);
        let credit: i64 = open().map(|flow| self.flow(grant, flow, "credit")).sum();
        assert_eq!(self.port(grant, "outstanding"), credit);
        for flow in active {
            let is_resent = self.flow(grant, flow, "flags") >> 4 != 0;
            assert_eq!(late.contains(&flow), is_resent);
        }
        let late = late.into_iter();
        let late: i64 = late.map(|flow| self.flow(grant, flow, "credit")).sum();
        assert_eq!(self.port(grant, "late"), late);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Open,
    Close(usize),
    Ack(usize, GrantPacket, u32),
    Data(usize, GrantPacket),
    Bytes(u32),
    Next(u32),
    Timer(u32),
    Learn,
}

/// Numbers of packets are below `most`: a caller passes on what the ends would accept (`core/flow.h`),
/// but nothing may break if it does not.
fn packets(most: u32) -> impl Strategy<Value = GrantPacket> {
    let seq = prop_oneof![0u32..60_000, 0..most];
    let ack = prop_oneof![0u32..60_000, 0..most];
    let payload = prop_oneof![Just(0u32), Just(MSS), 1u32..3000, 0..most / 16];
    let flags = prop_oneof![
        4 => Just(flag::ACK),
        2 => Just(flag::ACK | flag::PSH),
        1 => any::<u8>()
    ];
    let scale = prop_oneof![9 => Just(SCALE), 1 => Just(255u8)];
    (seq, ack, payload, any::<u16>(), flags, scale).prop_map(
        |(seq, ack, payload, window, flags, scale)| GrantPacket {
            seq,
            ack,
            payload,
            window,
            flags,
            scale,
            ..GrantPacket::default()
        },
    )
}

fn events(most: u32) -> impl Strategy<Value = Event> {
    let queue = prop_oneof![Just(0u32), 0u32..200_000, any::<u32>()];
    prop_oneof![
        2 => Just(Event::Open),
        1 => any::<usize>().prop_map(Event::Close),
        8 => (any::<usize>(), packets(most), queue.clone()).prop_map(|(f, p, q)| Event::Ack(f, p, q)),
        8 => (any::<usize>(), packets(most)).prop_map(|(f, p)| Event::Data(f, p)),
        1 => any::<u32>().prop_map(Event::Bytes),
        4 => queue.clone().prop_map(Event::Next),
        2 => queue.prop_map(Event::Timer),
        1 => Just(Event::Learn),
    ]
}

fn params() -> impl Strategy<Value = Params> {
    let sizes = (1u32..300_000, 1u64..20, 0u64..4, 1u64..17);
    let place = (0u64..3, prop_oneof![Just(50_000u64), 1u64..20_000_000]);
    (place, sizes, 0u64..=65536).prop_map(
        |((side, rtt), (target, grant, allowance, levels), share)| {
            let fields = [
                ("side", side),
                ("rtt_ns", rtt),
                ("target_bytes", target.into()),
                ("long_target_bytes", u64::from(target) / (1 + share % 5)),
                ("grant_segments", grant),
                ("allowance_segments", allowance),
                ("levels", levels),
                ("long_share_q16", share),
            ];
            with("grant", 128_000, &fields)
        },
    )
}

type Events = Vec<(Event, u64)>;

fn many(most: u32) -> impl Strategy<Value = Events> {
    proptest::collection::vec((events(most), 0u64..3_000_000), 0..300)
}

proptest! {
    #[test]
    fn holds_at_any_input(
        params in params(),
        never_shrinks in any::<bool>(),
        events in many(u32::MAX),
    ) {
        replay(&params, never_shrinks, events, false)?;
    }

    #[test]
    fn credit_is_bounded_and_edges_are_kept(
        params in params(),
        never_shrinks in any::<bool>(),
        events in many(1 << 20),
    ) {
        replay(&params, never_shrinks, events, true)?;
    }
}

proptest! {
    /// A message counts in each level that it has grown beyond, however large its packets are, and in the
    /// one in which it ends.
    #[test]
    fn counts_the_levels_that_are_passed(
        payloads in proptest::collection::vec(prop_oneof![1u32..3000, 1u32..(1 << 26)], 1..20),
    ) {
        let params = with("grant", 128_000, &[]);
        let (mut grant, view) = (Grant::new(&params, RATE_BPS, false), View::new());
        let flow = grant.open(0, MSS).unwrap();
        let mut seq = 0;
        for payload in payloads {
            let flags = flag::ACK;
            grant.on_data(flow, &GrantPacket { seq, payload, flags, ..GrantPacket::default() });
            seq += payload;
            prop_assert_eq!(view.flow(&grant, flow, "attained"), i64::from(seq.min(1 << 30)));
            for level in 0..LEVELS {
                let passed = view.port.get(grant.state(), "passed", level);
                prop_assert_eq!(passed, i64::from(seq.min(1 << 30) >= 1024 << level));
            }
        }
        let flags = flag::ACK | flag::FIN;
        grant.on_data(flow, &GrantPacket { seq, flags, ..GrantPacket::default() });
        let level = (0..LEVELS - 1).filter(|level| seq >= 1024 << level).count();
        prop_assert_eq!(view.port.get(grant.state(), "ended", level), 1);
    }
}

/// No flow is lost, and no window raised; of packets that are in order also: credit is bounded, and with
/// `never_shrinks` no window is taken back.
fn replay(
    params: &Params,
    never_shrinks: bool,
    events: Events,
    is_in_order: bool,
) -> Result<(), TestCaseError> {
    let (mut grant, view) = (Grant::new(params, RATE_BPS, never_shrinks), View::new());
    let (mut flows, mut now_ns) = (Vec::new(), 0);
    let budget = params.field("target_bytes") + RATE_BPS * params.field("rtt_ns") / 8_000_000_000;
    let segments = params
        .field("grant_segments")
        .max(params.field("allowance_segments"));
    // A SYN-ACK shows up to the whole of an unscaled window, rounded as the others.
    let grant_bytes = segments * u64::from(MSS) + (1 << SCALE);
    for (event, elapsed) in events {
        now_ns += elapsed;
        let pick = |index: usize| {
            if flows.is_empty() {
                0
            } else {
                flows[index % flows.len()]
            }
        };
        let at = |packet: GrantPacket| GrantPacket { now_ns, ..packet };
        match event {
            Event::Open => {
                let flow = grant.open(0, MSS).unwrap();
                if !flows.contains(&flow) {
                    flows.push(flow);
                    flows.sort_unstable();
                }
            }
            Event::Close(index) => grant.close(pick(index)),
            Event::Ack(index, packet, queue) => {
                let flow = pick(index);
                let most = view.flow(&grant, flow, "most") as u32;
                let is_followed = grant.is_open(flow);
                let window = grant.on_ack(flow, &at(packet), queue);
                prop_assert!(window <= packet.window);
                let is_plain = packet.flags & (flag::SYN | flag::RST) == 0;
                let owed = most.wrapping_sub(packet.ack);
                if is_in_order && never_shrinks && is_plain && is_followed && owed >> 31 == 0 {
                    let kept = (u32::from(window) << SCALE) >= owed;
                    prop_assert!(kept || window == packet.window, "{owed} {window}");
                }
            }
            Event::Data(index, packet) => grant.on_data(pick(index), &at(packet)),
            Event::Bytes(bytes) => grant.on_bytes(bytes, now_ns),
            Event::Next(queue) => drop(grant.next(queue, now_ns)),
            Event::Timer(queue) => drop(grant.on_timer(queue, now_ns)),
            Event::Learn => grant.learn(),
        }
        view.assert_consistent(&grant, &flows);
        let active = view.port(&grant, "active") as u64;
        let most = (budget + params.field("target_bytes")).max(grant_bytes) + active * (4 << SCALE);
        if is_in_order && !never_shrinks {
            prop_assert!(view.port(&grant, "outstanding") as u64 <= most);
        }
    }
    Ok(())
}

/// A port under more load of new messages than it can carry, and a sender for each flow.
struct Overload {
    grant: Grant,
    params: Params,
    now_ns: u64,
    passed: u64,
    next_seq: std::collections::HashMap<u32, u32>,
}

impl Overload {
    fn new(changes: &[(&str, u64)]) -> Overload {
        let params = with("grant", 128_000, changes);
        Overload {
            grant: Grant::new(&params, RATE_BPS, false),
            params,
            now_ns: 0,
            passed: 0,
            next_seq: Default::default(),
        }
    }

    /// A request passes.
    fn ask(&mut self) -> u32 {
        let flow = self.grant.open(0, MSS).unwrap();
        self.next_seq.insert(flow, 0);
        let request = GrantPacket {
            now_ns: self.now_ns,
            payload: 100,
            window: 60_000,
            scale: SCALE,
            flags: flag::ACK,
            ..GrantPacket::default()
        };
        // A full queue: it has to wait.
        self.grant.on_ack(flow, &request, 1_000_000);
        flow
    }

    /// `bytes` of a flow pass, in segments; the last ends its message if `is_end`.
    fn send(&mut self, flow: u32, bytes: u32, is_end: bool) {
        let mut left = bytes;
        while left > 0 {
            let payload = left.min(MSS);
            left -= payload;
            let seq = self.next_seq[&flow];
            let is_last = is_end && left == 0;
            let packet = GrantPacket {
                now_ns: self.now_ns,
                seq,
                payload,
                mss: MSS as u16,
                flags: flag::ACK | if is_last { flag::FIN } else { 0 },
                ..GrantPacket::default()
            };
            self.grant.on_data(flow, &packet);
            self.now_ns += 40_000;
            self.passed += u64::from(payload);
            self.next_seq.insert(flow, seq + payload);
        }
    }

    /// The next grant, to a flow whose sender uses it at once.
    fn next(&mut self) -> u32 {
        let action = self.grant.next(0, self.now_ns);
        action.expect("room in an empty queue").flow
    }
}

/// Servers without data lose all but their allowance to those that wait, once nothing has passed for two
/// round trips and a segment.
#[test]
fn late_servers_give_way_where_the_link_idles() {
    let mut port = Overload::new(&[("side", 1)]);
    let flows: Vec<u32> = (0..4).map(|_| port.ask()).collect();
    // The first two were granted in their requests.
    let (granted, waiting) = flows.split_at(2);
    let timer = |port: &mut Overload, later_ns: u64| {
        port.now_ns += later_ns;
        let action = port.grant.on_timer(0, port.now_ns)?;
        Some((action.flow, u32::from(action.window) << SCALE))
    };
    port.grant.on_bytes(1500, port.now_ns + 50_000);
    assert_eq!(timer(&mut port, 200_000), None);
    let allowance = (2 * MSS).next_multiple_of(1 << SCALE);
    for late in granted {
        assert_eq!(timer(&mut port, 10_000), Some((*late, 0)));
        assert_eq!(timer(&mut port, 0), Some((*late, allowance)));
    }
    for next in waiting {
        let (flow, window) = timer(&mut port, 0).unwrap();
        assert_eq!(flow, *next);
        assert!(window >= 10 * MSS);
    }
    assert_eq!(timer(&mut port, 0), None);
    // What arrives after all is granted the rest of its message.
    port.send(flows[0], 2 * MSS, false);
    port.send(flows[2], 5000, true);
    assert_eq!(port.next(), flows[0]);
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
        // The first is late, and is shown its allowance.
        assert_eq!(timer(&mut port, 200_000), Some(flows[0]));
        assert_eq!(timer(&mut port, 0), Some(flows[0]));
        port.send(flows[0], if is_queued { 4 } else { 2 } * MSS, false);
        let taken = (0..20).find(|_| timer(&mut port, 100_000) == Some(flows[1]));
        assert_eq!(taken.is_none(), is_queued);
        let taken = (0..200).find(|_| timer(&mut port, 100_000) == Some(flows[1]));
        assert!(taken.is_some());
    }
}

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
            let flow = port.ask();
            port.send(flow, sent, false);
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
        let bound = (LEVELS as u64 * grant_bytes) as f64 / share * turns(5) as f64;
        let mut last_served = vec![port.passed; long.len()];
        let mut served = vec![0; long.len()];
        let begun = port.passed;
        while port.passed < begun + 40_000_000 {
            port.ask();
            let flow = port.next();
            if let Some(index) = long.iter().position(|each| *each == flow) {
                last_served[index] = port.passed;
                let credit = view.flow(&port.grant, flow, "credit") as u32;
                served[index] += u64::from(credit);
                port.send(flow, credit, false);
            } else {
                port.send(flow, 5000, true);
                port.grant.close(flow);
            }
            for last in &last_served {
                assert!(((port.passed - last) as f64) < bound);
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

/// Senders that push begin with their allowance, and so above the first level: a port that they fill still
/// serves those that wait in it.
#[test]
fn new_flows_are_served_where_pushing_ones_never_end() {
    let targets = [("target_bytes", 64_000), ("long_target_bytes", 64_000)];
    let mut port = Overload::new(&[targets, [("long_share_q16", 8192), ("learns", 0)]].concat());
    let push = |port: &mut Overload| {
        let flow = port.grant.open(0, MSS).unwrap();
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
