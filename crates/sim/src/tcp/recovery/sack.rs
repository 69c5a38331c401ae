// SPDX-License-Identifier: Apache-2.0
//! Recovery over the scoreboard: RFC 6675, with losses counted there or found by RACK, and tail loss
//! probes (RFC 8985 §7).

use super::delivery::Delivery;
use super::selective::{NextLost, Resend, Selective};
use super::{Parts, Phase, Recovery};
use crate::packet::{Packet, SackBlock};
use crate::tcp::config::Config;
use crate::tcp::congestion::{Congestion, Feedback, Progress, Repair};
use crate::tcp::sender::Sender;
use crate::tcp::timers::Timer;
use penstock_scenario::units::Time;

impl Recovery {
    /// An ACK that moved SND.UNA by `acked` bytes (or did not), with its SACK blocks; `updates`: it
    /// changed SND.WND, and so repeats no other (Linux's `FLAG_NOT_DUP`).
    pub fn on_selective_ack(
        &mut self,
        parts: &mut Parts,
        acked: u32,
        updates: bool,
        segment: &Packet,
        sack: &[SackBlock],
    ) {
        let Some(selective) = &mut self.selective else {
            return;
        };
        let delivery = selective.take_delivery(parts, acked, segment, sack);
        let is_repeated = acked == 0 && !updates && segment.payload == 0;
        let is_bare = is_repeated && sack.is_empty();
        let una = parts.snd.una();
        let is_repaired = selective.probe.on_ack(una, delivery.has_duplicate, is_bare);
        if is_repaired && self.phase == Phase::Open {
            let mss = parts.snd.mss();
            parts.congestion.reduce_once(parts.cfg, mss);
        }
        if acked > 0 {
            self.dupacks = 0;
        } else if delivery.sacked > 0 {
            self.dupacks = self.dupacks.saturating_add(1);
        }
        let was_recovering = !self.is_growing();
        if self.phase == Phase::Loss {
            self.follow_frto(parts, acked, is_repeated, segment, &delivery);
        }
        if was_recovering && una >= self.recover {
            self.leave_selective_recovery(parts);
        }
        let resent = self.resent();
        let (newly_lost, wait) = self.find_losses(parts, false);
        let progress = progress(parts, acked, &delivery);
        parts.note_round_trip(progress);
        match self.phase {
            Phase::Open | Phase::Disorder => {
                if self.has_lost() {
                    self.enter_selective_recovery(parts);
                    self.follow_prr(parts, delivery.bytes, false);
                } else {
                    self.phase = if self.has_sacked() {
                        Phase::Disorder
                    } else {
                        Phase::Open
                    };
                    if acked > 0 && (!was_recovering || parts.cfg.has_whole_windows()) {
                        parts.grow(progress);
                    }
                }
            }
            Phase::Recovery => {
                let is_healthy = acked > 0 && newly_lost == 0;
                self.follow_prr(parts, delivery.bytes, is_healthy);
            }
            Phase::Loss => {
                if parts.cfg.has_whole_windows() && self.resent() < resent {
                    // A retransmission is lost, too (FLAG_LOST_RETRANS).
                    self.enter_selective_recovery(parts);
                    self.follow_prr(parts, delivery.bytes, false);
                } else if acked > 0 {
                    parts.grow(Progress {
                        sample: Time::ZERO,
                        ..progress
                    });
                }
            }
        }
        if parts.congestion.is_modelled() {
            self.feed_back(parts, &delivery, newly_lost);
        }
        let is_older = acked == 0 && self.is_sent_before_head(parts, &delivery);
        self.rearm(parts, acked > 0 || is_older, wait);
    }

    /// An ACK after a timeout: whether that was needless, and what is sent next.
    fn follow_frto(
        &mut self,
        parts: &mut Parts,
        acked: u32,
        is_repeated: bool,
        segment: &Packet,
        delivery: &Delivery,
    ) {
        let Some(selective) = &mut self.selective else {
            return;
        };
        let (frto, recover) = (&mut selective.frto, self.recover);
        if frto.is_needless(acked, segment, delivery, recover) {
            frto.undo(parts, &mut selective.board);
            self.phase = Phase::Open;
        } else {
            frto.on_ack(acked, delivery, is_repeated, parts.snd, &mut self.recover);
        }
    }

