// SPDX-License-Identifier: Apache-2.0
//! What recovery works with.

use crate::tcp::Stats;
use crate::tcp::config::Config;
use crate::tcp::congestion::{Congestion, Progress};
use crate::tcp::rtt::Rtt;
use crate::tcp::sender::Sender;
use crate::tcp::timers::Timers;
use penstock_scenario::units::Time;

/// The end point's other parts on the sending side, lent for a call.
pub(in crate::tcp) struct Parts<'a> {
    pub cfg: &'a Config,
    pub now: Time,
    pub snd: &'a mut Sender,
    pub congestion: &'a mut Congestion,
    pub rtt: &'a mut Rtt,
    pub timers: &'a mut Timers,
    pub stats: &'a mut Stats,
}

impl Parts<'_> {
    /// Restarts the retransmission timeout while data is in flight, else stops it.
    #[inline]
    pub fn restart_retransmit(&mut self) {
        self.timers
            .restart_retransmit(self.cfg, self.snd.is_idle(), self.now);
    }

    /// Takes the round trip of segments that were sent once, of which the first left at `sent`. That of the
    /// `newest` may be the smallest (`tcp_update_rtt_min`).
    #[inline]
    pub fn sample(&mut self, sent: Time, newest: Option<Time>) {
        if let Some(newest) = newest {
            self.rtt.note_min(self.now.saturating_sub(newest));
        }
        self.rtt.sample(self.cfg, sent, self.now);
        self.timers.set_timeout(self.cfg, self.rtt);
    }

    /// The window grows for what an ACK showed.
    pub fn grow(&mut self, progress: Progress) {
        self.congestion
            .grow(self.cfg, self.now, progress, self.snd, self.rtt);
    }

    /// The window grows for an ACK of `acked` bytes without SACK.
    pub fn grow_by_bytes(&mut self, acked: u32) {
        self.grow(Progress::of_bytes(acked, self.snd.mss()));
    }

    /// Congestion control takes the round trip that an ACK showed.
    #[inline]
    pub fn note_round_trip(&mut self, progress: Progress) {
        self.congestion
            .on_round_trip(self.cfg, self.now, progress, self.snd, self.rtt);
    }
}
