// SPDX-License-Identifier: Apache-2.0
//! What may leave now, and how it looks.

use super::Wire;
use super::config::{Config, Idle, Nagle};
use super::endpoint::{Endpoint, Phase, State, opt};
use super::handshake::TIMESTAMPS_LEN;
use super::timers::Timer;
use crate::packet::{MAX_SACK_BLOCKS, Packet, SackBlock, flag};
use penstock_scenario::units::Time;

/// Why the sender stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Nothing left to send.
    Empty,
    /// By the congestion window.
    Congestion,
    /// By the peer's window, Nagle or silly-window avoidance.
    Window,
}

/// The timestamp clock: milliseconds (RFC 7323 §5.4 allows 1 ms to 1 s).
pub(super) fn timestamp(now: Time) -> u32 {
    (now.0 / Time::from_millis(1).0) as u32
}

impl Endpoint {
    /// Sends all that the windows allow, in the states that allow it; true if anything left.
    pub(super) fn output_or_nothing(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) -> bool {
        let before = self.stats.segments_sent;
        if self.can_send() {
            self.output(cfg, now, wire);
        }
        self.stats.segments_sent != before
    }

    /// Sends all that the windows allow.
    #[inline]
    pub(super) fn output(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        if cfg.idle != Idle::Keep && self.snd_una == self.snd_max {
            self.resume_after_idle(cfg, now);
        }
        let sent = self.snd_max;
        let stop = if self.board.is_some() && self.retransmit_lost(cfg, now, wire) {
            Stop::Congestion
        } else {
            loop {
                if let Some(stop) = self.send_next(cfg, now, wire) {
                    break stop;
                }
            }
        };
        if stop != Stop::Congestion && self.board.is_some() {
            self.rescue(cfg, now, wire);
        }
        if cfg.tlp && self.snd_max != sent && self.timer != Timer::Reorder {
            self.arm_probe_or_timeout(cfg, now, self.timeout_start(now));
        }
        if stop == Stop::Window && self.snd_una == self.snd_max && self.rtx_at == Time::NEVER {
            self.arm_persist(cfg, now);
        }
        if cfg.validate_cwnd {
            self.note_usage(stop == Stop::Congestion);
        }
    }

    /// Sends one segment from SND.NXT, or tells why not.
    #[inline]
    fn send_next(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) -> Option<Stop> {
        let unsent = self.snd_end.saturating_sub(self.snd_nxt);
        if unsent == 0 {
            if self.is(opt::FIN) && self.snd_nxt == self.snd_end {
                self.transmit_next(cfg, now, 0, wire);
            }
            return Some(Stop::Empty);
        }
        let in_flight = self.in_flight();
        let edge = self.snd_una + self.snd_wnd.min(cfg.max_send_window) as u64;
        let usable = edge.saturating_sub(self.snd_nxt);
        let mss = self.mss as u64;
        let mut len = mss.min(unsent).min(usable);
        if len < mss {
            if self.phase == Phase::Loss && self.snd_nxt == self.snd_una {
                // The window shrank below what was sent: its head may always be tried.
                len = mss.min(unsent);
            } else if !self.may_send_short(cfg, len, unsent, in_flight) {
                return Some(Stop::Window);
            }
        }
        if self.window.cwnd.saturating_sub(in_flight) < len as u32 && in_flight > 0 {
            return Some(Stop::Congestion);
        }
        self.transmit_next(cfg, now, len as u16, wire);
        if len < mss {
            self.short_end = self.snd_nxt;
        }
        None
    }

