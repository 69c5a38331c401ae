// SPDX-License-Identifier: Apache-2.0
//! Opening a connection (RFC 9293 §3.5), both ends, also simultaneously.

use super::Endpoint;
use crate::packet::{Packet, SynOptions, flag};
use crate::tcp::acks::Acks;
use crate::tcp::config::Config;
use crate::tcp::connection::State;
use crate::tcp::recovery::Recovery;
use crate::tcp::rtt::Rtt;
use crate::tcp::segment::{TIMESTAMPS_LEN, echoed, syn_options_len};
use crate::tcp::timers::Timers;
use crate::tcp::{Ctx, Events, Wire};
use penstock_scenario::units::Time;

impl Endpoint {
    /// LISTEN or SYN-SENT: all parts start over.
    pub(super) fn open(&mut self, cfg: &Config, state: State) {
        self.conn.open(cfg, state);
        self.snd.open(cfg.initial_sequence.of(self.conn.flow()));
        self.rcv.open(cfg);
        self.acks = Acks::new();
        self.rtt = Rtt::new();
        self.timers = Timers::new();
        self.timers.set_timeout(cfg, &self.rtt);
        self.congestion.open(cfg, self.conn.flow());
        self.recovery = Recovery::new();
    }

    /// The SYN or SYN-ACK for the first time.
    pub(super) fn send_syn(&mut self, ctx: &mut Ctx<impl Wire>) {
        self.snd.on_syn_sent();
        self.timers.time(1, ctx.now);
        self.resend_syn(ctx);
    }

    /// The SYN or SYN-ACK again, and its timer.
    pub(super) fn resend_syn(&mut self, ctx: &mut Ctx<impl Wire>) {
        let mut flags = flag::SYN;
        let answers = self.conn.state() == State::SynReceived;
        if answers {
            flags |= flag::ACK;
        }
        // A retransmitted SYN no longer asks for ECN: something on the path may dislike it
        // (RFC 3168 §6.1.1.1).
        if answers && self.conn.has_ecn() {
            flags |= flag::ECE;
        } else if !answers && ctx.cfg.ecn && self.timers.attempts() == 0 {
            flags |= flag::ECE | flag::CWR;
        }
        let offer = self.conn.offer(ctx.cfg);
        let mut syn = self.segment(0, flags);
        syn.options = offer.pack();
        syn.header = ctx.cfg.header + syn_options_len(offer);
        if offer.timestamps {
            self.stamp(ctx.now, &mut syn);
        }
        self.emit_syn(ctx, syn);
        self.timers.arm_retransmit(ctx.cfg, ctx.now);
    }

    /// A segment in LISTEN (RFC 9293 §3.10.7.2).
    pub(super) fn on_listen(&mut self, ctx: &mut Ctx<impl Wire>, segment: &Packet) {
        if segment.has(flag::RST) {
            return;
        }
        if segment.has(flag::ACK) {
            return self.refuse(ctx, segment);
        }
        if segment.has(flag::SYN) {
            self.take_syn(ctx.cfg, segment);
            self.conn.on_syn();
            self.send_syn(ctx);
        }
    }

    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    pub(super) fn on_syn_sent(&mut self, ctx: &mut Ctx<impl Wire>, segment: &Packet) -> Events {
        let acks_syn = segment.has(flag::ACK);
        if acks_syn && !self.snd.is_ack_of_syn(segment.ack) {
            if !segment.has(flag::RST) {
                self.refuse(ctx, segment);
            }
            return Events::NONE;
        }
        if segment.has(flag::RST) {
            return if acks_syn { self.fail() } else { Events::NONE };
        }
        if !segment.has(flag::SYN) {
            return Events::NONE;
        }
        self.take_syn(ctx.cfg, segment);
        if !acks_syn {
            // Simultaneous open: the SYN is answered, and the peer answers ours.
            self.conn.on_syn();
            self.resend_syn(ctx);
            return Events::NONE;
        }
        self.snd.on_syn_acked(segment.window, false);
        self.establish(ctx.cfg, ctx.now, segment);
        if ctx.cfg.bursts {
            self.send_ack(ctx);
            self.write_first(ctx);
        } else if !self.output_or_nothing(ctx) {
            self.send_ack(ctx);
        }
        Events::CONNECTED
    }

    /// Reads the peer's SYN: its number and its options.
    fn take_syn(&mut self, cfg: &Config, syn: &Packet) {
        let offered = SynOptions::unpack(syn.options);
        self.conn.negotiate(cfg, syn);
        let has_timestamps = self.conn.has_timestamps();
        let options = if has_timestamps { TIMESTAMPS_LEN } else { 0 };
        // RFC 9293 §3.7.1: 536 where the option is missing.
        let peer_mss = if offered.mss == 0 { 536 } else { offered.mss };
        let mss = cfg.mss.min(peer_mss).saturating_sub(options as u16).max(1);
        let (own_scale, peer_scale) = match (cfg.window_scale, offered.window_scale) {
            (Some(own), Some(peer)) => (own.min(14), peer.min(14)),
            _ => (0, 0),
        };
        self.rcv.on_syn(syn, own_scale, has_timestamps);
        self.snd.negotiate(mss, peer_scale);
    }

    /// The handshake is done by this segment: SND.UNA is 1, the send window is known.
    pub(super) fn establish(&mut self, cfg: &Config, now: Time, by: &Packet) {
        self.conn.establish(cfg);
        self.acks.establish(cfg, self.snd.mss(), now);
        self.rcv.establish(cfg, self.snd.mss(), now);
        self.recovery.establish(cfg, self.conn.has_sack());
        let mut losses = self.timers.attempts();
        // A lost SYN-ACK is sent again by its own timer, and for the SYN that comes again (Linux
        // counts both: `num_retrans`, and `tcp_init_transfer`, which heeds them if the timer did).
        if losses > 0 && self.conn.has_syn_again() {
            losses = losses.saturating_add(1);
        }
        let (mss, sack) = (self.snd.mss(), self.recovery.is_selective());
        self.congestion.establish(cfg, now, mss, losses, sack);
        self.conn.set_paced(self.congestion.is_modelled());
        // Of one that was sent twice, the timestamp shows which was answered (RFC 7323 §4.1).
        let stamped = || match self.conn.has_timestamps() {
            true => echoed(now, by),
            false => None,
        };
        if let Some(sent) = self.timers.take_timed(self.snd.una()).or_else(stamped) {
            self.sample(cfg, sent, now);
        }
        self.timers.on_answer();
        self.timers.stop();
        self.snd.note_window(cfg);
    }
}
