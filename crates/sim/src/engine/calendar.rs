// SPDX-License-Identifier: Apache-2.0
//! The calendar: a winner tree over the sources of events.
//!
//! A source (a link with packets in flight, a port about to finish a transmission, the timers, the
//! schedule) has one next event at most, so the tree never grows and a hop costs no allocation. A
//! leaf is `time << bits | source` in one word: the minimum of two words is the earlier event and,
//! at one instant, the source of lower number, whatever the order of insertion. An update walks
//! from a leaf to the root without a branch; its loads do not depend on each other.

use crate::units::Time;

const EMPTY: u64 = u64::MAX;

/// Next event of each of a fixed number of sources.
pub struct Calendar {
    /// `tree[1]` is the root, `tree[leaves + source]` a source's next event.
    tree: Vec<u64>,
    leaves: usize,
    source_bits: u32,
}

impl Calendar {
    /// A calendar of `sources` idle sources.
    pub fn new(sources: usize) -> Calendar {
        let leaves = sources.next_power_of_two().max(2);
        Calendar {
            tree: vec![EMPTY; 2 * leaves],
            leaves,
            source_bits: leaves.trailing_zeros(),
        }
    }

    /// The last instant that can be scheduled: later ones do not fit the word beside the source.
    pub fn horizon(&self) -> Time {
        Time((EMPTY >> self.source_bits) - 1)
    }

    /// Sets the next event of `source`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub fn set(&mut self, source: usize, time: Time) {
        debug_assert!(source < self.leaves);
        let key = if time == Time::NEVER { EMPTY } else { time.0 << self.source_bits | source as u64 };
        let mut node = self.leaves + (source & (self.leaves - 1));
        let mut least = key;
        // SAFETY: node < 2 * leaves = tree.len(), and it only shrinks; node ^ 1 is its sibling, as
        // tree.len() is even. A third of all time is spent here: the checks cost 8 % of a run.
        unsafe {
            *self.tree.get_unchecked_mut(node) = key;
            while node > 1 {
                least = least.min(*self.tree.get_unchecked(node ^ 1));
                node >>= 1;
                *self.tree.get_unchecked_mut(node) = least;
            }
        }
    }

    /// The earliest event: its time and source.
    #[inline(always)]
    pub fn first(&self) -> (Time, usize) {
        let key = self.tree[1];
        (Time(key >> self.source_bits), (key & (self.leaves as u64 - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn pops_in_order_of_time_then_source() {
        let mut calendar = Calendar::new(37);
        let mut times = [Time::NEVER; 37];
        let mut rng = Rng::new(1, 0);
        for _ in 0..10_000 {
            let source = rng.below(37) as usize;
            let time = if rng.below(4) == 0 { Time::NEVER } else { Time(rng.below(50)) };
            times[source] = time;
            calendar.set(source, time);
            let expected = times.iter().enumerate().map(|(s, t)| (*t, s)).min();
            let (time, source) = calendar.first();
            match expected {
                Some((Time::NEVER, _)) | None => assert!(time > calendar.horizon()),
                Some(event) => assert_eq!((time, source), event),
            }
        }
    }
}
