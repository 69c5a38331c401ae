// SPDX-License-Identifier: Apache-2.0
//! Poisson arrivals.

use super::exponential;
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// Arrivals independent of each other, at a constant mean rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson {
    mean_gap_ps: f64,
}

impl Poisson {
    /// `rate_per_second` arrivals a second on average. A rate that is not above 0 never brings one.
    pub fn new(rate_per_second: f64) -> Poisson {
        let mean_gap_ps = if rate_per_second > 0.0 {
            1e12 / rate_per_second
        } else {
            f64::INFINITY
        };
        Poisson { mean_gap_ps }
    }

    /// The time from one arrival to the next, exponentially distributed.
    pub fn gap(&self, rng: &mut Rng) -> Time {
        if self.mean_gap_ps.is_infinite() {
            return Time::NEVER;
        }
        // A gap beyond the range saturates to "never".
        Time((self.mean_gap_ps * exponential(rng) + 0.5) as u64)
    }
}
