// SPDX-License-Identifier: Apache-2.0
//! Opening a connection (RFC 9293 §3.5), both ends, also simultaneously.

use super::config::{Config, Recovery};
use super::endpoint::{Endpoint, Phase, State, opt};
use super::recovery::Scoreboard;
use super::timers::Timer;
use super::{Events, Wire};
use crate::packet::{Packet, SynOptions, flag};
use penstock_scenario::units::Time;

/// Bytes of the timestamps option with its padding.
pub(super) const TIMESTAMPS_LEN: u8 = 12;

impl Endpoint {
    pub(super) fn send_syn(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        self.snd_nxt = 1;
        self.snd_max = 1;
        self.timed_at = now;
        self.timed_end = 1;
        self.resend_syn(cfg, now, wire);
    }

    /// The SYN or SYN-ACK again, and its timer.
    pub(super) fn resend_syn(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        let mut flags = flag::SYN;
        let answer = self.state == State::SynReceived;
        if answer {
            flags |= flag::ACK;
        }
        // A retransmitted SYN no longer asks for ECN: something on the path may dislike it
        // (RFC 3168 §6.1.1.1).
        if answer && self.is(opt::ECN) {
            flags |= flag::ECE;
        } else if !answer && cfg.ecn && !self.is(opt::SYN_RETRANSMITTED) {
            flags |= flag::ECE | flag::CWR;
        }
        let offer = self.syn_options(cfg);
        let mut syn = self.segment(0, flags);
        syn.options = offer.pack();
        syn.header = cfg.header + syn_options_len(offer);
        syn.window = self.rcv_space.min(u16::MAX as u32) as u16;
        if offer.timestamps {
            self.stamp(now, &mut syn);
        }
        self.rcv_edge = self.rcv_edge.max(self.rcv_nxt + syn.window as u64);
        self.stats.segments_sent += 1;
        self.last_ack_sent = self.rcv_nxt;
        wire.send(syn, &[]);
        self.arm(Timer::Retransmit, now + self.rto);
    }

    /// What this side offers; in a SYN-ACK only what the peer offered too.
    fn syn_options(&self, cfg: &Config) -> SynOptions {
        let answer = self.state == State::SynReceived;
        SynOptions {
            mss: cfg.mss,
            window_scale: cfg
                .window_scale
                .filter(|_| !answer || self.snd_scale != NO_SCALE),
            sack: cfg.sack && (!answer || self.is(opt::SACK)),
            timestamps: cfg.timestamps && (!answer || self.is(opt::TIMESTAMPS)),
        }
    }

    /// A segment in LISTEN (RFC 9293 §3.10.7.2).
    pub(super) fn on_listen(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        wire: &mut impl Wire,
    ) {
        if segment.has(flag::RST) {
            return;
        }
        if segment.has(flag::ACK) {
            return self.refuse(cfg, segment, wire);
        }
        if segment.has(flag::SYN) {
            self.take_syn(cfg, segment);
            self.state = State::SynReceived;
            self.send_syn(cfg, now, wire);
        }
    }

    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    pub(super) fn on_syn_sent(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        wire: &mut impl Wire,
    ) -> Events {
        let acks_syn = segment.has(flag::ACK);
        if acks_syn && segment.ack != self.iss.wrapping_add(1) {
            if !segment.has(flag::RST) {
                self.refuse(cfg, segment, wire);
            }
            return Events::NONE;
        }
        if segment.has(flag::RST) {
            return if acks_syn { self.fail() } else { Events::NONE };
        }
        if !segment.has(flag::SYN) {
            return Events::NONE;
        }
        self.take_syn(cfg, segment);
        if !acks_syn {
            // Simultaneous open: the SYN is answered, and the peer answers ours.
            self.state = State::SynReceived;
            self.resend_syn(cfg, now, wire);
            return Events::NONE;
        }
        self.snd_una = 1;
        self.snd_wnd = segment.window as u32;
        self.establish(cfg, now);
        if !self.output_or_nothing(cfg, now, wire) {
            self.send_ack(cfg, now, wire);
        }
        Events::CONNECTED
    }

