// SPDX-License-Identifier: Apache-2.0
//! What payload and FIN of a segment do to the receiver.

use super::Endpoint;
use crate::packet::Packet;
use crate::tcp::acks::{Reply, Surroundings};
use crate::tcp::receiver::Place;
use crate::tcp::{Ctx, Events, Wire};
use penstock_scenario::units::Time;

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
        let arrival = self
            .rcv
            .take(ctx.cfg, ctx.now, segment, seq, &mut self.stats);
        if arrival.delivered {
            events.add(Events::DELIVERED);
        }
        if arrival.fin {
            self.on_peer_fin(ctx.cfg, ctx.now, events);
        }
        if arrival.place == Place::Early {
            self.acks.on_early(ctx.cfg, self.rcv.space());
        }
        if arrival.place == Place::Next && !arrival.fin {
            self.acknowledge(ctx, segment, arrival.has_grown);
        } else {
            // What comes ahead of order or fills a gap is acknowledged at once (RFC 5681 §4.2).
            self.send_ack(ctx);
        }
    }

    /// Acknowledges a segment that arrived in order, now or a little later. `has_grown`: the window
    /// offered has grown with it.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        ctx: &mut Ctx<impl Wire>,
        segment: &Packet,
        has_grown: bool,
    ) {
        let at = Surroundings {
            owed: self.rcv.owed(),
            window: self.rcv.space(),
            has_grown,
            timeout: self.timers.timeout(),
        };
        match self.acks.reply(ctx.cfg, ctx.now, segment, at) {
            Reply::Now => self.send_ack(ctx),
            Reply::Later => self.acknowledge_later(ctx),
        }
    }

    /// Lets the ACK wait for more, unless one that waits is all but due.
    fn acknowledge_later(&mut self, ctx: &mut Ctx<impl Wire>) {
        let delay = self.acks.delay(ctx.cfg, self.rtt.smoothed(ctx.cfg));
        if self.timers.is_ack_due_by(ctx.now + Time(delay.0 / 4)) {
            self.send_ack(ctx);
        } else {
            self.timers.delay_ack(ctx.now + delay);
        }
    }
}