    /// Bytes the network is thought to hold: FlightSize, or RFC 6675's pipe.
    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        let flight = (self.snd_nxt - self.snd_una) as u32;
        match &self.board {
            None => flight,
            Some(board) => board.pipe(flight),
        }
    }

    /// Sender's silly-window avoidance and Nagle (RFC 9293 §3.8.6.2.1, §3.7.4). Linux fills what the
    /// window has left, too, as long as no other short segment is in flight; so a receiver that is
    /// shown one segment and a part acknowledges both at once, where it would delay the ACK of one.
    fn may_send_short(&self, cfg: &Config, len: u64, unsent: u64, in_flight: u32) -> bool {
        if len == 0 {
            return false;
        }
        let held = match cfg.nagle {
            Nagle::Off => false,
            Nagle::On => in_flight > 0,
            Nagle::Minshall => self.short_end > self.snd_una,
        };
        if len == unsent {
            return !held || self.is(opt::FIN) || self.snd_nxt < self.snd_max;
        }
        len >= self.max_window as u64 / 2 || cfg.nagle == Nagle::Minshall && !held
    }

    /// One more segment on each of the first two duplicate ACKs (RFC 3042).
    pub(super) fn transmit_limited(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        let unsent = self.snd_end.saturating_sub(self.snd_nxt);
        let edge = self.snd_una + self.snd_wnd.min(cfg.max_send_window) as u64;
        let len = (self.mss as u64)
            .min(unsent)
            .min(edge.saturating_sub(self.snd_nxt));
        let extra = self.dupacks as u64 * self.mss as u64;
        let allowed = self.snd_una + self.window.cwnd as u64 + extra;
        if len > 0 && len == unsent.min(self.mss as u64) && self.snd_nxt + len <= allowed {
            self.transmit_next(cfg, now, len as u16, wire);
            self.limited += len as u32;
        }
    }

    /// Sends `len` bytes from SND.NXT and moves it.
    #[inline]
    fn transmit_next(&mut self, cfg: &Config, now: Time, len: u16, wire: &mut impl Wire) {
        let seq = self.snd_nxt;
        let end = self.transmit(cfg, now, seq, len, wire);
        self.snd_nxt = end;
        if end > self.snd_max {
            if let Some(board) = &mut self.board {
                board.push(seq, (end - seq) as u16, now);
            } else if self.timed_at == Time::NEVER && seq >= self.snd_max {
                self.timed_at = now;
                self.timed_end = end as u32;
            }
            self.snd_max = end;
            if end > self.snd_end {
                self.on_fin_sent();
            }
        }
        if self.rtx_at == Time::NEVER || self.timer == Timer::Persist {
            self.arm(Timer::Retransmit, now + self.rto);
        }
        if cfg.idle != Idle::Keep {
            self.last_sent = now;
        }
    }

    /// Sends a new segment even if the congestion window is full (RFC 8985 §7.3); true if it left.
    pub(super) fn send_beyond_cwnd(
        &mut self,
        cfg: &Config,
        now: Time,
        wire: &mut impl Wire,
    ) -> bool {
        let unsent = self.snd_end.saturating_sub(self.snd_nxt);
        let edge = self.snd_una + self.snd_wnd.min(cfg.max_send_window) as u64;
        let len = unsent.min(self.mss as u64);
        if len == 0 || self.snd_nxt + len > edge {
            return false;
        }
        self.transmit_next(cfg, now, len as u16, wire);
        true
    }

    /// Sends up to `len` bytes from `seq` again.
    pub(super) fn resend(
        &mut self,
        cfg: &Config,
        now: Time,
        seq: u64,
        len: u16,
        wire: &mut impl Wire,
    ) {
        let len = (len as u64)
            .min(self.snd_end.saturating_sub(seq))
            .min(self.snd_max - seq);
        self.transmit(cfg, now, seq, len as u16, wire);
    }

    /// Builds and sends a segment with payload or FIN; returns the offset after it.
    fn transmit(
        &mut self,
        cfg: &Config,
        now: Time,
        seq: u64,
        len: u16,
        wire: &mut impl Wire,
    ) -> u64 {
        let mut end = seq + len as u64;
        let mut flags = flag::ACK;
        if end >= self.snd_end {
            flags |= flag::PSH;
            if self.is(opt::FIN) {
                flags |= flag::FIN;
                end += 1;
            }
        }
        if seq < self.snd_max {
            self.stats.retransmits += 1;
        } else if self.is(opt::ECN) {
            flags |= flag::ECT;
            if self.ecn.announce {
                flags |= flag::CWR;
                self.ecn.announce = false;
            }
        }
        if cfg.ack_every > 1
            && self.rcv_nxt > 1
            && now.saturating_sub(self.last_received) < cfg.delayed_ack
        {
            self.set(opt::INTERACTIVE);
        }
        self.stats.bytes_sent += len as u64;
        let mut segment = self.segment(seq, flags);
        segment.payload = len;
        self.emit(cfg, now, segment, wire);
        end
    }

    /// Sends a bare ACK.
    #[inline]
    pub(super) fn send_ack(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        // Not SND.NXT, which a timeout sets back: the peer would find the segment old.
        let segment = self.segment(self.snd_max, flag::ACK);
        self.emit(cfg, now, segment, wire);
    }

    /// Asks for the window: what little it allows, else a segment the peer must answer, as Linux
    /// does it (RFC 9293 §3.8.6.1 would send a byte beyond the window).
    pub(super) fn probe_window(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        let unsent = self.snd_end.saturating_sub(self.snd_nxt);
        let usable = (self.snd_wnd as u64).min(unsent).min(self.mss as u64);
        if usable > 0 {
            self.transmit_next(cfg, now, usable as u16, wire);
        } else {
            let segment = self.segment(self.snd_una - 1, flag::ACK);
            self.emit(cfg, now, segment, wire);
        }
    }

    /// A segment of this connection without payload and options.
    #[inline]
    pub(super) fn segment(&self, seq: u64, flags: u16) -> Packet {
        Packet {
            flow: self.flow,
            seq: self.iss.wrapping_add(seq as u32),
            ack: if flags & flag::ACK != 0 {
                self.irs.wrapping_add(self.rcv_nxt as u32)
            } else {
                0
            },
            ts_val: 0,
            ts_ecr: 0,
            options: 0,
            payload: 0,
            window: 0,
            flags,
            header: 0,
            hop: 0,
        }
    }

    /// Adds timestamps.
    #[inline]
    pub(super) fn stamp(&self, now: Time, segment: &mut Packet) {
        segment.flags |= flag::TIMESTAMPS;
        segment.ts_val = timestamp(now);
        segment.ts_ecr = if segment.has(flag::ACK) {
            self.ts_recent
        } else {
            0
        };
    }

    /// Adds window and options, acknowledges whatever is owed, and lets the segment go.
    #[inline]
    fn emit(&mut self, cfg: &Config, now: Time, mut segment: Packet, wire: &mut impl Wire) {
        segment.header = cfg.header;
        segment.window = self.take_window();
        self.ack_at = Time::NEVER;
        self.last_ack_sent = self.rcv_nxt;
        self.stats.segments_sent += 1;
        if self.opts & (opt::TIMESTAMPS | opt::SACK | opt::ECN) == 0 {
            return wire.send(segment, &[]);
        }
        if self.is(opt::TIMESTAMPS) {
            self.stamp(now, &mut segment);
            segment.header += TIMESTAMPS_LEN;
        }
        if self.is(opt::ECN) && self.ecn.echo {
            segment.flags |= flag::ECE;
        }
        let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        let mut count = 0;
        if self.is(opt::SACK) && self.reassembly.has_blocks() {
            let most = if self.is(opt::TIMESTAMPS) { 3 } else { 4 };
            count = self.reassembly.blocks(self.irs, &mut blocks[..most]);
            let len = 4 + 8 * count as u32;
            // A full segment has no room for them.
            if segment.payload > 0 && segment.size() + len > cfg.mss as u32 + cfg.header as u32 {
                count = 0;
            } else {
                segment.header += len as u8;
            }
        }
        wire.send(segment, &blocks[..count]);
    }

    /// Remembers how much of the window was in use (Linux's `tcp_cwnd_validate`).
    fn note_usage(&mut self, limited: bool) {
        let flight = (self.snd_max - self.snd_una) as u32;
        if self.snd_una >= self.round_end
            || limited
            || (!self.is(opt::CWND_LIMITED) && flight > self.max_flight)
        {
            self.clear(opt::CWND_LIMITED);
            if limited {
                self.set(opt::CWND_LIMITED);
            }
            self.max_flight = flight;
            self.round_end = self.snd_nxt;
        }
    }

    /// The window after silence (RFC 5681 §4.1).
    fn resume_after_idle(&mut self, cfg: &Config, now: Time) {
        let silence = now.saturating_sub(self.last_sent);
        if self.state == State::SynReceived || self.snd_nxt == 1 || silence <= self.rto {
            return;
        }
        if self.snd_nxt >= self.snd_end + self.is(opt::FIN) as u64 {
            return;
        }
        let restart = (cfg.initial_window * self.mss as u32).min(self.window.cwnd);
        match cfg.idle {
            Idle::Keep => {}
            Idle::Restart => self.window.cwnd = restart,
            Idle::Decay => {
                // tcp_cwnd_restart: what was known stays in the threshold.
                self.window.ssthresh = self
                    .window
                    .ssthresh
                    .max(self.window.cwnd - self.window.cwnd / 4);
                let halvings = (silence.0 / self.rto.0.max(1)).min(31) as u32;
                self.window.cwnd = (self.window.cwnd >> halvings).max(restart);
            }
        }
        self.congestion.on_idle(silence);
        // Once per silence, even if nothing can be sent now.
        self.last_sent = now;
    }
}
