// SPDX-License-Identifier: Apache-2.0
//! How long the next segment may be: the peer's window, Nagle and silly-window avoidance.

use super::Sender;
use crate::tcp::config::{Config, Nagle};

impl Sender {
    /// Right edge of what the peer's window and [`Config::max_send_window`] allow.
    #[inline]
    pub fn edge(&self, cfg: &Config) -> u64 {
        self.una + self.window.min(cfg.max_send_window) as u64
    }

    /// Payload of the next segment as far as the peer's window, Nagle and silly-window avoidance
    /// allow, with `in_flight` bytes in the network; `None` to wait. `must_try`: the head may
    /// leave though the window has shrunk below it.
    #[inline]
    pub fn next_len(&self, cfg: &Config, in_flight: u32, must_try: bool) -> Option<u16> {
        let (mss, unsent) = (self.mss as u64, self.unsent());
        let usable = self.edge(cfg).saturating_sub(self.nxt);
        let len = mss.min(unsent).min(usable);
        if len == mss {
            return Some(self.mss);
        }
        if must_try {
            return Some(mss.min(unsent) as u16);
        }
        self.may_send_short(cfg, len, in_flight)
            .then_some(len as u16)
    }

    /// Sender's silly-window avoidance and Nagle (RFC 9293 §3.8.6.2.1, §3.7.4). Linux fills what the
    /// window has left, too, as long as no other short segment is in flight; so a receiver that is
    /// shown one segment and a part acknowledges both at once, where it would delay the ACK of one.
    fn may_send_short(&self, cfg: &Config, len: u64, in_flight: u32) -> bool {
        if len == 0 {
            return false;
        }
        let is_held = self.holds_short(cfg, in_flight);
        if len == self.unsent() {
            return !is_held || self.fin || self.is_repeating();
        }
        len >= self.max_window as u64 / 2 || cfg.nagle == Nagle::Minshall && !is_held
    }

    /// Whether a short segment has to wait for an ACK.
    pub(super) fn holds_short(&self, cfg: &Config, in_flight: u32) -> bool {
        match cfg.nagle {
            Nagle::Off => false,
            Nagle::On => in_flight > 0,
            Nagle::Minshall => self.short_end > self.una,
        }
    }

    /// Payload of a new segment that the peer's window takes whole; 0 for none.
    pub fn next_whole(&self, cfg: &Config) -> u16 {
        let len = self.unsent().min(self.mss as u64);
        if self.nxt + len <= self.edge(cfg) {
            len as u16
        } else {
            0
        }
    }

    /// What little the window allows, to probe with; 0 while it is closed.
    pub fn next_probe(&self) -> u16 {
        let window = (self.window as u64).min(self.mss as u64);
        self.unsent().min(window) as u16
    }

    /// Bytes from `seq` that were sent before, `len` at most.
    pub fn sent_from(&self, seq: u64, len: u16) -> u16 {
        (len as u64)
            .min(self.end.saturating_sub(seq))
            .min(self.max - seq) as u16
    }

    /// Whether less than a segment is also less than half of the peer's largest window, and so never
    /// worth sending into a window that is almost full.
    #[inline]
    pub fn skips_slivers(&self) -> bool {
        self.max_window >= 2 * self.mss as u32
    }

    /// The segment that has just left was a short one, for Minshall's rule.
    #[inline]
    pub fn note_short(&mut self) {
        self.short_end = self.nxt;
    }

    /// Takes a full new segment for sending, if it ends below `edge` and is not the last one;
    /// returns where it starts.
    #[inline]
    pub fn take_full(&mut self, edge: u64) -> Option<u64> {
        let (seq, end) = (self.nxt, self.nxt + self.mss as u64);
        if end > edge || end >= self.end {
            return None;
        }
        self.nxt = end;
        self.max = end;
        Some(seq)
    }
}
