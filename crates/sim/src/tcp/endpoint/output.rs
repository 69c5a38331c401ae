// SPDX-License-Identifier: Apache-2.0
//! What may be sent now.

use super::Endpoint;
use crate::packet::flag;
use crate::tcp::config::{Config, Idle};
use crate::tcp::recovery::NextLost;
use crate::tcp::sender::{Wait, largest_burst};
use crate::tcp::timers::Timer;
use crate::tcp::{Ctx, Wire};
use penstock_scenario::units::Time;

/// What a sender of Linux keeps in the queue of its own host, a millisecond at its rate
/// (`tcp_small_queue_check`). Here it may keep more, but its window does not grow then.
const SMALL_QUEUE: Time = Time::from_millis(1);

/// Why the sender stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Nothing left to send.
    Empty,
    /// By the congestion window.
    Congestion,
    /// By the peer's window, Nagle or silly-window avoidance.
    Window,
    /// By pacing.
    Pacing,
}

impl Endpoint {
    /// Sends all that the windows allow, in the states that allow it; true if anything left.
    pub(super) fn output_or_nothing(&mut self, ctx: &mut Ctx<impl Wire>) -> bool {
        let before = self.snd.segments_sent();
        if self.conn.can_send() {
            self.output(ctx);
        }
        self.snd.segments_sent() != before
    }

    /// Sends all that the windows allow.
    #[inline]
    pub(super) fn output(&mut self, ctx: &mut Ctx<impl Wire>) {
        let cfg = ctx.cfg;
        if cfg.idle != Idle::Keep && self.snd.is_idle() && self.snd.nxt() > 1 {
            self.resume_after_idle(ctx);
        }
        let sent = self.snd.max();
        let has_new = !self.snd.is_drained();
        let mut stop = self.send_due(ctx);
        if self.recovery.gives_up_new(&self.snd) {
            stop = self.send_due(ctx);
        }
        if self.conn.is_paced() {
            self.after_burst(ctx, stop);
        }
        if !matches!(stop, Stop::Congestion | Stop::Pacing)
            && let Some(last) = self.recovery.rescue(&self.snd, &self.congestion, ctx.now)
        {
            self.resend(ctx, last.seq, last.len);
        }
        if cfg.tlp && self.snd.max() != sent && !self.timers.is(Timer::Reorder) {
            let (recovery, mut parts) = self.repair(cfg, ctx.now);
            let from = recovery.timeout_start(&parts);
            recovery.arm_probe_or_timeout(&mut parts, from);
        }
        if stop == Stop::Window && self.snd.is_idle() && !self.timers.is_running() {
            self.timers.arm_persist(cfg, ctx.now);
        }
        if cfg.validate_cwnd {
            self.note_usage(ctx, stop, has_new, self.snd.max() != sent);
        }
    }

    /// Sends what is lost, then what is new.
    #[inline]
    fn send_due(&mut self, ctx: &mut Ctx<impl Wire>) -> Stop {
        if self.retransmit_lost(ctx) {
            Stop::Congestion
        } else {
            self.send_new(ctx)
        }
    }

    /// Remembers how much of the congestion window is in use. `has_new`: there was something new to
    /// send, of which something left (`has_sent`).
    #[inline]
    fn note_usage(&mut self, ctx: &Ctx<impl Wire>, stop: Stop, has_new: bool, has_sent: bool) {
        let mut is_limiting = stop == Stop::Congestion;
        if ctx.cfg.has_whole_windows() {
            // As Linux's tcp_write_xmit: also if the last segment filled the window, and not where
            // nothing was to be sent.
            let in_flight = self.recovery.in_flight(&self.snd);
            let room = self.congestion.cwnd().saturating_sub(in_flight);
            is_limiting |= room < self.snd.mss() as u32;
            // TCP small queues would stop the sender before its window does.
            is_limiting &= ctx.wire.host_wait(self.conn.flow(), room) <= SMALL_QUEUE;
            if !has_new || !has_sent && !is_limiting {
                return;
            }
        }
        self.congestion.note_usage(&self.snd, is_limiting);
    }

