// SPDX-License-Identifier: Apache-2.0
//! When to acknowledge what arrived, and which ECN marks to echo.

use super::Stats;
use super::config::{Algorithm, Config};
use crate::packet::{Packet, flag};
use penstock_scenario::units::Time;

/// When a segment is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// At once.
    Now,
    /// With the next segment sent, or at the latest [`Config::delayed_ack`] from now.
    Later,
}

/// The receiver's habits of acknowledging.
#[derive(Debug)]
pub(super) struct Acks {
    last_arrival: Time,
    /// The peer's full segment as far as seen (Linux's `rcv_mss`).
    full_segment: u16,
    /// Segments still to be acknowledged at once.
    quick: u8,
    /// The application sends in answer to what it receives: delay ACKs (Linux's ping-pong mode).
    interactive: bool,
    /// ECE goes on every ACK. RFC 3168: from a mark until CWR; DCTCP: the last segment was marked.
    echo: bool,
}

impl Acks {
    /// Nothing arrived.
    pub fn new() -> Acks {
        Acks {
            last_arrival: Time::ZERO,
            full_segment: 0,
            quick: 0,
            interactive: false,
            echo: false,
        }
    }

    /// The handshake is complete; `mss`: payload of a full segment.
    pub fn establish(&mut self, cfg: &Config, mss: u16) {
        self.full_segment = mss.min(536);
        self.quick = cfg.quick_acks;
    }

    /// When to acknowledge a segment received in order; `owed`: bytes not acknowledged yet, with it.
    #[inline]
    pub fn reply(&mut self, cfg: &Config, now: Time, payload: u16, owed: u64) -> Reply {
        if cfg.ack_every <= 1 {
            return Reply::Now;
        }
        self.last_arrival = now;
        self.full_segment = self.full_segment.max(payload);
        if self.quick > 0 && !self.interactive {
            self.quick -= 1;
            return Reply::Now;
        }
        if payload == 0 || owed > (cfg.ack_every as u64 - 1) * self.full_segment as u64 {
            Reply::Now
        } else {
            Reply::Later
        }
    }

    /// A segment arrived twice: acknowledge the next ones at once.
    pub fn on_duplicate(&mut self, cfg: &Config) {
        self.quick = self.quick.max(cfg.quick_acks);
    }

    /// A segment arrived ahead of order: acknowledge the next ones at once, whatever is sent.
    pub fn on_early(&mut self, cfg: &Config) {
        self.quick = self.quick.max(cfg.quick_acks);
        self.interactive = false;
    }

    /// Payload left after some had arrived: soon after an arrival it is an answer.
    pub fn on_data_sent(&mut self, cfg: &Config, now: Time) {
        if cfg.ack_every > 1 && now.saturating_sub(self.last_arrival) < cfg.delayed_ack {
            self.interactive = true;
        }
    }

    /// Whether ACKs carry ECE.
    #[inline]
    pub fn echoes(&self) -> bool {
        self.echo
    }

    /// Whether what came before `segment` must be acknowledged before it: DCTCP's delayed ACKs must
    /// not mix marked and unmarked segments (RFC 8257 §3.2).
    pub fn ends_run_of_marks(&self, cfg: &Config, segment: &Packet) -> bool {
        cfg.congestion == Algorithm::Dctcp && segment.has(flag::CE) != self.echo
    }

    /// Remembers what to echo of a segment's ECN marks (RFC 3168 §6.1.3, RFC 8257 §3.2).
    pub fn note_mark(&mut self, cfg: &Config, segment: &Packet, stats: &mut Stats) {
        let is_marked = segment.has(flag::CE);
        stats.marks_received += is_marked as u32;
        if cfg.congestion == Algorithm::Dctcp {
            if is_marked != self.echo {
                self.echo = is_marked;
                // The change is reported at once (RFC 8257 §3.2).
                self.quick = self.quick.max(1);
                self.interactive = false;
            }
            return;
        }
        if segment.has(flag::CWR) {
            self.echo = false;
        }
        if is_marked {
            self.echo = true;
        }
    }
}
