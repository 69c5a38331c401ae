// SPDX-License-Identifier: Apache-2.0
//! The calendar: a winner tree over the sources of events.
//!
//! A source (a link with packets in flight, a port about to finish a transmission, the timers, the
//! schedule) has one next event at most, so a hop costs no allocation. The tree has a leaf for each
//! source that has an event, not for each source: of hundreds of links a few dozen are busy at once,
//! and a small tree is quick to climb. A leaf holds `time << bits | source` in one word: the minimum
//! of two words is the earlier event, and the order does not depend on which source has which leaf.
//! An update walks from a leaf to the root without a branch; its loads do not depend on each other.
//!
//! At one instant the order is that of the sources' numbers, shuffled by bits of the instant: the
//! same on every machine and whatever the order of insertion, but of two sources each wins half of
//! the time. With a fixed order the first of many equal senders takes a full port for itself (the
//! phase effect of Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992).

use penstock_scenario::units::Time;

const EMPTY: u64 = u64::MAX;

/// A source without a leaf.
const NONE: u32 = u32::MAX;

/// Leaves of an empty calendar; more are added as needed.
const FEW: usize = 8;

/// Next event of each of a fixed number of sources.
pub struct Calendar {
    /// `tree[1]` is the root, `tree[leaves + leaf]` the next event of the source with that leaf.
    tree: Vec<u64>,
    leaves: usize,
    /// The leaf of each source that was [`Calendar::set`].
    leaf_of: Vec<u32>,
    /// The first `spare` of these are leaves without a source.
    spares: Vec<u32>,
    spare: usize,
    source_bits: u32,
    /// The bits of a word that a source takes.
    places: u64,
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

/// A stack of `end` places with the leaves from `first` to below `end`, the least on top.
fn spare_leaves(first: usize, end: usize) -> Vec<u32> {
    let mut stack: Vec<u32> = (first as u32..end as u32).rev().collect();
    stack.resize(end, NONE);
    stack
}

impl Calendar {
    /// A calendar of `sources` idle sources; `salt` chooses the order of simultaneous events.
    pub fn new(sources: usize, salt: u64) -> Calendar {
        let source_bits = sources.next_power_of_two().max(2).trailing_zeros();
        Calendar {
            tree: vec![EMPTY; 2 * FEW],
            leaves: FEW,
            leaf_of: vec![NONE; 1 << source_bits],
            spares: spare_leaves(0, FEW),
            spare: FEW,
            source_bits,
            places: (1 << source_bits) - 1,
            salt,
            climb: CLIMBS[FEW.trailing_zeros() as usize],
        }
    }

    /// The last instant that can be scheduled: later ones do not fit the word next to the source.
    pub fn horizon(&self) -> Time {
        Time((EMPTY >> self.source_bits) - 1)
    }

    /// Sets the next event of `source`, which keeps its leaf even with [`Time::NEVER`] for none.
    #[inline(always)]
    pub fn set(&mut self, source: usize, time: Time) {
        if self.leaf_of[source] == NONE {
            self.leaf_of[source] = self.take_spare() as u32;
        }
        let leaf = self.leaf_of[source] as usize;
        let key = self.key(source, time);
        (self.climb)(&mut self.tree, leaf, key);
    }

    /// `source`, which has no leaf, gets one, which is returned: its next event is at `time`.
    #[inline(always)]
    pub fn begin(&mut self, source: usize, time: Time) -> u32 {
        let key = self.key(source, time);
        let leaf = self.take_spare();
        (self.climb)(&mut self.tree, leaf, key);
        leaf as u32
    }

    /// Sets the next event of `source`, which has `leaf`; with [`Time::NEVER`] for none it loses it.
    #[inline(always)]
    pub fn advance(&mut self, source: usize, leaf: u32, time: Time) {
        let key = self.key(source, time);
        // Without a branch: it would be mispredicted every third time.
        self.spares[self.spare] = leaf;
        self.spare += usize::from(key == EMPTY);
        (self.climb)(&mut self.tree, leaf as usize, key);
    }

    #[inline(always)]
    fn take_spare(&mut self) -> usize {
        if self.spare == 0 {
            self.grow();
        }
        self.spare -= 1;
        self.spares[self.spare] as usize
    }

    /// Doubles the leaves.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let before = self.leaves;
        self.leaves = 2 * before;
        let mut tree = vec![EMPTY; 2 * self.leaves];
        tree[self.leaves..][..before].copy_from_slice(&self.tree[before..]);
        for node in (1..self.leaves).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        self.tree = tree;
        self.spares = spare_leaves(before, self.leaves);
        self.spare = before;
        self.climb = CLIMBS[self.leaves.trailing_zeros() as usize];
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
        (Time(key >> self.source_bits), self.source(key))
    }

    /// The sources that lose to the first one 1, 2 and 3 steps below the root: of the first every
    /// second one is the next, of the second every fourth, and so on.
    #[inline(always)]
    pub fn runners_up(&self) -> [usize; 3] {
        let first = self.tree[1];
        let mut node = 1;
        std::array::from_fn(|_| {
            node = 2 * node + usize::from(self.tree[2 * node] != first);
            self.source(self.tree[node ^ 1])
        })
    }

    #[inline(always)]
    fn source(&self, key: u64) -> usize {
        ((key ^ self.shuffle(key >> self.source_bits)) & self.places) as usize
    }

    /// What the sources' numbers are mixed with at this instant.
    #[inline(always)]
    fn shuffle(&self, time: u64) -> u64 {
        (time >> 10 ^ self.salt) & self.places
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
    fn leaves_change_hands_and_every_event_stays() {
        let mut calendar = Calendar::new(100, 5);
        let mut times = [Time::NEVER; 100];
        let mut leaves = [NONE; 100];
        let mut rng = Rng::new(1, 0);
        let mut now = Time::ZERO;
        for _ in 0..10_000 {
            for _ in 0..rng.below(4) {
                let source = rng.below(100) as usize;
                if times[source] == Time::NEVER {
                    times[source] = now + Time(rng.below(50));
                    leaves[source] = calendar.begin(source, times[source]);
                }
            }
            let (time, source) = calendar.first();
            match times.iter().min() {
                Some(&earliest) if earliest < Time::NEVER => {
                    assert_eq!((time, times[source]), (earliest, earliest));
                    now = time;
                    times[source] = match rng.below(2) {
                        0 => Time::NEVER,
                        _ => now + Time(rng.below(50)),
                    };
                    calendar.advance(source, leaves[source], times[source]);
                }
                _ => assert!(time > calendar.horizon()),
            }
        }
    }

    #[test]
    fn of_eight_events_the_second_is_a_runner_up() {
        let mut calendar = Calendar::new(8, 5);
        let mut rng = Rng::new(1, 0);
        for _ in 0..100 {
            let times: [Time; 8] = std::array::from_fn(|i| Time(rng.below(1000) << 3 | i as u64));
            for (source, time) in times.iter().enumerate() {
                calendar.set(source, *time);
            }
            let (first, _) = calendar.first();
            let later = (0..8).filter(|&source| times[source] > first);
            let second = later.min_by_key(|&source| times[source]);
            assert!(second.is_some_and(|it| calendar.runners_up().contains(&it)));
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