    /// What is lost waits for new data, of which none has left: true if it no longer waits.
    #[inline]
    pub fn gives_up_new(&mut self, snd: &Sender) -> bool {
        let recover = self.recover;
        let selective = self.selective.as_mut();
        selective.is_some_and(|s| s.frto.give_up(snd, recover))
    }

    /// Bytes whose retransmission is in flight, where RACK can find it lost.
    fn resent(&self) -> u32 {
        let selective = self.selective.as_ref().filter(|s| s.rack.is_some());
        selective.map_or(0, |s| s.board.resent())
    }

    /// Reports an ACK to a congestion control that models the path.
    #[cold]
    fn feed_back(&self, parts: &mut Parts, delivery: &Delivery, lost: u32) {
        let resent = Some(delivery.newest_resent).filter(|&sent| sent != Time::ZERO);
        let round_trip = delivery.newest.filter(|_| !delivery.is_ambiguous);
        let ack = Feedback {
            now: parts.now,
            delivered: delivery.bytes,
            newest: delivery.newest.max(resent),
            lost,
            in_flight: self.in_flight(parts.snd),
            repair: match self.phase {
                Phase::Open | Phase::Disorder => Repair::None,
                Phase::Recovery => Repair::Recovery,
                Phase::Loss => Repair::Loss,
            },
            rtt: round_trip.map_or(Time::ZERO, |sent| parts.now.saturating_sub(sent)),
            min_rtt: parts.rtt.min(),
            mss: parts.snd.mss() as u32,
        };
        parts.congestion.on_feedback(&ack);
    }

