// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
mod late;
mod openers;
mod overload;
mod packets;
mod turns;

use super::common::Fields;
use super::with;
use penstock_core::flow::flag;
use penstock_core::{Grant, GrantAction, GrantOpening, GrantPacket, Params};
use proptest::prelude::*;

const LEVELS: usize = 16;
const IDLE: i64 = 1;
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

    /// An ACK of Grant's own repeats the receiver's last one, with no larger window, and if edges are
    /// kept with none that takes back what its sender was shown.
    fn check_own(
        &self,
        grant: &Grant,
        own: Option<GrantAction>,
        keeps_edges: bool,
    ) -> Result<(), TestCaseError> {
        let Some(own) = own else {
            return Ok(());
        };
        let of = |name| self.flow(grant, own.flow, name);
        for (name, sent) in [
            ("ack", own.ack),
            ("seq", own.seq),
            ("ts_val", own.ts_val),
            ("ts_ecr", own.ts_ecr),
        ] {
            prop_assert_eq!(of(name), i64::from(sent), "{}", name);
        }
        let (offered, owed) = (of("window"), (of("most") as u32).wrapping_sub(own.ack));
        prop_assert!(i64::from(own.window) <= offered);
        let is_kept = u32::from(own.window) << SCALE >= owed || i64::from(own.window) == offered;
        prop_assert!(!keeps_edges || owed >> 31 == 1 || is_kept, "{owed} {own:?}");
        Ok(())
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
            let is_resent = self.flow(grant, flow, "flags") & 0x30 != 0;
            assert_eq!(late.contains(&flow), is_resent);
        }
        let late = late.into_iter();
        let late: i64 = late.map(|flow| self.flow(grant, flow, "credit")).sum();
        assert_eq!(self.port(grant, "late"), late);
    }
}

/// A new flow whose data begins at 0.
fn open(grant: &mut Grant, scale: u8, opening: &GrantOpening) -> u32 {
    let packet = GrantPacket {
        scale,
        mss: MSS as u16,
        ..GrantPacket::default()
    };
    grant.begin(&packet, opening).unwrap()
}

#[derive(Clone, Debug)]
enum Event {
    Begin(GrantOpening),
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
    (seq, ack, payload, any::<u16>(), flags).prop_map(|(seq, ack, payload, window, flags)| {
        GrantPacket {
            seq,
            ack,
            payload,
            window,
            flags,
            scale: SCALE,
            ..GrantPacket::default()
        }
    })
}

fn openings(most_shown: u16) -> impl Strategy<Value = GrantOpening> {
    (any::<u16>(), 0..=most_shown, 0u32..2).prop_map(|(window, shown, by_sender)| GrantOpening {
        seq: 0,
        window,
        shown,
        by_sender,
    })
}

fn events(most: u32) -> impl Strategy<Value = Event> {
    // What SYN-ACKs offer beyond an allowance is in no bound of what is outstanding.
    let most_shown = if most == u32::MAX { u16::MAX } else { 0 };
    let queue = prop_oneof![Just(0u32), 0u32..200_000, any::<u32>()];
    prop_oneof![
        2 => openings(most_shown).prop_map(Event::Begin),
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
    let sizes = (1u32..300_000, 1u64..20, 0u64..4, 1u64..16);
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
        let flow = open(&mut grant, 14, &GrantOpening::default());
        let mut seq = 0;
        for payload in payloads {
            let flags = flag::ACK;
            let packet = GrantPacket { flags, ..GrantPacket::default() };
            grant.on_ack(flow, &GrantPacket { ack: seq, window: u16::MAX, ..packet }, 0);
            grant.on_data(flow, &GrantPacket { seq, payload, ..packet });
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
            Event::Begin(opening) => {
                let flow = open(&mut grant, SCALE, &opening);
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
            Event::Next(queue) => {
                let own = grant.next(queue, now_ns);
                view.check_own(&grant, own, is_in_order && never_shrinks)?;
            }
            Event::Timer(queue) => {
                let own = grant.on_timer(queue, now_ns);
                view.check_own(&grant, own, is_in_order && never_shrinks)?;
            }
            Event::Learn => grant.learn(),
        }
        view.assert_consistent(&grant, &flows);
        prop_assert!(view.port(&grant, "owed_q16") <= 2 * view.port(&grant, "turn_q16"));
        let active = view.port(&grant, "active") as u64;
        let most = (budget + params.field("target_bytes")).max(grant_bytes) + active * (2 << SCALE);
        if is_in_order && !never_shrinks {
            prop_assert!(view.port(&grant, "outstanding") as u64 <= most);
        }
    }
    Ok(())
}
