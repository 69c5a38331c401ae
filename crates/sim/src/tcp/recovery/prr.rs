// SPDX-License-Identifier: Apache-2.0
//! Proportional rate reduction (RFC 6937): what is sent during recovery follows what is delivered.

/// One recovery's account, bytes.
#[derive(Debug, Default)]
pub(super) struct Prr {
    delivered: u64,
    out: u64,
    at_start: u64,
}

impl Prr {
    /// Recovery starts with `bytes` between SND.UNA and SND.NXT (RecoverFS), or, in Linux, with a window
    /// of as many (`prior_cwnd`).
    pub fn start(&mut self, bytes: u32) {
        *self = Prr {
            delivered: 0,
            out: 0,
            at_start: bytes.max(1) as u64,
        };
    }

    pub fn on_sent(&mut self, bytes: u32) {
        self.out += bytes as u64;
    }

    /// The window after an ACK that delivered `delivered` bytes. `is_healthy`: it advanced SND.UNA
    /// and showed no further loss; only then the window may catch up as in slow start (SSRB; else
    /// conservatively, CRB), as Linux has it.
    pub fn window(
        &mut self,
        delivered: u32,
        pipe: u32,
        ssthresh: u32,
        mss: u32,
        is_healthy: bool,
    ) -> u32 {
        self.delivered += delivered as u64;
        let allowed = if pipe > ssthresh {
            // Rounded up to a segment, the unit of the RFC's arithmetic.
            let proportion = self.delivered * ssthresh as u64;
            let segments = proportion.div_ceil(self.at_start * mss as u64);
            (segments * mss as u64).saturating_sub(self.out)
        } else {
            let owed = self
                .delivered
                .saturating_sub(self.out)
                .max(delivered as u64);
            let limit = if is_healthy { owed + mss as u64 } else { owed };
            limit.min((ssthresh - pipe) as u64)
        };
        // The first retransmission always leaves.
        let floor = if self.out == 0 { mss as u64 } else { 0 };
        pipe + allowed.max(floor) as u32
    }
}