    /// Whether an ACK of new data without SACK blocks may take [`Recovery::on_quiet_ack`].
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.selective.as_ref().is_some_and(|s| s.is_quiet())
    }

    /// An ACK of `acked` new bytes while nothing is SACKed, lost or probed: what is left of
    /// [`Recovery::on_selective_ack`].
    #[inline]
    pub fn on_quiet_ack(&mut self, parts: &mut Parts, acked: u32) {
        self.dupacks = 0;
        let Some(selective) = &mut self.selective else {
            return;
        };
        let delivery = selective.acknowledge(parts);
        if let Some(oldest) = delivery.oldest {
            parts.sample(oldest, delivery.newest);
        }
        if parts.congestion.is_modelled() {
            self.feed_back(parts, &delivery, 0);
        } else {
            let progress = progress(parts, acked, &delivery);
            parts.note_round_trip(progress);
            parts.grow(progress);
        }
        parts.restart_retransmit();
    }

    /// The segment at `seq` left for the first time; `len` counts a FIN. False without SACK.
    #[inline]
    pub fn on_sent(&mut self, seq: u64, len: u16, now: Time) -> bool {
        match &mut self.selective {
            None => false,
            Some(selective) => {
                selective.on_sent(seq, len, now);
                true
            }
        }
    }

    fn has_lost(&self) -> bool {
        self.selective.as_ref().is_some_and(|s| s.board.has_lost())
    }

    fn has_sacked(&self) -> bool {
        self.selective
            .as_ref()
            .is_some_and(|s| s.board.has_sacked())
    }

    /// Bytes newly found lost, and how long until more may be. `has_waited`: that time has passed.
    fn find_losses(&mut self, parts: &Parts, has_waited: bool) -> (u32, Time) {
        let is_recovering = !self.is_growing();
        let head = has_waited || self.dupacks >= parts.cfg.dupack_threshold;
        match &mut self.selective {
            None => (0, Time::ZERO),
            Some(selective) => selective.find_losses(parts, is_recovering, head),
        }
    }

    fn enter_selective_recovery(&mut self, parts: &mut Parts) {
        let before = if parts.cfg.has_whole_windows() {
            parts.congestion.cwnd()
        } else {
            parts.snd.outstanding()
        };
        parts.stats.fast_recoveries += 1;
        parts
            .congestion
            .enter_selective_recovery(parts.cfg, parts.snd.mss());
        self.phase = Phase::Recovery;
        self.recover = parts.snd.max();
        if let Some(selective) = &mut self.selective {
            selective.is_forced = true;
            selective.is_rescued = false;
            selective.probe.end();
            selective.frto.end();
            if let Some(prr) = &mut selective.prr {
                prr.start(before);
            }
        }
    }

    /// The window in recovery, where PRR sets it.
    fn follow_prr(&mut self, parts: &mut Parts, delivered: u32, is_healthy: bool) {
        if delivered == 0 && parts.cfg.has_whole_windows() {
            return;
        }
        let pipe = self.in_flight(parts.snd);
        let (ssthresh, mss) = (parts.congestion.ssthresh(), parts.snd.mss() as u32);
        if let Some(prr) = self.selective.as_mut().and_then(|s| s.prr.as_mut()) {
            let window = prr.window(delivered, pipe, ssthresh, mss, is_healthy);
            parts.congestion.set_cwnd(window);
        }
    }

    fn leave_selective_recovery(&mut self, parts: &mut Parts) {
        if self.phase == Phase::Recovery && !parts.congestion.is_modelled() {
            let ssthresh = parts.congestion.ssthresh();
            parts.congestion.set_cwnd(ssthresh);
        }
        self.phase = Phase::Open;
        if let Some(selective) = &mut self.selective {
            selective.is_forced = false;
            selective.frto.end();
            if let Some(rack) = &mut selective.rack {
                rack.on_recovered();
            }
        }
    }

    /// Whether SACK blocks report what was sent before the first segment in flight was last sent: in Linux
    /// its timeout starts over then (`tcp_clean_rtx_queue`).
    fn is_sent_before_head(&self, parts: &Parts, delivery: &Delivery) -> bool {
        let head = self.head_sent(parts.now);
        parts.cfg.has_whole_windows() && delivery.oldest.is_some_and(|sent| sent < head)
    }

    /// The sender's timer after an ACK; `starts_over`: the timeout runs from now on; `wait`: how long until
    /// losses may be found, zero for never.
    fn rearm(&mut self, parts: &mut Parts, starts_over: bool, wait: Time) {
        if parts.snd.is_idle() {
            if !parts.timers.is(Timer::Persist) {
                parts.timers.stop();
            }
        } else if wait != Time::ZERO {
            arm_reorder(parts, wait);
        } else if starts_over {
            self.arm_probe_or_timeout(parts, parts.now);
        } else if !parts.timers.is(Timer::Retransmit) {
            self.arm_after_head(parts);
        }
    }

    /// The timeout as if it had run since the first segment was sent.
    fn arm_after_head(&self, parts: &mut Parts) {
        self.arm_probe_or_timeout(parts, self.head_sent(parts.now));
        parts.timers.postpone(parts.now + Time(1));
    }

    /// When the first segment in flight was last sent; `now` where there is none.
    pub fn head_sent(&self, now: Time) -> Time {
        let selective = self.selective.as_ref();
        selective.and_then(|s| s.board.head_sent()).unwrap_or(now)
    }

    /// The reordering window has passed: what is lost, and what is left of the window. The caller
    /// sends, then calls [`Recovery::after_reorder_timeout`] with what this returns.
    pub fn on_reorder_timeout(&mut self, parts: &mut Parts) -> Time {
        let (newly_lost, wait) = self.find_losses(parts, true);
        let mut delivered = 0;
        // In Linux, what RACK finds lost after a timeout opens a recovery, too.
        let in_loss = self.phase == Phase::Loss && parts.cfg.has_whole_windows();
        let is_new = self.is_growing() || in_loss && newly_lost > 0;
        if is_new && self.has_lost() {
            self.enter_selective_recovery(parts);
            if parts.cfg.has_whole_windows() {
                // One segment, which lets the first retransmission leave (tcp_rack_reo_timeout).
                delivered = parts.snd.mss() as u32;
            }
        }
        if self.phase == Phase::Recovery {
            self.follow_prr(parts, delivered, false);
        }
        wait
    }

    /// The sender's timer after the reordering window, `wait` before RACK may find more losses.
    pub fn after_reorder_timeout(&mut self, parts: &mut Parts, wait: Time) {
        if wait != Time::ZERO {
            arm_reorder(parts, wait);
        } else {
            self.arm_after_head(parts);
        }
    }

    /// The next segment that is lost and may be sent again now.
    pub fn next_lost(&mut self, snd: &Sender, congestion: &Congestion, now: Time) -> NextLost {
        match &mut self.selective {
            None => NextLost::None,
            Some(selective) if selective.frto.holds_lost() => NextLost::None,
            Some(selective) => {
                let is_held = congestion.is_held(now);
                selective.next_lost(snd, congestion.cwnd(), is_held, now)
            }
        }
    }

    /// Nothing is lost for certain and nothing new may be sent, yet the window has room: the last
    /// segment once more, so that its loss does not end in a timeout (NextSeg rule 4).
    pub fn rescue(&mut self, snd: &Sender, congestion: &Congestion, now: Time) -> Option<Resend> {
        let selective = self.selective.as_mut()?;
        let needed = selective.pipe(snd) + snd.mss() as u32;
        if self.phase != Phase::Recovery || congestion.cwnd() < needed {
            return None;
        }
        selective.rescue(snd, now)
    }

    /// Arms the probe timer where a probe is due before the timeout, else the timeout
    /// (RFC 8985 §7.2). `from` is when the timeout starts to run.
    pub fn arm_probe_or_timeout(&self, parts: &mut Parts, from: Time) {
        if parts.snd.is_idle() {
            parts.timers.restart_retransmit(parts.cfg, true, parts.now);
            return;
        }
        let timeout = from + parts.timers.timeout();
        let delay = match &self.selective {
            Some(selective) if self.phase == Phase::Open => probe_delay(selective, parts),
            _ => None,
        };
        match delay {
            None => parts
                .timers
                .arm(parts.cfg, Timer::Retransmit, timeout, parts.now),
            Some(delay) => {
                let due = (parts.now + delay).min(timeout.max(parts.now));
                parts.timers.arm(parts.cfg, Timer::Probe, due, parts.now);
            }
        }
    }

    /// When the timeout in force began to run, or would begin now.
    pub fn timeout_start(&self, parts: &Parts) -> Time {
        let start = parts.timers.retransmit_start();
        start.unwrap_or_else(|| self.head_sent(parts.now))
    }

    /// The last segment in flight, to be sent again as a probe.
    pub fn probe(&self, snd: &Sender) -> Option<Resend> {
        let (_, last) = self.selective.as_ref()?.board.last()?;
        Some(Resend {
            seq: snd.max() - last.len as u64,
            len: last.len,
        })
    }

    /// A probe left: the last segment again (`repeats`) or a new one.
    pub fn on_probe_sent(&mut self, snd: &Sender, now: Time, repeats: bool) {
        if let Some(selective) = &mut self.selective {
            if repeats && let Some((index, _)) = selective.board.last() {
                if selective.rack.is_some() {
                    selective.board.mark_probed(index, now);
                } else {
                    selective.on_resent(index, now);
                }
            }
            selective.probe.start(snd.nxt(), repeats);
        }
    }
}

