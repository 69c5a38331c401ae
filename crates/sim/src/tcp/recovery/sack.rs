// SPDX-License-Identifier: Apache-2.0
//! Recovery over the scoreboard: RFC 6675, with losses counted there or found by RACK.

use super::scoreboard::{Delivery, LOST, RESENT, SACKED, Scoreboard};
use crate::packet::{Packet, SackBlock, flag};
use crate::tcp::Wire;
use crate::tcp::config::Config;
use crate::tcp::endpoint::{Endpoint, Phase};
use crate::tcp::output::timestamp;
use crate::tcp::timers::Timer;
use penstock_scenario::units::Time;

impl Endpoint {
    /// An ACK that moved SND.UNA by `acked` bytes (or did not), with its SACK blocks.
    pub(in crate::tcp) fn on_ack_with_board(
        &mut self,
        cfg: &Config,
        now: Time,
        acked: u64,
        segment: &Packet,
        sack: &[SackBlock],
    ) {
        let delivery = self.take_delivery(cfg, now, acked, segment, sack);
        let bare = acked == 0 && sack.is_empty() && segment.payload == 0;
        if self.probe_repaired(delivery.duplicate, bare) && self.phase == Phase::Open {
            self.reduce_once(cfg);
        }
        if acked > 0 {
            self.dupacks = 0;
        } else if delivery.sacked > 0 {
            self.dupacks = self.dupacks.saturating_add(1);
        }
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if recovering && self.snd_una >= self.recover {
            self.leave_board_recovery();
        }
        let (newly_lost, wait) = self.find_losses(cfg, now);
        match self.phase {
            Phase::Open | Phase::Disorder => {
                if self.board_lost() {
                    self.enter_board_recovery(cfg);
                    self.lead_by_prr(delivery.bytes, false);
                } else {
                    let quiet = self.board.as_ref().is_none_or(|b| b.sacked == 0);
                    self.phase = if quiet { Phase::Open } else { Phase::Disorder };
                    if acked > 0 && !recovering {
                        let rtt = delivery
                            .newest
                            .map_or(Time::ZERO, |t| now.saturating_sub(t));
                        self.grow(cfg, now, acked as u32, rtt);
                    }
                }
            }
            Phase::Recovery => self.lead_by_prr(delivery.bytes, acked > 0 && newly_lost == 0),
            Phase::Loss => {
                if acked > 0 {
                    self.grow(cfg, now, acked as u32, Time::ZERO);
                }
            }
        }
        self.rearm_with_board(cfg, now, acked > 0, wait);
    }

