// SPDX-License-Identifier: Apache-2.0
//! The two timers: one for what was or will be sent, one for a delayed ACK.

use super::config::{Config, DecreaseFrom};
use super::endpoint::{Endpoint, Phase, State, opt};
use super::{Events, Wire};
use penstock_scenario::units::Time;

/// What the sender's timer is armed for; one at a time, as each excludes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Timer {
    /// Retransmission timeout (RFC 6298).
    Retransmit,
    /// Reordering settles: RACK decides what is lost (RFC 8985 §6.2 step 5).
    Reorder,
    /// Tail loss probe (RFC 8985 §7.2).
    Probe,
    /// Zero-window probe (RFC 9293 §3.8.6.1).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
}

impl Endpoint {
    /// Does what is due. To be called at or after [`Endpoint::deadline`]; an early call does nothing.
    pub fn on_timer(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) -> Events {
        let mut events = Events::NONE;
        if now >= cfg.beat_after(self.ack_at) {
            self.send_ack(cfg, now, wire);
        }
        if now >= cfg.beat_after(self.rtx_at) {
            self.rtx_at = Time::NEVER;
            match self.timer {
                Timer::Retransmit => self.on_retransmission_timeout(cfg, now, wire, &mut events),
                Timer::Reorder => self.on_reorder_timeout(cfg, now, wire),
                Timer::Probe => self.on_probe_timeout(cfg, now, wire),
                Timer::Persist => self.on_persist_timeout(cfg, now, wire, &mut events),
                Timer::TimeWait => {
                    self.become_closed();
                    events.add(Events::CLOSED);
                }
            }
        }
        events
    }

    pub(super) fn arm(&mut self, timer: Timer, at: Time) {
        self.timer = timer;
        self.rtx_at = at;
    }

    /// Restarts the timeout while data is in flight, else stops it (RFC 6298 §5.2, §5.3).
    #[inline]
    pub(super) fn restart_retransmission(&mut self, now: Time) {
        self.timer = Timer::Retransmit;
        self.rtx_at = if self.snd_una < self.snd_max {
            now + self.rto
        } else {
            Time::NEVER
        };
    }

    fn on_retransmission_timeout(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
        events: &mut Events,
    ) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if self.snd_una == self.snd_max {
            return;
        }
        let limit = if opening {
            cfg.syn_retries
        } else {
            cfg.retries
        };
        if self.attempts >= limit && limit != u8::MAX {
            self.become_closed();
            events.add(Events::RESET);
            events.add(Events::CLOSED);
            return;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.rtt.back_off();
        self.rto = self.rtt.timeout(cfg);
        // Karn: an ACK may be for either transmission.
        self.timed_at = Time::NEVER;
        if opening {
            self.stats.syn_timeouts += 1;
            self.set(opt::SYN_RETRANSMITTED);
            self.resend_syn(cfg, now, wire);
            return;
        }
        self.stats.rtos += 1;
        self.enter_loss(cfg, now);
        self.output(cfg, now, wire);
        self.arm(Timer::Retransmit, now + self.rto);
    }

    /// The window fell to one segment: everything in flight is taken for lost (RFC 5681 §3.1).
    fn enter_loss(&mut self, cfg: &Config, now: Time) {
        // A second timeout of the same data decreases no further (RFC 5681 §3.1).
        // Nor does, in Linux, one within fast recovery, whose window says nothing of the path.
        let reduced = self.attempts > 1
            || (self.phase == Phase::Recovery && cfg.decrease_from == DecreaseFrom::Cwnd);
        if !reduced || cfg.ns2_windows {
            self.window.ssthresh = self.threshold_after_loss(cfg);
        }
        self.congestion.on_rto();
        self.window.cwnd = self.mss as u32;
        self.window.credit = 0;
        self.inflation = 0;
        self.phase = Phase::Loss;
        self.recover = self.snd_max;
        self.dupacks = 0;
        self.clear(opt::PARTIAL_ACKED);
        self.ecn.leave_reduction();
        self.announce_reduction();
        if self.board.is_some() {
            self.mark_lost_by_timeout(cfg, now);
        } else {
            self.snd_nxt = self.snd_una;
        }
    }

    fn on_persist_timeout(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
        events: &mut Events,
    ) {
        if self.attempts >= cfg.retries && cfg.retries != u8::MAX {
            self.become_closed();
            events.add(Events::RESET);
            events.add(Events::CLOSED);
            return;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.stats.persist_probes += 1;
        self.probe_window(cfg, now, wire);
        if self.snd_una == self.snd_max {
            self.persist_backoff = self.persist_backoff.saturating_add(1);
            self.arm_persist(cfg, now);
        }
    }

    /// The interval doubles with every probe, as the RTO does (RFC 9293 §3.8.6.1).
    pub(super) fn arm_persist(&mut self, cfg: &Config, now: Time) {
        let shift = self.persist_backoff.min(20);
        let interval = Time(self.rto.0.saturating_mul(1 << shift)).min(cfg.max_rto);
        self.arm(Timer::Persist, now + interval);
    }
}
