// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::{printed, with};
use penstock_core::tcp_rewrite::AckKind;
use penstock_core::{Params, WindowScheme};
use proptest::prelude::*;

/// A quarter of the buffer is aimed at.
fn quarter(buffer_bytes: u32) -> Params {
    with("fairq", buffer_bytes, &[("alpha_q16", 16384)])
}

fn state(port: &WindowScheme, field: &str) -> i64 {
    Fields::of("fairq", "fairq_state").get(port.state(), field, 0)
}

proptest! {
    #[test]
    fn the_number_of_flows_is_kept(numbers in proptest::collection::vec(0u32..1 << 24, 1..50)) {
        let mut port = WindowScheme::new(&quarter(125_000));
        for flows in numbers {
            port.on_flows(flows);
            prop_assert_eq!(state(&port, "flows"), i64::from(flows));
        }
    }

    #[test]
    fn flows_share_what_one_had(flows in 1u32..5000, buffer in 100_000u32..100_000_000) {
        let mut port = WindowScheme::new(&quarter(buffer));
        (1..=flows).for_each(|flows| port.on_flows(flows));
        let window = state(&port, "window_q8") * i64::from(flows);
        let target = i64::from(buffer / 4) << 8;
        prop_assert!(window <= target);
        prop_assert!(target - window <= i64::from(flows) * i64::from(flows), "more than rounding lost");
        (0..flows).rev().for_each(|flows| port.on_flows(flows));
        prop_assert_eq!(port.window_bytes(), buffer / 4);
    }
}

/// A port after slow start with `flows` flows.
fn settled(flows: u32) -> WindowScheme {
    let mut port = WindowScheme::new(&quarter(125_000));
    port.on_flows(flows);
    port.on_tick(31_250);
    (1..10).for_each(|_| port.on_tick(31_250));
    assert!(state(&port, "in_slow_start") == 0);
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
    for (params, gain) in [
        (printed("fairq", 125_000, &[("alpha_q16", 16384)]), 2920),
        (quarter(125_000), 292),
    ] {
        let mut port = WindowScheme::new(&params);
        port.on_flows(10);
        let before = port.window_bytes();
        (0..10).for_each(|_| port.on_tick(0));
        assert_eq!(port.window_bytes() - before, gain);
    }
}

#[test]
fn the_state_is_not_held_to_the_floor_but_what_is_written_is() {
    let mut port = settled(1000);
    assert!(port.window_bytes() < 1460);
    let out = port.on_ack(65535, Some(10), 1448, AckKind::Later, 0);
    assert_eq!((out.window, out.floored), (2, true));
    (0..100_000).for_each(|_| port.on_tick(125_000));
    assert_eq!(port.window_bytes(), 0);
    (0..10).for_each(|_| port.on_tick(0));
    assert!(state(&port, "window_q8") > 0, "it recovers");
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
        let out = port.on_ack(65535, scale, 1448, kind, 0);
        assert_eq!(out.window, window, "{flows} flows");
    }
}

#[test]
fn refuses_parameters_out_of_range() {
    let mut params = quarter(125_000);
    let error = params.set("intervals", 65536.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "fairq: intervals is 65536; allowed: 1 to 65535"
    );
    assert_eq!(params, quarter(125_000), "left as it was");
    assert!(params.set("alpha", 0.0).is_err());
    assert!(params.set("alpha", f64::NAN).is_err());
}

#[test]
fn a_target_of_less_than_a_byte_is_one_byte() {
    let port = WindowScheme::new(&with("fairq", 32_767, &[("alpha_q16", 2)]));
    assert_eq!(state(&port, "target_bytes"), 1);
}
