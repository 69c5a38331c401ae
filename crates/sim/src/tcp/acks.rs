// SPDX-License-Identifier: Apache-2.0
//! When to acknowledge what arrived, and which ECN marks to echo.
//!
//! The rules are Linux's (net/ipv4/tcp_input.c, tcp_timer.c, tcp.c): a few segments are acknowledged
//! at once, later ones in pairs or after a delay; a side that answers what it receives waits for its
//! answer to carry the ACK; and the application's read sends an ACK that is overdue. Applications
//! read at once here. [`AckRules::Rfc`] leaves all but pairs and the delay out.

use super::Stats;
use super::config::{AckRules, Algorithm, Config};
use crate::packet::{Packet, flag};
use penstock_scenario::units::Time;

/// When a segment is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// At once.
    Now,
    /// With the next segment sent, or at the latest [`Acks::delay`] from now.
    Later,
}

/// The receiver's habits of acknowledging.
#[derive(Debug)]
pub(super) struct Acks {
    /// When payload last arrived in order.
    last_arrival: Time,
    /// How long an ACK waits (Linux's `ato`); zero before the first payload.
    patience: Time,
    /// The peer's full segment as far as seen (Linux's `rcv_mss`).
    full_segment: u16,
    /// The last segment, if it was shorter: a second one of its length is a full one.
    last_short: u16,
    /// ACKs still to be sent at once.
    quick: u8,
    /// Segments with PSH, or short, since the last ACK; 2 for more.
    pushes: u8,
    /// Something arrived since the last ACK.
    is_owed: bool,
    /// The next ACK does not wait, whatever the rules.
    is_urgent: bool,
    /// The application sends in answer to what it receives: delay ACKs (Linux's ping-pong mode).
    interactive: bool,
    /// ECE goes on every ACK. RFC 3168: from a mark until CWR; DCTCP: the last segment was marked.
    echo: bool,
}

/// What the rules know of the rest of the end point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    /// Bytes in order that are not acknowledged yet.
    pub owed: u64,
    /// Bytes offered to the peer.
    pub window: u32,
    /// The window offered has just grown.
    pub has_grown: bool,
    /// The retransmission timeout in force.
    pub timeout: Time,
}

impl Acks {
    /// Nothing arrived.
    pub fn new() -> Acks {
        Acks {
            last_arrival: Time::ZERO,
            patience: Time::ZERO,
            full_segment: 0,
            last_short: 0,
            quick: 0,
            pushes: 0,
            is_owed: false,
            is_urgent: false,
            interactive: false,
            echo: false,
        }
    }

    /// The handshake is complete; `mss`: payload of a full segment. Linux counts this as an arrival since
    /// 4.11 (`tcp_finish_connect`): if the first segment is lost, the next one has no pause before it that
    /// would bring quick ACKs.
    pub fn establish(&mut self, cfg: &Config, mss: u16, now: Time) {
        if cfg.ack_rules == AckRules::Linux {
            self.last_arrival = now;
        }
        self.full_segment = mss.clamp(88, 536);
    }

    /// When to acknowledge a segment received in order.
    #[inline]
    pub fn reply(&mut self, cfg: &Config, now: Time, segment: &Packet, at: Surroundings) -> Reply {
        if cfg.ack_every <= 1 {
            return Reply::Now;
        }
        self.note(cfg, now, segment, at);
        let is_due = at.owed > (cfg.ack_every as u64 - 1) * self.full_segment as u64;
        if is_due || segment.payload == 0 || self.is_quick() || self.is_urgent || self.is_pushed() {
            Reply::Now
        } else {
            Reply::Later
        }
    }

    /// The peer's FIN arrived in order, while this side may still send. The application is about to close,
    /// and its FIN carries the ACK (`tcp_fin`).
    pub fn reply_to_fin(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        at: Surroundings,
    ) -> Reply {
        if cfg.ack_every <= 1 || cfg.ack_rules != AckRules::Linux {
            return Reply::Now;
        }
        self.interactive = true;
        self.is_owed = true;
        if segment.payload > 0 {
            self.note(cfg, now, segment, at);
        }
        let is_read = segment.payload > 0 && self.is_pushed();
        if at.owed > self.full_segment as u64 || self.is_urgent || is_read {
            Reply::Now
        } else {
            Reply::Later
        }
    }

