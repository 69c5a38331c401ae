// SPDX-License-Identifier: Apache-2.0
//! A timer fires.

use super::Endpoint;
use crate::tcp::connection::State;
use crate::tcp::stats::wait;
use crate::tcp::timers::Timer;
use crate::tcp::{Ctx, Events, Wire};
use penstock_scenario::units::Time;

impl Endpoint {
    /// Does what is due. To be called at or after [`Endpoint::deadline`]; an early call does nothing.
    pub fn on_timer(&mut self, ctx: &mut Ctx<impl Wire>) -> Events {
        if self.timers.is_ack_due(ctx.cfg, ctx.now) {
            if !self.timers.is_ack_compressed() {
                self.stats.delayed_acks += 1;
                self.stats.add_wait(wait::ACK, self.acks.waited(ctx.now));
                self.acks.on_delay_over(ctx.cfg, self.timers.timeout());
            }
            self.send_ack(ctx);
        }
        let mut events = Events::NONE;
        let start = self.timers.retransmit_since();
        match self.timers.take_due(ctx.cfg, ctx.now) {
            None => {}
            Some(Timer::Retransmit) => {
                let waited = ctx.now.saturating_sub(start.unwrap_or(ctx.now));
                events = self.on_retransmission_timeout(ctx, waited);
            }
            Some(Timer::Reorder) => self.on_reorder_timeout(ctx),
            Some(Timer::Probe) => self.on_probe_timeout(ctx),
            Some(Timer::Persist) => events = self.on_persist_timeout(ctx),
            Some(Timer::TimeWait) => {
                self.become_closed();
                events = Events::CLOSED;
            }
        }
        if self.conn.is_paced() && self.congestion.wake() <= ctx.now {
            self.congestion.end_burst(ctx.now, false);
            self.output_or_nothing(ctx);
        }
        self.note_trouble();
        events
    }

    /// Nothing was acknowledged for the time `waited`.
    fn on_retransmission_timeout(&mut self, ctx: &mut Ctx<impl Wire>, waited: Time) -> Events {
        let cfg = ctx.cfg;
        if self.snd.is_idle() {
            return Events::NONE;
        }
        let is_opening = self.conn.is_opening();
        let linear = if self.conn.state() == State::SynSent {
            cfg.syn_linear_timeouts
        } else {
            0
        };
        // Those that do not double come on top (tcp_write_timeout).
        let limit = if is_opening {
            cfg.syn_retries.saturating_add(linear)
        } else {
            cfg.retries
        };
        if !self.timers.try_again(limit) {
            return self.fail();
        }
        let is_linear = self.timers.attempts() <= linear;
        if !is_linear {
            self.rtt.back_off();
        }
        self.timers.set_timeout(cfg, &self.rtt);
        // Karn: an ACK may be for either transmission.
        self.timers.stop_timing();
        if is_opening {
            self.stats.syn_timeouts += 1;
            self.stats.add_wait(wait::SYN, waited);
            self.resend_syn(ctx);
            return Events::NONE;
        }
        self.stats.rtos += 1;
        self.stats.add_wait(wait::RTO, waited);
        let attempts = self.timers.attempts();
        let (recovery, mut parts) = self.repair(cfg, ctx.now);
        recovery.on_timeout(&mut parts, attempts);
        self.output(ctx);
        self.timers.arm_retransmit(ctx.cfg, ctx.now);
        Events::NONE
    }

    /// The reordering window has passed (RFC 8985 §6.2 step 5).
    fn on_reorder_timeout(&mut self, ctx: &mut Ctx<impl Wire>) {
        let (recovery, mut parts) = self.repair(ctx.cfg, ctx.now);
        let wait = recovery.on_reorder_timeout(&mut parts);
        self.output_or_nothing(ctx);
        let (recovery, mut parts) = self.repair(ctx.cfg, ctx.now);
        recovery.after_reorder_timeout(&mut parts, wait);
    }

    /// Sends a tail loss probe: new data if the window has room for it, else the last segment again
    /// (RFC 8985 §7.3).
    fn on_probe_timeout(&mut self, ctx: &mut Ctx<impl Wire>) {
        if self.snd.is_idle() || !self.recovery.is_selective() {
            return;
        }
        self.stats.tlp_probes += 1;
        let is_new = self.send_beyond_cwnd(ctx);
        if !is_new && let Some(last) = self.recovery.probe(&self.snd) {
            self.resend(ctx, last.seq, last.len);
        }
        self.recovery.on_probe_sent(&self.snd, ctx.now, !is_new);
        self.timers.arm_retransmit(ctx.cfg, ctx.now);
    }

    /// Asks for the window: by what little it allows, else by a segment the peer must answer, as
    /// Linux does it (RFC 9293 §3.8.6.1 would send a byte beyond the window).
    fn on_persist_timeout(&mut self, ctx: &mut Ctx<impl Wire>) -> Events {
        if !self.timers.try_again(ctx.cfg.retries) {
            return self.fail();
        }
        self.stats.persist_probes += 1;
        let interval = self.timers.persist_interval(ctx.cfg);
        self.stats.add_wait(wait::WINDOW, interval);
        match self.snd.next_probe() {
            0 => self.send_query(ctx),
            len => self.transmit_next(ctx, len),
        }
        if self.snd.is_idle() {
            self.timers.back_off_persist();
            self.timers.arm_persist(ctx.cfg, ctx.now);
        }
        Events::NONE
    }
}
