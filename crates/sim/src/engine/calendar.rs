// SPDX-License-Identifier: Apache-2.0
//! The calendar: a winner tree over the sources of events.
//!
//! A source (a link with packets in flight, a port about to finish a transmission, the timers, the
//! schedule) has one next event at most, so the tree never grows and a hop costs no allocation. A
//! leaf is `time << bits | source` in one word: the minimum of two words is the earlier event. An
//! update walks from a leaf to the root without a branch; its loads do not depend on each other. A
//! third of all time is spent here.
//!
//! At one instant the order is that of the sources' numbers, shuffled by bits of the instant: the
//! same on every machine and whatever the order of insertion, but of two sources each wins half of
//! the time. With a fixed order the first of many equal senders takes a full port for itself (the
//! phase effect of Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992).

use penstock_scenario::units::Time;

const EMPTY: u64 = u64::MAX;

/// Next event of each of a fixed number of sources.
pub struct Calendar {
    /// `tree[1]` is the root, `tree[leaves + source]` a source's next event.
    tree: Vec<u64>,
    leaves: usize,
    source_bits: u32,
    salt: u64,
    /// Sets a leaf and all above it.
    climb: Climb,
}

type Climb = fn(&mut [u64], usize, u64);

/// Sets leaf number `leaf` of a tree of `1 << HEIGHT` leaves, and all above it. The height is a
/// constant so that no loop ends: its end was mispredicted once a hop, a fifth of all time.
fn climb<const HEIGHT: u32>(tree: &mut [u64], leaf: usize, key: u64) {
    assert!(tree.len() == 2 << HEIGHT && leaf < 1 << HEIGHT);
    let mut node = (1 << HEIGHT) + leaf;
    let mut least = key;
    // SAFETY: node < tree.len() by the assertion, and it only shrinks; node ^ 1 is its sibling, as
    // tree.len() is even.
    unsafe {
        *tree.get_unchecked_mut(node) = key;
        for _ in 0..HEIGHT {
            least = least.min(*tree.get_unchecked(node ^ 1));
            node >>= 1;
            *tree.get_unchecked_mut(node) = least;
        }
    }
}

/// [`climb`] by height, to 2^26 leaves: as many links as a path can name.
const CLIMBS: [Climb; 27] = [
    climb::<0>,
    climb::<1>,
    climb::<2>,
    climb::<3>,
    climb::<4>,
    climb::<5>,
    climb::<6>,
    climb::<7>,
    climb::<8>,
    climb::<9>,
    climb::<10>,
    climb::<11>,
    climb::<12>,
    climb::<13>,
    climb::<14>,
    climb::<15>,
    climb::<16>,
    climb::<17>,
    climb::<18>,
    climb::<19>,
    climb::<20>,
    climb::<21>,
    climb::<22>,
    climb::<23>,
    climb::<24>,
    climb::<25>,
    climb::<26>,
];

impl Calendar {
    /// A calendar of `sources` idle sources; `salt` chooses the order of simultaneous events.
    pub fn new(sources: usize, salt: u64) -> Calendar {
        let leaves = sources.next_power_of_two().max(2);
        Calendar {
            tree: vec![EMPTY; 2 * leaves],
            leaves,
            source_bits: leaves.trailing_zeros(),
            salt,
            climb: CLIMBS[leaves.trailing_zeros() as usize],
        }
    }

    /// The last instant that can be scheduled: later ones do not fit the word next to the source.
    pub fn horizon(&self) -> Time {
        Time((EMPTY >> self.source_bits) - 1)
    }

    /// Sets the next event of `source`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub fn set(&mut self, source: usize, time: Time) {
        debug_assert!(source < self.leaves);
        let key = self.key(source, time);
        (self.climb)(&mut self.tree, source & (self.leaves - 1), key);
    }

    /// As [`Calendar::set`], but not in force until `source ^ 1` or `source` itself is set: two
    /// neighbours that change together cost one way to the root.
    #[inline(always)]
    pub fn set_own(&mut self, source: usize, time: Time) {
        debug_assert!(source < self.leaves);
        let key = self.key(source, time);
        let leaf = self.leaves + (source & (self.leaves - 1));
        // SAFETY: leaf < 2 * leaves = tree.len().
        unsafe { *self.tree.get_unchecked_mut(leaf) = key };
    }

    #[inline(always)]
    fn key(&self, source: usize, time: Time) -> u64 {
        let place = source as u64 ^ self.shuffle(time.0);
        let key = time.0 << self.source_bits | place;
        // Beyond the horizon is never: no run goes there.
        if time.0 >= EMPTY >> self.source_bits {
            EMPTY
        } else {
            key
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

    /// The source that loses to `source`, the first one, `depth` steps below the root: of depth 1
    /// every second one is the next, of depth 2 every fourth, and so on.
    #[inline(always)]
    pub fn runner_up(&self, source: usize, depth: u32) -> usize {
        let node = (self.leaves + source) >> (self.source_bits - depth);
        let key = self.tree[node ^ 1];
        let time = key >> self.source_bits;
        ((key ^ self.shuffle(time)) & (self.leaves as u64 - 1)) as usize
    }

    /// What the sources' numbers are mixed with at this instant.
    #[inline(always)]
    fn shuffle(&self, time: u64) -> u64 {
        (time >> 10 ^ self.salt) & (self.leaves as u64 - 1)
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
                // Slots of 12 us, as full packets at 1 Gb/s leave them.
                let time = Time::from_micros(12 * time);
                calendar.set(one, time);
                calendar.set(other, time);
                calendar.first().1 == one
            });
            let wins = wins.count();
            assert!((450..550).contains(&wins), "{one} wins {wins} times");
            calendar.set(one, Time::NEVER);
            calendar.set(other, Time::NEVER);
        }
    }
}