/// What an ACK that moved SND.UNA by `acked` bytes showed.
#[inline]
fn progress(parts: &Parts, acked: u32, delivery: &Delivery) -> Progress {
    Progress {
        acked,
        segments: delivery.segments,
        sample: delivery
            .newest
            .map_or(Time::ZERO, |sent| parts.now.saturating_sub(sent)),
    }
}

/// How long after now a probe is due; `None` where none may be sent.
fn probe_delay(selective: &Selective, parts: &Parts) -> Option<Time> {
    let cfg: &Config = parts.cfg;
    let smoothed = parts.rtt.smoothed(cfg);
    let may_probe = cfg.tlp
        && !selective.board.has_sacked()
        && !selective.probe.is_in_flight()
        && smoothed != Time::ZERO;
    may_probe.then(|| {
        // A lone segment's ACK may be delayed by the peer.
        let delay = if selective.board.len() == 1 {
            cfg.tlp_single_delay
        } else {
            cfg.tlp_delay
        };
        cfg.in_jiffies((smoothed + smoothed + delay).max(cfg.tlp_min))
    })
}

/// Waits for reordering to settle.
fn arm_reorder(parts: &mut Parts, wait: Time) {
    let wait = parts.cfg.in_jiffies(wait + parts.cfg.reorder_delay);
    let at = parts.now + wait;
    parts.timers.arm(parts.cfg, Timer::Reorder, at, parts.now);
}
