// SPDX-License-Identifier: Apache-2.0
//! The fast path: an expected segment of a quiet connection. Everything here is the general code of
//! `ack.rs`, `payload.rs` and `output.rs` with what cannot happen left out.

use super::Endpoint;
use crate::packet::{Packet, flag};
use crate::tcp::connection::Path;
use crate::tcp::{Ctx, Events, Wire};

/// Of these the fast path takes ACK alone.
const CONTROL: u16 =
    flag::SYN | flag::FIN | flag::RST | flag::ACK | flag::ECE | flag::CWR | flag::CE;

impl Endpoint {
    /// Handles `segment` if it is an expected one; `None` leaves it to the general code.
    #[inline(always)]
    pub(super) fn on_expected(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
    ) -> Option<Events> {
        let path = self.conn.path();
        if segment.flags & CONTROL != flag::ACK
            || path == Path::General
            || !self.rcv.is_next(segment.seq)
        {
            return None;
        }
        let acked = self.snd.distance(segment.ack);
        if segment.payload > 0 {
            return (acked == 0)
                .then(|| self.on_expected_data(ctx, segment, path))
                .flatten();
        }
        let is_new = acked.wrapping_sub(1) < self.snd.flight();
        if !is_new || self.conn.has_loss() {
            return None;
        }
        match path {
            Path::Plain => Some(self.on_plain_ack(ctx, segment, acked)),
            _ => self.on_optioned_ack(ctx, segment, acked),
        }
    }

    /// The next segment in order, which acknowledges nothing new.
    #[inline(always)]
    fn on_expected_data(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        path: Path,
    ) -> Option<Events> {
        let window = self.snd.scaled(segment.window);
        if window != self.snd.window() || !self.rcv.has_room(segment.payload) {
            return None;
        }
        self.snd.note_update(self.rcv.nxt());
        if path == Path::Plain && !self.rcv.window_grows() {
            self.rcv.take_next(segment.payload);
            self.send_plain(ctx, self.snd.max(), 0);
            return Some(Events::DELIVERED);
        }
        if !self.takes_timestamp(segment) {
            return None;
        }
        self.rcv.take_next(segment.payload);
        let payload = segment.payload as u64;
        let has_grown = self.rcv.grow_window(ctx.cfg, ctx.now, segment, payload);
        self.acknowledge(ctx, segment, has_grown);
        Some(Events::DELIVERED)
    }

    /// Checks and keeps a timestamp, where they are in use; false where it is unexpected.
    #[inline(always)]
    fn takes_timestamp(&mut self, segment: &Packet) -> bool {
        !self.conn.has_timestamps() || self.rcv.take_timestamp(segment)
    }

    /// An ACK of new data with options in use, nothing being lost.
    #[inline]
    fn on_optioned_ack(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        acked: u32,
    ) -> Option<Events> {
        if !self.recovery.is_quiet() || !self.takes_timestamp(segment) {
            return None;
        }
        self.advance(ctx, segment, acked);
        let (recovery, mut parts) = self.repair(ctx.cfg, ctx.now);
        recovery.on_quiet_ack(&mut parts, acked);
        let sent = self.snd.max();
        self.output(ctx);
        // What the output sent has armed the timer already.
        if self.snd.max() == sent && !self.snd.is_idle() {
            let (recovery, mut parts) = self.repair(ctx.cfg, ctx.now);
            recovery.arm_probe_or_timeout(&mut parts, ctx.now);
        }
        Some(self.all_acked())
    }

    #[inline(always)]
    fn on_plain_ack(&mut self, ctx: &mut Ctx<impl Wire>, segment: &Packet, acked: u32) -> Events {
        self.advance(ctx, segment, acked);
        self.take_timed_sample(ctx.cfg, ctx.now);
        self.congestion.grow_plainly(ctx.cfg, acked, self.snd.mss());
        self.timers
            .restart_retransmit(ctx.cfg, self.snd.is_idle(), ctx.now);
        if !self.send_full_segments(ctx) {
            self.output(ctx);
        }
        self.all_acked()
    }

    /// SND.UNA moves by `acked`, and the window is what the segment offers.
    #[inline(always)]
    fn advance(&mut self, ctx: &mut Ctx<impl Wire>, segment: &Packet, acked: u32) {
        self.snd.acknowledge(self.snd.una() + acked as u64);
        self.snd.note_update(self.rcv.nxt());
        let window = self.snd.scaled(segment.window);
        if window != self.snd.window() {
            self.snd.set_window(ctx.cfg, window);
        }
        self.timers.on_answer();
    }

    #[inline(always)]
    fn all_acked(&mut self) -> Events {
        if self.snd.take_all_acked() {
            Events::ALL_ACKED
        } else {
            Events::NONE
        }
    }

    /// Sends full segments as far as the windows allow. False where the general code has more to
    /// decide: a short segment, PSH, FIN, a closed window.
    #[inline(always)]
    fn send_full_segments(&mut self, ctx: &mut Ctx<impl Wire>) -> bool {
        if self.snd.is_repeating() {
            return false;
        }
        let (mss, cwnd) = (self.snd.mss(), self.congestion.cwnd());
        let offered = self.snd.edge(ctx.cfg);
        let edge = offered.min(self.snd.una() + cwnd as u64);
        while let Some(seq) = self.snd.take_full(edge) {
            self.timers.time(self.snd.nxt(), ctx.now);
            self.timers.ensure_retransmit(ctx.cfg, ctx.now);
            self.send_plain(ctx, seq, mss);
        }
        // Stopped by a window with data in flight and no use for a short segment.
        self.snd.unsent() > mss as u64
            && self.snd.flight() > 0
            && (edge < offered || self.snd.skips_slivers())
    }

    /// A segment with ACK alone and no options. What it acknowledges need not be noted: no timestamp
    /// and no delayed ACK depends on it.
    #[inline(always)]
    fn send_plain(&mut self, ctx: &mut Ctx<impl Wire>, seq: u64, payload: u16) {
        let mut segment = self.segment(seq, flag::ACK);
        segment.payload = payload;
        segment.header = self.conn.header();
        segment.window = self.rcv.take_window();
        self.snd.count(payload);
        ctx.wire.send(segment, &[]);
    }
}
