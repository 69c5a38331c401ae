// SPDX-License-Identifier: Apache-2.0
//! Long-term bandwidth: where two intervals with heavy loss deliver at about one rate, a policer is
//! assumed, and its rate is used for a while.

use penstock_scenario::units::Time;

/// Rounds of an interval, at least.
const LEAST_ROUNDS: u32 = 4;
/// Rounds without a result after which sampling ends.
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Rounds that a found rate is used.
const USED_ROUNDS: u32 = 48;
/// Loss of a policer: a share of the bytes delivered, in 1/256.
const LOSS: u64 = 50;
/// Two rates are one if they differ by an eighth or by 4 kb/s at most; bytes per second.
const CLOSE: u64 = 500;

#[derive(Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    is_in_use: bool,
    rounds: u32,
    /// The rate of the last interval, bytes per second; 0 before the first.
    rate: u64,
    /// At the start of the interval.
    since: Time,
    lost: u64,
    delivered: u64,
}

/// Counters of the connection at an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub now: Time,
    pub lost: u64,
    pub delivered: u64,
}

impl Policer {
    /// The policer's rate, while it is used.
    pub fn rate(&self) -> Option<u64> {
        self.is_in_use.then_some(self.rate)
    }

    /// Forgets everything.
    pub fn reset(&mut self, totals: Totals) {
        *self = Policer::default();
        self.begin(totals);
    }

    fn begin(&mut self, totals: Totals) {
        self.since = totals.now;
        self.lost = totals.lost;
        self.delivered = totals.delivered;
        self.rounds = 0;
    }

    /// A round begins while the rate is used; true where it has been used long enough.
    pub fn is_worn(&mut self) -> bool {
        self.rounds += 1;
        self.rounds >= USED_ROUNDS
    }

    /// An ACK while no rate is used. `has_lost`: it revealed a loss.
    pub fn on_ack(
        &mut self,
        totals: Totals,
        has_lost: bool,
        is_app_limited: bool,
        is_round_start: bool,
    ) {
        if !self.is_sampling {
            if !has_lost {
                return;
            }
            self.begin(totals);
            self.is_sampling = true;
        }
        if is_app_limited {
            return self.reset(totals);
        }
        self.rounds += is_round_start as u32;
        if self.rounds < LEAST_ROUNDS {
            return;
        }
        if self.rounds > MOST_ROUNDS {
            return self.reset(totals);
        }
        let lost = totals.lost - self.lost;
        let delivered = totals.delivered - self.delivered;
        let span = totals.now.saturating_sub(self.since);
        let is_heavy = delivered > 0 && lost << 8 >= LOSS * delivered;
        if !has_lost || !is_heavy || span < Time::from_millis(1) {
            return;
        }
        self.end_interval(totals, delivered * 1_000_000 / span.as_micros());
    }

    fn end_interval(&mut self, totals: Totals, rate: u64) {
        let difference = rate.abs_diff(self.rate);
        if self.rate > 0 && (difference * 8 <= self.rate || difference <= CLOSE) {
            self.rate = (rate + self.rate) / 2;
            self.is_in_use = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin(totals);
        }
    }
}
