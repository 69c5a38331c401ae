// SPDX-License-Identifier: Apache-2.0
//! Random flow sizes and arrival times, the same on every machine: nothing here calls the C
//! library's mathematics ([`math`] has its own).
//!
//! [`FlowSize`] draws sizes, also from a measured distribution ([`Cdf`]); [`Poisson`] draws the time
//! from one arrival to the next. [`Draws`] gives several the same draws. `workloads` has the points
//! of published distributions.

mod cdf;
pub mod math;
mod poisson;
mod workloads;

pub use cdf::{Cdf, CdfError};
pub use poisson::Poisson;

use crate::rng::Rng;

/// A distribution of whole numbers: of flow sizes, in bytes, or of times, in picoseconds.
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
    /// Lognormal: the logarithm is normal.
    Lognormal {
        /// Half are below.
        median: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
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
            &FlowSize::Lognormal { median, sigma } => {
                whole(median * math::exp(sigma * normal(rng)))
            }
            FlowSize::Empirical(cdf) => whole(cdf.quantile(rng.unit())),
        }
    }

    /// The same, all values times `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> FlowSize {
        let times = |value: u64| (value as f64 * factor + 0.5) as u64;
        match self {
            FlowSize::Fixed(value) => FlowSize::Fixed(times(value)),
            FlowSize::Uniform { min, max } => FlowSize::Uniform {
                min: times(min),
                max: times(max),
            },
            FlowSize::Exponential { mean } => FlowSize::Exponential {
                mean: mean * factor,
            },
            FlowSize::Pareto { shape, min, max } => FlowSize::Pareto {
                shape,
                min: min * factor,
                max: max * factor,
            },
            FlowSize::Lognormal { median, sigma } => FlowSize::Lognormal {
                median: median * factor,
                sigma,
            },
            FlowSize::Empirical(cdf) => FlowSize::Empirical(cdf.scaled(factor)),
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
            FlowSize::Lognormal { median, sigma } => median * math::exp(sigma * sigma / 2.0),
            FlowSize::Empirical(ref cdf) => cdf.mean(),
        }
    }
}

/// Exponential with mean 1; the argument of the logarithm is in (0, 1].
fn exponential(rng: &mut Rng) -> f64 {
    -math::ln(1.0 - rng.unit())
}

/// Standard normal, by Marsaglia's polar method, which needs no sine.
fn normal(rng: &mut Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * math::ln(square) / square).sqrt();
        }
    }
}

/// Draws that do not depend on who asks first: number `index` of stream `stream` is always the same.
#[derive(Clone, Debug)]
pub struct Draws {
    of: FlowSize,
    seed: u64,
}

impl Draws {
    /// Draws from a distribution; `seed` and what is drawn from it are independent of all others.
    pub fn new(of: FlowSize, seed: u64) -> Draws {
        Draws { of, seed }
    }

    /// Whether all draws are the same.
    pub fn is_fixed(&self) -> bool {
        matches!(self.of, FlowSize::Fixed(_))
    }

    /// Whether all draws are 0.
    pub fn is_zero(&self) -> bool {
        self.of == FlowSize::Fixed(0)
    }

    /// Draw number `index` of stream `stream`.
    #[inline]
    pub fn draw(&self, stream: u32, index: u32) -> u64 {
        match self.of {
            FlowSize::Fixed(value) => value,
            _ => self.draw_any(stream, index),
        }
    }

    fn draw_any(&self, stream: u32, index: u32) -> u64 {
        let stream = u64::from(stream) << 32 | u64::from(index);
        self.of.sample(&mut Rng::new(self.seed, stream))
    }
}

fn whole(bytes: f64) -> u64 {
    ((bytes + 0.5) as u64).max(1)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
