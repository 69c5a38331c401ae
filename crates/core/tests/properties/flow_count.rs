// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use penstock_core::flow_count::{Direction, FlowCounter, FlowEntry, FlowPacket, SCALE_NONE, flag};
use penstock_core::tcp_rewrite::AckKind;
use proptest::prelude::*;

const IDLE_NS: u64 = 1_000_000_000;
const DIRECTIONS: [Direction; 2] = [Direction::Data, Direction::Acks];

fn packet(direction: Direction, flags: u8, seq: u32) -> FlowPacket {
    FlowPacket {
        direction,
        flags,
        seq,
        scale: 7,
        mss: 1460,
        ..FlowPacket::default()
    }
}

fn packets() -> impl Strategy<Value = FlowPacket> {
    (any::<bool>(), 0u8..32, 0u32..4, 0u16..2, 0u64..10).prop_map(
        |(back, flags, seq, payload, now)| {
            let mut packet = packet(DIRECTIONS[usize::from(back)], flags, seq);
            packet.payload = payload;
            packet.now_ns = now;
            packet
        },
    )
}

proptest! {
    #[test]
    fn the_sum_of_deltas_is_whether_it_is_counted(
        packets in proptest::collection::vec(packets(), 0..100),
        idle_ns in 0u64..10,
    ) {
        let (mut flow, mut sum) = (FlowEntry::default(), 0);
        for packet in &packets {
            sum += flow.on_packet(packet);
            prop_assert_eq!(sum, i32::from(flow.is_counted()));
            sum += flow.expire(packet.now_ns + 5, idle_ns);
            prop_assert_eq!(sum, i32::from(flow.is_counted()));
        }
    }

    #[test]
    fn retransmissions_count_nothing(copies in 1usize..5, isn: u32) {
        let mut flow = FlowEntry::default();
        let story = [
            (Direction::Data, flag::SYN, isn, 1),
            (Direction::Acks, flag::SYN | flag::ACK, isn ^ 1, 0),
            (Direction::Acks, flag::FIN | flag::ACK, 9, 0),
            (Direction::Data, flag::FIN | flag::ACK, 9, -1),
        ];
        for (direction, flags, seq, delta) in story {
            prop_assert_eq!(flow.on_packet(&packet(direction, flags, seq)), delta);
            for _ in 0..copies {
                prop_assert_eq!(flow.on_packet(&packet(direction, flags, seq)), 0);
            }
        }
        let next = packet(Direction::Data, flag::SYN, isn.wrapping_add(1));
        prop_assert_eq!(flow.on_packet(&next), 1, "a reuse of the ports is a new flow");
        prop_assert_eq!(flow.scale(Direction::Data), None, "the old scales are forgotten");
    }

    #[test]
    fn the_papers_counter_is_never_negative(
        packets in proptest::collection::vec((0u8..32, any::<bool>(), any::<u64>()), 0..200),
    ) {
        let mut counter = FlowCounter::default();
        let mut largest = 0;
        for (flags, is_out, now) in packets {
            largest += u32::from(flags & flag::SYN != 0);
            prop_assert!(counter.on_packet(flags, 0, is_out, now) <= largest);
            counter.expire(now, IDLE_NS);
        }
    }
}

#[test]
fn the_papers_counter_restarts_after_a_second_without_data() {
    let mut counter = FlowCounter::default();
    assert_eq!(counter.on_packet(flag::SYN | flag::ACK, 0, false, 5), 1);
    assert_eq!(counter.on_packet(flag::ACK, 1460, true, 10), 1);
    assert_eq!(counter.expire(9 + IDLE_NS, IDLE_NS), 1);
    assert_eq!(counter.expire(10 + IDLE_NS, IDLE_NS), 0);
}

#[test]
fn a_flow_of_mid_life_is_left_alone() {
    let mut flow = FlowEntry::default();
    let mut data = packet(Direction::Data, flag::ACK, 5);
    data.payload = 1460;
    assert_eq!(flow.on_packet(&data), 0);
    assert_eq!(flow.scale(Direction::Acks), None);
    assert_eq!(flow.ack_kind(flag::ACK, 200), AckKind::Later);
    assert_eq!(flow.on_packet(&packet(Direction::Data, flag::FIN, 5)), 0);
}

#[test]
fn scaling_needs_both_sides() {
    let mut flow = FlowEntry::default();
    flow.on_packet(&packet(Direction::Data, flag::SYN, 1));
    let mut answer = packet(Direction::Acks, flag::SYN | flag::ACK, 2);
    answer.scale = SCALE_NONE;
    flow.on_packet(&answer);
    assert_eq!(
        DIRECTIONS.map(|direction| flow.scale(direction)),
        [Some(0), Some(0)]
    );
}

#[test]
fn only_the_first_acks_are_first() {
    let mut flow = FlowEntry::default();
    flow.on_packet(&packet(Direction::Data, flag::SYN, 1));
    let mut kinds = Vec::new();
    for flags in [flag::SYN | flag::ACK, flag::ACK, flag::ACK, flag::ACK] {
        flow.on_packet(&packet(Direction::Acks, flags, 2));
        kinds.push(flow.ack_kind(flags, 2));
    }
    assert_eq!(
        kinds,
        [AckKind::Syn, AckKind::First, AckKind::First, AckKind::Later]
    );
    flow.on_packet(&packet(Direction::Data, flag::SYN, 7));
    flow.on_packet(&packet(Direction::Acks, flag::ACK, 8));
    assert_eq!(
        flow.ack_kind(flag::ACK, 1),
        AckKind::First,
        "the next connection begins from nothing"
    );
}
