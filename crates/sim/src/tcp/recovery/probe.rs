// SPDX-License-Identifier: Apache-2.0
//! Tail loss probes (RFC 8985 §7): a segment sent to draw an ACK before the timeout strikes.

use crate::tcp::Wire;
use crate::tcp::config::Config;
use crate::tcp::endpoint::{Endpoint, Phase};
use crate::tcp::timers::Timer;
use penstock_scenario::units::Time;

/// The probe in flight.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// SND.NXT when it was sent; 0 for none in flight.
    pub(super) end: u64,
    /// It repeated a segment.
    pub(super) repeats: bool,
}

impl Endpoint {
    /// Arms the probe timer where a probe is due before the timeout, else the timeout
    /// (RFC 8985 §7.2). `from` is when the timeout starts to run.
    pub(in crate::tcp) fn arm_probe_or_timeout(&mut self, cfg: &Config, now: Time, from: Time) {
        if self.snd_una == self.snd_max {
            self.timer = Timer::Retransmit;
            self.rtx_at = Time::NEVER;
            return;
        }
        let timeout = from + self.rto;
        let Some(board) = &self.board else {
            return self.arm(Timer::Retransmit, timeout);
        };
        let smoothed = self.rtt.smoothed(cfg);
        let eligible = cfg.tlp
            && self.phase == Phase::Open
            && board.sacked == 0
            && board.probe.end == 0
            && smoothed != Time::ZERO;
        if !eligible {
            return self.arm(Timer::Retransmit, timeout);
        }
        // A lone segment's ACK may be delayed by the peer.
        let delay = if board.segments.len() == 1 {
            cfg.tlp_single_delay
        } else {
            cfg.tlp_delay
        };
        let due = now + cfg.in_jiffies(smoothed + smoothed + delay);
        self.arm(Timer::Probe, due.min(timeout.max(now)));
    }

    /// When the timeout in force began to run, or would begin at `now`.
    pub(in crate::tcp) fn timeout_start(&self, now: Time) -> Time {
        if self.rtx_at != Time::NEVER && self.timer == Timer::Retransmit {
            return self.rtx_at.saturating_sub(self.rto);
        }
        self.board
            .as_ref()
            .and_then(|board| board.head_sent())
            .unwrap_or(now)
    }

    /// Sends the probe: new data if the window has room for it, else the last segment again.
    pub(in crate::tcp) fn on_probe_timeout(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) {
        if self.snd_una == self.snd_max || self.board.is_none() {
            return;
        }
        self.stats.tlp_probes += 1;
        let fresh = self.send_beyond_cwnd(cfg, now, wire);
        let last = self.board.as_ref().and_then(|b| b.segments.back().copied());
        if !fresh && let Some(last) = last {
            let seq = self.snd_max - last.len as u64;
            self.resend(cfg, now, seq, last.len, wire);
        }
        if let Some(board) = &mut self.board {
            if !fresh {
                let index = board.segments.len() - 1;
                board.mark_resent(index, now);
            }
            board.probe = Probe {
                end: self.snd_nxt,
                repeats: !fresh,
            };
        }
        self.arm(Timer::Retransmit, now + self.rto);
    }

    /// An ACK arrived: tells what became of the probe (RFC 8985 §7.4.2). True where the probe
    /// repaired a loss that nothing else has shown.
    pub(super) fn probe_repaired(&mut self, duplicate_report: bool, bare: bool) -> bool {
        let una = self.snd_una;
        let Some(board) = &mut self.board else {
            return false;
        };
        if board.probe.end == 0 || una < board.probe.end {
            return false;
        }
        let beyond = una > board.probe.end;
        if !board.probe.repeats || duplicate_report {
            board.probe.end = 0;
            false
        } else if beyond {
            board.probe.end = 0;
            true
        } else {
            if bare {
                board.probe.end = 0;
            }
            false
        }
    }
}
