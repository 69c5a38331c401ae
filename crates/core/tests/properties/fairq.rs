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
    port.on_tick(31_250, 0, 0);
    (1..10).for_each(|_| port.on_tick(31_250, 0, 0));
    assert!(state(&port, "in_slow_start") == 0);
    port
}

#[test]
fn the_window_nears_the_target_from_both_sides() {
    for (queue, change) in [(0, 1460 / 4), (31_250, 0), (62_500, -1460 / 4)] {
        let mut port = settled(4);
        let before = i64::from(port.window_bytes());
        (0..10).for_each(|_| port.on_tick(queue, 0, 0));
        assert!(
            (i64::from(port.window_bytes()) - before - change).abs() <= 1,
            "queue {queue}"
        );
    }
}

#[test]
fn slow_start_adds_two_segments_as_printed_or_shared_or_is_off() {
    for (params, gain) in [
        (printed("fairq", 125_000, &[("alpha_q16", 16384)]), 2920),
        (quarter(125_000), 292),
        // As afterwards: 10 updates of a tenth of a segment, shared.
        (
            with("fairq", 125_000, &[("alpha_q16", 16384), ("slow_start", 2)]),
            146,
        ),
    ] {
        let mut port = WindowScheme::new(&params);
        port.on_flows(10);
        let before = port.window_bytes();
        (0..10).for_each(|_| port.on_tick(0, 0, 0));
        assert_eq!(port.window_bytes() - before, gain);
    }
}

#[test]
fn the_state_is_not_held_to_the_floor_but_what_is_written_is() {
    let mut port = settled(1000);
    assert!(port.window_bytes() < 1460);
    let out = port.on_ack(65535, Some(10), 1448, AckKind::Later, 0);
    assert_eq!((out.window, out.floored), (2, true));
    (0..100_000).for_each(|_| port.on_tick(125_000, 0, 0));
    assert_eq!(port.window_bytes(), 0);
    (0..10).for_each(|_| port.on_tick(0, 0, 0));
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
        (0..1000).for_each(|_| port.on_tick(125_000, 0, 0));
        let out = port.on_ack(65535, scale, 1448, kind, 0);
        assert_eq!(out.window, window, "{flows} flows");
    }
}

/// Algorithm 1 has no floor, and shifts: what does not fill a unit of the scale is lost.
#[test]
fn as_printed_windows_are_shifted_down_and_may_be_nothing() {
    let window = |params: &Params, flows, scale, kind| {
        let mut port = WindowScheme::new(params);
        port.on_flows(flows);
        port.on_ack(u16::MAX, Some(scale), 1448, kind, 0).window
    };
    let params = printed("fairq", 125_000, &[]); // the target is 31,250 bytes
    assert_eq!(window(&params, 10, 7, AckKind::Later), 24); // 3125 bytes
    assert_eq!(window(&params, 10, 7, AckKind::Syn), 3125);
    assert_eq!(window(&params, 100, 7, AckKind::First), 2); // 312 bytes
    assert_eq!(window(&params, 1000, 7, AckKind::Later), 0); // 31 bytes
    let up = printed("fairq", 125_000, &[("rounds_down", 0)]);
    assert_eq!(window(&up, 10, 7, AckKind::Later), 25);
    // A floor is never rounded down.
    let floor = printed("fairq", 125_000, &[("floor_segments", 1)]);
    assert_eq!(window(&floor, 1000, 7, AckKind::Later), 12); // 1448 bytes
}

/// FairSwitch's DIV_32: whatever the window was, each change of the number sets it.
#[test]
fn a_new_number_of_flows_divides_the_target() {
    let mut port = WindowScheme::new(&printed("fairq", 125_000, &[("flow_rule", 1)]));
    for flows in [1, 2, 10, 9, 1, 0, 3] {
        port.on_flows(flows);
        assert_eq!(port.window_bytes(), 31_250 / flows.max(1));
        (0..30).for_each(|_| port.on_tick(if flows % 2 == 0 { 0 } else { 125_000 }, 0, 0));
        assert_ne!(port.window_bytes(), 31_250 / flows.max(1), "it is adjusted");
    }
}

/// Updates are T apart on average, though each waits for the next sample.
#[test]
fn samples_have_a_timer_of_their_own() {
    for (interval, sample) in [(100_000, 48_000), (240_000, 48_000), (48_000, 48_000)] {
        let fields = [("interval_ns", interval), ("sample_interval_ns", sample)];
        let mut port = WindowScheme::new(&printed("fairq", 125_000, &fields));
        assert_eq!(port.tick_ns(), Some(sample));
        port.on_flows(2);
        let ticks = 10 * interval / sample * 12;
        let mut updates = 0;
        for n in 1..=ticks {
            let before = state(&port, "ticks");
            port.on_tick(60_000, 0, n * sample);
            updates += u64::from(state(&port, "ticks") != before);
        }
        let due = ticks * sample / interval;
        assert!(updates.abs_diff(due) <= 1, "{updates} updates, {due} due");
    }
    // Samples that are rarer than T: an update at each.
    let rare = [("interval_ns", 10_000), ("sample_interval_ns", 48_000)];
    let mut port = WindowScheme::new(&printed("fairq", 125_000, &rare));
    (1..=7).for_each(|n| port.on_tick(0, 0, n * 48_000));
    assert_eq!(state(&port, "ticks"), 7);
}

