// SPDX-License-Identifier: Apache-2.0
//! Closing (RFC 9293 §3.6), resets (§3.5.2, RFC 5961) and TIME-WAIT.

use super::Endpoint;
use crate::tcp::config::Config;
use crate::tcp::connection::State;
use crate::tcp::timers::Timer;
use crate::tcp::{Ctx, Events, Wire};
use penstock_scenario::units::Time;

impl Endpoint {
    /// CLOSED, no timers; counters and what was delivered stay readable.
    pub(super) fn become_closed(&mut self) {
        self.conn.close();
        self.timers.stop_all();
        self.rcv.close();
        self.recovery.close();
    }

    /// The peer refused or vanished.
    pub(super) fn fail(&mut self) -> Events {
        self.become_closed();
        Events(Events::RESET.0 | Events::CLOSED.0)
    }

    /// Our FIN is acknowledged.
    pub(super) fn on_fin_acked(&mut self, cfg: &Config, now: Time, events: &mut Events) {
        match self.conn.on_fin_acked() {
            State::TimeWait => self.enter_time_wait(cfg, now),
            State::Closed => {
                self.become_closed();
                events.add(Events::CLOSED);
            }
            _ => {}
        }
    }

    /// The peer's FIN arrived in order.
    pub(super) fn on_peer_fin(&mut self, cfg: &Config, now: Time, events: &mut Events) {
        events.add(Events::PEER_CLOSED);
        if self.conn.on_peer_fin() == State::TimeWait {
            self.enter_time_wait(cfg, now);
        }
    }

    /// TIME-WAIT begins, or begins again.
    pub(super) fn enter_time_wait(&mut self, cfg: &Config, now: Time) {
        self.recovery.close();
        self.timers
            .arm(cfg, Timer::TimeWait, now + cfg.time_wait, now);
    }

    /// A RST within the window: obeyed at RCV.NXT, challenged elsewhere (RFC 5961 §3.2).
    pub(super) fn on_reset(&mut self, ctx: &mut Ctx<impl Wire>, seq: u64) -> Events {
        if seq != self.rcv.nxt() {
            self.send_ack(ctx);
            return Events::NONE;
        }
        self.fail()
    }
}
