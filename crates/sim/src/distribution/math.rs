// SPDX-License-Identifier: Apache-2.0
//! `ln` and `exp` of nothing but IEEE-exact operations (+, -, *, /): the C library's may differ in
//! the last bit from machine to machine, and with it the whole run.

/// ln 2 in two parts: `HI` has 21 trailing zero bits, so that `k * HI` is exact for any exponent k.
const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// Natural logarithm, to 2 units in the last place. `x` must be positive, normal and finite.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut m = f64::from_bits(bits & MANTISSA | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    // ln m = 2 atanh s, and |s| <= 0.172: 11 terms leave less than 1e-18.
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut series = 0.0;
    for k in (1..=11).rev() {
        series = (series + 1.0 / f64::from(2 * k + 1)) * s2;
    }
    let k = f64::from(exponent);
    k * LN2_HI + (2.0 * s + (2.0 * s * series + k * LN2_LO))
}

/// e to the power `x`, to a few units in the last place; saturates to 0 and infinity.
pub fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    let k = (x * std::f64::consts::LOG2_E).round();
    let r = (x - k * LN2_HI) - k * LN2_LO;
    // Taylor on |r| <= 0.347: 14 terms leave less than 1e-17.
    let mut sum = 1.0;
    for n in (1..=14).rev() {
        sum = 1.0 + sum * r / f64::from(n);
    }
    sum * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn relative_error(got: f64, expected: f64) -> f64 {
        (got - expected).abs() / expected.abs().max(f64::MIN_POSITIVE)
    }

    #[test]
    fn ln_agrees_with_the_library() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..100_000 {
            let u = 1.0 - rng.unit();
            for x in [
                u,
                1.0 / u,
                u * 1e-12,
                1.0 + u * 1e-6,
                1.0 - u * 1e-6,
                u * 1e15,
            ] {
                let (got, expected) = (ln(x), x.ln());
                assert!(
                    got == expected || relative_error(got, expected) < 1e-14,
                    "{x}: {got} {expected}"
                );
            }
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn exp_agrees_with_the_library() {
        let mut rng = Rng::new(2, 0);
        for _ in 0..100_000 {
            let x = rng.unit() * 1400.0 - 700.0;
            assert!(relative_error(exp(x), x.exp()) < 1e-14, "{x}");
            let x = x * 1e-5;
            assert!(relative_error(exp(x), x.exp()) < 1e-14, "{x}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(1000.0), f64::INFINITY);
    }

    #[test]
    fn bits_are_pinned() {
        // Golden: the same on every machine, or runs differ.
        assert_eq!(ln(0.1).to_bits(), GOLDEN_LN_TENTH);
        assert_eq!(exp(0.1).to_bits(), GOLDEN_EXP_TENTH);
    }

    const GOLDEN_LN_TENTH: u64 = 0xc0026bb1bbb55515;
    const GOLDEN_EXP_TENTH: u64 = 0x3ff1aec7b35a00d4;
}
