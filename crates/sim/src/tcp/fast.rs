// SPDX-License-Identifier: Apache-2.0
//! The fast path: an expected segment of a quiet connection. Everything here is
//! the general code of `ack.rs`, `receive.rs` and `output.rs` with what cannot happen left out.

use super::config::{Algorithm, Config, Idle};
use super::congestion::grow_newreno;
use super::endpoint::{Endpoint, Phase, State, opt};
use super::timers::Timer;
use super::{Events, Wire};
use crate::packet::{Packet, flag};
use penstock_scenario::units::Time;

/// Of these the fast path takes ACK alone.
const CONTROL: u16 =
    flag::SYN | flag::FIN | flag::RST | flag::ACK | flag::ECE | flag::CWR | flag::CE;

/// What keeps segments off the fast path for a while.
const BUSY: u16 = opt::OUT_OF_ORDER | opt::PAUSED;

impl Endpoint {
    /// Notes whether this connection may use the fast path at all.
    pub(super) fn note_plain(&mut self, cfg: &Config) {
        let plain = !self.is(opt::TIMESTAMPS | opt::SACK | opt::ECN)
            && cfg.congestion == Algorithm::NewReno
            && cfg.idle == Idle::Keep
            && !cfg.validate_cwnd
            && cfg.ack_every <= 1;
        if plain {
            self.set(opt::PLAIN);
        }
    }

    /// Handles `segment` if it is an expected one; `None` leaves it to the general code.
    #[inline(always)]
    pub(super) fn on_expected(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        wire: &mut impl Wire,
    ) -> Option<Events> {
        if segment.flags & CONTROL != flag::ACK
            || self.opts & (BUSY | opt::ECN) != 0
            || self.state != State::Established
            || segment.seq != self.irs.wrapping_add(self.rcv_nxt as u32)
        {
            return None;
        }
        let acked = segment
            .ack
            .wrapping_sub(self.iss.wrapping_add(self.snd_una as u32));
        let window = (segment.window as u32) << self.snd_scale;
        let plain = self.is(opt::PLAIN);
        if segment.payload == 0 {
            let new = acked.wrapping_sub(1) < (self.snd_nxt - self.snd_una) as u32;
            if !new || self.phase != Phase::Open {
                return None;
            }
            if plain {
                return Some(self.on_plain_ack(cfg, now, acked, window, wire));
            }
            self.on_optioned_ack(cfg, now, segment, acked, window, wire)
        } else {
            let next = self.rcv_nxt + segment.payload as u64;
            if acked != 0 || window != self.snd_wnd || next > self.rcv_edge {
                return None;
            }
            if plain && !self.is(opt::WINDOW_GROWS) {
                self.rcv_nxt = next;
                self.send_plain(self.snd_max, 0, wire);
                return Some(Events::DELIVERED);
            }
            if !self.takes_timestamp(segment) {
                return None;
            }
            self.rcv_nxt = next;
            self.grow_offer(cfg, segment.payload as u64);
            self.acknowledge(cfg, now, segment.payload, wire);
            Some(Events::DELIVERED)
        }
    }

    /// Checks and keeps the timestamp of a segment at RCV.NXT; false where it is unexpected.
    #[inline(always)]
    fn takes_timestamp(&mut self, segment: &Packet) -> bool {
        if !self.is(opt::TIMESTAMPS) {
            return true;
        }
        if !segment.has(flag::TIMESTAMPS)
            || (segment.ts_val.wrapping_sub(self.ts_recent) as i32) < 0
        {
            return false;
        }
        if self.rcv_nxt <= self.last_ack_sent {
            self.ts_recent = segment.ts_val;
        }
        true
    }

    /// An ACK of new data with options in use, nothing being lost.
    #[inline]
    fn on_optioned_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        acked: u32,
        window: u32,
        wire: &mut impl Wire,
    ) -> Option<Events> {
        let quiet = self.board.as_ref().is_some_and(|board| board.is_quiet());
        if !quiet || !self.takes_timestamp(segment) {
            return None;
        }
        self.previous_una = self.snd_una;
        self.snd_una += acked as u64;
        if window != self.snd_wnd {
            self.snd_wnd = window;
            self.note_window(cfg);
        }
        self.attempts = 0;
        self.dupacks = 0;
        self.on_quiet_ack(cfg, now, acked, wire);
        Some(self.report_all_acked())
    }

    #[inline(always)]
    fn on_plain_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        acked: u32,
        window: u32,
        wire: &mut impl Wire,
    ) -> Events {
        self.previous_una = self.snd_una;
        self.snd_una += acked as u64;
        if window != self.snd_wnd {
            self.snd_wnd = window;
            self.note_window(cfg);
        }
        self.attempts = 0;
        if self.timed_at != Time::NEVER {
            self.take_timed_sample(cfg, now);
        }
        grow_newreno(cfg, &mut self.window, acked, self.mss as u32);
        self.restart_retransmission(now);
        if !self.send_full_segments(cfg, now, wire) {
            self.output(cfg, now, wire);
        }
        self.report_all_acked()
    }

    /// Sends full segments as far as the windows allow. False where the general code has more to
    /// decide: a short segment, PSH, FIN, a closed window.
    #[inline(always)]
    fn send_full_segments(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) -> bool {
        if self.snd_nxt != self.snd_max {
            return false;
        }
        let mss = self.mss as u64;
        let offered = self.snd_wnd.min(cfg.max_send_window);
        let edge = self.snd_una + self.window.cwnd.min(offered) as u64;
        let mut end = self.snd_nxt + mss;
        while end <= edge && end < self.snd_end {
            let seq = self.snd_nxt;
            if self.timed_at == Time::NEVER {
                self.timed_at = now;
                self.timed_end = end as u32;
            }
            self.snd_nxt = end;
            self.snd_max = end;
            if self.rtx_at == Time::NEVER {
                self.arm(Timer::Retransmit, now + self.rto);
            }
            self.stats.bytes_sent += mss;
            self.send_plain(seq, self.mss, wire);
            end += mss;
        }
        // Stopped by a window with data in flight and no use for a short segment.
        end < self.snd_end
            && self.snd_una < self.snd_nxt
            && (self.window.cwnd < offered || self.max_window as u64 >= 2 * mss)
    }

    /// A segment with ACK alone and no options.
    #[inline(always)]
    fn send_plain(&mut self, seq: u64, payload: u16, wire: &mut impl Wire) {
        let mut segment = self.segment(seq, flag::ACK);
        segment.payload = payload;
        segment.header = self.header;
        segment.window = self.take_window();
        self.last_ack_sent = self.rcv_nxt;
        self.stats.segments_sent += 1;
        wire.send(segment, &[]);
    }
}
