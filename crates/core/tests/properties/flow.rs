// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use penstock_core::FlowCounter;
use penstock_core::flow::{Direction, FlowEntry, FlowPacket, Handshake, SCALE_NONE, flag};
use penstock_core::tcp_rewrite::AckKind;
use proptest::prelude::*;

const IDLE_NS: u64 = 1_000_000_000;
const DIRECTIONS: [Direction; 2] = [Direction::Data, Direction::Acks];
/// Initial sequence numbers of both directions.
const ISN: [u32; 2] = [u32::MAX - 3, 5000];
const MS: u64 = 1_000_000;

fn packet(direction: Direction, flags: u8, seq: u32) -> FlowPacket {
    FlowPacket {
        direction,
        flags,
        seq,
        scale: 7,
        mss: if flags & flag::SYN == 0 { 0 } else { 1460 },
        ..FlowPacket::default()
    }
}

/// A packet `seq` bytes after its side's SYN, which acknowledges `ack` bytes after the other's.
fn after(direction: Direction, flags: u8, seq: u32, ack: u32, payload: u32) -> FlowPacket {
    let side = direction as usize;
    FlowPacket {
        ack: ISN[1 - side].wrapping_add(ack),
        payload,
        ..packet(direction, flags | flag::ACK, ISN[side].wrapping_add(seq))
    }
}

pub fn data(seq: u32, ack: u32) -> FlowPacket {
    after(Direction::Data, 0, seq, ack, 100)
}

fn ack(ack: u32) -> FlowPacket {
    after(Direction::Acks, 0, 1, ack, 0)
}

pub fn syn() -> FlowPacket {
    packet(Direction::Data, flag::SYN, ISN[0])
}

pub fn syn_ack() -> FlowPacket {
    after(Direction::Acks, flag::SYN, 0, 1, 0)
}

/// What a port knows of one connection.
#[derive(Clone, Default)]
pub struct Flow {
    pub entry: FlowEntry,
    handshake: Handshake,
}

impl Flow {
    pub fn see(&mut self, packet: FlowPacket) -> i32 {
        let was_half_open = i32::from(self.handshake.is_half_open());
        let change = self.entry.follow(&mut self.handshake, &packet);
        let is_half_open = i32::from(self.handshake.is_half_open());
        assert_eq!(change.half_open, is_half_open - was_half_open);
        change.flows
    }

    /// A connection that has sent 100 bytes, all acknowledged.
    fn established() -> Flow {
        let mut flow = Flow::default();
        let deltas = [syn(), syn_ack(), data(1, 1), ack(101)].map(|packet| flow.see(packet));
        assert_eq!(deltas, [0, 0, 1, 0]);
        flow
    }

    fn scales(&self) -> [Option<u8>; 2] {
        DIRECTIONS.map(|direction| self.entry.scale(direction))
    }
}

