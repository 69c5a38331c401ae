// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::{printed, with};
use penstock_core::WindowScheme;
use penstock_core::scheme::{Counting, DataFate};
use penstock_core::tcp_rewrite::AckKind;
use proptest::prelude::*;

fn hscc(buffer: u32) -> WindowScheme {
    WindowScheme::new(&with("hscc", buffer, &[]))
}

fn as_printed(buffer: u32) -> WindowScheme {
    WindowScheme::new(&printed("hscc", buffer, &[]))
}

proptest! {
    #[test]
    fn a_clamp_holds_between_the_thresholds(
        buffer in 20u32..,
        is_paper: bool,
        queues in proptest::collection::vec((any::<u32>(), any::<u64>()), 0..200),
    ) {
        let params = if is_paper { printed("hscc", buffer, &[]) } else { with("hscc", buffer, &[]) };
        let mut port = WindowScheme::new(&params);
        for (queue, now) in queues {
            port.on_queue(queue, now);
            prop_assert!(!port.is_clamping(now) || u64::from(queue) > params.field("alpha1_bytes"));
            prop_assert!(port.is_clamping(now) || u64::from(queue) < params.field("alpha2_bytes"));
        }
    }
}

#[test]
fn the_mode_is_kept_between_the_thresholds() {
    let mut port = as_printed(100_000);
    let modes = [0, 49_999, 50_000, 30_000, 25_001, 25_000, 49_999, 50_000].map(|queue| {
        port.on_queue(queue, 1);
        port.is_clamping(1)
    });
    assert_eq!(modes, [false, false, true, true, true, false, false, true]);
}

#[test]
fn as_printed_only_a_clamp_lowers_windows() {
    let mut port = as_printed(100_000);
    assert!(!port.on_ack(65535, None, 1448, AckKind::Syn, 0).changed);
    port.on_queue(50_000, 1);
    assert_eq!(
        port.on_ack(65535, Some(0), 1448, AckKind::Later, 2).window,
        1448
    );
    port.on_queue(0, 3);
    assert!(!port.on_ack(65535, Some(0), 1448, AckKind::Later, 3).changed);
}

#[test]
fn the_first_flight_is_held_and_a_release_is_gradual() {
    let mut port = hscc(100_000);
    assert_eq!(port.on_ack(65535, None, 1448, AckKind::Syn, 0).window, 2896);
    assert_eq!(
        port.on_ack(65535, Some(4), 1448, AckKind::First, 0).window,
        2896 / 16
    );
    assert!(!port.on_ack(65535, Some(4), 1448, AckKind::Later, 0).changed);
    port.on_queue(25_000, 1_000);
    assert_eq!(
        port.on_ack(65535, Some(0), 1448, AckKind::First, 1_000)
            .window,
        2896
    );
    port.on_queue(10_000, 5_000);
    let after = [0, 999_999, 1_000_000, 3_000_000, 60_000_000].map(|ns| {
        port.on_ack(65535, Some(0), 1448, AckKind::Later, 5_000 + ns)
            .window
    });
    assert_eq!(after, [2896, 2896, 2896 + 1460, 2896 + 3 * 1460, 65535]);
}

/// Rounded up to the scale: 2896 is 3072 at a scale of 10.
#[test]
fn a_clamp_is_two_segments_while_the_buffer_holds_two_of_every_flow() {
    let mut port = hscc(128_000);
    port.on_queue(128_000, 1);
    let mut window = |flows, scale: u8| {
        port.on_flows(flows);
        let field = port
            .on_ack(65535, Some(scale), 1448, AckKind::Later, 1)
            .window;
        u32::from(field) << scale
    };
    assert_eq!([window(44, 0), window(45, 0)], [2896, 1448]);
    assert_eq!([window(41, 10), window(42, 10)], [3072, 2048]);
    assert_eq!(as_printed(128_000).counting(), Counting::None);
    assert_eq!(hscc(128_000).counting(), Counting::Exact);
}

/// A SYN-ACK's window has no scale; one of 2896 bytes is 3072 at a scale of 10.
#[test]
fn the_first_flight_is_two_segments_while_the_buffer_holds_two_of_every_flow() {
    let mut port = hscc(128_000);
    let mut window = |flows, scale: Option<u8>, kind| {
        port.on_flows(flows);
        let field = port.on_ack(65535, scale, 1448, kind, 1).window;
        u32::from(field) << scale.unwrap_or(0)
    };
    let mut first = |flows| window(flows, Some(10), AckKind::First);
    assert_eq!([first(41), first(42)], [3072, 2048]);
    let mut syn = |flows| window(flows, None, AckKind::Syn);
    assert_eq!([syn(44), syn(45)], [2896, 1448]);
}

/// Two segments need a count, whether they are the clamp's or the first flight's.
#[test]
fn windows_of_one_segment_need_no_count() {
    let counting = |floor, first_flight| {
        let set = [
            ("floor_segments", floor),
            ("first_flight_segments", first_flight),
        ];
        WindowScheme::new(&with("hscc", 128_000, &set)).counting()
    };
    assert_eq!([counting(1, 0), counting(1, 1)], [Counting::None; 2]);
    assert_eq!([counting(2, 0), counting(1, 2)], [Counting::Exact; 2]);
}

#[test]
fn a_clamp_expires_without_reports() {
    let mut port = hscc(100_000);
    port.on_queue(100_000, 7);
    assert!(port.is_clamping(7 + 99_999_999));
    assert!(!port.is_clamping(7 + 100_000_000));
    assert!(
        !port
            .on_ack(65535, Some(0), 1448, AckKind::Later, 7 + 100_000_000)
            .changed
    );
}

#[test]
fn sigma_keeps_room_for_control_packets() {
    let port = hscc(128_000);
    assert_eq!(port.drops(122_660, 1500, false), DataFate::Passes);
    assert_eq!(port.drops(122_661, 1500, false), DataFate::Dropped);
    assert_eq!(port.drops(127_999, 40, true), DataFate::Passes);
    let cuts = WindowScheme::new(&with("hscc", 128_000, &[("cuts", 1)]));
    assert_eq!(cuts.drops(122_660, 1500, false), DataFate::Passes);
    assert_eq!(cuts.drops(122_661, 1500, false), DataFate::Cut);
    let paper = as_printed(128_000);
    assert_eq!(paper.drops(u32::MAX, 1500, false), DataFate::Passes);
}

#[test]
fn all_of_the_buffer_keeps_no_reserve() {
    let mut params = with("hscc", 128_000, &[]);
    params.set("sigma", 1.0).unwrap();
    assert_eq!(params.field("sigma_bytes"), 0);
}

/// A report of a millisecond ago is repeated only where it turns the clamp.
#[test]
fn the_queue_is_heeded_at_the_thresholds() {
    let mut port = as_printed(100_000);
    port.on_queue(0, 1);
    assert!(!port.heeds_queue(49_999, 2));
    assert!(port.heeds_queue(50_000, 2));
    port.on_queue(50_000, 2);
    assert!(!port.heeds_queue(25_001, 3));
    assert!(port.heeds_queue(25_000, 3));
    assert!(!port.heeds_queue(50_000, 2 + 999_999));
    assert!(port.heeds_queue(50_000, 2 + 1_000_000));
}
