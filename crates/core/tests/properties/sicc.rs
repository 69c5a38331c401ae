// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::{acks, printed, with};
use penstock_core::Params;
use penstock_core::flow::flag;
use penstock_core::sicc::{SiccOrder, SiccPort, SiccShim};
use penstock_core::tcp_rewrite::AckKind;
use proptest::prelude::*;

fn sicc(buffer: u32) -> Params {
    with("sicc", buffer, &[])
}

fn state(port: &SiccPort, field: &str) -> i64 {
    Fields::of("sicc", "sicc_port").get(port.state(), field, 0)
}

proptest! {
    #[test]
    fn the_controller_holds_at_any_input(
        buffer in 1u32..,
        alpha2 in 1u32..=256 * 65536,
        switches in proptest::array::uniform5(any::<bool>()),
        events in proptest::collection::vec((0u8..3, any::<u8>(), any::<u32>(), any::<u64>()), 0..200),
    ) {
        let [always, when_old, both, syn_acks, at_once] = switches;
        let mut port = SiccPort::new(&with("sicc", buffer, &[
            ("alpha2_q16", alpha2.into()),
            ("off_always", always.into()),
            ("on_when_old", when_old.into()),
            ("off_needs_both", both.into()),
            ("counts", syn_acks.into()),
            ("at_once", at_once.into()),
        ]));
        let (mut is_on, mut syns) = (false, 0i64);
        for (event, flags, queue, now) in events {
            if event < 2 {
                let counts = flags & flag::SYN != 0 && (!syn_acks || flags & flag::ACK != 0);
                syns += i64::from(counts);
                let (order, was_on) = (port.on_packet(flags, now), is_on);
                prop_assert!(state(&port, "beta") <= syns, "beta is negative or drifts");
                prop_assert!(order == SiccOrder::Keep || at_once && counts);
                is_on |= order != SiccOrder::Keep;
                prop_assert_eq!(order == SiccOrder::OnOne, order != SiccOrder::Keep && was_on);
                continue;
            }
            let had_new_connections = state(&port, "beta") > 0;
            let order = port.on_interval(queue, now);
            match order {
                SiccOrder::On | SiccOrder::OffOn => {
                    prop_assert!(had_new_connections);
                    is_on = true;
                }
                SiccOrder::Off => {
                    prop_assert!(is_on || always);
                    is_on = false;
                }
                SiccOrder::Keep => {}
                SiccOrder::OnOne => prop_assert!(false, "of a new connection alone"),
            }
            prop_assert!(always || order != SiccOrder::OffOn);
            if when_old {
                syns = state(&port, "beta");
            } else {
                syns = 0;
                prop_assert_eq!(state(&port, "beta"), 0);
            }
            prop_assert_eq!(state(&port, "is_on") == 1, is_on);
            prop_assert!(state(&port, "queue_q8") <= i64::from(u32::MAX) << 8);
        }
    }

    #[test]
    fn the_shim_holds_at_any_input(
        events in proptest::collection::vec((0u8..4, acks(), any::<u64>()), 0..100),
    ) {
        let mut shim = SiccShim::new(&sicc(125_000));
        let (mut mss, mut until) = (1, 0);
        for (event, mut ack, now) in events {
            match event {
                0 => {
                    shim.off();
                    until = 0;
                }
                1 => {
                    mss = ack.mss;
                    shim.on(mss as u16, ack.scale, now);
                    until = now.saturating_add(10_000_000);
                }
                _ => {
                    ack.mss = mss;
                    // Without a flow's own scale the pair's holds, which the ACK does not carry.
                    ack.scale = ack.scale.or(Some(3));
                    let out = shim.on_ack(ack.window, ack.scale, ack.kind, now);
                    ack.assert_kept(out);
                    prop_assert!(!out.changed || now < until);
                }
            }
        }
    }
}

#[test]
fn as_indented_no_incast_begins_and_no_count_restarts_while_the_last_is_young() {
    let mut port = SiccPort::new(&printed("sicc", 125_000, &[]));
    syn_acks(&mut port, 20);
    assert_eq!(
        port.on_interval(60_000, 1_000),
        SiccOrder::On,
        "the first is never young"
    );
    syn_acks(&mut port, 20);
    assert_eq!(port.on_interval(60_000, 2_000), SiccOrder::Keep);
    assert_eq!(state(&port, "beta"), 20);
    let old = 1_000 + 10_000_000;
    assert_eq!(
        port.on_interval(24_000, old),
        SiccOrder::OffOn,
        "both tests hold"
    );
    assert_eq!(state(&port, "beta"), 0);
    assert_eq!(port.on_interval(0, 2 * old), SiccOrder::Off);
    assert_eq!(
        port.on_interval(0, 3 * old),
        SiccOrder::Off,
        "each interval again"
    );
}

#[test]
fn by_the_prose_syn_acks_alone_count() {
    let mut port = SiccPort::new(&with("sicc", 125_000, &[("counts", 1)]));
    port.on_packet(flag::SYN, 0);
    assert_eq!(state(&port, "beta"), 0);
    port.on_packet(flag::SYN | flag::ACK, 0);
    assert_eq!(state(&port, "beta"), 1);
}

