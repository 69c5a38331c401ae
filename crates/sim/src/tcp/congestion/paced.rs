// SPDX-License-Identifier: Apache-2.0
//! Congestion controls that pace and model the path, as BBR does: what the end point reports to them. All
//! of it does nothing for the others.

use super::Congestion;
use super::bbr::Feedback;
use super::control::Control;
use crate::tcp::config::Config;
use crate::tcp::rtt::Rtt;
use crate::tcp::sender::Sender;
use penstock_scenario::units::Time;

impl Congestion {
    /// Whether a model sets window and rate, so that recovery must not.
    #[inline]
    pub fn is_modelled(&self) -> bool {
        matches!(self.control, Control::Bbr(_))
    }

    /// Whether pacing lets nothing leave now.
    #[inline]
    pub fn is_held(&self, now: Time) -> bool {
        match &self.control {
            Control::Bbr(bbr) => bbr.pacer().is_held(now),
            _ => false,
        }
    }

    /// When pacing lets the next burst leave that waits; NEVER where none does.
    pub fn wake(&self) -> Time {
        match &self.control {
            Control::Bbr(bbr) => bbr.pacer().wake(),
            _ => Time::NEVER,
        }
    }

    /// All that may leave now has left. `is_waiting`: pacing alone holds more back.
    pub fn end_burst(&mut self, now: Time, is_waiting: bool) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.pacer_mut().end_burst(now, is_waiting);
        }
    }

    /// The application has nothing more to send, though the window has room.
    pub fn limit_by_application(&mut self, in_flight: u32) {
        if in_flight < self.window.cwnd
            && let Control::Bbr(bbr) = &mut self.control
        {
            bbr.limit(in_flight);
        }
    }

    /// A segment of `len` bytes leaves, a new one or again.
    #[cold]
    pub fn on_paced(&mut self, cfg: &Config, now: Time, len: u16, snd: &Sender, rtt: &Rtt) {
        if let Control::Bbr(bbr) = &mut self.control {
            let (mss, smoothed) = (snd.mss() as u32, rtt.smoothed(cfg));
            bbr.on_sent(now, len, snd.is_idle(), &self.window, mss, smoothed);
        }
    }

    /// An ACK, after losses were looked for.
    pub fn on_feedback(&mut self, ack: &Feedback) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_ack(&mut self.window, ack);
        }
    }
}
