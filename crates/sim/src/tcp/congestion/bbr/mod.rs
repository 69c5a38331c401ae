// SPDX-License-Identifier: Apache-2.0
//! BBR, version 1 (Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00;
//! as Linux 6.18 runs it): the sender paces at the bandwidth it has measured and keeps twice the
//! product of bandwidth and least round trip in flight. Losses do not lower its rate.
//!
//! | file | content |
//! |---|---|
//! | `rate.rs` | samples of the delivery rate |
//! | `filter.rs` | the greatest of ten rounds: the bandwidth |
//! | `pacing.rs` | when the next burst leaves |
//! | `aggregation.rs` | more window where ACKs come in batches |
//! | `policer.rs` | the rate of a policer |
//! | `mod.rs` | the phases, and the window |
//!
//! It needs SACK, for the losses. Not done: undoing a recovery that was needless.

mod aggregation;
mod filter;
mod pacing;
mod policer;
mod rate;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use super::window::Window;
use crate::rng::Rng;
use aggregation::Aggregation;
use filter::MaxFilter;
use pacing::Pacer;
use penstock_scenario::units::Time;
use policer::{Policer, Totals};
use rate::{DeliveryRate, Sample};

/// Gains are in 1/256.
const UNIT: u32 = 256;
/// 2 / ln 2: the least that doubles the rate in each round.
const STARTUP_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// Its inverse empties within a round what it has queued.
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
const CWND_GAIN: u32 = 2 * UNIT;
/// A round of probing for more, one of draining what it queued, and six of cruising.
const CYCLE: [u32; 8] = [
    UNIT * 5 / 4,
    UNIT * 3 / 4,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
];
/// The least round trip is measured again after ten seconds: for 200 ms, with four segments in flight.
const MIN_RTT_LASTS: Time = Time::from_secs(10);
const PROBE_RTT: Time = Time::from_millis(200);
const LEAST_SEGMENTS: u32 = 4;
/// The pipe is full after so many rounds that did not raise the bandwidth by a quarter.
const FULL_ROUNDS: u8 = 3;
/// The window until a round trip is known, segments.
const FIRST_SEGMENTS: u32 = 10;

/// Bytes that `rate` bytes per second carry in `span`.
fn bytes_in(rate: u64, span: Time) -> u64 {
    (rate as u128 * span.0 as u128 / 1_000_000_000_000) as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// What recovery is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tcp) enum Repair {
    /// Nothing.
    None,
    /// Fast recovery.
    Recovery,
    /// The aftermath of a timeout.
    Loss,
}

/// An ACK as a model of the path sees it.
#[derive(Debug)]
pub(in crate::tcp) struct Feedback {
    pub now: Time,
    /// Bytes newly acknowledged or SACKed.
    pub delivered: u32,
    /// When the newest of them was sent.
    pub newest: Option<Time>,
    /// Bytes newly found lost.
    pub lost: u32,
    /// Bytes in flight after it.
    pub in_flight: u32,
    pub repair: Repair,
    /// The round trip it measured; zero for none.
    pub rtt: Time,
    /// The least round trip of the connection.
    pub min_rtt: Time,
    pub mss: u32,
}

#[derive(Debug)]
pub(super) struct Bbr {
    rate: DeliveryRate,
    pacer: Pacer,
    bandwidth: MaxFilter,
    policer: Policer,
    aggregation: Aggregation,
    mode: Mode,
    pacing_gain: u32,
    cwnd_gain: u32,
    mss: u32,
    /// Bytes found lost.
    lost: u64,

    min_rtt: Time,
    min_rtt_at: Time,
    /// NEVER before the flight has shrunk.
    probe_rtt_until: Time,
    /// A round has passed since.
    has_probed: bool,

    rounds: u64,
    /// The round ends when what was delivered at its start's last departure is exceeded.
    round_end: u64,
    is_round_start: bool,

    full_bandwidth: u64,
    full_rounds: u8,
    is_full: bool,

    /// The place in the cycle, and when it began.
    phase: usize,
    phase_at: Time,

    /// The window before recovery or PROBE_RTT.
    prior_cwnd: u32,
    repair: Repair,
    /// The first round of a recovery sends what is delivered, and no more.
    conserves: bool,
    /// Sending resumes after a silence.
    is_resuming: bool,
    /// The rate follows from a measured round trip.
    has_rtt: bool,
    /// What the first phases are drawn from.
    seed: u64,
}