    /// A congestion control that paces has sent all it may for now.
    #[cold]
    fn after_burst(&mut self, ctx: &Ctx<impl Wire>, stop: Stop) {
        // Also where what is lost waits.
        let is_waiting = matches!(stop, Stop::Congestion | Stop::Pacing);
        self.congestion.end_burst(ctx.now, is_waiting);
        if stop == Stop::Empty {
            let in_flight = self.recovery.in_flight(&self.snd);
            self.congestion.limit_by_application(in_flight);
        }
    }

    /// Nothing is in flight: the window may have to shrink first.
    fn resume_after_idle(&mut self, ctx: &mut Ctx<impl Wire>) {
        if !self.snd.is_drained() {
            let (mss, timeout) = (self.snd.mss(), self.timers.timeout());
            self.congestion
                .resume_after_idle(ctx.cfg, ctx.now, mss, timeout);
        }
    }

    /// Sends again what is lost, as far as the window allows. True where more waits.
    fn retransmit_lost(&mut self, ctx: &mut Ctx<impl Wire>) -> bool {
        loop {
            let next = self
                .recovery
                .next_lost(&self.snd, &self.congestion, ctx.now);
            match next {
                NextLost::None => return false,
                NextLost::Blocked => return true,
                NextLost::Send(lost) => {
                    self.resend(ctx, lost.seq, lost.len);
                    self.time_resent(ctx, lost.seq);
                }
            }
        }
    }

    /// Sets the timer for what has left again. In Linux it starts over with the first segment in flight
    /// (`tcp_xmit_retransmit_queue`).
    fn time_resent(&mut self, ctx: &Ctx<impl Wire>, seq: u64) {
        let starts_over = ctx.cfg.has_whole_windows() && seq == self.snd.una();
        if starts_over && !self.timers.is(Timer::Reorder) {
            self.timers.arm_retransmit(ctx.cfg, ctx.now);
        } else {
            self.timers.ensure_retransmit(ctx.cfg, ctx.now);
        }
    }

    /// Sends from SND.NXT until something stops it.
    #[inline]
    fn send_new(&mut self, ctx: &mut Ctx<impl Wire>) -> Stop {
        loop {
            if let Some(stop) = self.send_next(ctx) {
                return stop;
            }
        }
    }

    /// Sends one segment from SND.NXT, or returns why not.
    #[inline]
    fn send_next(&mut self, ctx: &mut Ctx<impl Wire>) -> Option<Stop> {
        if self.snd.unsent() == 0 {
            if self.snd.is_fin_due() {
                self.transmit_next(ctx, 0);
            }
            return Some(Stop::Empty);
        }
        let in_flight = self.recovery.in_flight(&self.snd);
        // The window may have shrunk below what was sent: its head may always be tried.
        let must_try = self.recovery.is_after_timeout() && self.snd.nxt() == self.snd.una();
        if ctx.cfg.bursts && !must_try && !self.conn.is_paced() {
            return self.send_burst(ctx, in_flight);
        }
        let Some(len) = self.snd.next_len(ctx.cfg, in_flight, must_try) else {
            return Some(Stop::Window);
        };
        let room = self.congestion.cwnd().saturating_sub(in_flight);
        if room < len as u32 && in_flight > 0 {
            return Some(Stop::Congestion);
        }
        if self.conn.is_paced() && self.congestion.is_held(ctx.now) {
            return Some(Stop::Pacing);
        }
        self.transmit_next(ctx, len);
        if len < self.snd.mss() {
            self.snd.note_short();
        }
        None
    }

