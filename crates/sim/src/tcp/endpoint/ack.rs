// SPDX-License-Identifier: Apache-2.0
//! What an acknowledgement does to the sender.

use super::Endpoint;
use crate::packet::{Packet, SackBlock, flag};
use crate::tcp::recovery::DupAck;
use crate::tcp::sequence::is_before_start;
use crate::tcp::stats::wait;
use crate::tcp::timers::Timer;
use crate::tcp::{Ctx, Events, Wire};

impl Endpoint {
    /// The ACK field of an acceptable segment at `seq`. False where the segment is to be dropped.
    pub(super) fn on_ack(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        seq: u64,
        sack: &[SackBlock],
        events: &mut Events,
    ) -> bool {
        let (cfg, now) = (ctx.cfg, ctx.now);
        let ack = self.snd.offset(segment.ack);
        if ack < self.snd.una() || is_before_start(ack) {
            return true;
        }
        if ack > self.snd.max() {
            self.send_ack(ctx);
            return false;
        }
        let was_zero = self.snd.window() == 0;
        let rcv_nxt = self.rcv.nxt();
        let updated = self
            .snd
            .update_window(cfg, segment.window, seq, ack, rcv_nxt);
        let acked = (ack - self.snd.una()) as u32;
        if acked > 0 {
            self.snd.acknowledge(ack);
            self.timers.on_answer();
            self.take_timed_sample(cfg, now);
        }
        if self.conn.has_ecn() {
            self.on_ecn_echo(ctx, acked, segment.has(flag::ECE));
        }
        if self.recovery.is_selective() {
            let (recovery, mut parts) = self.repair(cfg, now);
            recovery.on_selective_ack(&mut parts, acked, updated, segment, sack);
        } else if acked > 0 {
            self.on_new_ack(ctx, acked);
        } else if self.is_duplicate(ctx, segment, updated) {
            self.on_duplicate_ack(ctx);
        }
        if acked > 0 {
            if self.snd.is_fin_acked() {
                self.on_fin_acked(cfg, now, events);
            }
            if self.snd.take_all_acked() {
                events.add(Events::ALL_ACKED);
            }
        } else if self.timers.is(Timer::Persist) && (updated || self.snd.window() == 0) {
            // The peer is alive, and may have opened its window.
            let waited = self.timers.persist_wait(cfg, now);
            self.stats.add_wait(wait::WINDOW, waited);
            self.timers.on_answer();
            if was_zero && self.snd.window() > 0 {
                self.timers.end_persist();
            }
        }
        true
    }

    /// ECN is in use: an ACK of `acked` new bytes arrived, with or without ECE.
    fn on_ecn_echo(&mut self, ctx: &Ctx<impl Wire>, acked: u32, echo: bool) {
        self.congestion.note_echo(&self.snd, acked, echo);
        if echo && self.recovery.is_growing() {
            let is_reduced = self.congestion.reduce_by_ecn(ctx.cfg, &self.snd);
            self.stats.ecn_reductions += is_reduced as u32;
        }
    }

    /// Without SACK: `acked` new bytes were acknowledged.
    fn on_new_ack(&mut self, ctx: &mut Ctx<impl Wire>, acked: u32) {
        let (recovery, mut parts) = self.repair(ctx.cfg, ctx.now);
        if recovery.on_new_ack(&mut parts, acked) {
            self.retransmit_head(ctx);
        }
    }

    /// RFC 5681 §2: nothing new in it, data outstanding, the window unchanged.
    fn is_duplicate(&self, ctx: &Ctx<impl Wire>, segment: &Packet, updated: bool) -> bool {
        segment.payload == 0
            && !segment.has(flag::FIN)
            && !self.snd.is_idle()
            && (!updated || ctx.cfg.dupack_any_window)
    }

    /// Without SACK: a duplicate ACK.
    fn on_duplicate_ack(&mut self, ctx: &mut Ctx<impl Wire>) {
        let (recovery, mut parts) = self.repair(ctx.cfg, ctx.now);
        match recovery.on_duplicate_ack(&mut parts) {
            DupAck::Ignore => {}
            DupAck::SendLimited(window) => {
                self.send_within(ctx, window);
            }
            DupAck::Retransmit => self.retransmit_head(ctx),
        }
    }

    /// The first unacknowledged segment again.
    fn retransmit_head(&mut self, ctx: &mut Ctx<impl Wire>) {
        self.resend(ctx, self.snd.una(), self.snd.mss());
    }
}
