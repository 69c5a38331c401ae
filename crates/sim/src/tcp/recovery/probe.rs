// SPDX-License-Identifier: Apache-2.0
//! The tail loss probe in flight (RFC 8985 §7): a segment sent to draw an ACK before the timeout
//! strikes.

/// A probe, if one is in flight.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// SND.NXT when it was sent; 0 for none in flight.
    end: u64,
    /// It repeated a segment.
    repeats: bool,
}

impl Probe {
    /// Whether a probe is in flight.
    #[inline]
    pub fn is_in_flight(&self) -> bool {
        self.end != 0
    }

    /// A probe left; `nxt`: SND.NXT after it.
    pub fn start(&mut self, nxt: u64, repeats: bool) {
        *self = Probe { end: nxt, repeats };
    }

    /// The outcome no longer matters.
    pub fn end(&mut self) {
        self.end = 0;
    }

    /// An ACK moved SND.UNA to `una` (RFC 8985 §7.4.2). `duplicate`: it reported a segment received
    /// twice; `is_bare`: it did nothing but repeat SND.UNA. True where the probe repaired a loss
    /// that nothing else has shown.
    pub fn on_ack(&mut self, una: u64, duplicate: bool, is_bare: bool) -> bool {
        if self.end == 0 || una < self.end {
            return false;
        }
        let is_beyond = una > self.end;
        let is_new_or_reported = !self.repeats || duplicate;
        if is_new_or_reported || is_beyond || is_bare {
            self.end = 0;
        }
        !is_new_or_reported && is_beyond
    }
}