    /// An ACK of new data while nothing is SACKed, lost or probed: what is left of the above.
    #[inline]
    pub(in crate::tcp) fn on_quiet_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        acked: u32,
        wire: &mut impl Wire,
    ) {
        let (una, min) = (self.snd_una, self.rtt.min);
        let Some(board) = &mut self.board else { return };
        let mut delivery = Delivery::default();
        board.acknowledge(una, now, min, &mut delivery);
        let mut rtt = Time::ZERO;
        if let (Some(oldest), Some(newest)) = (delivery.oldest, delivery.newest) {
            self.rtt.sample(cfg, oldest, now);
            self.rto = self.rtt.timeout(cfg);
            rtt = now.saturating_sub(newest);
        }
        self.grow(cfg, now, acked, rtt);
        self.restart_retransmission(now);
        let sent = self.snd_max;
        self.output(cfg, now, wire);
        // What the output sent has armed the timer already.
        if self.snd_max == sent && self.snd_una < sent {
            self.arm_probe_or_timeout(cfg, now, now);
        }
    }

    /// Updates the scoreboard and takes the round trip.
    fn take_delivery(
        &mut self,
        cfg: &Config,
        now: Time,
        acked: u64,
        segment: &Packet,
        sack: &[SackBlock],
    ) -> Delivery {
        let mut out = Delivery::default();
        let (una, max, min) = (self.snd_una, self.snd_max, self.rtt.min);
        let iss = self.iss;
        let Some(board) = &mut self.board else {
            return out;
        };
        board.acknowledge(una, now, min, &mut out);
        let mut beyond = out;
        for (index, block) in sack.iter().enumerate() {
            let left = Endpoint::offset(una, iss, block.left);
            let right = Endpoint::offset(una, iss, block.right);
            let within = |other: &SackBlock| {
                Endpoint::offset(una, iss, other.left) <= left
                    && right <= Endpoint::offset(una, iss, other.right)
            };
            if index == 0 && (right <= una || sack.get(1).is_some_and(within)) {
                // RFC 2883: the first block may tell of a segment received twice.
                beyond.duplicate = true;
                self.stats.spurious_retransmits += 1;
                if let Some(rack) = &mut board.rack {
                    rack.on_duplicate(una, max);
                }
            } else if left < right && right > una && right <= max {
                board.sack(left.max(una), right, now, min, &mut beyond);
            }
        }
        // The sample of the ACK itself goes before that of its SACK blocks.
        let sent = if out.ambiguous {
            None
        } else {
            out.oldest.or(beyond.oldest)
        };
        if let Some(sent) = sent {
            self.rtt.sample(cfg, sent, now);
            self.rto = self.rtt.timeout(cfg);
        } else if acked > 0 && segment.has(flag::TIMESTAMPS) && segment.ts_ecr != 0 {
            // The timestamp tells which transmission is meant (RFC 7323 §4.1).
            let clock = timestamp(now);
            let span = clock.wrapping_sub(segment.ts_ecr).max(1);
            if span < 1 << 30 {
                let span = Time::from_millis(span as u64);
                self.rtt.sample(cfg, now.saturating_sub(span), now);
                self.rto = self.rtt.timeout(cfg);
            }
        }
        beyond
    }

    fn board_lost(&self) -> bool {
        self.board.as_ref().is_some_and(|board| board.lost > 0)
    }

    /// Bytes newly found lost, and how long until RACK may find more.
    fn find_losses(&mut self, cfg: &Config, now: Time) -> (u32, Time) {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let (min, smoothed) = (self.rtt.min, self.rtt.smoothed(cfg));
        let dupacks = self.dupacks;
        let mss = self.mss as u32;
        let Some(board) = &mut self.board else {
            return (0, Time::ZERO);
        };
        if board.rack.is_some() {
            return board.detect_by_time(now, recovering, cfg.dupack_threshold, min, smoothed);
        }
        let head = !recovering && dupacks >= cfg.dupack_threshold;
        (
            board.detect_by_count(cfg.dupack_threshold, mss, head),
            Time::ZERO,
        )
    }

    fn enter_board_recovery(&mut self, cfg: &Config) {
        self.stats.fast_recoveries += 1;
        self.phase = Phase::Recovery;
        self.recover = self.snd_max;
        self.window.credit = 0;
        if !self.is_answered_by_ecn(cfg) {
            self.window.ssthresh = self.threshold_after_loss(cfg);
            self.announce_reduction();
        }
        self.window.cwnd = self.window.ssthresh;
        let flight = (self.snd_max - self.snd_una) as u32;
        if let Some(board) = &mut self.board {
            board.force = true;
            board.rescued = false;
            board.probe.end = 0;
            if let Some(prr) = &mut board.prr {
                prr.start(flight);
            }
        }
    }

    fn lead_by_prr(&mut self, delivered: u32, healthy: bool) {
        let pipe = self.in_flight();
        let (ssthresh, mss) = (self.window.ssthresh, self.mss as u32);
        if let Some(prr) = self.board.as_mut().and_then(|board| board.prr.as_mut()) {
            self.window.cwnd = prr.window(delivered, pipe, ssthresh, mss, healthy);
        }
    }

    fn leave_board_recovery(&mut self) {
        if self.phase == Phase::Recovery {
            self.window.cwnd = self.window.ssthresh;
        }
        self.phase = Phase::Open;
        if let Some(board) = &mut self.board {
            board.force = false;
            if let Some(rack) = &mut board.rack {
                rack.on_recovered();
            }
        }
    }

    /// One decrease for a loss that a probe has already repaired.
    fn reduce_once(&mut self, cfg: &Config) {
        self.window.ssthresh = self.threshold_after_loss(cfg);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.window.credit = 0;
        self.announce_reduction();
    }

    fn rearm_with_board(&mut self, cfg: &Config, now: Time, advanced: bool, wait: Time) {
        if self.snd_una == self.snd_max {
            if self.timer != Timer::Persist {
                self.rtx_at = Time::NEVER;
            }
        } else if wait != Time::ZERO {
            self.arm(
                Timer::Reorder,
                now + cfg.in_jiffies(wait + cfg.reorder_delay),
            );
        } else if advanced {
            self.arm_probe_or_timeout(cfg, now, now);
        } else if self.timer != Timer::Retransmit {
            self.arm_after_head(cfg, now);
        }
    }

    /// The timeout as if it had run since the first segment was sent.
    fn arm_after_head(&mut self, cfg: &Config, now: Time) {
        let head = self
            .board
            .as_ref()
            .and_then(|board| board.head_sent())
            .unwrap_or(now);
        self.arm_probe_or_timeout(cfg, now, head);
        self.rtx_at = self.rtx_at.max(now + Time(1));
    }

    /// The reordering window has passed.
    pub(in crate::tcp) fn on_reorder_timeout(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) {
        let (_, wait) = self.find_losses(cfg, now);
        if matches!(self.phase, Phase::Open | Phase::Disorder) && self.board_lost() {
            self.enter_board_recovery(cfg);
        }
        if self.phase == Phase::Recovery {
            self.lead_by_prr(0, false);
        }
        self.output_or_nothing(cfg, now, wire);
        if wait != Time::ZERO {
            self.arm(
                Timer::Reorder,
                now + cfg.in_jiffies(wait + cfg.reorder_delay),
            );
        } else {
            self.arm_after_head(cfg, now);
        }
    }

    /// A timeout: what is lost by it, and a window of one segment beyond what still flies.
    pub(in crate::tcp) fn mark_lost_by_timeout(&mut self, cfg: &Config, now: Time) {
        let smoothed = self.rtt.smoothed(cfg);
        let min = self.rtt.min;
        if let Some(board) = &mut self.board {
            board.mark_lost_by_timeout(now, min, smoothed);
            board.probe.end = 0;
            board.force = true;
        }
        self.window.cwnd = self.in_flight() + self.mss as u32;
    }

    /// Sends again what is lost, as far as the window allows (NextSeg rules 1 and 4, RFC 6675 §4).
    /// True where more waits.
    pub(in crate::tcp) fn retransmit_lost(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) -> bool {
        loop {
            let pipe = self.in_flight();
            let room = self.window.cwnd.saturating_sub(pipe);
            let edge = self.snd_una + self.snd_wnd as u64;
            let una = self.snd_una;
            let Some(board) = &mut self.board else {
                return false;
            };
            let Some(index) = board.next_lost() else {
                return false;
            };
            let segment = board.segments[index];
            let seq = una + segment.seq.wrapping_sub(una as u32) as u64;
            if !board.force && room < segment.len as u32 && pipe > 0 {
                return true;
            }
            // Beyond a window that has shrunk, only the head is tried.
            if seq != una && seq + segment.len as u64 > edge {
                return true;
            }
            board.force = false;
            board.mark_resent(index, now);
            self.resend(cfg, now, seq, segment.len, wire);
            if self.rtx_at == Time::NEVER {
                self.arm(Timer::Retransmit, now + self.rto);
            }
        }
    }

    /// Nothing is lost for certain and nothing new may be sent, yet the window has room: the last
    /// segment once more, so that its loss does not end in a timeout (NextSeg rule 4).
    pub(in crate::tcp) fn rescue(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        if self.phase != Phase::Recovery || self.window.cwnd < self.in_flight() + self.mss as u32 {
            return;
        }
        let max = self.snd_max;
        let Some(board) = &mut self.board else { return };
        if board.rack.is_some() || board.rescued {
            return;
        }
        let Some(last) = board.segments.back().copied() else {
            return;
        };
        if last.is(SACKED | LOST | RESENT) {
            return;
        }
        board.rescued = true;
        let index = board.segments.len() - 1;
        board.mark_resent(index, now);
        self.resend(cfg, now, max - last.len as u64, last.len, wire);
    }
}

