// SPDX-License-Identifier: Apache-2.0
//! An arriving segment.

use super::Endpoint;
use crate::packet::{Packet, SackBlock, flag};
use crate::tcp::connection::State;
use crate::tcp::{Ctx, Events, Wire};

impl Endpoint {
    /// Takes a segment with its SACK blocks, answers as TCP must, and returns what happened.
    #[inline]
    pub fn on_segment(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        sack: &[SackBlock],
    ) -> Events {
        if sack.is_empty()
            && let Some(events) = self.on_expected(ctx, segment)
        {
            return events;
        }
        self.on_any_segment(ctx, segment, sack)
    }

    /// Everything that is not an expected segment of a quiet connection.
    #[inline(never)]
    fn on_any_segment(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        sack: &[SackBlock],
    ) -> Events {
        let mut events = Events::NONE;
        match self.conn.state() {
            State::Closed if segment.has(flag::RST) => {}
            State::Closed => self.refuse(ctx, segment),
            State::Listen => self.on_listen(ctx, segment),
            State::SynSent => events = self.on_syn_sent(ctx, segment),
            _ => events = self.on_synchronized(ctx, segment, sack),
        }
        self.note_trouble();
        events
    }

    /// RFC 9293 §3.10.7.4: SYN-RECEIVED and later.
    fn on_synchronized(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        sack: &[SackBlock],
    ) -> Events {
        let seq = self.rcv.offset(segment.seq);
        let length =
            segment.payload as u64 + segment.has(flag::SYN) as u64 + segment.has(flag::FIN) as u64;
        let is_outdated = self.conn.has_timestamps() && self.rcv.is_outdated(segment);
        if is_outdated || !self.rcv.is_acceptable(seq, length) {
            return self.on_unacceptable(ctx, segment, seq);
        }
        if segment.has(flag::RST) {
            return self.on_reset(ctx, seq);
        }
        if segment.has(flag::SYN) {
            // Challenged (RFC 5961 §4.2).
            self.send_ack(ctx);
            return Events::NONE;
        }
        if !segment.has(flag::ACK) {
            return Events::NONE;
        }
        if self.conn.has_timestamps() {
            self.rcv.note_timestamp(segment, seq);
        }
        let mut events = Events::NONE;
        if self.conn.state() == State::SynReceived {
            if !self.snd.is_ack_of_syn(segment.ack) {
                self.refuse(ctx, segment);
                return Events::NONE;
            }
            self.snd.on_syn_acked(segment.window, true);
            self.establish(ctx.cfg, ctx.now, segment);
            events.add(Events::CONNECTED);
        }
        if !self.on_ack(ctx, segment, seq, sack, &mut events) {
            return events;
        }
        if self.conn.state() != State::Closed {
            if length > 0 {
                self.on_payload(ctx, segment, seq, &mut events);
            }
            self.output_or_nothing(ctx);
        }
        events
    }

    /// Drops the segment and answers with what is expected, so that the peer can find its place; a
    /// retransmitted SYN of the handshake gets the SYN-ACK again.
    fn on_unacceptable(&mut self, ctx: &mut Ctx<impl Wire>, segment: &Packet, seq: u64) -> Events {
        if segment.has(flag::RST) {
            return Events::NONE;
        }
        if self.conn.state() == State::SynReceived && segment.has(flag::SYN) && seq == 0 {
            if segment.has(flag::ACK) && self.snd.is_ack_of_syn(segment.ack) {
                // Simultaneous open: the peer's SYN-ACK completes it.
                self.snd.on_syn_acked(segment.window, false);
                self.establish(ctx.cfg, ctx.now, segment);
                self.send_ack(ctx);
                self.output_or_nothing(ctx);
                return Events::CONNECTED;
            }
            self.conn.note_syn_again();
            self.resend_syn(ctx);
            return Events::NONE;
        }
        let end = seq.wrapping_add(segment.payload as u64);
        if segment.payload > 0 && end <= self.rcv.nxt() {
            self.stats.duplicates_received += 1;
            self.acks.on_duplicate(ctx.cfg, self.rcv.space());
            if self.conn.has_sack() {
                self.rcv.note_duplicate(seq, end);
            }
        }
        self.send_ack(ctx);
        if self.conn.state() == State::TimeWait && segment.has(flag::FIN) {
            self.enter_time_wait(ctx.cfg, ctx.now);
        }
        Events::NONE
    }
}
