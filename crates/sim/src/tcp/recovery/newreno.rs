// SPDX-License-Identifier: Apache-2.0
//! Fast retransmit and fast recovery without SACK (RFC 5681 §3.2, RFC 6582).

use crate::tcp::Wire;
use crate::tcp::config::Config;
use crate::tcp::endpoint::{Endpoint, Phase, opt};
use penstock_scenario::units::Time;

impl Endpoint {
    /// New data was acknowledged.
    pub(in crate::tcp) fn on_new_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        acked: u64,
        wire: &mut impl Wire,
    ) {
        if self.phase == Phase::Recovery && self.snd_una < self.recover {
            return self.on_partial_ack(cfg, now, acked, wire);
        }
        self.dupacks = 0;
        self.limited = 0;
        match self.phase {
            Phase::Recovery => self.leave_recovery(cfg, now, acked),
            Phase::Loss => {
                if self.snd_una >= self.recover {
                    self.phase = Phase::Open;
                }
                self.grow(cfg, now, acked as u32, Time::ZERO);
            }
            Phase::Open | Phase::Disorder => {
                self.phase = Phase::Open;
                self.grow(cfg, now, acked as u32, Time::ZERO);
            }
        }
        self.restart_retransmission(now);
    }

    /// All that was in flight at the loss has arrived (RFC 6582 §3.2 step 3).
    fn leave_recovery(&mut self, cfg: &Config, now: Time, acked: u64) {
        self.phase = Phase::Open;
        self.window.cwnd -= self.inflation;
        self.inflation = 0;
        if cfg.ns2_windows {
            self.grow(cfg, now, acked as u32, Time::ZERO);
        } else {
            // The first of the two windows allowed, which sends no burst.
            let mss = self.mss as u32;
            let flight = (self.snd_nxt - self.snd_una) as u32;
            self.window.cwnd = self.window.ssthresh.min(flight.max(mss) + mss);
        }
    }

    /// Another segment of the same window is missing.
    fn on_partial_ack(&mut self, cfg: &Config, now: Time, acked: u64, wire: &mut impl Wire) {
        let mss = self.mss as u32;
        // Deflate by what left the network, less the segment now retransmitted.
        let acked = acked as u32;
        let base = self.window.cwnd - self.inflation;
        let beyond = acked.saturating_sub(self.inflation);
        self.inflation = self.inflation.saturating_sub(acked);
        if acked >= mss {
            self.inflation += mss;
        }
        self.window.cwnd = base.saturating_sub(beyond).max(mss) + self.inflation;
        if !cfg.impatient || !self.is(opt::PARTIAL_ACKED) {
            self.restart_retransmission(now);
        }
        self.set(opt::PARTIAL_ACKED);
        self.retransmit_head(cfg, now, wire);
    }

    /// A duplicate ACK.
    pub(in crate::tcp) fn on_duplicate_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) {
        self.dupacks = self.dupacks.saturating_add(1);
        let mss = self.mss as u32;
        if self.phase == Phase::Recovery {
            self.inflation += mss;
            self.window.cwnd = self.window.cwnd.saturating_add(mss);
        } else if self.dupacks == cfg.dupack_threshold {
            if self.may_retransmit_fast(cfg) {
                self.enter_recovery(cfg, now, wire);
            }
        } else if self.dupacks < cfg.dupack_threshold {
            if self.phase == Phase::Open {
                self.phase = Phase::Disorder;
                self.limited = 0;
            }
            if cfg.limited_transmit && self.snd_nxt == self.snd_max {
                self.transmit_limited(cfg, now, wire);
            }
        }
    }

    /// Not for ACKs of segments that the last recovery or timeout may have sent twice (RFC 6582
    /// §3.2 step 2), unless the ACK heuristic speaks for a loss (§4.1).
    fn may_retransmit_fast(&self, cfg: &Config) -> bool {
        let threshold = cfg.dupack_threshold as u64 * self.mss as u64;
        self.snd_una > self.recover
            || (cfg.ack_heuristic
                && self.window.cwnd > self.mss as u32
                && self.snd_una - self.previous_una <= threshold)
    }

    fn enter_recovery(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        let mss = self.mss as u32;
        if !self.is_answered_by_ecn(cfg) {
            let base = self.decrease_base(cfg);
            self.window.ssthresh = self.threshold_after_loss(cfg);
            self.window.cwnd = if cfg.ns2_windows {
                // Not raised to the threshold's minimum of two segments.
                (base / 2).max(mss)
            } else {
                self.window.ssthresh
            };
            self.announce_reduction();
        }
        self.window.credit = 0;
        self.phase = Phase::Recovery;
        self.recover = self.snd_max;
        self.inflation = cfg.dupack_threshold as u32 * mss;
        self.window.cwnd += self.inflation;
        // Karn: the ACK of what is in flight no longer tells a round trip.
        self.timed_at = Time::NEVER;
        self.clear(opt::PARTIAL_ACKED);
        self.stats.fast_recoveries += 1;
        self.restart_retransmission(now);
        self.retransmit_head(cfg, now, wire);
    }

    /// The first unacknowledged segment again.
    pub(in crate::tcp) fn retransmit_head(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) {
        self.resend(cfg, now, self.snd_una, self.mss, wire);
    }
}
