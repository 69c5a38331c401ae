// SPDX-License-Identifier: Apache-2.0
//! Slow start and congestion avoidance of RFC 5681 §3.1, counted in ACKs or bytes (RFC 3465).

use super::window::Window;
use crate::tcp::config::{Config, Counting};

/// Grows the window for an ACK of `acked` new bytes.
#[inline]
pub(super) fn grow(cfg: &Config, window: &mut Window, acked: u32, mss: u32) {
    let counted = match cfg.counting {
        Counting::Acks => mss,
        Counting::Bytes(u8::MAX) => acked,
        Counting::Bytes(limit) if window.in_slow_start() => acked.min(limit as u32 * mss),
        Counting::Bytes(_) => acked,
        Counting::Delivered => return grow_by_segments(window, acked.div_ceil(mss), mss),
    };
    if window.in_slow_start() {
        window.cwnd = window.cwnd.saturating_add(counted);
    } else if cfg.ns2_windows {
        // RFC 5681 eqn 3: fractions of a segment count at once, which matters where windows are small.
        let square = mss * mss;
        let step = square.saturating_add(window.cwnd / 2) / window.cwnd.max(1);
        window.cwnd = window.cwnd.saturating_add(step.max(1));
    } else {
        // One segment per window acknowledged, without a division.
        window.credit = window.credit.saturating_add(counted);
        if window.credit >= window.cwnd {
            window.credit -= window.cwnd;
            window.cwnd = window.cwnd.saturating_add(mss);
        }
    }
}

/// Grows the window, of whole segments, for as many delivered (Linux `tcp_reno_cong_avoid`).
pub(super) fn grow_by_segments(window: &mut Window, mut segments: u32, mss: u32) {
    if window.in_slow_start() {
        segments = window.grow_to_threshold(segments, mss);
    }
    if segments > 0 {
        window.grow_by_credit(segments, (window.cwnd / mss).max(1), mss);
    }
}

/// Half (RFC 5681 eqn 4); the caller keeps it at two segments at least.
pub(super) fn halve(base: u32) -> u32 {
    base / 2
}
