// SPDX-License-Identifier: Apache-2.0
//! Round-trip estimate and retransmission timeout (RFC 6298), in the integer form of Jacobson's
//! appendix that ns-2 and Linux share: SRTT in eighths, RTTVAR in quarters of a unit.

use super::config::{Config, RtoFloor};
use penstock_scenario::units::Time;

/// The estimator. A unit is a tick where the configuration has one, else a nanosecond.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    srtt_8: u64,
    var_4: u64,
    /// Smallest sample so far; 0 before the first.
    min: Time,
    /// The timeout without back-off; zero before the first sample.
    base: Time,
    /// Doublings in force; cleared by a valid sample alone (RFC 6298 §5.7 note, Karn).
    backoff: u8,
}

impl Rtt {
    /// Before the first sample.
    pub fn new() -> Rtt {
        Rtt::default()
    }

    /// The smallest sample; zero before the first.
    #[inline]
    pub fn min(&self) -> Time {
        self.min
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub fn smoothed(&self, cfg: &Config) -> Time {
        Time((self.srtt_8 * unit(cfg)) >> 3)
    }

    /// A round trip lasted for `span`.
    #[inline]
    pub fn note_min(&mut self, span: Time) {
        if self.min.0 == 0 || span < self.min {
            self.min = span;
        }
    }

    /// Takes the round trip of a segment sent once, from `sent` to `now`, and ends the back-off.
    pub fn sample(&mut self, cfg: &Config, sent: Time, now: Time) {
        let span = now.saturating_sub(sent);
        self.note_min(span);
        // With ticks, both instants as the ticking clock shows them.
        let measured = match (
            now.0.checked_div(cfg.tick.0),
            sent.0.checked_div(cfg.tick.0),
        ) {
            (Some(now), Some(sent)) => now - sent,
            _ => span.as_nanos(),
        }
        .max(1);
        self.backoff = 0;
        if self.srtt_8 == 0 {
            self.srtt_8 = measured << 3;
            self.var_4 = measured << 1;
        } else {
            let error = measured.abs_diff(self.srtt_8 >> 3);
            self.srtt_8 = (self.srtt_8 + measured - (self.srtt_8 >> 3)).max(1);
            self.var_4 = (self.var_4 + error - (self.var_4 >> 2)).max(1);
        }
        let unit = unit(cfg);
        let smoothed = Time((self.srtt_8 >> 3) * unit);
        // 4 RTTVAR, RTTVAR being held in quarters.
        let variance = Time(self.var_4 * unit);
        self.base = match cfg.rto_floor {
            RtoFloor::Timeout => (smoothed + variance).max(cfg.min_rto),
            RtoFloor::Variance => smoothed + variance.max(cfg.min_rto),
        };
    }

    /// The retransmission timeout (RFC 6298 §2, §5.5), back-off included.
    pub fn timeout(&self, cfg: &Config) -> Time {
        let base = if self.base.0 == 0 {
            cfg.initial_rto
        } else {
            self.base
        };
        let shift = self.backoff.min(cfg.max_backoff);
        Time(cfg.in_jiffies(base).0.saturating_mul(1 << shift)).min(cfg.max_rto)
    }

    /// Doubles the timeout (RFC 6298 §5.5). Beyond eight-fold the estimate may be bogus and starts
    /// again with the next sample (RFC 6298 §5.7, ns-2's `rtt_backoff`).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        if self.backoff > 3 {
            self.srtt_8 = 0;
        }
    }
}

/// Picoseconds of the estimator's unit.
fn unit(cfg: &Config) -> u64 {
    if cfg.tick.0 == 0 { 1_000 } else { cfg.tick.0 }
}