    /// Sends several segments from SND.NXT at once, or returns why not.
    fn send_burst(&mut self, ctx: &mut Ctx<impl Wire>, in_flight: u32) -> Option<Stop> {
        let cwnd = self.congestion.cwnd();
        let room = cwnd.saturating_sub(in_flight);
        let largest = self.largest_burst(ctx.cfg);
        let most = largest.min(cwnd / 2);
        let burst = match self
            .snd
            .next_burst(ctx.cfg, &mut self.pieces, in_flight, room, most)
        {
            Ok(burst) => burst,
            Err(Wait::Congestion) => return Some(Stop::Congestion),
            Err(Wait::Window) => return Some(Stop::Window),
        };
        let mss = self.snd.mss() as u32;
        if burst.len > mss || self.snd.unsent() > mss as u64 {
            let usable = self.snd.usable(ctx.cfg);
            if self.defers(ctx, room.min(usable), largest) {
                return Some(if room < usable {
                    Stop::Congestion
                } else {
                    Stop::Window
                });
            }
        }
        let mut left = burst.len;
        while left > mss {
            self.transmit_next(ctx, mss as u16);
            left -= mss;
        }
        let push = if burst.pushes { flag::PSH } else { 0 };
        self.transmit_next_with(ctx, left as u16, flag::ACK | push);
        if left < mss {
            self.snd.note_short();
        }
        None
    }

    /// What leaves at once at most: what the pacing rate sends in 1/1024 of a second, and more on a short
    /// path, but at least two segments (`tcp_tso_autosize`).
    fn largest_burst(&self, cfg: &Config) -> u32 {
        let outstanding = self.snd.outstanding();
        let smoothed = self.rtt.smoothed(cfg);
        let paced = self.congestion.bytes_per_tick(smoothed, outstanding);
        largest_burst(paced, self.rtt.min(), self.snd.mss() as u32)
    }

    /// Whether a burst of at most `limit` bytes waits for the next ACK, to become longer: while less
    /// than a third of the window and than `largest` may leave, the last burst left within a
    /// millisecond, and an ACK is about to arrive (`tcp_tso_should_defer`). One that takes all up to
    /// the FIN will not become longer.
    fn defers(&self, ctx: &Ctx<impl Wire>, limit: u32, largest: u32) -> bool {
        let millisecond = Time::from_millis(1);
        let window = self.congestion.cwnd().min(self.snd.window());
        if limit >= largest
            || limit >= window / 3
            || self.snd.is_finishing() && limit as u64 > self.snd.unsent()
            || !self.recovery.is_growing()
            || ctx.now > self.congestion.last_sent() + millisecond
        {
            return false;
        }
        let round_trip = self.rtt.smoothed(ctx.cfg);
        let soon = Time(round_trip.0 / 2).min(millisecond);
        self.recovery.head_sent(ctx.now) + round_trip <= ctx.now + soon
    }

    /// Sends `len` bytes from SND.NXT and moves it.
    #[inline]
    pub(super) fn transmit_next(&mut self, ctx: &mut Ctx<impl Wire>, len: u16) {
        self.transmit_next_with(ctx, len, flag::ACK);
    }

    #[inline]
    fn transmit_next_with(&mut self, ctx: &mut Ctx<impl Wire>, len: u16, flags: u16) {
        let (seq, max) = (self.snd.nxt(), self.snd.max());
        let end = self.transmit_with(ctx, seq, len, flags);
        self.snd.on_sent(end);
        if end > max {
            let is_noted = self.recovery.on_sent(seq, (end - seq) as u16, ctx.now);
            if !is_noted && seq >= max {
                self.timers.time(end, ctx.now);
            }
            if self.snd.is_fin_sent() {
                self.conn.on_fin_sent();
            }
        }
        self.timers.ensure_retransmit(ctx.cfg, ctx.now);
        self.congestion.on_sent(ctx.cfg, ctx.now);
    }

    /// Sends a new segment even if the congestion window is full (RFC 8985 §7.3); true if it left.
    pub(super) fn send_beyond_cwnd(&mut self, ctx: &mut Ctx<impl Wire>) -> bool {
        let len = self.snd.next_whole(ctx.cfg);
        if len > 0 {
            self.transmit_next(ctx, len);
        }
        len > 0
    }

    /// Sends a new segment if no more than `window` bytes are in flight with it (RFC 3042).
    pub(super) fn send_within(&mut self, ctx: &mut Ctx<impl Wire>, window: u64) {
        let len = self.snd.next_whole(ctx.cfg);
        if len > 0 && self.snd.nxt() + len as u64 <= self.snd.una() + window {
            self.transmit_next(ctx, len);
        }
    }
}
