// SPDX-License-Identifier: Apache-2.0
//! The application's calls, and what it may ask.

use super::config::{Config, InitialSequence};
use super::congestion::Congestion;
use super::endpoint::{Endpoint, State, opt};
use super::{Stats, Wire};
use crate::rng::Rng;
use penstock_scenario::units::Time;

impl Endpoint {
    /// Waits for a SYN.
    pub fn listen(&mut self, cfg: &Config) {
        self.reset_to(cfg, State::Listen);
    }

    /// Sends a SYN. What was written before is kept and sent once the connection stands.
    pub fn connect(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        self.reset_to(cfg, State::SynSent);
        self.set(opt::ACTIVE);
        self.send_syn(cfg, now, wire);
    }

    fn reset_to(&mut self, cfg: &Config, state: State) {
        // Written before the first connection only; a past one leaves nothing behind.
        let written = if self.snd_max == 0 { self.snd_end } else { 1 };
        let fin = if self.snd_max == 0 {
            self.opts & opt::FIN
        } else {
            0
        };
        *self = Endpoint {
            snd_end: written,
            stats: self.stats,
            ..Endpoint::new(self.flow)
        };
        self.state = state;
        self.header = cfg.header;
        self.opts = fin;
        self.iss = match cfg.initial_sequence {
            InitialSequence::Fixed(iss) => iss,
            InitialSequence::Seeded(seed) => Rng::new(seed, self.flow.0 as u64).bits() as u32,
        };
        self.rto = self.rtt.timeout(cfg);
        self.rcv_space = cfg.receive_buffer.min(cfg.initial_receive_window);
        if self.rcv_space < cfg.receive_buffer {
            self.set(opt::WINDOW_GROWS);
        }
        self.congestion = Congestion::new(cfg.congestion);
        self.window.ssthresh = cfg.initial_ssthresh;
    }

    /// Queues `bytes` for sending (`u64::MAX / 2` never ends) and sends what may be sent. The
    /// last segment carries PSH. Ignored after [`Endpoint::close`].
    pub fn write(&mut self, cfg: &Config, now: Time, bytes: u64, wire: &mut impl Wire) {
        if self.is(opt::FIN) || bytes == 0 {
            return;
        }
        self.snd_end = self.snd_end.saturating_add(bytes).min(u64::MAX / 2);
        self.set(opt::UNREPORTED);
        if self.can_send() {
            self.output(cfg, now, wire);
        }
    }

    /// Closes the sending direction: a FIN follows what was written.
    pub fn close(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        match self.state {
            State::Closed => return,
            State::Listen => return self.become_closed(),
            _ => self.set(opt::FIN),
        }
        if self.can_send() {
            self.output(cfg, now, wire);
        }
    }

    /// Drops the connection with a RST (RFC 9293 §3.10.5).
    pub fn abort(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        if self.state >= State::SynReceived && self.state < State::TimeWait {
            self.send_reset(cfg, now, wire);
        }
        self.become_closed();
    }

    /// The application stops reading: what arrives fills the receive buffer until
    /// [`Endpoint::read`] takes it.
    pub fn pause_reading(&mut self) {
        if !self.is(opt::PAUSED) {
            self.set(opt::PAUSED);
            self.read = self.rcv_nxt;
        }
    }

    /// Reads up to `bytes` that were delivered while reading is paused; tells the peer of the
    /// window if that opens it enough. Returns the bytes read.
    pub fn read(&mut self, cfg: &Config, now: Time, bytes: u64, wire: &mut impl Wire) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        self.offer_window(cfg, now, wire);
        taken
    }

    /// The application reads all there is, and from now on at once.
    pub fn resume_reading(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        self.clear(opt::PAUSED);
        self.offer_window(cfg, now, wire);
    }

    /// Payload bytes waiting to be read; 0 unless reading is paused.
    pub fn readable(&self) -> u64 {
        if self.is(opt::PAUSED) {
            self.rcv_nxt - self.is(opt::PEER_FIN) as u64 - self.read
        } else {
            0
        }
    }

    /// When [`Endpoint::on_timer`] wants to be called; [`Time::NEVER`] for no timer.
    #[inline]
    pub fn deadline(&self, cfg: &Config) -> Time {
        cfg.beat_after(self.rtx_at.min(self.ack_at))
    }

    /// Payload bytes received in order so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.rcv_nxt
            .saturating_sub(1 + self.is(opt::PEER_FIN) as u64)
    }

    /// Payload bytes the peer has acknowledged so far.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.snd_una.min(self.snd_end).saturating_sub(1)
    }

    /// Payload bytes written so far.
    pub fn written(&self) -> u64 {
        self.snd_end - 1
    }

    /// Counters since [`Endpoint::new`].
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Payload of a full segment in force, bytes.
    pub fn mss(&self) -> u16 {
        self.mss
    }

    /// Retransmission timeout in force, back-off included.
    pub fn rto(&self) -> Time {
        self.rto
    }

    /// The window the peer offers, bytes.
    pub fn send_window(&self) -> u32 {
        self.snd_wnd
    }
}
