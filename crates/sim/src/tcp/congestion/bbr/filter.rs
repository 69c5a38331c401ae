// SPDX-License-Identifier: Apache-2.0
//! The greatest rate of the last rounds.

use std::collections::VecDeque;

/// Rounds that a sample counts: a cycle of gains and two more.
const ROUNDS: u64 = 10;

/// Samples by round, each greater than all after it.
#[derive(Debug, Default)]
pub(super) struct MaxFilter(VecDeque<(u64, u64)>);

impl MaxFilter {
    /// The greatest sample; 0 for none.
    pub fn max(&self) -> u64 {
        self.0.front().map_or(0, |&(_, rate)| rate)
    }

    pub fn add(&mut self, round: u64, rate: u64) {
        while self.0.back().is_some_and(|&(_, last)| last <= rate) {
            self.0.pop_back();
        }
        self.0.push_back((round, rate));
        while self.0.front().is_some_and(|&(of, _)| of + ROUNDS < round) {
            self.0.pop_front();
        }
    }
}
