// SPDX-License-Identifier: Apache-2.0
//! Fast retransmit and fast recovery without SACK (RFC 5681 §3.2, RFC 6582).

use super::{Parts, Phase, Recovery};
use crate::tcp::config::{Config, Recovery as Method};
use crate::tcp::congestion::Congestion;
use crate::tcp::sender::Sender;

/// What a duplicate ACK makes the sender do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum DupAck {
    /// Nothing.
    Ignore,
    /// Send a new segment beyond the congestion window, if this many bytes of it are not exceeded
    /// (RFC 3042).
    SendLimited(u64),
    /// Send the first unacknowledged segment again.
    Retransmit,
}

impl Recovery {
    /// `acked` new bytes were acknowledged. True where the first unacknowledged segment must be sent
    /// again.
    pub fn on_new_ack(&mut self, parts: &mut Parts, acked: u32) -> bool {
        let takes_partial = parts.cfg.recovery != Method::Reno;
        if self.phase == Phase::Recovery && takes_partial && parts.snd.una() < self.recover {
            self.on_partial_ack(parts, acked);
            return true;
        }
        self.dupacks = 0;
        match self.phase {
            Phase::Recovery => self.leave_recovery(parts, acked),
            Phase::Loss => {
                if parts.snd.una() >= self.recover {
                    self.phase = Phase::Open;
                }
                parts.grow_by_bytes(acked);
            }
            Phase::Open | Phase::Disorder => {
                self.phase = Phase::Open;
                parts.grow_by_bytes(acked);
            }
        }
        parts.restart_retransmit();
        false
    }

    /// All that was in flight at the loss has arrived (RFC 6582 §3.2 step 3), or, with Reno, the
    /// first of it (RFC 5681 §3.2 step 6).
    fn leave_recovery(&mut self, parts: &mut Parts, acked: u32) {
        self.phase = Phase::Open;
        parts.congestion.end_inflation();
        if parts.cfg.ns2_windows {
            parts.grow_by_bytes(acked);
        } else if parts.cfg.recovery != Method::Reno {
            let (flight, mss) = (parts.snd.flight(), parts.snd.mss());
            parts.congestion.end_fast_recovery(flight, mss);
        }
    }

    /// Another segment of the same window is missing.
    fn on_partial_ack(&mut self, parts: &mut Parts, acked: u32) {
        parts.congestion.deflate(acked, parts.snd.mss());
        if !parts.cfg.impatient || !self.partial_acked {
            parts.restart_retransmit();
        }
        self.partial_acked = true;
    }

    /// A duplicate ACK.
    pub fn on_duplicate_ack(&mut self, parts: &mut Parts) -> DupAck {
        let cfg = parts.cfg;
        self.dupacks = self.dupacks.saturating_add(1);
        if self.phase == Phase::Recovery {
            parts.congestion.inflate(parts.snd.mss());
        } else if self.dupacks == cfg.dupack_threshold {
            if self.may_retransmit(cfg, parts.snd, parts.congestion) {
                self.enter_recovery(parts);
                return DupAck::Retransmit;
            }
        } else if self.dupacks < cfg.dupack_threshold {
            if self.phase == Phase::Open {
                self.phase = Phase::Disorder;
            }
            if cfg.limited_transmit && !parts.snd.is_repeating() {
                let extra = self.dupacks as u64 * parts.snd.mss() as u64;
                return DupAck::SendLimited(parts.congestion.cwnd() as u64 + extra);
            }
        }
        DupAck::Ignore
    }

    /// Not for ACKs of segments that the last recovery or timeout may have sent twice (RFC 6582
    /// §3.2 step 2), unless the ACK heuristic shows a loss (§4.1).
    fn may_retransmit(&self, cfg: &Config, snd: &Sender, congestion: &Congestion) -> bool {
        let threshold = cfg.dupack_threshold as u32 * snd.mss() as u32;
        snd.una() > self.recover
            || (cfg.ack_heuristic
                && congestion.cwnd() > snd.mss() as u32
                && snd.last_advance() <= threshold)
    }

    fn enter_recovery(&mut self, parts: &mut Parts) {
        let mss = parts.snd.mss();
        parts.congestion.enter_fast_recovery(parts.cfg, mss);
        self.phase = Phase::Recovery;
        self.recover = parts.snd.max();
        self.partial_acked = false;
        // Karn: the ACK of what is in flight no longer shows a round trip.
        parts.timers.stop_timing();
        parts.stats.fast_recoveries += 1;
        parts.restart_retransmit();
    }
}
