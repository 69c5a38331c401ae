// SPDX-License-Identifier: Apache-2.0
//! The calendar: a winner tree over the sources of events.
//!
//! A source (a link with packets in flight, a port about to finish a transmission, the timers, the
//! schedule) has one next event at most, so the tree never grows and a hop costs no allocation. A
//! leaf is `time << bits | source` in one word: the minimum of two words is the earlier event. An
//! update walks from a leaf to the root without a branch; its loads do not depend on each other.
//!
//! At one instant the order is that of the sources' numbers, shuffled by a hash of the instant: the
//! same on every machine and whatever the order of insertion, but of two sources each wins half of
//! the time. With
//! a fixed order the first of many equal senders takes a full port for itself (the phase effect of
//! Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992).

use crate::units::Time;

const EMPTY: u64 = u64::MAX;

/// Next event of each of a fixed number of sources.
pub struct Calendar {
    /// `tree[1]` is the root, `tree[leaves + source]` a source's next event.
    tree: Vec<u64>,
    leaves: usize,
    source_bits: u32,
    salt: u64,
}

impl Calendar {
    /// A calendar of `sources` idle sources; `salt` chooses the order of simultaneous events.
    pub fn new(sources: usize, salt: u64) -> Calendar {
        let leaves = sources.next_power_of_two().max(2);
        Calendar {
            tree: vec![EMPTY; 2 * leaves],
            leaves,
            source_bits: leaves.trailing_zeros(),
            salt,
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
        let place = source as u64 ^ self.shuffle(time.0);
        let key = if time == Time::NEVER {
            EMPTY
        } else {
            time.0 << self.source_bits | place
        };
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
        let time = key >> self.source_bits;
        let source = (key ^ self.shuffle(time)) & (self.leaves as u64 - 1);
        (Time(time), source as usize)
    }

    /// What the sources' numbers are mixed with at this instant.
    #[inline(always)]
    fn shuffle(&self, time: u64) -> u64 {
        ((time ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & (self.leaves as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_first_event_is_the_earliest_and_ties_take_turns() {
        let mut calendar = Calendar::new(37, 5);
        let mut times = [Time::NEVER; 37];
        let mut rng = Rng::new(1, 0);
        for _ in 0..10_000 {
            let source = rng.below(37) as usize;
            let time = if rng.below(4) == 0 {
                Time::NEVER
            } else {
                Time(rng.below(50))
            };
            times[source] = time;
            calendar.set(source, time);
            let (time, source) = calendar.first();
            match times.iter().min() {
                Some(&earliest) if earliest < Time::NEVER => {
                    assert_eq!((time, times[source]), (earliest, earliest));
                }
                _ => assert!(time > calendar.horizon()),
            }
        }
    }

    #[test]
    fn of_two_simultaneous_events_each_comes_first_half_of_the_time() {
        let mut calendar = Calendar::new(37, 5);
        for (one, other) in [(0, 1), (3, 36), (20, 33)] {
            let wins = (0..1000).filter(|time| {
                calendar.set(one, Time(*time));
                calendar.set(other, Time(*time));
                calendar.first().1 == one
            });
            let wins = wins.count();
            assert!((450..550).contains(&wins), "{one} wins {wins} times");
            calendar.set(one, Time::NEVER);
            calendar.set(other, Time::NEVER);
        }
    }
}
