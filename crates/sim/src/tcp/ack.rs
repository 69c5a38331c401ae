// SPDX-License-Identifier: Apache-2.0
//! What an acknowledgement does to the sender.

use super::config::{Config, DecreaseFrom};
use super::congestion::Acked;
use super::endpoint::{Endpoint, Phase, opt};
use super::timers::Timer;
use super::{Events, Wire};
use crate::packet::{Packet, SackBlock, flag};
use penstock_scenario::units::Time;

impl Endpoint {
    /// ALL_ACKED, once, when nothing written is left unacknowledged.
    #[inline]
    pub(super) fn report_all_acked(&mut self) -> Events {
        if self.snd_una >= self.snd_end && self.is(opt::UNREPORTED) {
            self.clear(opt::UNREPORTED);
            Events::ALL_ACKED
        } else {
            Events::NONE
        }
    }

    /// The ACK field of an acceptable segment. False where the segment is to be dropped.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn on_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        seq: u64,
        sack: &[SackBlock],
        wire: &mut impl Wire,
        events: &mut Events,
    ) -> bool {
        let ack = Endpoint::offset(self.snd_una, self.iss, segment.ack);
        if ack < self.snd_una || ack > u64::MAX / 2 {
            return true;
        }
        if ack > self.snd_max {
            self.send_ack(cfg, now, wire);
            return false;
        }
        let was_zero = self.snd_wnd == 0;
        let updated = self.update_window(cfg, segment, seq, ack);
        let acked = ack - self.snd_una;
        let echo = segment.has(flag::ECE) && self.is(opt::ECN);
        if acked > 0 {
            self.advance(cfg, now, ack);
        }
        if self.is(opt::ECN) {
            self.on_ecn_echo(cfg, acked as u32, echo);
        }
        if self.board.is_some() {
            self.on_ack_with_board(cfg, now, acked, segment, sack);
        } else if acked > 0 {
            self.on_new_ack(cfg, now, acked, wire);
        } else if self.is_duplicate(cfg, segment, updated) {
            self.on_duplicate_ack(cfg, now, wire);
        }
        if acked > 0 {
            if self.is(opt::FIN) && self.snd_una > self.snd_end {
                self.on_fin_acked(cfg, now, events);
            }
            events.add(self.report_all_acked());
        } else if self.timer == Timer::Persist && (updated || self.snd_wnd == 0) {
            // The peer is alive, and may have opened its window.
            self.attempts = 0;
            if was_zero && self.snd_wnd > 0 {
                self.rtx_at = Time::NEVER;
                self.persist_backoff = 0;
            }
        }
        true
    }

    /// SND.UNA moves to `ack`.
    fn advance(&mut self, cfg: &Config, now: Time, ack: u64) {
        self.previous_una = self.snd_una;
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.attempts = 0;
        if self.timed_at != Time::NEVER {
            self.take_timed_sample(cfg, now);
        }
    }

    /// Ends the timing of a segment once it is acknowledged (one per round trip, RFC 6298 §3).
    #[inline]
    pub(super) fn take_timed_sample(&mut self, cfg: &Config, now: Time) {
        if (self.snd_una as u32).wrapping_sub(self.timed_end) as i32 >= 0 {
            self.rtt.sample(cfg, self.timed_at, now);
            self.rto = self.rtt.timeout(cfg);
            self.timed_at = Time::NEVER;
        }
    }

    /// SND.WND, where the segment is newer than the last that set it (RFC 9293 §3.10.7.4).
    fn update_window(&mut self, cfg: &Config, segment: &Packet, seq: u64, ack: u64) -> bool {
        let newer = seq >= self.snd_wl1 && seq >= self.rcv_nxt && seq < u64::MAX / 2;
        if ack == self.snd_una && !newer {
            return false;
        }
        let window = (segment.window as u32) << self.snd_scale;
        let repeats = ack == self.snd_una && seq == self.snd_wl1;
        if cfg.repeats_only_open && repeats && window < self.snd_wnd && window > 0 {
            return false;
        }
        self.snd_wl1 = self.snd_wl1.max(if seq < u64::MAX / 2 { seq } else { 0 });
        if window == self.snd_wnd {
            return false;
        }
        self.snd_wnd = window;
        self.note_window(cfg);
        true
    }

    /// Keeps the largest window seen, and the MSS Linux derives from it: half, where the window is
    /// above the default MSS of 536 (`tcp_bound_to_half_wnd`).
    pub(super) fn note_window(&mut self, cfg: &Config) {
        if self.snd_wnd <= self.max_window {
            return;
        }
        self.max_window = self.snd_wnd;
        if cfg.half_window_mss {
            let bound = if self.max_window > 536 {
                self.max_window / 2
            } else {
                self.max_window
            };
            self.mss = (self.full_mss as u32).min(bound.max(28)) as u16;
        }
    }

    /// RFC 5681 §2: nothing new in it, data outstanding, the window unchanged.
    fn is_duplicate(&self, cfg: &Config, segment: &Packet, updated: bool) -> bool {
        segment.payload == 0
            && !segment.has(flag::FIN)
            && self.snd_una < self.snd_max
            && self.snd_una == Endpoint::offset(self.snd_una, self.iss, segment.ack)
            && (!updated || cfg.dupack_any_window)
    }

    /// What a decrease is computed from.
    pub(super) fn decrease_base(&self, cfg: &Config) -> u32 {
        match cfg.decrease_from {
            DecreaseFrom::FlightSize => self.flight_at_disorder(),
            DecreaseFrom::Cwnd => self.window.cwnd.min(cfg.max_send_window),
        }
    }

    /// The slow-start threshold after a loss found now.
    pub(super) fn threshold_after_loss(&mut self, cfg: &Config) -> u32 {
        let mss = self.mss as u32;
        let base = self.decrease_base(cfg);
        let threshold = self.congestion.on_loss(&self.window, base, mss);
        if cfg.ns2_windows {
            // An integer number of segments there.
            return (threshold / mss * mss).max(2 * mss);
        }
        threshold
    }

    /// Bytes in flight, without what limited transmit added (RFC 5681 §3.2 step 2).
    fn flight_at_disorder(&self) -> u32 {
        let flight = (self.snd_max - self.snd_una) as u32;
        if self.phase == Phase::Disorder {
            flight - self.limited.min(flight)
        } else {
            flight
        }
    }

    /// The window grows for `acked` bytes, if it was used.
    pub(super) fn grow(&mut self, cfg: &Config, now: Time, acked: u32, rtt: Time) {
        if self.is_reduced() {
            return;
        }
        if cfg.validate_cwnd && !self.is(opt::CWND_LIMITED) {
            // Linux's tcp_is_cwnd_limited: in slow start up to twice what was used.
            let doubled = self.max_flight.saturating_mul(2);
            if !self.window.in_slow_start() || self.window.cwnd >= doubled {
                return;
            }
        }
        let ack = Acked {
            now,
            bytes: acked,
            mss: self.mss as u32,
            una: self.snd_una,
            nxt: self.snd_nxt,
            rtt,
            smoothed: self.rtt.smoothed(cfg),
        };
        self.congestion.on_ack(cfg, &mut self.window, &ack);
    }
}