#[test]
fn the_mean_is_of_the_last_32_samples() {
    let fields = [("interval_ns", 48_000), ("sample_interval_ns", 48_000)];
    let mut port = WindowScheme::new(&printed("fairq", 125_000, &fields));
    port.on_flows(1);
    // The target is 31,250: 16 of 32 samples of 62,500 reach it, and end slow start.
    (0..15).for_each(|_| port.on_tick(62_500, 0, 0));
    assert_eq!(state(&port, "in_slow_start"), 1);
    port.on_tick(62_500, 0, 0);
    assert_eq!(state(&port, "in_slow_start"), 0);
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

proptest! {
    /// However long the queue is short: flows x window <= buffer + rate x longest_rtt.
    #[test]
    fn the_window_does_not_wind_up(
        flows in 1u32..1000,
        buffer in 10_000u32..10_000_000,
        loads in proptest::collection::vec(0u64..100_000, 1..5),
    ) {
        let params = with("fairq", buffer, &[("longest_rtt_ns", 1_000_000), ("interval_ns", 100_000)]);
        let mut port = WindowScheme::new(&params);
        let (mut now, mut total, mut most) = (0, 0, 0);
        port.on_flows(flows);
        for bytes_per_tick in loads {
            most = most.max(bytes_per_tick * 10);
            for _ in 0..2000 {
                now += 100_000;
                total += bytes_per_tick;
                port.on_tick(0, total, now);
                let windows = u64::from(port.window_bytes()) * u64::from(flows);
                prop_assert!(windows <= u64::from(buffer) + most, "{windows} bytes");
            }
            let windows = u64::from(port.window_bytes()) * u64::from(flows);
            let lately = u64::from(buffer) + bytes_per_tick * 10;
            prop_assert!(windows <= lately, "{windows} bytes after a light load");
        }
    }
}

#[test]
fn flows_that_use_their_windows_fill_a_long_path() {
    // 125 bytes per microsecond; 4 flows send their windows once in each round trip of 900 us.
    let params = with(
        "fairq",
        20_000,
        &[("longest_rtt_ns", 1_000_000), ("interval_ns", 100_000)],
    );
    let mut port = WindowScheme::new(&params);
    let (mut now, mut total) = (0, 0);
    port.on_flows(4);
    for _ in 0..5000 {
        now += 100_000;
        total += (u64::from(port.window_bytes()) * 4 / 9).min(12_500);
        port.on_tick(0, total, now);
    }
    assert!(
        port.window_bytes() * 4 >= 112_500,
        "{}",
        port.window_bytes()
    );
}

#[test]
fn after_silence_the_buffer_alone_bounds_the_window() {
    let mut port = WindowScheme::new(&with(
        "fairq",
        20_000,
        &[("longest_rtt_ns", 1_000_000), ("interval_ns", 100_000)],
    ));
    port.on_flows(4);
    let tick = |port: &mut WindowScheme, n: u64| port.on_tick(0, n * 12_500, n * 100_000);
    (1..5000).for_each(|n| tick(&mut port, n));
    assert!(port.window_bytes() * 4 > 20_000);
    (0..10).for_each(|n| port.on_tick(0, 4999 * 12_500, 900_000_000 + n * 100_000));
    assert!(port.window_bytes() * 4 <= 20_000);
}

#[test]
fn as_printed_the_window_grows_without_a_bound() {
    let mut port = WindowScheme::new(&printed("fairq", 20_000, &[]));
    port.on_flows(4);
    (0..5000).for_each(|n| port.on_tick(0, 0, n * 100_000));
    assert!(port.window_bytes() > 1_000_000);
}

/// The floor of first ACKs is two segments where the buffer holds as many of every flow, as written:
/// rounded up to the scale.
#[test]
fn first_acks_keep_two_segments_where_all_fit() {
    const FLOWS: u32 = 10;
    // 2896 is a whole number of the scale's units, 2898 is not.
    for (mss, written) in [(1448, 2896), (1449, 2912)] {
        for (spare, expected) in [(0, written), (-1, 1456)] {
            let buffer = (written * FLOWS).strict_add_signed(spare);
            let mut port = WindowScheme::new(&with("fairq", buffer, &[("alpha_q16", 1)]));
            port.on_flows(FLOWS);
            let out = port.on_ack(u16::MAX, Some(4), mss, AckKind::First, 0);
            assert_eq!(u32::from(out.window) << 4, expected, "{mss} {spare}");
        }
    }
}
