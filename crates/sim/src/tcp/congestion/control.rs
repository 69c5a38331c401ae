// SPDX-License-Identifier: Apache-2.0
//! The congestion controls by one interface: how much the window grows, and what it falls to.

use super::bbr::Bbr;
use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::newreno;
use super::window::{Acked, Window};
use crate::tcp::config::{Algorithm, Config};
use penstock_scenario::units::Time;

/// An algorithm and its state.
#[derive(Debug)]
pub(super) enum Control {
    NewReno,
    Cubic(Box<Cubic>),
    Dctcp(Box<Dctcp>),
    Bbr(Box<Bbr>),
}

impl Control {
    pub fn new(algorithm: Algorithm) -> Control {
        match algorithm {
            Algorithm::NewReno => Control::NewReno,
            Algorithm::Cubic { hystart } => Control::Cubic(Box::new(Cubic::new(hystart))),
            Algorithm::Dctcp => Control::Dctcp(Box::new(Dctcp::new())),
            Algorithm::Bbr => Control::Bbr(Box::new(Bbr::new())),
        }
    }

    /// New data was acknowledged outside recovery; the window may grow.
    pub fn on_ack(&mut self, cfg: &Config, window: &mut Window, ack: &Acked) {
        match self {
            Control::NewReno | Control::Dctcp(_) => {
                newreno::grow(cfg, window, ack.bytes, ack.mss);
            }
            Control::Cubic(cubic) => cubic.grow(cfg, window, ack),
            Control::Bbr(_) => {}
        }
    }

    /// `bytes` were acknowledged by a segment with or without ECE, in whatever phase. `una` and
    /// `nxt`: the new SND.UNA and SND.NXT.
    pub fn on_echo(&mut self, bytes: u32, echo: bool, una: u64, nxt: u64) {
        if let Control::Dctcp(dctcp) = self {
            dctcp.on_echo(bytes, echo, una, nxt);
        }
    }

    /// A loss was found while `base` bytes were in use: the new slow-start threshold.
    pub fn on_loss(&mut self, window: &Window, base: u32, mss: u32) -> u32 {
        let target = match self {
            Control::NewReno | Control::Dctcp(_) => newreno::halve(base),
            Control::Cubic(cubic) => cubic.decrease(window, base, mss),
            Control::Bbr(_) => base,
        };
        target.max(2 * mss)
    }

    /// ECN congestion: the new slow-start threshold (RFC 3168 §6.1.2, RFC 8257 §3.3).
    pub fn on_ecn(&mut self, window: &Window, base: u32, mss: u32) -> u32 {
        match self {
            Control::Dctcp(dctcp) => dctcp.decrease(base).max(2 * mss),
            _ => self.on_loss(window, base, mss),
        }
    }

    /// A retransmission timeout.
    pub fn on_rto(&mut self) {
        if let Control::Cubic(cubic) = self {
            cubic.on_rto();
        }
    }

    /// Sending resumes after `idle` without data in flight.
    pub fn on_idle(&mut self, idle: Time) {
        if let Control::Cubic(cubic) = self {
            cubic.on_idle(idle);
        }
    }
}
