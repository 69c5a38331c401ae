// SPDX-License-Identifier: Apache-2.0
//! Congestion control: the window, what it grows by and what it falls to. When it falls is
//! recovery's business.

mod bbr;
mod control;
mod cubic;
mod dctcp;
mod newreno;
mod paced;
mod window;

use super::config::{Algorithm, Config, Idle};
use super::rtt::Rtt;
use super::sender::Sender;
use crate::packet::FlowId;
pub(super) use bbr::{Feedback, Repair};
use control::Control;
use penstock_scenario::units::Time;
pub(super) use window::Progress;
use window::{Acked, Window};

/// The congestion window and all that moves it.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Congestion {
    window: Window,
    /// Part of the window that stands for duplicate ACKs (RFC 6582).
    inflation: u32,
    control: Control,
    /// Largest flight of the round under way, and the round's end; see
    /// [`Congestion::note_usage`].
    max_flight: u32,
    /// The window stopped the sender in this round.
    is_limiting: bool,
    /// The next new segment carries CWR.
    cwr_due: bool,
    round_end: u64,
    /// No further reduction by ECN before this is acknowledged; 0 for none in force.
    reduced_until: u64,
    /// When payload last left; kept only where the window changes with silence.
    last_sent: Time,
}

impl Congestion {
    /// Bytes from the start that NewReno without losses touches.
    pub const HOT: usize = size_of::<Window>();

    /// Before any connection.
    pub fn new() -> Congestion {
        Congestion {
            window: Window::default(),
            inflation: 0,
            control: Control::NewReno,
            max_flight: 0,
            is_limiting: false,
            cwr_due: false,
            round_end: 0,
            reduced_until: 0,
            last_sent: Time::ZERO,
        }
    }

    /// Before the handshake.
    pub fn open(&mut self, cfg: &Config, flow: FlowId) {
        *self = Congestion {
            control: Control::new(cfg, flow),
            ..Congestion::new()
        };
        self.window.ssthresh = cfg.initial_ssthresh;
    }

