// SPDX-License-Identifier: Apache-2.0
//! Random flow sizes and arrival times, the same on every machine: nothing here calls the C
//! library's mathematics ([`math`] has its own).
//!
//! [`FlowSize`] draws sizes, also from a measured distribution ([`Cdf`]); [`Poisson`] draws the time
//! from one arrival to the next.

mod cdf;
pub mod math;
mod poisson;

pub use cdf::{Cdf, CdfError};
pub use poisson::Poisson;

use crate::rng::Rng;

/// A distribution of flow sizes, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowSize {
    /// Always the same.
    Fixed(u64),
    /// Each whole number from `min` to `max`, both included, equally often.
    Uniform {
        /// Smallest size.
        min: u64,
        /// Largest size, no less than `min`.
        max: u64,
    },
    /// Exponential.
    Exponential {
        /// Mean size.
        mean: f64,
    },
    /// Bounded Pareto: P(size > x) falls as x^-shape between the bounds.
    Pareto {
        /// The exponent, above 0.
        shape: f64,
        /// Smallest size, above 0.
        min: f64,
        /// Largest size, above `min`.
        max: f64,
    },
    /// Linear between measured points.
    Empirical(Cdf),
}

impl FlowSize {
    /// A size: rounded to whole bytes, at least 1.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        match self {
            &FlowSize::Fixed(size) => size.max(1),
            &FlowSize::Uniform { min, max } => {
                (min + rng.below(max.saturating_sub(min).saturating_add(1))).max(1)
            }
            &FlowSize::Exponential { mean } => whole(mean * exponential(rng)),
            &FlowSize::Pareto { shape, min, max } => {
                let tail = math::exp(shape * math::ln(min / max));
                let above = 1.0 - rng.unit() * (1.0 - tail);
                whole((min * math::exp(-math::ln(above) / shape)).min(max))
            }
            FlowSize::Empirical(cdf) => whole(cdf.quantile(rng.unit())),
        }
    }

    /// The mean in bytes, by formula (before rounding to whole bytes, which moves it by less than
    /// half a byte).
    pub fn mean(&self) -> f64 {
        match *self {
            FlowSize::Fixed(size) => size as f64,
            FlowSize::Uniform { min, max } => (min as f64 + max as f64) / 2.0,
            FlowSize::Exponential { mean } => mean,
            FlowSize::Pareto { shape, min, max } => {
                let ratio = math::ln(min / max);
                let tail = math::exp(shape * ratio);
                if shape == 1.0 {
                    return min * -ratio / (1.0 - tail);
                }
                let head = 1.0 - math::exp((shape - 1.0) * ratio);
                shape / (shape - 1.0) * min * head / (1.0 - tail)
            }
            FlowSize::Empirical(ref cdf) => cdf.mean(),
        }
    }
}

/// Exponential with mean 1; the argument of the logarithm is in (0, 1].
fn exponential(rng: &mut Rng) -> f64 {
    -math::ln(1.0 - rng.unit())
}

fn whole(bytes: f64) -> u64 {
    ((bytes + 0.5) as u64).max(1)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
