// SPDX-License-Identifier: Apache-2.0
//! The application's calls.

use super::Endpoint;
use crate::tcp::config::Config;
use crate::tcp::connection::State;
use crate::tcp::{Ctx, Wire};

impl Endpoint {
    /// Waits for a SYN.
    pub fn listen(&mut self, cfg: &Config) {
        self.open(cfg, State::Listen);
    }

    /// Sends a SYN. What was written before is kept and sent once the connection stands.
    pub fn connect(&mut self, ctx: &mut Ctx<impl Wire>) {
        self.open(ctx.cfg, State::SynSent);
        self.send_syn(ctx);
    }

    /// Queues `bytes` for sending (`u64::MAX / 2` never ends) and sends what may be sent. The
    /// last segment carries PSH. Ignored after [`Endpoint::close`].
    pub fn write(&mut self, ctx: &mut Ctx<impl Wire>, bytes: u64) {
        let was_drained = self.snd.unsent() == 0;
        if !self.snd.write(bytes) || !self.conn.can_send() {
            return;
        }
        let in_pieces = ctx.cfg.bursts && was_drained;
        if in_pieces {
            self.pieces.begin(&self.snd);
        }
        self.output(ctx);
        if in_pieces {
            self.pieces.join();
        }
    }

    /// Closes the sending direction: a FIN follows what was written.
    pub fn close(&mut self, ctx: &mut Ctx<impl Wire>) {
        match self.conn.state() {
            State::Closed => return,
            State::Listen => return self.become_closed(),
            _ => self.snd.finish(),
        }
        if self.conn.can_send() {
            self.output(ctx);
        }
    }

    /// Drops the connection with a RST (RFC 9293 §3.10.5).
    pub fn abort(&mut self, ctx: &mut Ctx<impl Wire>) {
        let state = self.conn.state();
        if state >= State::SynReceived && state < State::TimeWait {
            self.send_reset(ctx);
        }
        self.become_closed();
    }
}