    /// Payload arrived in order.
    #[inline]
    fn note(&mut self, cfg: &Config, now: Time, segment: &Packet, at: Surroundings) {
        self.is_owed = true;
        self.measure(cfg, segment);
        self.note_arrival(cfg, now, at);
    }

    /// What the segment shows of the peer's segments (`tcp_measure_rcv_mss`).
    fn measure(&mut self, cfg: &Config, segment: &Packet) {
        let payload = segment.payload;
        let last = std::mem::take(&mut self.last_short);
        if payload >= self.full_segment {
            self.full_segment = payload;
            if cfg.ack_rules == AckRules::Linux && segment.has(flag::PSH) {
                self.pushes = self.pushes.max(1);
            }
            return;
        } else if payload >= 536 || payload >= 88 && !segment.has(flag::PSH) {
            self.last_short = payload;
            if payload == last {
                self.full_segment = payload;
                return;
            }
        }
        if cfg.ack_rules != AckRules::Rfc {
            self.pushes = (self.pushes + 1).min(2);
        }
    }

    /// Payload arrived in order (`tcp_event_data_recv`).
    fn note_arrival(&mut self, cfg: &Config, now: Time, at: Surroundings) {
        let least = cfg.ack_patience;
        if self.patience == Time::ZERO {
            self.give_credit(cfg.quick_acks, at.window);
            self.patience = least;
        } else {
            let gap = now.saturating_sub(self.last_arrival);
            if gap <= Time(least.0 / 2) {
                self.patience = Time(self.patience.0 / 2 + least.0 / 2);
            } else if gap < self.patience {
                self.patience = Time(self.patience.0 / 2 + gap.0).min(at.timeout);
            } else if gap > at.timeout {
                self.give_credit(cfg.quick_acks, at.window);
            }
        }
        self.last_arrival = now;
        self.note_growth(cfg, at);
    }

    /// A window that has grown is shown at once (`tcp_grow_window`).
    fn note_growth(&mut self, cfg: &Config, at: Surroundings) {
        if at.has_grown && cfg.quick_acks > 0 {
            self.quick |= 1;
        }
    }

    /// ACKs go out at once, whatever the application sends (`tcp_enter_quickack_mode`).
    fn be_quick(&mut self, cfg: &Config, most: u8, window: u32) {
        self.give_credit(most, window);
        self.interactive = false;
        self.patience = cfg.ack_patience;
    }

    /// Half a window of ACKs goes out at once, at most so many (`tcp_incr_quickack`).
    fn give_credit(&mut self, most: u8, window: u32) {
        let pairs = window / (2 * self.full_segment as u32).max(1);
        let credit = if pairs == 0 { 2 } else { pairs };
        self.quick = self.quick.max(credit.min(most as u32) as u8);
    }

    /// Whether ACKs are sent at once for now.
    pub fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// The application's read acknowledges the end of what the peer wrote, unless its answer may do
    /// (`tcp_cleanup_rbuf`).
    fn is_pushed(&self) -> bool {
        self.pushes > 1 || self.pushes == 1 && !self.interactive
    }

    /// How long the ACK may wait; `round_trip`: smoothed, zero if unknown (`tcp_send_delayed_ack`).
    pub fn delay(&self, cfg: &Config, round_trip: Time) -> Time {
        let mut delay = self.patience;
        if delay > cfg.ack_patience && round_trip != Time::ZERO {
            delay = delay.min(round_trip.max(cfg.ack_patience));
        }
        delay.min(cfg.delayed_ack)
    }

    /// For how long nothing has arrived in order.
    pub fn waited(&self, now: Time) -> Time {
        now.saturating_sub(self.last_arrival)
    }

