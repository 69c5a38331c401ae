// SPDX-License-Identifier: Apache-2.0
//! DCTCP's sender (RFC 8257 §3.3): the window falls by half the fraction of bytes marked.

/// Scale of alpha: 1.0.
const ONE: u32 = 1 << 10;
/// g = 1/16 (RFC 8257 §3.3).
const GAIN_SHIFT: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Dctcp {
    alpha: u32,
    acked: u64,
    marked: u64,
    /// End of the observation window; 0 before the first ACK.
    until: u64,
}

impl Dctcp {
    /// Alpha starts at 1, so that the first mark halves (RFC 8257 §4.2).
    pub(super) fn new() -> Dctcp {
        Dctcp {
            alpha: ONE,
            acked: 0,
            marked: 0,
            until: 0,
        }
    }

    pub(super) fn on_echo(&mut self, bytes: u32, echo: bool, una: u64, nxt: u64) {
        self.acked += bytes as u64;
        if echo {
            self.marked += bytes as u64;
        }
        if self.until == 0 {
            self.until = nxt;
        }
        if una <= self.until {
            return;
        }
        if let Some(gained) = (self.marked << (10 - GAIN_SHIFT)).checked_div(self.acked) {
            // alpha := alpha (1 - g) + g M; at least 1 is taken off so that it reaches zero.
            let decayed = self.alpha - (self.alpha >> GAIN_SHIFT).max(self.alpha.min(1));
            self.alpha = (decayed + gained as u32).min(ONE);
        }
        (self.acked, self.marked, self.until) = (0, 0, nxt);
    }

    /// cwnd (1 - alpha / 2).
    pub(super) fn decrease(&self, base: u32) -> u32 {
        base - ((base as u64 * self.alpha as u64) >> 11) as u32
    }
}
