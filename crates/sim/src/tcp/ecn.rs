// SPDX-License-Identifier: Apache-2.0
//! Explicit congestion notification (RFC 3168 §6.1) and DCTCP's echo (RFC 8257 §3.2).

use super::Wire;
use super::config::{Algorithm, Config};
use super::endpoint::{Endpoint, Phase, opt};
use crate::packet::{Packet, flag};
use penstock_scenario::units::Time;

/// ECN state of both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    /// Receiver: ECE goes on every ACK. RFC 3168: from a mark until CWR; DCTCP: the last segment
    /// was marked.
    pub(super) echo: bool,
    /// Sender: the next new segment carries CWR.
    pub(super) announce: bool,
    /// Sender: no further reduction before this is acknowledged; 0 for none in force.
    reduced_until: u64,
}

impl Ecn {
    /// A timeout replaces the reduction in force.
    pub(super) fn leave_reduction(&mut self) {
        self.reduced_until = 0;
    }
}

impl Endpoint {
    /// Sender: an ACK of `acked` new bytes arrived, with or without ECE.
    pub(super) fn on_ecn_echo(&mut self, cfg: &Config, acked: u32, echo: bool) {
        self.congestion
            .on_echo(acked, echo, self.snd_una, self.snd_nxt);
        if self.ecn.reduced_until != 0 && self.snd_una >= self.ecn.reduced_until {
            self.ecn.reduced_until = 0;
        }
        let growing = matches!(self.phase, Phase::Open | Phase::Disorder);
        if !echo || self.ecn.reduced_until != 0 || !growing {
            return;
        }
        let mss = self.mss as u32;
        let base = self.decrease_base(cfg);
        self.window.ssthresh = self.congestion.on_ecn(&self.window, base, mss);
        self.window.cwnd = self.window.ssthresh;
        self.window.credit = 0;
        self.ecn.announce = true;
        self.ecn.reduced_until = self.snd_nxt;
        self.stats.ecn_reductions += 1;
    }

    /// Sender: the window was reduced because of a loss, which CWR tells too (RFC 3168 §6.1.2).
    pub(super) fn announce_reduction(&mut self) {
        self.ecn.announce = self.is(opt::ECN);
    }

    /// Whether a loss found now belongs to a window that ECN has already reduced. DCTCP, whose
    /// reduction may have been slight, answers the loss nevertheless (RFC 8257 §3.5).
    pub(super) fn is_answered_by_ecn(&self, cfg: &Config) -> bool {
        self.is_reduced() && cfg.congestion != Algorithm::Dctcp
    }

    /// Whether a reduction is in force, during which the window does not grow.
    pub(super) fn is_reduced(&self) -> bool {
        self.ecn.reduced_until != 0
    }

    /// Receiver: a segment arrived; remembers what to echo. DCTCP's delayed ACKs must not mix
    /// marked and unmarked segments, so a change acknowledges at once what came before it.
    pub(super) fn on_ecn_mark(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        wire: &mut impl Wire,
    ) {
        let marked = segment.has(flag::CE);
        self.stats.marks_received += marked as u32;
        if cfg.congestion == Algorithm::Dctcp {
            if marked != self.ecn.echo {
                if self.ack_at != Time::NEVER {
                    self.send_ack(cfg, now, wire);
                }
                self.ecn.echo = marked;
                // ... and tells of the change at once (RFC 8257 §3.2).
                self.quick = self.quick.max(1);
                self.clear(opt::INTERACTIVE);
            }
            return;
        }
        if segment.has(flag::CWR) {
            self.ecn.echo = false;
        }
        if marked {
            self.ecn.echo = true;
        }
    }
}
