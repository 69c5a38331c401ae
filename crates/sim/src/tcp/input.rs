// SPDX-License-Identifier: Apache-2.0
//! An arriving segment.

use super::config::Config;
use super::endpoint::{Endpoint, State, opt};
use super::{Events, Wire};
use crate::packet::{Packet, SackBlock, flag};
use penstock_scenario::units::Time;

impl Endpoint {
    /// Takes a segment with its SACK blocks, answers as TCP must, and tells what happened.
    #[inline]
    pub fn on_segment(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        sack: &[SackBlock],
        wire: &mut impl Wire,
    ) -> Events {
        if sack.is_empty()
            && let Some(events) = self.on_expected(cfg, now, segment, wire)
        {
            return events;
        }
        self.on_any_segment(cfg, now, segment, sack, wire)
    }

    /// Everything that is not an expected segment of a quiet connection.
    #[inline(never)]
    fn on_any_segment(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        sack: &[SackBlock],
        wire: &mut impl Wire,
    ) -> Events {
        match self.state {
            State::Closed => {
                if !segment.has(flag::RST) {
                    self.refuse(cfg, segment, wire);
                }
                Events::NONE
            }
            State::Listen => {
                self.on_listen(cfg, now, segment, wire);
                Events::NONE
            }
            State::SynSent => self.on_syn_sent(cfg, now, segment, wire),
            _ => self.on_synchronized(cfg, now, segment, sack, wire),
        }
    }

    /// RFC 9293 §3.10.7.4: SYN-RECEIVED and later.
    fn on_synchronized(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        sack: &[SackBlock],
        wire: &mut impl Wire,
    ) -> Events {
        let seq = Endpoint::offset(self.rcv_nxt, self.irs, segment.seq);
        let length =
            segment.payload as u64 + segment.has(flag::SYN) as u64 + segment.has(flag::FIN) as u64;
        if self.is_outdated(segment) || !self.is_acceptable(seq, length) {
            return self.on_unacceptable(cfg, now, segment, seq, wire);
        }
        if segment.has(flag::RST) {
            return self.on_reset(cfg, now, seq, wire);
        }
        if segment.has(flag::SYN) {
            // Challenged (RFC 5961 §4.2).
            self.send_ack(cfg, now, wire);
            return Events::NONE;
        }
        if !segment.has(flag::ACK) {
            return Events::NONE;
        }
        self.note_timestamp(segment, seq);
        let mut events = Events::NONE;
        if self.state == State::SynReceived {
            let ack = Endpoint::offset(self.snd_una, self.iss, segment.ack);
            if ack != 1 {
                self.refuse(cfg, segment, wire);
                return Events::NONE;
            }
            self.snd_una = 1;
            self.snd_wnd = (segment.window as u32) << self.scale_in_force();
            self.establish(cfg, now);
            events.add(Events::CONNECTED);
        }
        if !self.on_ack(cfg, now, segment, seq, sack, wire, &mut events) {
            return events;
        }
        if self.state != State::Closed {
            if length > 0 {
                self.on_payload(cfg, now, segment, seq, wire, &mut events);
            }
            self.output_or_nothing(cfg, now, wire);
        }
        events
    }

    /// Protection against wrapped sequence numbers (RFC 7323 §5).
    fn is_outdated(&self, segment: &Packet) -> bool {
        self.is(opt::TIMESTAMPS)
            && segment.has(flag::TIMESTAMPS)
            && !segment.has(flag::RST)
            && (segment.ts_val.wrapping_sub(self.ts_recent) as i32) < 0
    }

    /// RFC 9293 §3.4, table 6, and a segment that merely repeats what was received does not pass.
    fn is_acceptable(&self, seq: u64, length: u64) -> bool {
        let edge = self.rcv_edge.max(self.rcv_nxt);
        if length == 0 {
            // What a peer sends that has filled the window, with a FIN behind it perhaps, stands at
            // its edge: the ACK is valid (RFC 9293 §3.10.7.4 makes the allowance), and to drop it
            // on both sides would be an endless exchange. An offset "before" 0 wraps to a huge one.
            return seq >= self.rcv_nxt && seq <= edge + 1;
        }
        let end = seq.wrapping_add(length);
        self.rcv_edge > self.rcv_nxt
            && (seq < edge || seq > u64::MAX / 2)
            && end > self.rcv_nxt
            && end < u64::MAX / 2
    }

    /// Drops the segment and says what is expected, so that the peer can find its place; a
    /// retransmitted SYN of the handshake gets the SYN-ACK again.
    fn on_unacceptable(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        seq: u64,
        wire: &mut impl Wire,
    ) -> Events {
        if segment.has(flag::RST) {
            return Events::NONE;
        }
        if self.state == State::SynReceived && segment.has(flag::SYN) && seq == 0 {
            if segment.has(flag::ACK) && segment.ack == self.iss.wrapping_add(1) {
                // Simultaneous open: the peer's SYN-ACK completes it.
                self.snd_una = 1;
                self.snd_wnd = segment.window as u32;
                self.establish(cfg, now);
                self.send_ack(cfg, now, wire);
                self.output_or_nothing(cfg, now, wire);
                return Events::CONNECTED;
            }
            self.resend_syn(cfg, now, wire);
            return Events::NONE;
        }
        let end = seq.wrapping_add(segment.payload as u64);
        let duplicate = segment.payload > 0 && end <= self.rcv_nxt;
        if duplicate {
            self.stats.duplicates_received += 1;
            self.quick = self.quick.max(cfg.quick_acks);
        }
        if duplicate && self.is(opt::SACK) {
            self.reassembly.note_duplicate(seq, end);
        }
        self.send_ack(cfg, now, wire);
        if self.state == State::TimeWait && segment.has(flag::FIN) {
            self.enter_time_wait(cfg, now);
        }
        Events::NONE
    }

    /// A RST within the window: obeyed at RCV.NXT, challenged elsewhere (RFC 5961 §3.2).
    fn on_reset(&mut self, cfg: &Config, now: Time, seq: u64, wire: &mut impl Wire) -> Events {
        if seq != self.rcv_nxt {
            self.send_ack(cfg, now, wire);
            return Events::NONE;
        }
        self.fail()
    }

    /// TS.Recent (RFC 7323 §4.3).
    fn note_timestamp(&mut self, segment: &Packet, seq: u64) {
        if self.is(opt::TIMESTAMPS) && segment.has(flag::TIMESTAMPS) && seq <= self.last_ack_sent {
            self.ts_recent = segment.ts_val;
        }
    }
}
