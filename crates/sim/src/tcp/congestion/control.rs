// SPDX-License-Identifier: Apache-2.0
//! The congestion controls by one interface: how much the window grows, and what it falls to.

use super::bbr::Bbr;
use super::cubic::{Cubic, LinuxCubic};
use super::dctcp::Dctcp;
use super::newreno;
use super::window::{Acked, Window};
use crate::packet::FlowId;
use crate::rng::Rng;
use crate::tcp::config::{Algorithm, Config};
use penstock_scenario::units::Time;

/// An algorithm and its state.
#[derive(Debug)]
pub(super) enum Control {
    NewReno,
    Cubic(Box<Cubic>),
    LinuxCubic(Box<LinuxCubic>),
    Dctcp(Box<Dctcp>),
    Bbr(Box<Bbr>),
}

impl Control {
    pub fn new(cfg: &Config, flow: FlowId) -> Control {
        match cfg.congestion {
            Algorithm::NewReno => Control::NewReno,
            Algorithm::Cubic { hystart } if cfg.has_whole_windows() => {
                Control::LinuxCubic(Box::new(LinuxCubic::new(hystart)))
            }
            Algorithm::Cubic { hystart } => Control::Cubic(Box::new(Cubic::new(hystart))),
            Algorithm::Dctcp => Control::Dctcp(Box::new(Dctcp::new())),
            Algorithm::Bbr => {
                let seed = Rng::new(cfg.seed, flow.0.into()).bits();
                Control::Bbr(Box::new(Bbr::new(seed)))
            }
        }
    }

    /// New data was acknowledged outside recovery; the window may grow.
    pub fn on_ack(&mut self, cfg: &Config, window: &mut Window, ack: &Acked) {
        match self {
            Control::NewReno | Control::Dctcp(_) if cfg.has_whole_windows() => {
                newreno::grow_by_segments(window, ack.segments, ack.mss);
            }
            Control::NewReno | Control::Dctcp(_) => {
                newreno::grow(cfg, window, ack.bytes, ack.mss);
            }
            Control::Cubic(cubic) => cubic.grow(cfg, window, ack),
            Control::LinuxCubic(cubic) => cubic.grow(cfg, window, ack),
            Control::Bbr(_) => {}
        }
    }

    /// An ACK showed a round trip, in whatever phase.
    #[inline]
    pub fn on_round_trip(&mut self, cfg: &Config, window: &mut Window, ack: &Acked) {
        if let Control::LinuxCubic(cubic) = self {
            cubic.on_round_trip(cfg, window, ack);
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
            Control::LinuxCubic(cubic) => cubic.decrease(window, base, mss),
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
        match self {
            Control::Cubic(cubic) => cubic.on_rto(),
            Control::LinuxCubic(cubic) => cubic.on_rto(),
            _ => {}
        }
    }

    /// Sending resumes at `now` after `idle` without data in flight, longer than a timeout or not.
    pub fn on_idle(&mut self, cfg: &Config, now: Time, idle: Time, is_long: bool) {
        match self {
            Control::Cubic(cubic) if is_long => cubic.on_idle(idle),
            Control::LinuxCubic(cubic) => cubic.on_idle(cfg, now, idle),
            _ => {}
        }
    }
}
