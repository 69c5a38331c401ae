// SPDX-License-Identifier: Apache-2.0
//! RED, random early detection (Floyd and Jacobson 1993), with the semantics of ns-2.
//!
//! An exponentially weighted average of the queue decides: below `min_threshold` all pass, between
//! the thresholds packets are dropped (ECN: marked) at random with a probability growing to `max_p`,
//! beyond `max_threshold` it grows on to 1 at twice that ("gentle") or is 1 at once. Optionally
//! `max_p` adapts (Floyd, Gummadi and Shenker 2001). Not here: random victims.

use super::{Admission, Arrival, DropReason, Limit, Verdict};
use crate::distribution::math;
use crate::packet::{Packet, flag};
use crate::rng::Rng;
use penstock_scenario::units::{Rate, Time};

/// How often an adaptive `max_p` moves, and its bounds (Adaptive RED §3).
const ADAPT_PERIOD: Time = Time::from_millis(500);
const LEAST_MAX_P: f64 = 0.01;
const LARGEST_MAX_P: f64 = 0.5;

/// Parameters of [`Red`]; start from [`Config::for_link`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Average below which every packet passes, in packets.
    pub min_threshold: f64,
    /// Average at which the probability reaches `max_p`, in packets.
    pub max_threshold: f64,
    /// Probability at `max_threshold`, 0 to 1.
    pub max_p: f64,
    /// Let `max_p` drift between 0.01 and 0.5, every 0.5 s, so that the average stays amid the
    /// thresholds.
    pub adaptive: bool,
    /// Weight of a new sample in the average, 0 to 1; 1 is the instantaneous queue.
    pub weight: f64,
    /// Grow from `max_p` to 1 between the maximum threshold and its double, instead of jumping.
    pub gentle: bool,
    /// Space drops more evenly: none within 1/p packets of the last (ns-2's `wait_`).
    pub wait: bool,
    /// Mark packets of ECN-capable flows instead of dropping them early.
    pub ecn: bool,
    /// Above this probability drop even what could be marked (ns-2's `mark_p_`); 1 for never.
    pub mark_p: f64,
    /// Drop ECN-capable packets too while the average is beyond the last threshold (RFC 3168 §7);
    /// otherwise mark them.
    pub hard_drop: bool,
    /// Size of a typical packet on the wire, bytes: the unit of idle time.
    pub mean_packet_bytes: u32,
    /// Speed of the port: how many packets could have left in an idle time.
    pub rate: Rate,
}

impl Config {
    /// ns-2's automatic settings (since 2004, `max_p` adapting) for a port of `rate` with a buffer of `limit`: the thresholds aim at a
    /// queue of 5 ms (at least 5 packets; maximum = 3 x minimum), and the average forgets
    /// with a time constant of one second: weight = 1 - exp(-1 / (packets per second)).
    ///
    /// ns-2 ignores the buffer. Here the maximum is at most half of it (so that gentle RED ends at
    /// the buffer), or a shallow data-center port would be drop-tail under the name of RED.
    pub fn for_link(rate: Rate, limit: Limit) -> Config {
        const TARGET_DELAY_S: f64 = 0.005;
        let mean_packet_bytes = 1500;
        let packets_per_second = packets_per_second(rate, mean_packet_bytes);
        let aim = (TARGET_DELAY_S * packets_per_second / 2.0).max(5.0);
        let by_bytes = limit.bytes as f64 / f64::from(mean_packet_bytes);
        let buffer = by_bytes.min(f64::from(limit.packets));
        let min_threshold = aim.min(buffer / 6.0);
        Config {
            min_threshold,
            max_threshold: 3.0 * min_threshold,
            max_p: 0.1,
            adaptive: true,
            weight: 1.0 - math::exp(-1.0 / packets_per_second),
            gentle: true,
            wait: true,
            ecn: false,
            mark_p: 1.0,
            hard_drop: true,
            mean_packet_bytes,
            rate,
        }
    }
}

fn packets_per_second(rate: Rate, packet_bytes: u32) -> f64 {
    rate.0 as f64 / (8.0 * f64::from(packet_bytes))
}

/// The state of one port under RED.
#[derive(Clone, Debug)]
pub struct Red {
    config: Config,
    /// Picoseconds to send a packet of mean size.
    packet_time: u64,
    /// Average beyond which all is dropped: 2 x maximum if gentle.
    forced_at: f64,
    /// The probability between the thresholds.
    ramp: Line,
    /// The probability from the maximum threshold to its double.
    gentle_ramp: Line,
    average: f64,
    /// Packets since the last drop or mark, while the average is above the minimum.
    count: u32,
    /// Whether the previous packet found the average above the minimum.
    above_min: bool,
}

