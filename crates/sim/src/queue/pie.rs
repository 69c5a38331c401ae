// SPDX-License-Identifier: Apache-2.0
//! PIE, proportional integral controller enhanced (RFC 8033), for a link of known speed: the delay is
//! backlog / rate (§5.2 without the estimation), and probabilities are fixed-point.
//!
//! With it: auto-tuning (§4.2), burst allowance (§4.4), the work-conserving safeguard (§4.1),
//! marking below a threshold (§5.1), capped steps and de-randomisation (§5.4, §5.5). Not here: turning
//! itself off on an idle queue (§5.3), which only saves work.

use super::{Admission, Arrival, DropReason, Verdict};
use crate::packet::{Packet, flag};
use crate::rng::Rng;
use penstock_scenario::units::{Rate, Time};

/// Probability 1 in fixed point, 2^-60 being the smallest step.
const ONE: i128 = 1 << 60;

/// Parameters of [`Pie`]; start from [`Config::for_link`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Queueing delay to hold (QDELAY_REF), above 0.
    pub target: Time,
    /// Period of the controller (T_UPDATE), above 0.
    pub update_period: Time,
    /// Integral gain: probability per second of delay off the target, each update.
    pub alpha_per_s: f64,
    /// Proportional gain: probability per second of growth of the delay, each update.
    pub beta_per_s: f64,
    /// Time in which a burst passes untouched (MAX_BURST).
    pub max_burst: Time,
    /// Mark ECN-capable packets instead of dropping them early.
    pub ecn: bool,
    /// Probability above which even ECN-capable packets are dropped (mark_ecnth), 0 to 1.
    pub ecn_threshold: f64,
    /// Keep drops apart: none until the probabilities since the last sum to 0.85 (§5.4).
    pub derandomize: bool,
    /// A queue of at most two such packets is never dropped from, bytes.
    pub mean_packet_bytes: u32,
    /// Speed of the port.
    pub rate: Rate,
}

impl Config {
    /// The RFC's values: target 15 ms every 15 ms, burst 150 ms, alpha 1/8, beta 5/4.
    pub fn for_link(rate: Rate) -> Config {
        Config {
            target: Time::from_millis(15),
            update_period: Time::from_millis(15),
            alpha_per_s: 0.125,
            beta_per_s: 1.25,
            max_burst: Time::from_millis(150),
            ecn: false,
            ecn_threshold: 0.1,
            derandomize: true,
            mean_packet_bytes: 1500,
            rate,
        }
    }
}

/// The state of one port under PIE.
#[derive(Clone, Debug)]
pub struct Pie {
    config: Config,
    /// Gains, in 2^-60 per picosecond.
    alpha: i128,
    beta: i128,
    ecn_threshold: i128,
    /// Drop probability, 0 to [`ONE`].
    probability: i128,
    /// Sum of the probabilities since the last drop.
    accumulated: i128,
    /// Delay at the last update.
    old_delay: Time,
    burst_allowance: Time,
}

fn fixed(value: f64) -> i128 {
    (value * ONE as f64) as i128
}

/// Delays are so small that the gains per picosecond need the whole of the fraction; 2^20 more keeps
/// them to 7 digits.
const GAIN_SHIFT: u32 = 20;

fn gain(per_second: f64) -> i128 {
    (per_second * ONE as f64 / 1e12 * f64::from(1u32 << GAIN_SHIFT)) as i128
}

impl Pie {
    /// A port that has been idle.
    pub fn new(config: Config) -> Pie {
        Pie {
            alpha: gain(config.alpha_per_s),
            beta: gain(config.beta_per_s),
            ecn_threshold: fixed(config.ecn_threshold),
            burst_allowance: config.max_burst,
            config,
            probability: 0,
            accumulated: 0,
            old_delay: Time::ZERO,
        }
    }

    /// The drop probability, for measures.
    pub fn probability(&self) -> f64 {
        self.probability as f64 / ONE as f64
    }

    /// The change asked for by the controller, scaled down while the probability is small (§4.2).
    fn step(&self, delay: Time) -> i128 {
        let delta = |a: Time, b: Time| i128::from(a.0) - i128::from(b.0);
        let p = self.alpha * delta(delay, self.config.target)
            + self.beta * delta(delay, self.old_delay);
        let p = p >> GAIN_SHIFT;
        let divisor = match self.probability {
            q if q < ONE / 1_000_000 => 2048,
            q if q < ONE / 100_000 => 512,
            q if q < ONE / 10_000 => 128,
            q if q < ONE / 1_000 => 32,
            q if q < ONE / 100 => 8,
            q if q < ONE / 10 => 2,
            _ => 1,
        };
        // §5.5: a jump of more than 2 % at a high probability would starve.
        let cap = if self.probability >= ONE / 10 {
            ONE / 50
        } else {
            ONE
        };
        (p / divisor).min(cap)
    }

    fn is_calm(&self, delay: Time) -> bool {
        let half = Time(self.config.target.0 / 2);
        delay < half && self.old_delay < half
    }

    /// Whether this packet is to be dropped or marked.
    fn is_chosen(&mut self, port: &Arrival, rng: &mut Rng) -> bool {
        let half = Time(self.config.target.0 / 2);
        let is_safe = self.old_delay < half && self.probability < ONE / 5;
        let is_short = port.backlog_bytes <= 2 * u64::from(self.config.mean_packet_bytes);
        if self.burst_allowance > Time::ZERO || is_safe || is_short {
            return false;
        }
        if self.config.derandomize {
            if self.probability == 0 {
                self.accumulated = 0;
            }
            self.accumulated += self.probability;
            if self.accumulated < ONE * 85 / 100 {
                return false;
            }
            if self.accumulated >= ONE * 85 / 10 {
                self.accumulated = 0;
                return true;
            }
        }
        let chosen = i128::from(rng.below(ONE as u64)) < self.probability;
        if chosen {
            self.accumulated = 0;
        }
        chosen
    }
}

impl Admission for Pie {
    fn admit(&mut self, port: &Arrival, packet: &Packet, rng: &mut Rng) -> Verdict {
        if !self.is_chosen(port, rng) {
            return Verdict::Pass;
        }
        if self.config.ecn && packet.has(flag::ECT) && self.probability <= self.ecn_threshold {
            return Verdict::Mark;
        }
        Verdict::Drop(DropReason::Early)
    }

    fn overflow(&mut self, _port: &Arrival, _packet: &Packet) {
        self.accumulated = 0;
    }

    fn period(&self) -> Option<Time> {
        Some(self.config.update_period)
    }

    fn tick(&mut self, _now: Time, backlog_bytes: u64) {
        let delay = self.config.rate.transmission(backlog_bytes);
        let mut probability = self.probability + self.step(delay);
        if delay == Time::ZERO && self.old_delay == Time::ZERO {
            probability = probability * 98 / 100;
        }
        self.probability = probability.clamp(0, ONE);
        self.burst_allowance = self
            .burst_allowance
            .saturating_sub(self.config.update_period);
        if self.probability == 0 && self.is_calm(delay) {
            self.burst_allowance = self.config.max_burst;
        }
        self.old_delay = delay;
    }
}

#[cfg(test)]
#[path = "pie_tests.rs"]
mod tests;
