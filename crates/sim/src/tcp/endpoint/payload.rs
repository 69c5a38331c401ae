// SPDX-License-Identifier: Apache-2.0
//! What payload and FIN of a segment do to the receiver.

use super::Endpoint;
use crate::packet::Packet;
use crate::tcp::acks::Reply;
use crate::tcp::receiver::Place;
use crate::tcp::{Ctx, Events, Wire};

impl Endpoint {
    /// Payload or FIN of an acceptable segment at `seq`.
    pub(super) fn on_payload(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        seq: u64,
        events: &mut Events,
    ) {
        if self.conn.has_ecn() {
            if self.acks.ends_run_of_marks(ctx.cfg, segment) && self.timers.is_ack_delayed() {
                self.send_ack(ctx);
            }
            self.acks.note_mark(ctx.cfg, segment, &mut self.stats);
        }
        let arrival = self.rcv.take(ctx.cfg, segment, seq, &mut self.stats);
        if arrival.delivered {
            events.add(Events::DELIVERED);
        }
        if arrival.fin {
            self.on_peer_fin(ctx.cfg, ctx.now, events);
        }
        if arrival.place == Place::Early {
            self.acks.on_early(ctx.cfg);
        }
        if arrival.place == Place::Next && !arrival.fin {
            self.acknowledge(ctx, segment.payload);
        } else {
            // What comes ahead of order or fills a gap is acknowledged at once (RFC 5681 §4.2).
            self.send_ack(ctx);
        }
    }

    /// Acknowledges `payload` bytes that arrived in order, now or a little later.
    #[inline]
    pub(super) fn acknowledge(&mut self, ctx: &mut Ctx<impl Wire>, payload: u16) {
        let owed = self.rcv.owed();
        match self.acks.reply(ctx.cfg, ctx.now, payload, owed) {
            Reply::Now => self.send_ack(ctx),
            Reply::Later => self.timers.delay_ack(ctx.now + ctx.cfg.delayed_ack),
        }
    }
}