#[test]
fn as_printed_the_shim_shifts_by_the_pair_and_waits_for_the_off() {
    let mut shim = SiccShim::new(&printed("sicc", 125_000, &[]));
    shim.on(1448, Some(7), 5);
    for kind in [AckKind::Later, AckKind::Syn] {
        assert_eq!(
            shim.on_ack(65535, Some(0), kind, u64::MAX - 1).window,
            1448 >> 7
        );
    }
    shim.on(1448, Some(11), 5);
    assert_eq!(shim.on_ack(65535, Some(0), AckKind::Later, 6).window, 0);
    shim.off();
    assert!(!shim.on_ack(65535, Some(0), AckKind::Later, 7).changed);
}

fn syn_acks(port: &mut SiccPort, count: u32) {
    for _ in 0..count {
        port.on_packet(flag::SYN | flag::ACK, 0);
    }
}

#[test]
fn incast_is_foreseen_from_new_connections_and_the_queue() {
    let mut port = SiccPort::new(&sicc(125_000));
    syn_acks(&mut port, 8); // 8 * 14,600 = 116,800 bytes, under 125,000
    assert_eq!(port.on_interval(0, 1), SiccOrder::Keep);
    syn_acks(&mut port, 8);
    assert_eq!(port.on_interval(12_000, 2), SiccOrder::On); // + 9,000 of the mean
    syn_acks(&mut port, 9);
    port.on_packet(flag::FIN | flag::ACK, 0);
    assert_eq!(port.on_interval(0, 3), SiccOrder::Off);
    assert_eq!(
        port.on_interval(125_000, 4),
        SiccOrder::Keep,
        "no incast without new connections"
    );
}

#[test]
fn at_once_the_connection_that_is_too_many_begins_incast() {
    let mut port = SiccPort::new(&with("sicc", 125_000, &[("at_once", 1)]));
    let mut syn = |now| port.on_packet(flag::SYN, now);
    let early: Vec<SiccOrder> = (1..=8).map(&mut syn).collect();
    assert_eq!(early, [SiccOrder::Keep; 8], "8 * 14,600 bytes fit");
    assert_eq!([9, 10].map(&mut syn), [SiccOrder::On, SiccOrder::OnOne]);
    assert_eq!(port.on_packet(flag::FIN, 11), SiccOrder::Keep);
    let order = port.on_interval(60_000, 12);
    assert_eq!(order, SiccOrder::On, "the others' clamps last longer");
    // 45,000 bytes of the queue are known now.
    let next: Vec<SiccOrder> = (13..19).map(|now| port.on_packet(flag::SYN, now)).collect();
    assert_eq!(next[..5], [SiccOrder::Keep; 5]);
    assert_eq!(next[5], SiccOrder::OnOne);
}

#[test]
fn the_start_of_incast_includes_its_threshold() {
    let order = |buffer_bytes| {
        let mut port = SiccPort::new(&sicc(buffer_bytes));
        syn_acks(&mut port, 10);
        port.on_interval(0, 1)
    };
    assert_eq!(
        [146_000, 146_001].map(order),
        [SiccOrder::On, SiccOrder::Keep]
    );
}

#[test]
fn incast_ends_by_time_or_queue_but_as_printed_only_by_both() {
    let ends = |params: Params, queue, now| {
        let mut port = SiccPort::new(&params);
        syn_acks(&mut port, 20);
        assert_eq!(port.on_interval(60_000, 1_000), SiccOrder::On);
        port.on_interval(queue, now) == SiccOrder::Off
    };
    let (short, old) = (24_000, 1_000 + 10_000_000);
    for (queue, now, by_prose, as_printed) in [
        (short, 2_000, true, false),
        (60_000, old, true, false),
        (60_000, old - 1, false, false),
        (short, old, true, true),
    ] {
        assert_eq!(ends(sicc(125_000), queue, now), by_prose, "{queue} {now}");
        assert_eq!(
            ends(printed("sicc", 125_000, &[]), queue, now),
            as_printed,
            "{queue} {now}"
        );
    }
}

#[test]
fn a_lost_off_does_not_clamp_for_ever() {
    let mut shim = SiccShim::new(&sicc(125_000));
    assert!(!shim.on_ack(65535, Some(0), AckKind::Later, 5).changed);
    shim.on(1448, Some(10), 5);
    assert_eq!(
        shim.on_ack(65535, None, AckKind::Later, 6).window,
        2,
        "rounded up from 1448 >> 10"
    );
    assert_eq!(shim.on_ack(65535, Some(0), AckKind::Later, 6).window, 1448);
    assert_eq!(shim.on_ack(65535, None, AckKind::Syn, 6).window, 1448);
    assert!(
        !shim
            .on_ack(65535, None, AckKind::Later, 5 + 10_000_000)
            .changed
    );
    shim.on(1448, Some(10), u64::MAX - 1);
    let clamps = |shim: &SiccShim| {
        shim.on_ack(65535, None, AckKind::Later, u64::MAX - 1)
            .changed
    };
    assert!(clamps(&shim), "time does not wrap");
    shim.off();
    assert!(!clamps(&shim));
}
