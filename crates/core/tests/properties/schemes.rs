// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What must hold of every window scheme, with any parameters in range.

use super::acks;
use penstock_core::definitions::{self, Definition, Param, Unit};
use penstock_core::scheme::Counting;
use penstock_core::tcp_rewrite::MAX_WINDOW_BYTES;
use penstock_core::{Params, PortSegments, WindowScheme};
use proptest::prelude::*;
use proptest::sample::Index;

/// A value of a parameter: at an end of its range, or between.
fn value(param: &Param, at: f64) -> f64 {
    let value = param.min + (param.max - param.min) * (at * 1.2 - 0.1).clamp(0.0, 1.0);
    match param.unit {
        Unit::Share | Unit::BufferShare | Unit::BufferLimit => value,
        _ => value.round(),
    }
}

fn params() -> impl Strategy<Value = Params> {
    (
        any::<Index>(),
        1u32..,
        proptest::collection::vec(0.0..=1.0, 20),
    )
        .prop_map(|(index, buffer, places)| {
            let schemes: Vec<&Definition> = definitions::window_schemes().collect();
            let definition = *index.get(&schemes);
            let mut params = Params::new(definition, buffer);
            let own = definition
                .params
                .iter()
                .filter(|param| param.field.is_some());
            for (param, at) in own.zip(places.into_iter().cycle()) {
                params.set(param.key, value(param, at)).unwrap();
            }
            params
        })
}

/// Whether what is written has a floor; FairQ as printed has none.
fn has_floors(params: &Params) -> bool {
    let floors = ["floor", "first_floor"].map(|key| params.definition().param(key));
    let mut fields = floors.into_iter().flatten().filter_map(|param| param.field);
    fields.all(|field| params.field(field.name) > 0)
}

proptest! {
    #[test]
    fn holds_at_any_input(
        params in params(),
        events in proptest::collection::vec((0u32..6, any::<u32>(), any::<u64>(), acks()), 0..200),
    ) {
        let (mut port, mut segments) = (WindowScheme::new(&params), PortSegments::default());
        for (event, number, now, ack) in events {
            match event {
                0 => port.on_flows(number),
                1 => port.on_mss(number),
                2 => port.on_queue(number, now),
                3 => port.on_tick(number, now, now),
                4 => {
                    port.follow(&mut segments, number, number % 2 == 0, number, now);
                }
                _ => {
                    let out = port.on_ack(ack.window, ack.scale, ack.mss, ack.kind, now);
                    match has_floors(&params) {
                        true => ack.assert_kept(out),
                        false => ack.assert_lowered(out),
                    }
                }
            }
            prop_assert!(port.window_bytes() <= MAX_WINDOW_BYTES);
        }
    }

    /// A queue that is not heeded turns no clamp on or off.
    #[test]
    fn a_clamp_turns_only_when_the_queue_is_heeded(
        params in params(),
        queues in proptest::collection::vec((any::<u32>(), 0u64..2_000_000), 0..50),
    ) {
        let (mut port, mut now) = (WindowScheme::new(&params), 0);
        for (queue, after) in queues {
            now += after;
            let (was, is_heeded) = (port.is_clamping(now), port.heeds_queue(queue, now));
            port.on_queue(queue, now);
            prop_assert!(is_heeded || port.is_clamping(now) == was);
        }
    }

    #[test]
    fn following_is_segment_queue_and_clamp(
        params in params(),
        payload: u32,
        is_full: bool,
        queue: u32,
        now: u64,
    ) {
        let (mut apart, mut segments) = (WindowScheme::new(&params), PortSegments::default());
        let (mut at_once, mut of_both) = (apart.clone(), segments);
        segments.on_data(payload, is_full, now);
        if segments.bytes > 0 {
            apart.on_mss(segments.bytes);
        }
        apart.on_queue(queue, now);
        let is_clamping = at_once.follow(&mut of_both, payload, is_full, queue, now);
        prop_assert_eq!(is_clamping, apart.is_clamping(now));
        prop_assert_eq!(at_once.state(), apart.state());
        prop_assert_eq!(of_both, segments);
    }

    /// A scheme that does not need the number of flows, or a timer, answers the same with them.
    #[test]
    fn what_a_scheme_does_without_changes_nothing(params in params(), number: u32, ack in acks()) {
        let port = WindowScheme::new(&params);
        let mut other = port.clone();
        if port.counting() == Counting::None {
            other.on_flows(number);
        }
        if port.tick_ns().is_none() {
            other.on_tick(number, 0, 0);
        }
        let written = [&port, &other]
            .map(|port| port.on_ack(ack.window, ack.scale, ack.mss, ack.kind, 0));
        prop_assert_eq!(written[0], written[1]);
        prop_assert_eq!(port.window_bytes(), other.window_bytes());
    }
}