/// The probability up to the maximum threshold, and from there to its double.
fn ramps(config: &Config) -> [Line; 2] {
    let (min, max) = (config.min_threshold, config.max_threshold);
    [
        Line::through((min, 0.0), (max, config.max_p)),
        Line::through((max, config.max_p), (2.0 * max, 1.0)),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    intercept: f64,
}

impl Line {
    fn through(from: (f64, f64), to: (f64, f64)) -> Line {
        let slope = (to.1 - from.1) / (to.0 - from.0);
        Line {
            slope,
            intercept: from.1 - slope * from.0,
        }
    }
}

/// What the random part of RED decides.
enum Fate {
    Pass,
    Early { probability: f64 },
    Forced,
}

impl Red {
    /// A port that has been idle.
    pub fn new(config: Config) -> Red {
        let [ramp, gentle_ramp] = ramps(&config);
        Red {
            ramp,
            gentle_ramp,
            packet_time: config
                .rate
                .transmission(u64::from(config.mean_packet_bytes))
                .0
                .max(1),
            forced_at: config.max_threshold * if config.gentle { 2.0 } else { 1.0 },
            config,
            average: 0.0,
            count: 0,
            above_min: false,
        }
    }

    /// The average queue, packets.
    pub fn average(&self) -> f64 {
        self.average
    }

    fn update_average(&mut self, port: &Arrival) {
        let keep = 1.0 - self.config.weight;
        if port.free_at < port.now {
            // An idle port counts as if small packets had passed through an empty queue.
            let missed = (port.now.0 - port.free_at.0) / self.packet_time;
            self.average *= power(keep, missed);
        }
        // Those that wait, without the one in transmission (as in ns-2).
        let queue = f64::from(port.backlog_packets);
        let average = self.average * keep + queue * self.config.weight;
        // A queue that stays empty must not end in subnormal numbers, which are slow and stick.
        self.average = if average < 1e-12 { 0.0 } else { average };
    }

    /// The probability at this average, before it is spread over the packets (the paper's p_b).
    fn base_probability(&self) -> f64 {
        let ramp = if self.average < self.config.max_threshold {
            self.ramp
        } else {
            self.gentle_ramp
        };
        ramp.slope * self.average + ramp.intercept
    }

    /// Adaptive RED §3: additive increase while the average is in the upper two fifths of the range
    /// between the thresholds or beyond, multiplicative decrease in the lower.
    fn adapt(&mut self) {
        let Config {
            min_threshold,
            max_threshold,
            ..
        } = self.config;
        let part = 0.4 * (max_threshold - min_threshold);
        let max_p = &mut self.config.max_p;
        if self.average < min_threshold + part && *max_p > LEAST_MAX_P {
            *max_p *= 0.9;
        } else if self.average > max_threshold - part && *max_p < LARGEST_MAX_P {
            *max_p += (*max_p / 4.0).min(0.01);
        }
        [self.ramp, self.gentle_ramp] = ramps(&self.config);
    }

    /// Whether a uniform number falls below the paper's p_a = p / (1 - count p), with ns-2's `wait_`
    /// p / (2 - count p) once count p is 1; cross-multiplied, as a division costs more than all else.
    fn is_chosen(&self, p: f64, rng: &mut Rng) -> bool {
        let spent = f64::from(self.count) * p;
        match self.config.wait {
            true if spent < 1.0 => false,
            true if spent < 2.0 => rng.unit() * (2.0 - spent) < p,
            false if spent < 1.0 => rng.unit() * (1.0 - spent) < p,
            _ => true,
        }
    }

    fn fate(&mut self, port: &Arrival, rng: &mut Rng) -> Fate {
        self.update_average(port);
        self.count = self.count.saturating_add(1);
        // A queue of one packet or less is never congested, whatever its past (ns-2).
        if self.average < self.config.min_threshold || port.backlog_packets <= 1 {
            self.above_min = false;
            return Fate::Pass;
        }
        if self.average >= self.forced_at {
            self.count = 0;
            return Fate::Forced;
        }
        if !self.above_min {
            self.above_min = true;
            self.count = 1;
            return Fate::Pass;
        }
        let probability = self.base_probability();
        if !self.is_chosen(probability, rng) {
            return Fate::Pass;
        }
        self.count = 0;
        Fate::Early { probability }
    }
}

impl Admission for Red {
    fn admit(&mut self, port: &Arrival, packet: &Packet, rng: &mut Rng) -> Verdict {
        let may_mark = self.config.ecn && packet.has(flag::ECT);
        match self.fate(port, rng) {
            Fate::Pass => Verdict::Pass,
            Fate::Early { probability } if may_mark && probability <= self.config.mark_p => {
                Verdict::Mark
            }
            Fate::Early { .. } => Verdict::Drop(DropReason::Early),
            Fate::Forced if may_mark && !self.config.hard_drop => Verdict::Mark,
            Fate::Forced => Verdict::Drop(DropReason::Forced),
        }
    }

    fn period(&self) -> Option<Time> {
        self.config.adaptive.then_some(ADAPT_PERIOD)
    }

    fn tick(&mut self, _now: Time, _backlog_bytes: u64) {
        if self.config.adaptive {
            self.adapt();
        }
    }

    fn overflow(&mut self, port: &Arrival, _packet: &Packet) {
        self.update_average(port);
        self.count = 0;
    }
}

/// `base` to a whole power by repeated squaring: the same bits on every machine, unlike `powf`.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent != 0 && result != 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