fn packets() -> impl Strategy<Value = FlowPacket> {
    (any::<bool>(), 0u8..32, 0u32..4, 0u32..4, 0u32..2, 0u64..10).prop_map(
        |(back, flags, seq, ack, payload, now)| {
            let mut packet = packet(DIRECTIONS[usize::from(back)], flags, seq);
            packet.ack = ack;
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
        let (mut flow, mut sum) = (Flow::default(), 0);
        for packet in &packets {
            sum += flow.see(*packet);
            prop_assert_eq!(sum, i32::from(flow.entry.is_counted()));
            sum += flow.entry.expire(packet.now_ns + 5, idle_ns);
            prop_assert_eq!(sum, i32::from(flow.entry.is_counted()));
        }
    }

    #[test]
    fn retransmissions_count_nothing(copies in 1usize..5) {
        let mut flow = Flow::default();
        let story = [
            (syn(), 0),
            (syn_ack(), 0),
            (after(Direction::Data, 0, 1, 1, 0), 1),
            (after(Direction::Acks, flag::FIN, 1, 1, 0), 0),
            (after(Direction::Data, flag::FIN, 1, 2, 0), -1),
        ];
        for (packet, delta) in story {
            prop_assert_eq!(flow.see(packet), delta);
            for _ in 0..copies {
                prop_assert_eq!(flow.see(packet), 0);
            }
        }
    }

    /// SYNs alone, however many, are no flow, nor is data that no one acknowledges.
    #[test]
    fn what_is_not_acknowledged_counts_nothing(
        seqs in proptest::collection::vec(any::<u32>(), 1..50),
    ) {
        let mut flow = Flow::default();
        for seq in seqs {
            for flags in [flag::SYN, flag::ACK] {
                let forged = FlowPacket { payload: 100, ..packet(Direction::Data, flags, seq) };
                prop_assert_eq!(flow.see(forged), 0);
            }
        }
        prop_assert!(!flow.entry.is_counted());
    }

    /// A sender who knows addresses and ports alone: but for luck of one in millions, nothing changes.
    #[test]
    fn blind_packets_change_nothing_of_a_flow(
        forged in proptest::collection::vec(
            (any::<bool>(), 0u8..32, any::<u32>(), any::<u32>(), any::<u16>(), any::<u8>()),
            1..200,
        ),
    ) {
        let mut flow = Flow::established();
        for (back, flags, seq, ack, payload, scale) in forged {
            // Far from what the connection is at.
            let side = usize::from(back);
            let far = (1 << 30) + seq % (1 << 31);
            let forged = FlowPacket {
                seq: ISN[side].wrapping_add(far),
                ack,
                payload: payload.into(),
                scale,
                mss: 1,
                now_ns: MS,
                ..packet(DIRECTIONS[side], flags, 0)
            };
            prop_assert_eq!(flow.see(forged), 0);
            prop_assert_eq!(flow.scales(), [Some(7), Some(7)]);
            prop_assert_eq!(flow.entry.mss(0), 1460);
        }
        // As if nothing had been.
        let mut next = data(101, 1);
        next.now_ns = 2 * MS;
        prop_assert_eq!(flow.see(next), 0);
        prop_assert_eq!(flow.entry.expire(2 * MS + IDLE_NS - 1, IDLE_NS), 0);
        prop_assert_eq!(flow.entry.expire(2 * MS + IDLE_NS, IDLE_NS), -1);
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
fn a_flow_of_mid_life_counts_when_its_data_is_acknowledged() {
    let mut flow = Flow::default();
    assert_eq!(flow.see(data(1000, 50)), 0);
    assert_eq!(flow.see(ack(1000)), 0, "of what came before");
    assert_eq!(flow.see(ack(1100)), 1);
    assert_eq!(flow.entry.scale(Direction::Acks), None);
    assert_eq!(flow.entry.ack_kind(flag::ACK, 200), AckKind::Later);
    assert_eq!(flow.see(after(Direction::Data, flag::FIN, 1100, 1, 0)), -1);
}

#[test]
fn a_flow_of_mid_life_that_ends_does_not_count() {
    let mut flow = Flow::default();
    flow.see(data(1000, 50));
    flow.see(after(Direction::Data, flag::FIN, 1100, 1, 50));
    assert_eq!(flow.see(ack(1151)), 0);
}

/// Data may pass on one CPU while another makes the entry: the record it leaves proves nothing.
#[test]
fn what_fits_an_entry_needs_no_proof() {
    let mut flow = Flow::default();
    flow.see(data(1, 1));
    let early = flow.handshake;
    flow = Flow::established();
    flow.handshake = early;
    assert_eq!(flow.see(after(Direction::Data, flag::FIN, 101, 1, 0)), -1);
    assert_eq!(flow.see(ack(102)), 0);
}

/// Its packets were not seen for a while, and its sequence numbers went on.
#[test]
fn a_flow_that_is_lost_from_sight_is_found_again() {
    const FAR: u32 = 1 << 30;
    let mut flow = Flow::established();
    assert_eq!(flow.entry.expire(IDLE_NS, IDLE_NS), -1);
    assert_eq!(flow.see(data(FAR, 1)), 0);
    assert_eq!(flow.see(ack(FAR + 100)), 1);
    assert_eq!(flow.scales(), [Some(7), Some(7)], "its scales still hold");
    assert_eq!(
        flow.see(after(Direction::Data, flag::FIN, FAR + 100, 1, 0)),
        -1
    );
}

#[test]
fn another_connection_needs_the_whole_handshake() {
    let again = |packet: FlowPacket| FlowPacket {
        seq: packet.seq.wrapping_add(1 << 20),
        ack: packet.ack.wrapping_add(1 << 20),
        scale: 3,
        mss: 1000,
        ..packet
    };
    let third = again(after(Direction::Data, 0, 1, 1, 0));
    // Over a connection that lives, and over one that has ended.
    for is_over in [false, true] {
        let mut flow = Flow::established();
        if is_over {
            assert_eq!(flow.see(after(Direction::Data, flag::FIN, 101, 1, 0)), -1);
        }
        for packet in [again(syn()), again(syn_ack())] {
            assert_eq!(flow.see(packet), 0);
            assert_eq!(flow.scales(), [Some(7), Some(7)]);
        }
        assert_eq!(flow.see(third), i32::from(is_over));
        assert_eq!(flow.scales(), [Some(3), Some(3)]);
        assert_eq!(flow.entry.mss(0), 1000);
    }
    // A SYN-ACK alone replaces only one that has ended.
    let mut flow = Flow::established();
    flow.see(again(syn_ack()));
    flow.see(third);
    assert_eq!(flow.scales(), [Some(7), Some(7)]);
}

#[test]
fn a_refused_handshake_is_no_longer_half_open() {
    for refusal in [
        after(Direction::Acks, flag::RST, 0, 1, 0),
        packet(Direction::Data, flag::RST, ISN[0].wrapping_add(1)),
    ] {
        let mut flow = Flow::default();
        flow.see(syn());
        assert!(flow.handshake.is_half_open());
        flow.see(refusal);
        assert!(!flow.handshake.is_half_open());
        // Not by who does not know its number.
        flow.see(syn());
        let mut forged = refusal;
        (forged.seq, forged.ack) = (refusal.seq ^ 4, refusal.ack ^ 4);
        flow.see(forged);
        assert!(flow.handshake.is_half_open());
    }
}

#[test]
fn a_reset_counts_only_inside_the_window() {
    for (seq, delta) in [(0, 0), (1, 0), (101, -1), (102, 0), (60_000, 0)] {
        let mut flow = Flow::established();
        let reset = packet(Direction::Data, flag::RST, ISN[0].wrapping_add(seq));
        assert_eq!(flow.see(reset), delta, "{seq} bytes on");
    }
}

#[test]
fn a_flow_uncounted_by_luck_counts_again() {
    for (flags, side) in [
        (flag::RST, Direction::Data),
        (flag::RST, Direction::Acks),
        (flag::FIN, Direction::Data),
    ] {
        let mut flow = Flow::established();
        let seq = if side == Direction::Data { 101 } else { 1 };
        let back = if side == Direction::Data { 1 } else { 101 };
        assert_eq!(flow.see(after(side, flags, seq, back, 0)), -1);
        // What was on its way proves nothing: nor the data without ACKs, nor ACKs without data.
        assert_eq!(flow.see(ack(101)), 0);
        assert_eq!(flow.see(data(1, 1)), 0);
        assert_eq!(flow.see(data(101, 1)), 0);
        assert_eq!(flow.see(ack(201)), 1, "flags {flags}");
        assert_eq!(flow.scales(), [Some(7), Some(7)]);
    }
}

#[test]
fn the_end_of_a_flow_does_not_count_it_again() {
    // The FIN passes before data that is sent again, as lost behind the port.
    let mut flow = Flow::established();
    flow.see(data(101, 1));
    assert_eq!(flow.see(after(Direction::Data, flag::FIN, 201, 1, 0)), -1);
    assert_eq!(flow.see(data(101, 1)), 0);
    assert_eq!(flow.see(ack(202)), 0);
    // The receiver resets, while data is on its way.
    let mut flow = Flow::established();
    assert_eq!(flow.see(after(Direction::Acks, flag::RST, 1, 101, 0)), -1);
    assert_eq!(flow.see(data(101, 1)), 0);
    assert_eq!(flow.see(data(201, 1)), 0);
}

#[test]
fn scaling_needs_both_sides() {
    let mut flow = Flow::default();
    flow.see(syn());
    let mut answer = syn_ack();
    answer.scale = SCALE_NONE;
    flow.see(answer);
    flow.see(data(1, 1));
    assert_eq!(flow.scales(), [Some(0), Some(0)]);
}

/// SYN cookies after an ordinary SYN-ACK, a proxy: another SYN-ACK to the same SYN.
#[test]
fn another_answer_to_the_same_syn_keeps_its_scale() {
    let mut flow = Flow::default();
    flow.see(syn());
    let mut first = syn_ack();
    first.seq = first.seq.wrapping_add(77);
    flow.see(first);
    flow.see(syn_ack());
    assert_eq!(flow.see(data(1, 1)), 1);
    assert_eq!(flow.scales(), [Some(7), Some(7)]);
    // An answer to another SYN does not.
    let mut flow = Flow::default();
    flow.see(packet(Direction::Data, flag::SYN, 4711));
    flow.see(syn_ack());
    assert_eq!(flow.see(data(1, 1)), 1);
    assert_eq!(flow.scales(), [None, Some(7)]);
}

#[test]
fn the_segment_size_is_the_lesser_of_both_and_not_absurd() {
    for (sizes, expected) in [([1460, 8960], 1460), ([9000, 0], 536), ([1, 1460], 536)] {
        let mut flow = Flow::default();
        for (mut packet, mss) in [syn(), syn_ack()].into_iter().zip(sizes) {
            packet.mss = mss;
            flow.see(packet);
        }
        assert_eq!(flow.handshake.mss(0), expected);
        flow.see(data(1, 1));
        assert_eq!(flow.entry.mss(0), expected);
    }
}

#[test]
fn a_handshake_is_forgotten_after_three_seconds() {
    for (now_ns, delta) in [(3 * IDLE_NS - 1, 1), (3 * IDLE_NS, 0)] {
        let mut flow = Flow::default();
        flow.see(syn());
        flow.see(syn_ack());
        let third = FlowPacket {
            now_ns,
            ..after(Direction::Data, 0, 1, 1, 0)
        };
        assert_eq!(flow.see(third), delta);
    }
}

/// SYNs are repeated after a second or two; the last one counts.
#[test]
fn a_handshake_lives_from_its_last_syn() {
    let mut flow = Flow::default();
    for (now_ns, packet) in [
        (0, syn()),
        (2 * IDLE_NS, syn()),
        (4 * IDLE_NS, syn_ack()),
        (6 * IDLE_NS, after(Direction::Data, 0, 1, 1, 0)),
    ] {
        let delta = flow.see(FlowPacket { now_ns, ..packet });
        assert_eq!(delta, i32::from(now_ns == 6 * IDLE_NS));
    }
    // In mid-life from the data.
    let mut flow = Flow::default();
    for (now_ns, packet, delta) in [
        (9 * IDLE_NS, data(1000, 50), 0),
        (10 * IDLE_NS, ack(1100), 1),
    ] {
        assert_eq!(flow.see(FlowPacket { now_ns, ..packet }), delta);
    }
    // It has been silent since the packet that proved it.
    assert_eq!(flow.entry.expire(11 * IDLE_NS - 1, IDLE_NS), 0);
    assert_eq!(flow.entry.expire(11 * IDLE_NS, IDLE_NS), -1);
}

#[test]
fn only_the_first_acks_are_first() {
    let mut flow = Flow::default();
    let story = [
        syn(),
        syn_ack(),
        after(Direction::Data, 0, 1, 1, 0),
        ack(1),
        ack(1),
        ack(1),
    ];
    let mut kinds = Vec::new();
    for packet in story {
        flow.see(packet);
        if packet.direction == Direction::Acks {
            kinds.push(flow.entry.ack_kind(packet.flags, 2));
        }
    }
    assert_eq!(
        kinds,
        [AckKind::Syn, AckKind::First, AckKind::First, AckKind::Later]
    );
    // The receiver may have opened the connection: its first ACK is the proof.
    let mut flow = Flow::default();
    flow.see(packet(Direction::Acks, flag::SYN, ISN[1]));
    flow.see(after(Direction::Data, flag::SYN, 0, 1, 0));
    assert_eq!(flow.see(ack(1)), 1);
    assert_eq!(flow.entry.ack_kind(flag::ACK, 1), AckKind::First);
}

/// A SYN that someone forges between the SYN-ACK and its sender's next packet, whose scale would
/// close the connection's window.
#[test]
fn a_syn_forged_within_a_handshake_is_not_believed() {
    let mut flow = Flow::default();
    let forged = FlowPacket {
        scale: 14,
        ..packet(Direction::Acks, flag::SYN, 1 << 31)
    };
    let first_ack = after(Direction::Acks, 0, 1, 1, 0);
    for packet in [syn(), syn_ack(), forged, first_ack] {
        assert_eq!(flow.see(packet), 0);
    }
    assert_eq!(flow.scales(), [None; 2]);
}