    /// No segment came to carry the ACK: waiting was wrong (`tcp_delack_timer_handler`).
    pub fn on_delay_over(&mut self, cfg: &Config, timeout: Time) {
        if self.interactive {
            self.interactive = false;
            self.patience = cfg.ack_patience;
        } else {
            self.patience = Time(self.patience.0 * 2).min(timeout);
        }
    }

    /// A segment left, and acknowledged all that arrived (`tcp_event_ack_sent`).
    #[inline]
    pub fn on_ack_sent(&mut self, cfg: &Config) {
        self.pushes = 0;
        self.is_urgent = false;
        if std::mem::take(&mut self.is_owed) && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.patience = cfg.ack_patience;
            }
        }
    }

    /// A segment arrived twice: acknowledge the next ones at once, whatever is sent.
    pub fn on_duplicate(&mut self, cfg: &Config, window: u32) {
        if cfg.ack_rules != AckRules::Rfc {
            self.be_quick(cfg, cfg.quick_acks, window);
            self.is_owed = true;
        }
    }

    /// A segment arrived ahead of order. Before Linux 4.18 the next ones were acknowledged at once; since
    /// 6.17 it shows how long full segments are (`tcp_data_queue_ofo`).
    pub fn on_early(&mut self, cfg: &Config, segment: &Packet, at: Surroundings) {
        self.is_owed = true;
        match cfg.ack_rules {
            AckRules::Rfc => {}
            AckRules::Linux318 => self.on_duplicate(cfg, at.window),
            AckRules::Linux => {
                if segment.payload > 0 {
                    self.measure(cfg, segment);
                }
                self.note_growth(cfg, at);
            }
        }
    }

    /// A segment arrived that begins where a gap does. What was recorded with linux-3.18 does not count it.
    pub fn on_gap_closer(&mut self, cfg: &Config, now: Time, segment: &Packet, at: Surroundings) {
        if cfg.ack_rules == AckRules::Linux && segment.payload > 0 {
            self.note(cfg, now, segment, at);
        }
    }

    /// Payload left after some had arrived: soon after an arrival it is an answer.
    pub fn on_data_sent(&mut self, cfg: &Config, now: Time) {
        if cfg.ack_every > 1 && now.saturating_sub(self.last_arrival) < self.patience {
            self.interactive = true;
        }
    }

    /// Whether ACKs carry ECE.
    #[inline]
    pub fn echoes(&self) -> bool {
        self.echo
    }

    /// Whether what came before `segment` must be acknowledged before it: DCTCP's delayed ACKs must
    /// not mix marked and unmarked segments (RFC 8257 §3.2).
    pub fn ends_run_of_marks(&self, cfg: &Config, segment: &Packet) -> bool {
        cfg.congestion == Algorithm::Dctcp && segment.has(flag::CE) != self.echo
    }

    /// Remembers what to echo of a segment's ECN marks (RFC 3168 §6.1.3, RFC 8257 §3.2), while `window` is offered.
    /// As marks make windows small, Linux then does not delay ACKs (`tcp_data_ecn_check`, `tcp_ecn_accept_cwr`).
    pub fn note_mark(&mut self, cfg: &Config, segment: &Packet, window: u32, stats: &mut Stats) {
        let is_marked = segment.has(flag::CE);
        stats.marks_received += is_marked as u32;
        if cfg.congestion == Algorithm::Dctcp {
            if is_marked != self.echo {
                self.echo = is_marked;
                // The change is reported at once (RFC 8257 §3.2).
                self.is_urgent = true;
            }
            return;
        }
        let is_linux = cfg.ack_rules == AckRules::Linux;
        if segment.has(flag::CWR) {
            self.echo = false;
            self.is_urgent |= is_linux && segment.payload > 0;
        }
        if is_marked {
            if is_linux && !self.echo {
                self.be_quick(cfg, cfg.quick_acks.min(2), window);
            }
            self.echo = true;
        }
    }
}