    /// The handshake is complete: the initial window. `attempts`: retransmissions of the SYN.
    pub fn establish(&mut self, cfg: &Config, now: Time, mss: u16, attempts: u8, sack: bool) {
        if self.is_modelled() && !sack {
            self.control = Control::NewReno;
        }
        // RFC 6298 §5.7: a lost SYN means a small first flight.
        let segments = if attempts > cfg.syn_losses_forgiven {
            1
        } else {
            cfg.initial_window
        };
        self.window.cwnd = segments.saturating_mul(mss.into());
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.establish(now);
        }
        if cfg.ns2_windows && attempts > 0 {
            // A timeout like any other: the threshold fell to its minimum.
            self.window.ssthresh = 2 * mss as u32;
        }
        self.last_sent = now;
    }

    /// The congestion window, bytes.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// The slow-start threshold, bytes.
    #[inline]
    pub fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Bytes in 1/1024 of a second at the rate that Linux would pace at, whether or not it does
    /// (`tcp_update_pacing_rate`): two windows per smoothed round trip early in slow start, else 1.2.
    pub fn bytes_per_tick(&self, smoothed: Time, outstanding: u32) -> u64 {
        const TICK: u64 = Time::from_secs(1).0 / 1024;
        let percent = if self.window.cwnd < self.window.ssthresh / 2 {
            200
        } else {
            120
        };
        let window = self.window.cwnd.max(outstanding) as u64;
        (window * percent / 100).saturating_mul(TICK) / smoothed.0.max(1)
    }

    /// Grows NewReno's window for `acked` bytes, whether it was used or not; for connections that
    /// use neither ECN nor [`Config::validate_cwnd`].
    #[inline]
    pub fn grow_plainly(&mut self, cfg: &Config, acked: u32, mss: u16) {
        newreno::grow(cfg, &mut self.window, acked, mss as u32);
    }

    /// Grows the window for what an ACK showed, if it was used.
    pub fn grow(&mut self, cfg: &Config, now: Time, progress: Progress, snd: &Sender, rtt: &Rtt) {
        if self.is_reduced() || cfg.validate_cwnd && !self.may_grow(cfg, snd.mss() as u32) {
            return;
        }
        let ack = acked(cfg, now, progress, snd, rtt);
        self.control.on_ack(cfg, &mut self.window, &ack);
    }

    /// Whether the window was used (Linux's `tcp_is_cwnd_limited`): in slow start it may become twice
    /// what was.
    fn may_grow(&self, cfg: &Config, mss: u32) -> bool {
        if self.is_limiting {
            return true;
        }
        let used = if cfg.has_whole_windows() {
            self.max_flight.next_multiple_of(mss)
        } else {
            self.max_flight
        };
        self.window.in_slow_start() && self.window.cwnd < used.saturating_mul(2)
    }

    /// Takes the round trip that an ACK showed, whether or not the window may grow.
    #[inline]
    pub fn on_round_trip(
        &mut self,
        cfg: &Config,
        now: Time,
        progress: Progress,
        snd: &Sender,
        rtt: &Rtt,
    ) {
        if cfg.has_whole_windows() && progress.sample != Time::ZERO {
            let ack = acked(cfg, now, progress, snd, rtt);
            self.control.on_round_trip(cfg, &mut self.window, &ack);
        }
    }

    /// What a decrease is computed from: the window as far as the send window lets it be used (ns-2,
    /// Linux; RFC 5681 §3.1 eqn 4 has the bytes in flight).
    fn decrease_base(&self, cfg: &Config) -> u32 {
        self.window.cwnd.min(cfg.max_send_window)
    }

    /// The slow-start threshold falls because of a loss.
    fn lower_threshold(&mut self, cfg: &Config, mss: u32) {
        let base = self.decrease_base(cfg);
        let threshold = self.control.on_loss(&self.window, base, mss);
        self.window.ssthresh = if cfg.ns2_windows {
            // An integer number of segments there.
            (threshold / mss * mss).max(2 * mss)
        } else {
            whole(cfg, threshold, mss)
        };
    }

    /// Whether a loss found now belongs to a window that ECN has already reduced. DCTCP, whose
    /// reduction may have been slight, answers the loss nevertheless (RFC 8257 §3.5).
    fn has_answered(&self, cfg: &Config) -> bool {
        self.is_reduced() && cfg.congestion != Algorithm::Dctcp
    }

    /// A loss starts fast recovery without SACK: the window is halved, then inflated by the segments
    /// that the duplicate ACKs show to have arrived (RFC 5681 §3.2).
    pub fn enter_fast_recovery(&mut self, cfg: &Config, mss: u16) {
        let mss = mss as u32;
        if !self.has_answered(cfg) {
            let base = self.decrease_base(cfg);
            self.lower_threshold(cfg, mss);
            self.window.cwnd = if cfg.ns2_windows {
                // Not raised to the threshold's minimum of two segments.
                (base / 2).max(mss)
            } else {
                self.window.ssthresh
            };
            self.cwr_due = true;
        }
        self.window.credit = 0;
        self.inflation = cfg.dupack_threshold as u32 * mss;
        self.window.cwnd += self.inflation;
    }

    /// Another duplicate ACK in fast recovery: one more segment has arrived.
    pub fn inflate(&mut self, mss: u16) {
        self.inflation += mss as u32;
        self.window.cwnd = self.window.cwnd.saturating_add(mss as u32);
    }

    /// A partial ACK: deflates by the `acked` bytes that left the network, less the segment that is
    /// now sent again (RFC 6582 §3.2 step 3).
    pub fn deflate(&mut self, acked: u32, mss: u16) {
        let mss = mss as u32;
        let base = self.window.cwnd - self.inflation;
        let beyond = acked.saturating_sub(self.inflation);
        self.inflation = self.inflation.saturating_sub(acked);
        if acked >= mss {
            self.inflation += mss;
        }
        self.window.cwnd = base.saturating_sub(beyond).max(mss) + self.inflation;
    }

    /// Takes back all inflation.
    pub fn end_inflation(&mut self) {
        self.window.cwnd -= self.inflation;
        self.inflation = 0;
    }

    /// The window when recovery without SACK ends: the threshold, or one segment more than is in
    /// flight, which sends no burst (RFC 6582 §3.2 step 3, the first of two allowed).
    pub fn end_fast_recovery(&mut self, flight: u32, mss: u16) {
        let mss = mss as u32;
        self.window.cwnd = self.window.ssthresh.min(flight.max(mss) + mss);
    }

    /// A loss starts recovery with SACK: the window falls to the new threshold.
    pub fn enter_selective_recovery(&mut self, cfg: &Config, mss: u16) {
        if let Control::Bbr(bbr) = &mut self.control {
            return bbr.save_window(&self.window);
        }
        self.window.credit = 0;
        if !self.has_answered(cfg) {
            self.lower_threshold(cfg, mss as u32);
            self.cwr_due = true;
        }
        self.window.cwnd = self.window.ssthresh;
    }

    /// One decrease for a loss that a probe has already repaired.
    pub fn reduce_once(&mut self, cfg: &Config, mss: u16) {
        if self.is_modelled() {
            return;
        }
        self.lower_threshold(cfg, mss as u32);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.window.credit = 0;
        self.cwr_due = true;
    }

    /// The window is `cwnd` bytes: recovery with SACK sets it.
    pub fn set_cwnd(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd;
    }

    /// A retransmission timeout: the window falls to one segment (RFC 5681 §3.1). `lower`: the
    /// threshold falls too, as this is the first timeout of this data.
    pub fn on_timeout(&mut self, cfg: &Config, now: Time, mss: u16, lower: bool) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_timeout(&self.window, now);
        } else if lower {
            self.lower_threshold(cfg, mss as u32);
        }
        self.control.on_rto();
        self.window.cwnd = mss as u32;
        self.window.credit = 0;
        self.inflation = 0;
        self.reduced_until = 0;
        self.cwr_due = true;
    }

    /// Window and threshold, as they are to be restored if what comes next was needless
    /// (`tcp_current_ssthresh`).
    pub fn to_restore(&self, cfg: &Config, mss: u16) -> (u32, u32) {
        let cwnd = self.window.cwnd;
        let part = |divisor| whole(cfg, cwnd / divisor, mss as u32);
        (cwnd, self.window.ssthresh.max(part(2) + part(4)))
    }

    /// A reduction was needless (`tcp_undo_cwnd_reduction`).
    pub fn restore(&mut self, cwnd: u32, threshold: u32) {
        if !self.is_modelled() {
            self.window.cwnd = self.window.cwnd.max(cwnd);
            self.window.ssthresh = self.window.ssthresh.max(threshold);
            self.cwr_due = false;
        }
    }

    /// An ACK of `acked` new bytes arrived, with or without ECE.
    pub fn note_echo(&mut self, snd: &Sender, acked: u32, echo: bool) {
        self.control.on_echo(acked, echo, snd.una(), snd.nxt());
        if snd.una() >= self.reduced_until {
            self.reduced_until = 0;
        }
    }

    /// Reduces the window by ECN, once a round trip (RFC 3168 §6.1.2); false where a reduction is in
    /// force already.
    pub fn reduce_by_ecn(&mut self, cfg: &Config, snd: &Sender) -> bool {
        if self.is_reduced() {
            return false;
        }
        if self.is_modelled() {
            self.cwr_due = true;
            return false;
        }
        let base = self.decrease_base(cfg);
        let mss = snd.mss() as u32;
        let threshold = self.control.on_ecn(&self.window, base, mss);
        self.window.ssthresh = whole(cfg, threshold, mss);
        self.window.cwnd = self.window.ssthresh;
        self.window.credit = 0;
        self.cwr_due = true;
        self.reduced_until = snd.nxt();
        true
    }

    /// Whether a reduction by ECN is in force, during which the window does not grow.
    fn is_reduced(&self) -> bool {
        self.reduced_until != 0
    }

    /// Whether the next new segment reports a reduction by CWR (RFC 3168 §6.1.2, where ECN is in
    /// use); true once for each.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_due)
    }

    /// Remembers how much of the window was in use (Linux's `tcp_cwnd_validate`). `is_limiting`: the
    /// window has just stopped the sender.
    pub fn note_usage(&mut self, snd: &Sender, is_limiting: bool) {
        let flight = snd.outstanding();
        if snd.una() >= self.round_end
            || is_limiting
            || (!self.is_limiting && flight > self.max_flight)
        {
            self.is_limiting = is_limiting;
            self.max_flight = flight;
            self.round_end = snd.nxt();
        }
    }

    /// Payload left.
    #[inline]
    pub fn on_sent(&mut self, cfg: &Config, now: Time) {
        if cfg.idle != Idle::Keep {
            self.last_sent = now;
        }
    }

    /// When a segment last left, where silence changes the window.
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// All is acknowledged and something is to be sent: the window after more than a `timeout` of
    /// silence (RFC 5681 §4.1).
    pub fn resume_after_idle(&mut self, cfg: &Config, now: Time, mss: u16, timeout: Time) {
        if let Control::Bbr(bbr) = &mut self.control {
            return bbr.on_restart(&mut self.window, now);
        }
        let silence = now.saturating_sub(self.last_sent);
        let is_long = silence > timeout;
        self.control.on_idle(cfg, now, silence, is_long);
        if !is_long {
            return;
        }
        let restart = cfg.initial_window.saturating_mul(mss.into());
        let restart = restart.min(self.window.cwnd);
        match cfg.idle {
            Idle::Keep => {}
            Idle::Decay => {
                // tcp_cwnd_restart: what was known stays in the threshold.
                let (cwnd, mss) = (self.window.cwnd, mss as u32);
                let known = whole(cfg, cwnd - cwnd / 4, mss);
                self.window.ssthresh = self.window.ssthresh.max(known);
                let halvings = (silence.0 / timeout.0.max(1)).min(31) as u32;
                self.window.cwnd = whole(cfg, cwnd >> halvings, mss).max(restart);
            }
        }
        // Once per silence, even if nothing can be sent now.
        self.last_sent = now;
    }
}

/// `bytes` as a congestion window: of whole segments where windows are (at least one), else as they are.
fn whole(cfg: &Config, bytes: u32, mss: u32) -> u32 {
    if cfg.has_whole_windows() {
        (bytes / mss * mss).max(mss)
    } else {
        bytes
    }
}

/// An ACK as the algorithms see it.
fn acked(cfg: &Config, now: Time, progress: Progress, snd: &Sender, rtt: &Rtt) -> Acked {
    Acked {
        now,
        bytes: progress.acked,
        segments: progress.segments,
        mss: snd.mss() as u32,
        una: snd.una(),
        nxt: snd.nxt(),
        rtt: progress.sample,
        smoothed: rtt.smoothed(cfg),
    }
}
