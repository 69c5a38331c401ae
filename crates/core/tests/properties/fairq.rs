// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::acks;
use penstock_core::fairq::{Fairq, FairqParams};
use penstock_core::tcp_rewrite::{AckKind, MAX_WINDOW_BYTES};
use proptest::prelude::*;

fn params() -> impl Strategy<Value = FairqParams> {
    let flags = (any::<bool>(), any::<bool>());
    (
        1u32..,
        1u32..=65536,
        1u32..50,
        1u32..=65535,
        1u32..=65535,
        1u32..256,
        flags,
    )
        .prop_map(
            |(buffer, alpha, intervals, mss, paths, floor, (shares, averaged))| FairqParams {
                alpha_q16: alpha,
                intervals,
                mss_bytes: mss,
                paths,
                floor_segments: floor,
                shares_slow_start: shares.into(),
                averaged: averaged.into(),
                ..FairqParams::new(buffer)
            },
        )
        .prop_filter("alpha B is at least a byte", |params| {
            params.check().is_ok()
        })
}

/// A quarter of the buffer is aimed at.
fn quarter(buffer_bytes: u32) -> FairqParams {
    FairqParams {
        alpha_q16: 16384,
        ..FairqParams::new(buffer_bytes)
    }
}

proptest! {
    #[test]
    fn holds_at_any_input(
        params in params(),
        events in proptest::collection::vec((0u32..6, any::<u32>(), acks()), 0..200),
    ) {
        let mut port = Fairq::new(params).unwrap();
        let mut flows = 0u32;
        for (event, value, ack) in events {
            match event {
                0 => {
                    let delta = value as i32 % 2;
                    port.on_flow(delta);
                    flows = flows.saturating_add_signed(delta);
                }
                1 => {
                    flows = value >> 8;
                    port.set_flows(flows);
                }
                2 => port.on_data(value),
                3 => port.on_sample(value),
                4 => port.on_tick(value),
                _ => ack.assert_kept(port.on_ack(ack.window, ack.scale, ack.mss, ack.kind)),
            }
            prop_assert_eq!(port.state().flows, flows);
            prop_assert!(port.window_bytes() <= MAX_WINDOW_BYTES);
            prop_assert!(port.state().window_q8 <= u64::from(MAX_WINDOW_BYTES) << 8);
        }
    }

    #[test]
    fn flows_share_what_one_had(flows in 1u32..5000, buffer in 100_000u32..100_000_000) {
        let mut port = Fairq::new(quarter(buffer)).unwrap();
        for _ in 0..flows {
            port.on_flow(1);
        }
        let (window, target) = (port.state().window_q8 * u64::from(flows), u64::from(buffer / 4) << 8);
        prop_assert!(window <= target);
        prop_assert!(target - window <= u64::from(flows) * u64::from(flows), "more than rounding lost");
        for _ in 0..flows {
            port.on_flow(-1);
        }
        prop_assert_eq!(port.window_bytes(), buffer / 4);
    }
}

/// A port after slow start with `flows` flows.
fn settled(flows: u32) -> Fairq {
    let mut port = Fairq::new(quarter(125_000)).unwrap();
    port.set_flows(flows);
    port.on_tick(31_250);
    (1..10).for_each(|_| port.on_tick(31_250));
    assert!(!port.state().in_slow_start);
    port
}

#[test]
fn the_window_nears_the_target_from_both_sides() {
    for (queue, change) in [(0, 1460 / 4), (31_250, 0), (62_500, -1460 / 4)] {
        let mut port = settled(4);
        let before = i64::from(port.window_bytes());
        (0..10).for_each(|_| port.on_tick(queue));
        assert!(
            (i64::from(port.window_bytes()) - before - change).abs() <= 1,
            "queue {queue}"
        );
    }
}

#[test]
fn slow_start_adds_two_segments_as_printed_or_shared() {
    for (params, gain) in [(FairqParams::paper(125_000), 2920), (quarter(125_000), 292)] {
        let mut port = Fairq::new(params).unwrap();
        port.set_flows(10);
        let before = port.window_bytes();
        (0..10).for_each(|_| port.on_tick(0));
        assert_eq!(port.window_bytes() - before, gain);
    }
}

#[test]
fn the_state_is_not_held_to_the_floor_but_what_is_written_is() {
    let mut port = settled(1000);
    assert!(port.window_bytes() < 1460);
    let out = port.on_ack(65535, Some(10), 1448, AckKind::Later);
    assert_eq!((out.window, out.floored), (2, true));
    (0..100_000).for_each(|_| port.on_tick(125_000));
    assert_eq!(port.window_bytes(), 0);
    (0..10).for_each(|_| port.on_tick(0));
    assert!(port.state().window_q8 > 0, "it recovers");
}

#[test]
fn first_acks_keep_two_segments_where_the_buffer_holds_them_of_all() {
    for (flows, scale, kind, window) in [
        (43, Some(0), AckKind::Syn, 2896),
        (44, Some(0), AckKind::Syn, 1448),
        (40, Some(10), AckKind::First, 3),
        (41, Some(10), AckKind::First, 2), // two segments are written as 3072 bytes
    ] {
        let mut port = settled(flows);
        (0..1000).for_each(|_| port.on_tick(125_000));
        let out = port.on_ack(65535, scale, 1448, kind);
        assert_eq!(out.window, window, "{flows} flows");
    }
}

#[test]
fn refuses_parameters_out_of_range() {
    let wrong = FairqParams {
        alpha_q16: 65537,
        ..FairqParams::new(125_000)
    };
    let error = Fairq::new(wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "fairq: alpha_q16 is 65537, allowed is 1 to 65536"
    );
    let wrong = FairqParams {
        alpha_q16: 2,
        ..FairqParams::new(32_767)
    };
    assert_eq!(Fairq::new(wrong).unwrap_err().field, "buffer_bytes");
}
