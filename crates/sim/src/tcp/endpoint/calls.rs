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
        if ctx.cfg.bursts && was_drained {
            self.output_in_pieces(ctx);
        } else {
            self.output(ctx);
        }
    }

    /// Sends what was written before the connection stood. On a real host the application writes it
    /// once it learns of that, after the kernel has sent the ACK that ends the handshake, and closes
    /// afterwards: the FIN is a segment of its own, unless data still waits.
    pub(super) fn write_first(&mut self, ctx: &mut Ctx<impl Wire>) {
        let closes = self.snd.withhold_fin();
        self.output_in_pieces(ctx);
        if closes {
            self.snd.finish();
            self.output(ctx);
        }
    }

    fn output_in_pieces(&mut self, ctx: &mut Ctx<impl Wire>) {
        self.pieces.begin(&self.snd);
        self.output(ctx);
        self.pieces.join();
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
