// SPDX-License-Identifier: Apache-2.0
//! How many more bytes than the bandwidth explains ACKs bring at once, where the path aggregates
//! them: without as much more window the sender would idle until the next batch.

use super::bytes_in;
use penstock_scenario::units::Time;

/// Each half of the filter lasts as many rounds.
const ROUNDS: u8 = 5;
/// The window grows by what this span carries at most.
const LIMIT: Time = Time::from_millis(100);
/// Segments after which an epoch ends in any case.
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Aggregation {
    /// The greatest excess of the current and the last half.
    extra: [u32; 2],
    half: usize,
    rounds: u8,
    epoch: Time,
    acked: u64,
}

impl Aggregation {
    /// A new epoch begins.
    pub fn restart(&mut self, now: Time) {
        (self.epoch, self.acked) = (now, 0);
    }

    /// A sample was taken as `acked` bytes arrived, where `bandwidth` is expected.
    pub fn on_ack(
        &mut self,
        now: Time,
        acked: u32,
        bandwidth: u64,
        cwnd: u32,
        mss: u32,
        is_round_start: bool,
    ) {
        if is_round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.half ^= 1;
                self.extra[self.half] = 0;
            }
        }
        let mut expected = bytes_in(bandwidth, now.saturating_sub(self.epoch));
        let longest = LONGEST * mss as u64;
        if self.acked <= expected || self.acked + acked as u64 >= longest {
            self.restart(now);
            expected = 0;
        }
        self.acked = (self.acked + acked as u64).min(longest);
        let extra = (self.acked - expected.min(self.acked)).min(cwnd as u64) as u32;
        self.extra[self.half] = self.extra[self.half].max(extra);
    }

    /// Bytes to add to the window at `bandwidth`.
    pub fn window(&self, bandwidth: u64) -> u64 {
        let extra = self.extra[0].max(self.extra[1]) as u64;
        extra.min(bytes_in(bandwidth, LIMIT))
    }
}
