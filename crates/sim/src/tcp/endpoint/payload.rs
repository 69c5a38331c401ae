// SPDX-License-Identifier: Apache-2.0
//! What payload and FIN of a segment do to the receiver.

use super::Endpoint;
use crate::packet::Packet;
use crate::tcp::acks::{Reply, Surroundings};
use crate::tcp::config::Config;
use crate::tcp::connection::State;
use crate::tcp::receiver::Place;
use crate::tcp::{Ctx, Events, Wire};
use penstock_scenario::units::Time;

/// Segments ahead of order that are acknowledged at once (TCP_FASTRETRANS_THRESH).
const REPEATS: u8 = 3;

/// The longest wait for more of them (`tcp_comp_sack_delay_ns`).
const COMPRESSED_AT_MOST: Time = Time::from_millis(1);

/// How much later the timer fires on average: half of `tcp_comp_sack_slack_ns`.
const COMPRESSED_SLACK: Time = Time::from_micros(50);

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
            let window = self.rcv.space();
            self.acks
                .note_mark(ctx.cfg, segment, window, &mut self.stats);
        }
        let sack = self.conn.has_sack();
        let arrival = self
            .rcv
            .take(ctx.cfg, ctx.now, segment, seq, sack, &mut self.stats);
        if arrival.delivered {
            events.add(Events::DELIVERED);
        }
        if arrival.fin {
            self.on_peer_fin(ctx.cfg, ctx.now, events);
        }
        if arrival.place == Place::Next && !arrival.fin {
            return self.acknowledge(ctx, segment, arrival.has_grown);
        }
        let at = self.surroundings(arrival.has_grown);
        if arrival.place == Place::Next && self.conn.state() == State::CloseWait {
            let reply = self.acks.reply_to_fin(ctx.cfg, ctx.now, segment, at);
            return self.acknowledge_by(ctx, reply);
        }
        match arrival.place {
            Place::Early => {
                self.acks.on_early(ctx.cfg, segment, at);
                if self.compresses_acks(ctx.cfg) {
                    return self.compress_ack(ctx);
                }
            }
            Place::Gap => self.acks.on_gap_closer(ctx.cfg, ctx.now, segment, at),
            Place::Next => {}
        }
        // What comes ahead of order or fills a gap is acknowledged at once (RFC 5681 §4.2).
        self.send_ack(ctx);
    }

    /// Whether the ACK of a segment ahead of order waits for more of them: from the fourth on that
    /// repeats RCV.NXT, unless ACKs are quick (`__tcp_ack_snd_check`).
    fn compresses_acks(&mut self, cfg: &Config) -> bool {
        cfg.compresses_acks
            && self.conn.has_sack()
            && !self.acks.is_quick()
            && self.rcv.count_repeat() > REPEATS
    }

    /// Lets it wait for a twentieth of a round trip, a millisecond at most.
    fn compress_ack(&mut self, ctx: &mut Ctx<impl Wire>) {
        let sent = self.rtt.smoothed(ctx.cfg);
        let round_trip = self
            .rcv
            .round_trip()
            .map_or(sent, |received| received.min(sent));
        let delay = Time(round_trip.0 / 20).min(COMPRESSED_AT_MOST);
        self.timers
            .compress_acks(ctx.now + delay + COMPRESSED_SLACK);
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
        let at = self.surroundings(has_grown);
        let reply = self.acks.reply(ctx.cfg, ctx.now, segment, at);
        self.acknowledge_by(ctx, reply);
    }

    #[inline]
    fn acknowledge_by(&mut self, ctx: &mut Ctx<impl Wire>, reply: Reply) {
        match reply {
            Reply::Now => self.send_ack(ctx),
            Reply::Later => self.acknowledge_later(ctx),
        }
    }

    /// What the rules of acknowledging know of the rest.
    #[inline]
    fn surroundings(&self, has_grown: bool) -> Surroundings {
        Surroundings {
            owed: self.rcv.owed(),
            window: self.rcv.space(),
            has_grown,
            timeout: self.timers.timeout(),
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