impl Scoreboard {
    /// IsLost of RFC 6675 §4: at least `threshold` segments, or more than `threshold - 1` full ones
    /// in bytes, SACKed above it. `head`: as many duplicate ACKs say so of the first.
    fn detect_by_count(&mut self, threshold: u8, mss: u32, head: bool) -> u32 {
        let mut newly = 0;
        if self.sacked > 0 {
            let (mut count, mut bytes) = (0u32, 0u32);
            let limit = (threshold as u32 - 1) * mss;
            for index in (0..self.segments.len()).rev() {
                let segment = self.segments[index];
                if segment.is(SACKED) {
                    count += 1;
                    bytes += segment.len as u32;
                } else if (count >= threshold as u32 || bytes > limit) && !segment.is(LOST) {
                    self.mark_lost_once(index);
                    newly += segment.len as u32;
                }
            }
        }
        if head && self.segments.front().is_some_and(|s| !s.is(SACKED | LOST)) {
            newly += self.segments[0].len as u32;
            self.mark_lost_once(0);
        }
        newly
    }

    /// Lost, but a retransmission in flight is given its chance.
    fn mark_lost_once(&mut self, index: usize) {
        if self.segments[index].is(RESENT) {
            self.segments[index].marks |= LOST;
            self.lost += self.segments[index].len as u32;
        } else {
            self.mark_lost(index);
        }
    }
}
