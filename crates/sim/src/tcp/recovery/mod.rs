// SPDX-License-Identifier: Apache-2.0
//! Finding and repairing losses. Recovery decides what is lost, what is sent again and how far the
//! window falls; the end point does the sending.
//!
//! Without SACK it is `newreno.rs`. With SACK, `sack.rs` and `probe.rs` work on a `scoreboard`;
//! losses are found by `rack` or by RFC 6675's count, and the window follows `prr`.

mod delivery;
mod frto;
mod newreno;
mod parts;
mod probe;
mod prr;
mod rack;
mod sack;
mod scoreboard;
mod selective;

use super::config::{Config, Recovery as Method};
use super::sender::Sender;
use selective::Selective;

pub(super) use newreno::DupAck;
pub(super) use parts::Parts;
pub(super) use selective::NextLost;

/// Where the sender is between growth and repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// No sign of loss.
    Open,
    /// Duplicate ACKs, too few to mean a loss.
    Disorder,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// After a timeout, until `recover` is acknowledged.
    Loss,
}

/// The state of loss recovery.
#[derive(Debug)]
pub(super) struct Recovery {
    phase: Phase,
    dupacks: u8,
    /// A partial ACK arrived in this recovery.
    partial_acked: bool,
    /// Where the current or last recovery ends (RFC 6582 §3.2).
    recover: u64,
    /// Present where SACK is in use for recovery.
    selective: Option<Box<Selective>>,
}

impl Recovery {
    /// Nothing sent.
    pub fn new() -> Recovery {
        Recovery {
            phase: Phase::Open,
            dupacks: 0,
            partial_acked: false,
            recover: 0,
            selective: None,
        }
    }

    /// The handshake is complete; `sack`: both sides use SACK.
    pub fn establish(&mut self, cfg: &Config, sack: bool) {
        self.phase = Phase::Open;
        if sack && matches!(cfg.recovery, Method::Sack | Method::Rack) {
            self.selective = Some(Box::new(Selective::new(cfg)));
        }
    }

    /// Nothing more will be sent again.
    pub fn close(&mut self) {
        self.selective = None;
    }

    /// Whether SACK is in use for recovery.
    #[inline]
    pub fn is_selective(&self) -> bool {
        self.selective.is_some()
    }

    /// Whether there is no sign of loss.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the window may grow and ECN may reduce it: neither recovery nor the aftermath of a
    /// timeout.
    pub fn is_growing(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Disorder)
    }

    /// Whether a timeout is being repaired.
    #[inline]
    pub fn is_after_timeout(&self) -> bool {
        self.phase == Phase::Loss
    }

    /// Bytes the network is thought to hold: FlightSize, or RFC 6675's pipe.
    #[inline]
    pub fn in_flight(&self, snd: &Sender) -> u32 {
        match &self.selective {
            None => snd.flight(),
            Some(selective) => selective.pipe(snd),
        }
    }

    /// A retransmission timeout, the `attempts`th in a row: all in flight is taken for lost (RFC
    /// 5681 §3.1).
    pub fn on_timeout(&mut self, parts: &mut Parts, attempts: u8) {
        let cfg = parts.cfg;
        // A second timeout of the same data decreases no further (RFC 5681 §3.1).
        // Nor does, in Linux, one within fast recovery, whose window shows nothing of the path.
        let is_repeated = attempts > 1;
        let is_reduced = is_repeated || self.phase == Phase::Recovery;
        let lower = !is_reduced || cfg.ns2_windows;
        let mss = parts.snd.mss();
        let is_new = self.is_growing();
        if cfg.frto
            && let Some(selective) = &mut self.selective
        {
            let is_tried = is_new || is_repeated;
            selective
                .frto
                .on_timeout(parts, !is_reduced, is_new, is_tried);
        }
        parts.congestion.on_timeout(cfg, parts.now, mss, lower);
        self.phase = Phase::Loss;
        self.recover = parts.snd.max();
        self.dupacks = 0;
        self.partial_acked = false;
        match &mut self.selective {
            Some(selective) => selective.on_timeout(parts),
            None => parts.snd.go_back(),
        }
    }
}
