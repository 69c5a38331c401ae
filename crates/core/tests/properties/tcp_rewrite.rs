// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::functions::{checksum_update, lower_window, release_window};
use super::{Ack, acks};
use penstock_core::tcp_rewrite::*;
use proptest::prelude::*;

/// The whole checksum (RFC 1071).
fn checksum(words: &[u16]) -> u16 {
    let mut sum: u32 = words.iter().map(|&word| u32::from(word)).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

proptest! {
    #[test]
    fn lowers_to_the_limit_and_no_further(ack in acks(), limit: u32) {
        let ack = Ack { kind: AckKind::Later, ..ack };
        let out = lower_window(ack.window, ack.scale, limit, ack.mss);
        ack.assert_kept(out);
        if let Some(shift) = ack.scale {
            let wanted = u64::from(limit.max(ack.mss));
            let written = u64::from(out.window) << shift.min(14);
            prop_assert!(written < wanted + (1 << shift.min(14)), "the limit is not obeyed");
            prop_assert!(!out.changed || written >= wanted, "lower than asked for");
        }
    }

    /// From what the scheme wants to what the receiver offers, never down, within 40 ms.
    #[test]
    fn a_released_window_opens_in_steps(window: u16, scale in 0u8..=14, limit: u32, mss in 88u32..9000) {
        let wanted = lower_window(window, Some(scale), limit, mss);
        let mut last = wanted.window;
        for step in 0..8_u64 {
            let out = release_window(wanted, window, scale, mss, step * 5_000_000);
            prop_assert!(last <= out.window && out.window <= window);
            prop_assert_eq!(out.changed, out.window < window);
            let allowed = (u64::from(mss) << (step + 1)) + (1 << scale);
            let bytes = u64::from(out.window) << scale;
            prop_assert!(out.window == wanted.window || bytes < allowed, "too far at once");
            last = out.window;
        }
        let out = release_window(wanted, window, scale, mss, 40_000_000);
        prop_assert_eq!((out.window, out.changed), (window, false));
    }

    #[test]
    fn an_edge_once_offered_is_kept(
        start: u32,
        scale in 0u8..=14,
        steps in proptest::collection::vec((0u32..100_000, any::<u16>(), any::<u32>(), 1u32..9000), 1..40),
    ) {
        let (mut edge, mut ack, mut shown) = (Edge::default(), start, 0u32);
        for (advance, window, limit, mss) in steps {
            // The sender sends no more than it was shown.
            let advance = advance.min(shown);
            ack = ack.wrapping_add(advance);
            shown -= advance;
            let wanted = lower_window(window, Some(scale), limit, mss);
            let out = edge.keep(ack, window, Some(scale), wanted);
            prop_assert!(wanted.window <= out.window && out.window <= window);
            prop_assert_eq!(out.changed, out.window < window);
            let bytes = u32::from(out.window) << scale;
            let came = u32::from(window) << scale;
            prop_assert!(bytes >= shown.min(came), "taken back though the receiver has room");
            prop_assert!(
                out.window == wanted.window || bytes < shown + (1 << scale),
                "more than was owed"
            );
            shown = shown.max(bytes);
            prop_assert_eq!(edge.seq(), Some(ack.wrapping_add(shown)));
        }
    }

    #[test]
    fn an_edge_of_unknown_scale_is_not_moved(ack: u32, window: u16, old: u16, seen: u32) {
        let mut edge = Edge::default();
        let as_is = |window| lower_window(window, None, 0, 1460);
        edge.keep(seen, old, Some(7), as_is(old));
        let before = edge;
        prop_assert_eq!(edge.keep(ack, window, None, as_is(window)), as_is(window));
        prop_assert_eq!(edge, before);
    }

    #[test]
    fn an_old_acknowledgement_moves_no_edge_back(seq: u32, back in 1u32..1 << 20, window: u16) {
        let mut edge = Edge::default();
        let as_is = |window| lower_window(window, None, 0, 1460);
        edge.keep(seq, 65535, Some(14), as_is(65535));
        let before = edge;
        let wanted = lower_window(window, Some(14), 1460, 1460);
        edge.keep(seq.wrapping_sub(back), window, Some(14), wanted);
        prop_assert_eq!(edge, before);
    }

    /// Positions are equal after 4 GB: an edge from before is not to be kept once more.
    #[test]
    fn an_edge_that_is_long_past_is_forgotten(seq: u32, past in (1u32 << 30)..1 << 31) {
        let mut edge = Edge::default();
        let wanted = lower_window(65535, Some(7), 1460, 1460);
        edge.keep(seq, 65535, Some(7), wanted);
        let ack = seq.wrapping_add(1460).wrapping_sub(past);
        prop_assert_eq!(edge.keep(ack, 65535, Some(7), wanted), wanted);
    }

    #[test]
    fn checksum_update_equals_recomputation(
        mut words in proptest::collection::vec(any::<u16>(), 2..60),
        index: prop::sample::Index,
        new: u16,
    ) {
        words[0] = 6; // the pseudo-header holds the protocol: the sum is never zero
        let index = 1 + index.index(words.len() - 1);
        let (before, old) = (checksum(&words), words[index]);
        words[index] = new;
        prop_assert_eq!(checksum_update(before, old, new), checksum(&words));
        // One's complement sums do not care for the byte order (RFC 1071 §2B).
        let swapped = checksum_update(before.swap_bytes(), old.swap_bytes(), new.swap_bytes());
        prop_assert_eq!(swapped.swap_bytes(), checksum(&words));
    }

    #[test]
    fn reserved_bits_carry_a_scale_and_leave_no_trace(word: u16, scale in 0u8..=14) {
        let plain = word & 0xf0ff;
        let carried = reserved_put_scale(word, scale);
        prop_assert_eq!(reserved_scale(carried), scale);
        prop_assert_eq!(reserved_clear(carried), plain);
    }

    #[test]
    fn twelve_bit_window_is_never_raised(window: u16, scale in 0u8..=14) {
        let field = window12_put(window, scale);
        prop_assert_eq!(window12_scale(field), scale);
        prop_assert_eq!(window12_window(field), window.min(4095));
    }

    #[test]
    fn unified_scale_offers_no_more_than_the_receiver(window: u16, own in 0u8..=14, network in 0u8..=14) {
        let written = u64::from(unify_window(window, own, network)) << network;
        let offered = u64::from(window) << own;
        prop_assert!(written <= offered);
        prop_assert!(offered - written < 1 << network || written == 65535 << network);
    }
}
