// SPDX-License-Identifier: Apache-2.0
//! The cubic function of RFC 9438 §4.2 in integers: time in 1/1024 s, windows in segments.

/// beta = 0.7 as Linux rounds it: 717/1024.
pub(super) const BETA: u64 = 717;
/// C = 0.4 segments/s^3, in 1/1024.
const C: u64 = 410;
/// C t^3 with t in 1/1024 s: 30 bits of time, 10 of C.
const SHIFT: u32 = 40;
/// Beyond this time, 512 s, the curve is level.
const LATEST: u64 = 1 << 19;

/// K: the time until the curve is `below` segments higher, at its plateau.
pub(super) fn time_to_plateau(below: u32) -> u64 {
    cube_root(((below as u64) << SHIFT) / C)
}

/// The window `t` after the curve's start, with its plateau at `plateau` segments at time `k`.
pub(super) fn window_at(t: u64, k: u64, plateau: u32) -> u32 {
    let t = t.min(LATEST);
    let off = t.abs_diff(k);
    let delta = ((C as u128 * (off as u128).pow(3)) >> SHIFT).min(1 << 30) as u32;
    if t < k {
        plateau.saturating_sub(delta)
    } else {
        plateau.saturating_add(delta)
    }
}

/// What remains of `base` segments or bytes after a decrease.
pub(super) fn decreased(base: u32) -> u32 {
    ((base as u64 * BETA) >> 10) as u32
}

/// The window to come back to after a decrease at `cwnd` segments, `before` being the last such
/// one: less where it fell, to make room for others (fast convergence, RFC 9438 §4.7).
pub(super) fn next_plateau(cwnd: u32, before: u32) -> u32 {
    if cwnd < before {
        ((cwnd as u64 * (1024 + BETA)) >> 11) as u32
    } else {
        cwnd
    }
}

/// The largest `r` with `r^3 <= n`, digit by digit.
fn cube_root(n: u64) -> u64 {
    let (mut rest, mut root) = (n, 0u64);
    for digit in (0..=63 / 3).rev() {
        root <<= 1;
        let step = 3 * root * (root + 1) + 1;
        if rest >> (3 * digit) >= step {
            rest -= step << (3 * digit);
            root += 1;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_exact() {
        for n in (0..5000).chain([u64::MAX, u64::MAX - 1, 1 << 60, (1 << 60) - 1]) {
            let root = cube_root(n) as u128;
            assert!(
                root.pow(3) <= n as u128 && (root + 1).pow(3) > n as u128,
                "{n}: {root}"
            );
        }
    }

    /// RFC 9438 §4.2, in floating point.
    fn exact(t: f64, below: f64, plateau: f64) -> f64 {
        let k = (below / 0.4).cbrt();
        0.4 * (t - k).powi(3) + plateau
    }

    #[test]
    fn the_curve_is_that_of_the_rfc() {
        for (plateau, below) in [(10, 3), (100, 30), (1_000, 300), (50_000, 15_000)] {
            let k = time_to_plateau(below);
            for t in (0..60 << 10).step_by(300) {
                let expected = exact(t as f64 / 1024.0, below as f64, plateau as f64);
                let got = window_at(t, k, plateau) as f64;
                let error = 2.0 + 0.005 * (expected - plateau as f64).abs();
                assert!((got - expected).abs() < error, "{t}: {got}, not {expected}");
            }
        }
    }

    #[test]
    fn the_curve_never_falls() {
        for below in [0, 1, 30, 5_000, 1 << 23] {
            let (k, plateau) = (time_to_plateau(below), (1 << 24) + below);
            let windows = (0..1 << 20).step_by(97).map(|t| window_at(t, k, plateau));
            assert!(windows.is_sorted(), "{below}");
            assert!(window_at(0, k, plateau).abs_diff(1 << 24) <= 1 + (below >> 7));
            assert_eq!(window_at(k, k, plateau), plateau);
        }
    }

    #[test]
    fn a_window_that_fell_comes_back_lower() {
        assert_eq!(decreased(1_000), 700);
        assert_eq!(next_plateau(1_000, 0), 1_000);
        assert_eq!(next_plateau(1_000, 1_000), 1_000);
        // (1 + 0.7) / 2.
        assert_eq!(next_plateau(1_000, 1_001), 850);
    }
}
