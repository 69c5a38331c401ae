// SPDX-License-Identifier: Apache-2.0
//! Building a segment and giving it to the wire.

use super::Endpoint;
use crate::packet::{MAX_SACK_BLOCKS, Packet, SackBlock, flag};
use crate::tcp::segment::{TIMESTAMPS_LEN, timestamp};
use crate::tcp::{Ctx, Wire};
use penstock_scenario::units::Time;

impl Endpoint {
    /// A segment of this connection without payload and options.
    #[inline]
    pub(super) fn segment(&self, seq: u64, flags: u16) -> Packet {
        Packet {
            flow: self.conn.flow(),
            seq: self.snd.wire(seq),
            ack: if flags & flag::ACK != 0 {
                self.rcv.ack_number()
            } else {
                0
            },
            flags,
            ..Packet::default()
        }
    }

    /// Adds timestamps.
    #[inline]
    pub(super) fn stamp(&self, now: Time, segment: &mut Packet) {
        segment.flags |= flag::TIMESTAMPS;
        segment.ts_val = timestamp(now);
        segment.ts_ecr = if segment.has(flag::ACK) {
            self.rcv.ts_recent()
        } else {
            0
        };
    }

    /// Adds window and options, acknowledges whatever is owed, and lets the segment go.
    #[inline]
    fn emit(&mut self, ctx: &mut Ctx<impl Wire>, mut segment: Packet) {
        segment.header = ctx.cfg.header;
        segment.window = self.rcv.take_window();
        self.timers.on_ack_sent();
        self.acks.on_ack_sent(ctx.cfg);
        self.rcv.on_acknowledged();
        self.snd.count(segment.payload);
        if self.conn.is_bare() {
            return ctx.wire.send(segment, &[]);
        }
        if self.conn.has_timestamps() {
            self.stamp(ctx.now, &mut segment);
            segment.header += TIMESTAMPS_LEN;
        }
        if self.conn.has_ecn() && self.acks.echoes() {
            segment.flags |= flag::ECE;
        }
        let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        let mut count = 0;
        if self.conn.has_sack() {
            let most = if self.conn.has_timestamps() { 3 } else { 4 };
            count = self.rcv.sack_blocks(&mut blocks[..most]);
        }
        if count > 0 {
            let len = 4 + 8 * count as u32;
            // A full segment has no room for them.
            let largest = ctx.cfg.mss as u32 + ctx.cfg.header as u32;
            if segment.payload > 0 && segment.size() + len > largest {
                count = 0;
            } else {
                segment.header += len as u8;
            }
        }
        ctx.wire.send(segment, &blocks[..count]);
    }

    /// Sends a bare ACK.
    #[inline]
    pub(super) fn send_ack(&mut self, ctx: &mut Ctx<impl Wire>) {
        // Not SND.NXT, which a timeout sets back: the peer would find the segment old.
        let segment = self.segment(self.snd.max(), flag::ACK);
        self.emit(ctx, segment);
    }

    /// Sends an ACK that the peer must answer: it is below SND.UNA.
    pub(super) fn send_query(&mut self, ctx: &mut Ctx<impl Wire>) {
        let segment = self.segment(self.snd.una() - 1, flag::ACK);
        self.emit(ctx, segment);
    }

    /// Sends a segment with payload or FIN; returns the offset after it.
    pub(super) fn transmit(&mut self, ctx: &mut Ctx<impl Wire>, seq: u64, len: u16) -> u64 {
        self.transmit_with(ctx, seq, len, flag::ACK)
    }

    /// The same, with `flags`.
    pub(super) fn transmit_with(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        seq: u64,
        len: u16,
        mut flags: u16,
    ) -> u64 {
        let mut end = seq + len as u64;
        if self.snd.is_end(end) {
            flags |= flag::PSH;
            if self.snd.is_finishing() {
                flags |= flag::FIN;
                end += 1;
            }
        }
        if seq < self.snd.max() {
            self.stats.retransmits += 1;
        } else if self.conn.has_ecn() {
            flags |= flag::ECT;
            if self.congestion.take_cwr() {
                flags |= flag::CWR;
            }
        }
        if self.rcv.nxt() > 1 {
            self.acks.on_data_sent(ctx.cfg, ctx.now);
        }
        if self.conn.is_paced() && len > 0 {
            self.congestion
                .on_paced(ctx.cfg, ctx.now, len, &self.snd, &self.rtt);
        }
        let mut segment = self.segment(seq, flags);
        segment.payload = len;
        self.emit(ctx, segment);
        end
    }

    /// Sends up to `len` bytes from `seq` again.
    pub(super) fn resend(&mut self, ctx: &mut Ctx<impl Wire>, seq: u64, len: u16) {
        let len = self.snd.sent_from(seq, len);
        self.transmit(ctx, seq, len);
    }

    /// Sends the SYN, or the SYN-ACK that answers one.
    pub(super) fn emit_syn(&mut self, ctx: &mut Ctx<impl Wire>, mut syn: Packet) {
        syn.window = self.rcv.take_syn_window();
        self.rcv.on_acknowledged();
        self.snd.count(0);
        ctx.wire.send(syn, &[]);
    }

    /// Sends a RST of the connection.
    pub(super) fn send_reset(&mut self, ctx: &mut Ctx<impl Wire>) {
        let mut reset = self.segment(self.snd.max(), flag::RST | flag::ACK);
        reset.header = ctx.cfg.header;
        if self.conn.has_timestamps() {
            self.stamp(ctx.now, &mut reset);
            reset.header += TIMESTAMPS_LEN;
        }
        self.snd.count(0);
        ctx.wire.send(reset, &[]);
    }

    /// Answers a segment that belongs to no connection with a RST (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(&mut self, ctx: &mut Ctx<impl Wire>, segment: &Packet) {
        let mut reset = Packet {
            flow: self.conn.flow(),
            flags: flag::RST,
            header: ctx.cfg.header,
            ..Packet::default()
        };
        if segment.has(flag::ACK) {
            reset.seq = segment.ack;
        } else {
            let length = segment.payload as u32
                + segment.has(flag::SYN) as u32
                + segment.has(flag::FIN) as u32;
            reset.flags |= flag::ACK;
            reset.ack = segment.seq.wrapping_add(length);
        }
        self.snd.count(0);
        ctx.wire.send(reset, &[]);
    }
}
