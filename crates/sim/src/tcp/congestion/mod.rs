// SPDX-License-Identifier: Apache-2.0
//! Congestion control: how the window grows and what it falls to. When it falls is recovery's
//! business.

mod cubic;
mod dctcp;
mod newreno;

use super::config::{Algorithm, Config};
use cubic::Cubic;
use dctcp::Dctcp;
use penstock_scenario::units::Time;

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    /// Bytes acknowledged towards the next segment of growth.
    pub(super) credit: u32,
}

impl Window {
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// An ACK of new data as a congestion control sees it.
pub(super) struct Acked {
    pub(super) now: Time,
    pub(super) bytes: u32,
    pub(super) mss: u32,
    /// Sequence offsets: the new SND.UNA and SND.NXT.
    pub(super) una: u64,
    pub(super) nxt: u64,
    /// The round trip measured by this ACK, zero where it measured none.
    pub(super) rtt: Time,
    /// Smoothed round trip.
    pub(super) smoothed: Time,
}

/// The algorithm and its state.
#[derive(Clone, Debug)]
pub(super) enum Congestion {
    NewReno,
    Cubic(Cubic),
    Dctcp(Dctcp),
}

impl Congestion {
    pub(super) fn new(algorithm: Algorithm) -> Congestion {
        match algorithm {
            Algorithm::NewReno => Congestion::NewReno,
            Algorithm::Cubic { hystart } => Congestion::Cubic(Cubic::new(hystart)),
            Algorithm::Dctcp => Congestion::Dctcp(Dctcp::new()),
        }
    }

    /// New data was acknowledged outside recovery; the window may grow.
    pub(super) fn on_ack(&mut self, cfg: &Config, window: &mut Window, ack: &Acked) {
        match self {
            Congestion::NewReno | Congestion::Dctcp(_) => {
                newreno::grow(cfg, window, ack.bytes, ack.mss);
            }
            Congestion::Cubic(cubic) => cubic.grow(cfg, window, ack),
        }
    }

    /// `bytes` were acknowledged by a segment with or without ECE, in whatever phase.
    pub(super) fn on_echo(&mut self, bytes: u32, echo: bool, una: u64, nxt: u64) {
        if let Congestion::Dctcp(dctcp) = self {
            dctcp.on_echo(bytes, echo, una, nxt);
        }
    }

    /// A loss was found while `base` bytes were in use: the new slow-start threshold.
    pub(super) fn on_loss(&mut self, window: &Window, base: u32, mss: u32) -> u32 {
        let target = match self {
            Congestion::NewReno | Congestion::Dctcp(_) => newreno::halve(base),
            Congestion::Cubic(cubic) => cubic.decrease(window, base, mss),
        };
        target.max(2 * mss)
    }

    /// ECN congestion: the new slow-start threshold (RFC 3168 §6.1.2, RFC 8257 §3.3).
    pub(super) fn on_ecn(&mut self, window: &Window, base: u32, mss: u32) -> u32 {
        match self {
            Congestion::Dctcp(dctcp) => dctcp.decrease(base).max(2 * mss),
            _ => self.on_loss(window, base, mss),
        }
    }

    /// A retransmission timeout.
    pub(super) fn on_rto(&mut self) {
        if let Congestion::Cubic(cubic) = self {
            cubic.on_rto();
        }
    }

    /// Sending resumes after `idle` without data in flight.
    pub(super) fn on_idle(&mut self, idle: Time) {
        if let Congestion::Cubic(cubic) = self {
            cubic.on_idle(idle);
        }
    }
}

pub(super) use newreno::grow as grow_newreno;