impl Bbr {
    pub(super) fn new(seed: u64) -> Bbr {
        Bbr {
            seed,
            rate: DeliveryRate::default(),
            pacer: Pacer::new(),
            bandwidth: MaxFilter::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            mode: Mode::Startup,
            pacing_gain: STARTUP_GAIN,
            cwnd_gain: STARTUP_GAIN,
            mss: 1,
            lost: 0,
            min_rtt: Time::NEVER,
            min_rtt_at: Time::ZERO,
            probe_rtt_until: Time::NEVER,
            has_probed: false,
            rounds: 0,
            round_end: 0,
            is_round_start: false,
            full_bandwidth: 0,
            full_rounds: 0,
            is_full: false,
            phase: 0,
            phase_at: Time::ZERO,
            prior_cwnd: 0,
            repair: Repair::None,
            conserves: false,
            is_resuming: false,
            has_rtt: false,
        }
    }

    /// The handshake is complete.
    pub(super) fn establish(&mut self, now: Time) {
        self.min_rtt_at = now;
    }

    pub(super) fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    pub(super) fn pacer_mut(&mut self) -> &mut Pacer {
        &mut self.pacer
    }

    /// Nothing more is to be sent, with `in_flight` bytes in flight.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.rate.limit(in_flight);
    }

    /// A segment of `len` bytes leaves. `smoothed`: the round trip, zero where it is not known.
    pub(super) fn on_sent(
        &mut self,
        now: Time,
        len: u16,
        is_idle: bool,
        window: &Window,
        mss: u32,
        smoothed: Time,
    ) {
        self.mss = mss;
        if !self.has_rtt {
            self.start_rate(window.cwnd, smoothed);
        }
        self.rate.on_sent(now, is_idle);
        let min_rtt = self.min_rtt.min(if smoothed == Time::ZERO {
            Time::NEVER
        } else {
            smoothed
        });
        self.pacer.on_sent(now, len, mss, min_rtt);
    }

    /// The rate that sends the window in a round trip, or in a millisecond where none is known.
    fn start_rate(&mut self, cwnd: u32, smoothed: Time) {
        self.has_rtt = smoothed != Time::ZERO;
        let span = if self.has_rtt {
            smoothed
        } else {
            Time::from_millis(1)
        };
        let rate = cwnd as u64 * 1_000_000_000 / span.as_nanos().max(1);
        self.pacer.set_rate(paced(rate, STARTUP_GAIN));
    }

    /// Sending resumes with nothing in flight.
    pub(super) fn on_restart(&mut self, window: &mut Window, now: Time) {
        if !self.rate.is_app_limited() {
            return;
        }
        self.is_resuming = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw => self.set_rate(UNIT),
            Mode::ProbeRtt => self.end_probe_rtt(window, now),
            _ => {}
        }
    }

    /// Recovery starts: the window before it is kept.
    pub(super) fn save_window(&mut self, window: &Window) {
        let is_known = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_known {
            window.cwnd
        } else {
            self.prior_cwnd.max(window.cwnd)
        };
    }

    /// A retransmission timeout: the bandwidth is to be found again.
    pub(super) fn on_timeout(&mut self, window: &Window, now: Time) {
        self.save_window(window);
        self.repair = Repair::Loss;
        self.full_bandwidth = 0;
        self.is_round_start = true;
        if self.policer.rate().is_none() {
            let totals = self.totals(now);
            self.policer
                .on_ack(totals, true, self.rate.is_app_limited(), true);
        }
    }

    /// Updates the model by an ACK, then rate and window by the model.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Feedback) {
        self.mss = ack.mss;
        self.lost += ack.lost as u64;
        let sample = self
            .rate
            .on_ack(ack.now, ack.delivered, ack.newest, ack.min_rtt);
        self.is_round_start = false;
        if let Some(sample) = sample {
            self.take_sample(&sample, ack);
            self.aggregation.on_ack(
                ack.now,
                ack.delivered,
                self.rate_in_use(),
                window.cwnd,
                ack.mss,
                self.is_round_start,
            );
        }
        self.follow_cycle(ack);
        self.find_full_pipe(sample);
        self.drain(ack);
        self.follow_min_rtt(window, ack);
        self.choose_gains();
        self.set_rate(self.pacing_gain);
        self.set_window(window, ack);
    }

    fn take_sample(&mut self, sample: &Sample, ack: &Feedback) {
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.rate.delivered();
            self.rounds += 1;
            self.is_round_start = true;
            self.conserves = false;
        }
        let totals = self.totals(ack.now);
        if self.policer.rate().is_none() {
            let has_lost = ack.lost > 0;
            self.policer
                .on_ack(totals, has_lost, sample.is_app_limited, self.is_round_start);
        } else if self.mode == Mode::ProbeBw && self.is_round_start && self.policer.is_worn() {
            self.policer.reset(totals);
            self.start_cycle(ack.now);
        }
        if !sample.is_app_limited || sample.rate >= self.bandwidth.max() {
            self.bandwidth.add(self.rounds, sample.rate);
        }
    }

    fn totals(&self, now: Time) -> Totals {
        Totals {
            now,
            lost: self.lost,
            delivered: self.rate.delivered(),
        }
    }

    /// The bandwidth to use, bytes per second.
    fn rate_in_use(&self) -> u64 {
        self.policer.rate().unwrap_or(self.bandwidth.max())
    }

    /// The product of bandwidth and least round trip, bytes, times `gain`.
    fn bdp(&self, bandwidth: u64, gain: u32) -> u64 {
        if self.min_rtt == Time::NEVER {
            return (FIRST_SEGMENTS * self.mss) as u64;
        }
        let bytes = bytes_in(bandwidth, self.min_rtt) * gain as u64 / UNIT as u64;
        bytes.next_multiple_of(self.mss as u64)
    }

    /// `bytes`, and what bursts at the sender and delayed ACKs at the receiver need on top.
    fn with_bursts(&self, bytes: u64) -> u64 {
        let mss = self.mss as u64;
        let even = (bytes + 3 * self.pacer.goal(self.mss) as u64).next_multiple_of(2 * mss);
        let probes = self.mode == Mode::ProbeBw && self.phase == 0;
        even + if probes { 2 * mss } else { 0 }
    }

    /// The flight at `gain`.
    fn target_flight(&self, gain: u32) -> u64 {
        self.with_bursts(self.bdp(self.bandwidth.max(), gain))
    }

    /// What will be in flight of `in_flight` bytes when the next burst may leave.
    fn flight_when_sending(&self, in_flight: u32, now: Time) -> u64 {
        let delivered = bytes_in(self.rate_in_use(), self.pacer.ahead(now));
        let grown = if self.pacing_gain > UNIT {
            self.pacer.goal(self.mss)
        } else {
            0
        };
        (in_flight as u64 + grown as u64).saturating_sub(delivered)
    }

    /// PROBE_BW: the next phase of the cycle, where this one has done its work.
    fn follow_cycle(&mut self, ack: &Feedback) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let has_lasted = ack.now.saturating_sub(self.phase_at) > self.min_rtt;
        let before = ack.in_flight + ack.delivered + ack.lost;
        let flight = self.flight_when_sending(before, ack.now);
        let is_over = if self.policer.rate().is_some() || self.pacing_gain == UNIT {
            has_lasted
        } else if self.pacing_gain > UNIT {
            // Until what it sends more has filled the pipe, or more than filled it.
            has_lasted && (ack.lost > 0 || flight >= self.target_flight(self.pacing_gain))
        } else {
            has_lasted || flight <= self.target_flight(UNIT)
        };
        if is_over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = ack.now;
        }
    }

    /// PROBE_BW begins at any phase but the one that drains: flows that start together do not probe
    /// together.
    fn start_cycle(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        let ahead = Rng::new(self.seed, now.0).below(CYCLE.len() as u64 - 1) as usize;
        self.phase = (CYCLE.len() - ahead) % CYCLE.len();
        self.phase_at = now;
    }

    fn find_full_pipe(&mut self, sample: Option<Sample>) {
        let is_limited = sample.is_none_or(|sample| sample.is_app_limited);
        if self.is_full || !self.is_round_start || is_limited {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if bandwidth >= self.full_bandwidth + self.full_bandwidth / 4 {
            (self.full_bandwidth, self.full_rounds) = (bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    /// STARTUP ends with a full pipe; DRAIN with no more in flight than the pipe holds.
    fn drain(&mut self, ack: &Feedback) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.flight_when_sending(ack.in_flight, ack.now) <= self.target_flight(UNIT)
        {
            self.start_cycle(ack.now);
        }
    }

    /// The least round trip, and PROBE_RTT where it is old.
    fn follow_min_rtt(&mut self, window: &mut Window, ack: &Feedback) {
        let is_old = ack.now > self.min_rtt_at + MIN_RTT_LASTS;
        if ack.rtt != Time::ZERO && (ack.rtt < self.min_rtt || is_old) {
            (self.min_rtt, self.min_rtt_at) = (ack.rtt, ack.now);
        }
        if is_old && !self.is_resuming && self.mode != Mode::ProbeRtt {
            self.save_window(window);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = Time::NEVER;
        }
        if self.mode == Mode::ProbeRtt {
            // What is measured with so little in flight is not the bandwidth.
            self.rate.limit(ack.in_flight);
            if self.probe_rtt_until != Time::NEVER {
                self.has_probed |= self.is_round_start;
                if self.has_probed {
                    self.end_probe_rtt(window, ack.now);
                    if self.mode == Mode::ProbeBw {
                        self.start_cycle(ack.now);
                    }
                }
            } else if ack.in_flight <= LEAST_SEGMENTS * ack.mss {
                self.probe_rtt_until = ack.now + PROBE_RTT;
                self.has_probed = false;
                self.round_end = self.rate.delivered();
            }
        }
        if ack.delivered > 0 {
            self.is_resuming = false;
        }
    }

    /// Ends PROBE_RTT where its time has passed.
    fn end_probe_rtt(&mut self, window: &mut Window, now: Time) {
        if now <= self.probe_rtt_until {
            return;
        }
        self.min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.mode = if self.is_full {
            Mode::ProbeBw
        } else {
            Mode::Startup
        };
    }

    fn choose_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, STARTUP_GAIN),
            Mode::Drain => (DRAIN_GAIN, STARTUP_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// The pacing rate; in STARTUP it does not fall.
    fn set_rate(&mut self, gain: u32) {
        let rate = paced(self.rate_in_use(), gain);
        if self.is_full || rate > self.pacer.rate() {
            self.pacer.set_rate(rate);
        }
    }

    fn set_window(&mut self, window: &mut Window, ack: &Feedback) {
        if ack.delivered > 0 && !self.follow_recovery(window, ack) {
            let bandwidth = self.rate_in_use();
            let mut target = self.bdp(bandwidth, self.cwnd_gain);
            if self.is_full {
                target += self.aggregation.window(bandwidth);
            }
            let target = self.with_bursts(target).min(u32::MAX as u64 / 2) as u32;
            let grown = window.cwnd.saturating_add(ack.delivered);
            let first = (FIRST_SEGMENTS * ack.mss) as u64;
            if self.is_full {
                window.cwnd = grown.min(target);
            } else if window.cwnd < target || self.rate.delivered() < first {
                window.cwnd = grown;
            }
            window.cwnd = window.cwnd.max(LEAST_SEGMENTS * ack.mss);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(LEAST_SEGMENTS * ack.mss);
        }
    }

    /// Takes losses off the window, and returns whether packet conservation sets it: in the first round
    /// of a recovery. After a recovery the window is what it was.
    fn follow_recovery(&mut self, window: &mut Window, ack: &Feedback) -> bool {
        if ack.lost > 0 {
            window.cwnd = window.cwnd.saturating_sub(ack.lost).max(ack.mss);
        }
        let conserved = ack.in_flight + ack.delivered;
        if ack.repair == Repair::Recovery && self.repair != Repair::Recovery {
            self.conserves = true;
            self.round_end = self.rate.delivered();
            window.cwnd = conserved;
        } else if ack.repair == Repair::None && self.repair != Repair::None {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.conserves = false;
        }
        self.repair = ack.repair;
        if self.conserves {
            window.cwnd = window.cwnd.max(conserved);
        }
        self.conserves
    }
}

/// `gain` times a rate, less the percent that keeps the queue from growing.
fn paced(rate: u64, gain: u32) -> u64 {
    rate * gain as u64 / UNIT as u64 * 99 / 100
}