    /// Reads the peer's SYN: its number and its options.
    fn take_syn(&mut self, cfg: &Config, syn: &Packet) {
        let offered = SynOptions::unpack(syn.options);
        self.irs = syn.seq;
        self.rcv_nxt = 1;
        self.read = 1;
        self.opts &= !(opt::SACK | opt::TIMESTAMPS | opt::ECN);
        if cfg.sack && offered.sack {
            self.set(opt::SACK);
        }
        if cfg.timestamps && offered.timestamps && syn.has(flag::TIMESTAMPS) {
            self.set(opt::TIMESTAMPS);
            self.ts_recent = syn.ts_val;
        }
        let ecn = syn.flags & (flag::ECE | flag::CWR);
        let wanted = if syn.has(flag::ACK) {
            flag::ECE
        } else {
            flag::ECE | flag::CWR
        };
        if cfg.ecn && ecn == wanted {
            self.set(opt::ECN);
        }
        match (cfg.window_scale, offered.window_scale) {
            (Some(ours), Some(theirs)) => {
                self.rcv_scale = ours.min(14);
                self.snd_scale = theirs.min(14);
            }
            _ => {
                self.rcv_scale = 0;
                self.snd_scale = NO_SCALE;
            }
        }
        let options = if self.is(opt::TIMESTAMPS) {
            TIMESTAMPS_LEN as u16
        } else {
            0
        };
        // RFC 9293 §3.7.1: 536 where the option is missing.
        let theirs = if offered.mss == 0 { 536 } else { offered.mss };
        self.full_mss = cfg.mss.min(theirs).saturating_sub(options).max(1);
        self.mss = self.full_mss;
        self.rcv_mss = self.full_mss.min(536);
    }

    /// The handshake is done: SND.UNA is 1, the send window is known.
    pub(super) fn establish(&mut self, cfg: &Config, now: Time) {
        if self.snd_scale == NO_SCALE {
            self.snd_scale = 0;
        }
        self.state = State::Established;
        self.phase = Phase::Open;
        let mss = self.mss as u32;
        // RFC 6298 §5.7: a lost SYN means a small first flight.
        let segments = if self.attempts > cfg.syn_losses_forgiven {
            1
        } else {
            cfg.initial_window
        };
        self.window.cwnd = segments * mss;
        if cfg.ns2_windows && self.attempts > 0 {
            // A timeout like any other: the threshold fell to its minimum.
            self.window.ssthresh = 2 * mss;
        }
        if self.timed_at != Time::NEVER {
            self.rtt.sample(cfg, self.timed_at, now);
            self.rto = self.rtt.timeout(cfg);
            self.timed_at = Time::NEVER;
        }
        self.attempts = 0;
        self.rtx_at = Time::NEVER;
        self.clear(opt::SYN_RETRANSMITTED);
        self.quick = cfg.quick_acks;
        self.last_sent = now;
        self.previous_una = 1;
        self.note_window(cfg);
        self.note_plain(cfg);
        if self.is(opt::SACK) && cfg.recovery != Recovery::NewReno {
            self.board = Some(Box::new(Scoreboard::new(cfg)));
        }
    }

    /// The shift for SND.WND once established.
    pub(super) fn scale_in_force(&self) -> u8 {
        if self.snd_scale == NO_SCALE {
            0
        } else {
            self.snd_scale
        }
    }

    /// The peer refused or vanished.
    pub(super) fn fail(&mut self) -> Events {
        self.become_closed();
        let mut events = Events::RESET;
        events.add(Events::CLOSED);
        events
    }
}

/// No scaling was negotiated; holds until the connection is established.
const NO_SCALE: u8 = u8::MAX;

/// Bytes of options in a SYN, padded as Linux pads them.
fn syn_options_len(offer: SynOptions) -> u8 {
    let stamps = match (offer.timestamps, offer.sack) {
        (true, _) => TIMESTAMPS_LEN,
        (false, true) => 4,
        (false, false) => 0,
    };
    4 + stamps + if offer.window_scale.is_some() { 4 } else { 0 }
}
